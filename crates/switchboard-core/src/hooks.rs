//! Hooks: user code that is called as a run proceeds.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{BoxError, BoxFuture};
use crate::context::RunContext;
use crate::handle::into_handle;
use crate::model::{ModelRequest, ModelResponse};
use crate::output::FinalOutput;
use crate::run::HandoffCall;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput};

/// The result of a hook: an error stops the run.
pub type HookResult = Result<(), BoxError>;

macro_rules! hooks {
    ($(#[$doc:meta])* $hooks:ident, $dyn:ident {
        $($(#[$method_doc:meta])* $method:ident / $dyn_method:ident ( $($arg:ident: &$ty:ty),* );)*
    }) => {
        $(#[$doc])*
        #[expect(unused_variables, reason = "the names document the arguments of each hook")]
        pub trait $hooks<C: Send + Sync + 'static = ()>: Send + Sync + 'static {
            $($(#[$method_doc])*
            fn $method(
                &self,
                ctx: &RunContext<C>,
                $($arg: &$ty),*
            ) -> impl Future<Output = HookResult> + Send {
                ready(Ok(()))
            })*
        }

        /// The same trait as a trait object.
        pub(crate) trait $dyn<C>: Send + Sync {
            $(fn $dyn_method<'a>(
                &'a self,
                ctx: &'a RunContext<C>,
                $($arg: &'a $ty),*
            ) -> BoxFuture<'a, HookResult>;)*
        }

        impl<C: Send + Sync + 'static, H: $hooks<C>> $dyn<C> for H {
            $(fn $dyn_method<'a>(
                &'a self,
                ctx: &'a RunContext<C>,
                $($arg: &'a $ty),*
            ) -> BoxFuture<'a, HookResult> {
                Box::pin(self.$method(ctx, $($arg),*))
            })*
        }
    };
}

hooks! {
    /// Hooks of a whole run, over all its agents.
    ///
    /// Every method has a default that does nothing; implement the ones you need.
    ///
    /// ```
    /// use switchboard_core::RunContext;
    /// use switchboard_core::hooks::{HookResult, RunHooks, Transfer};
    ///
    /// struct PrintHandoffs;
    ///
    /// impl RunHooks<()> for PrintHandoffs {
    ///     async fn on_handoff(&self, _ctx: &RunContext<()>, transfer: &Transfer<'_>) -> HookResult {
    ///         println!("{} → {}", transfer.from.name(), transfer.to.name());
    ///         Ok(())
    ///     }
    /// }
    /// ```
    RunHooks, DynRunHooks {
        /// Called when an agent has got the conversation.
        on_agent_start / agent_start(agent: &Agent<C>);
        /// Called when an agent has the final output.
        on_agent_end / agent_end(agent: &Agent<C>, output: &FinalOutput);
        /// Called before the model is asked.
        on_llm_start / llm_start(agent: &Agent<C>, request: &ModelRequest);
        /// Called when the model has responded.
        on_llm_end / llm_end(agent: &Agent<C>, response: &ModelResponse);
        /// Called before a tool runs.
        on_tool_start / tool_start(agent: &Agent<C>, tool: &Tool<C>, call: &ToolContext<C>);
        /// Called when a tool has run.
        on_tool_end / tool_end(
            agent: &Agent<C>,
            tool: &Tool<C>,
            call: &ToolContext<C>,
            end: &ToolEnd<'_>
        );
        /// Called when a handoff is taken, after its callback.
        on_handoff / handoff(transfer: &Transfer<'_, C>);
    }
}

hooks! {
    /// Hooks of one agent.
    ///
    /// Every method has a default that does nothing; implement the ones you need.
    AgentHooks, DynAgentHooks {
        /// Called when the agent has got the conversation.
        on_start / agent_start(agent: &Agent<C>);
        /// Called when the agent has the final output.
        on_end / agent_end(agent: &Agent<C>, output: &FinalOutput);
        /// Called before the model is asked.
        on_llm_start / llm_start(agent: &Agent<C>, request: &ModelRequest);
        /// Called when the model has responded.
        on_llm_end / llm_end(agent: &Agent<C>, response: &ModelResponse);
        /// Called before a tool runs.
        on_tool_start / tool_start(agent: &Agent<C>, tool: &Tool<C>, call: &ToolContext<C>);
        /// Called when a tool has run.
        on_tool_end / tool_end(
            agent: &Agent<C>,
            tool: &Tool<C>,
            call: &ToolContext<C>,
            end: &ToolEnd<'_>
        );
        /// Called when the agent, `transfer.from`, hands the conversation over.
        on_handoff / handoff(transfer: &Transfer<'_, C>);
    }
}

/// The end of a tool call.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolEnd<'a> {
    /// The output for the model; the failure text, where the tool failed.
    pub output: &'a ToolOutput,
    /// The failure.
    pub error: Option<&'a ToolError>,
    /// The time the tool took.
    pub duration: Duration,
}

/// A handoff that is being taken.
#[non_exhaustive]
pub struct Transfer<'a, C = ()> {
    /// The agent that had the conversation.
    pub from: &'a Agent<C>,
    /// The agent that gets it.
    pub to: &'a Agent<C>,
    /// The model's call; one that is in no history, if a condition takes the handoff without the model.
    pub call: &'a HandoffCall,
    /// The arguments of the call; an empty object where there are none.
    pub payload: &'a Value,
}

impl<C> fmt::Debug for Transfer<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfer({} → {})", self.from.name(), self.to.name())
    }
}

/// A handle to the hooks of a run; clones share them.
pub struct HooksHandle<C>(pub(crate) Arc<dyn DynRunHooks<C>>);

/// A handle to the hooks of an agent; clones share them.
pub struct AgentHooksHandle<C>(pub(crate) Arc<dyn DynAgentHooks<C>>);

macro_rules! hooks_handle {
    ($handle:ident, $hooks:ident) => {
        impl<C: Send + Sync + 'static> $handle<C> {
            /// Creates a handle.
            pub fn new(hooks: impl $hooks<C>) -> Self {
                Self::from_arc(Arc::new(hooks))
            }

            fn from_arc(hooks: Arc<impl $hooks<C>>) -> Self {
                Self(hooks)
            }
        }

        impl_clone! { struct $handle<C> { 0 } }
        impl_debug!($handle<C>);

        into_handle! { impl[C] $handle<C>, made of [C: Send + Sync + 'static, H: $hooks<C>] H }
    };
}

hooks_handle!(HooksHandle, RunHooks);
hooks_handle!(AgentHooksHandle, AgentHooks);
