//! Being told what happens in a run, as it happens.

use std::future::ready;

use crate::agent::Agent;
use crate::callback::{BoxError, BoxFuture};
use crate::context::RunContext;
use crate::model::{ModelRequest, ModelResponse};
use crate::output::FinalOutput;
use crate::run::HandoffCall;
use crate::tool::{Tool, ToolContext, ToolOutput};

/// What a hook returns: an error stops the run.
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

        /// The same behind a pointer.
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
    /// Every method has a default that does nothing; write the ones you need.
    ///
    /// ```
    /// use switchboard_core::{Agent, HandoffCall, HookResult, RunContext, RunHooks};
    ///
    /// struct PrintHandoffs;
    ///
    /// impl RunHooks<()> for PrintHandoffs {
    ///     async fn on_handoff(
    ///         &self,
    ///         _ctx: &RunContext<()>,
    ///         from: &Agent,
    ///         to: &Agent,
    ///         _call: &HandoffCall,
    ///     ) -> HookResult {
    ///         println!("{} → {}", from.name(), to.name());
    ///         Ok(())
    ///     }
    /// }
    /// ```
    RunHooks, DynRunHooks {
        /// An agent has got the conversation.
        on_agent_start / agent_start(agent: &Agent<C>);
        /// An agent has the final output.
        on_agent_end / agent_end(agent: &Agent<C>, output: &FinalOutput);
        /// The model is about to be asked.
        on_llm_start / llm_start(agent: &Agent<C>, request: &ModelRequest);
        /// The model has answered.
        on_llm_end / llm_end(agent: &Agent<C>, response: &ModelResponse);
        /// A tool is about to run.
        on_tool_start / tool_start(agent: &Agent<C>, tool: &Tool<C>, call: &ToolContext<C>);
        /// A tool has run.
        on_tool_end / tool_end(
            agent: &Agent<C>,
            tool: &Tool<C>,
            call: &ToolContext<C>,
            output: &ToolOutput
        );
        /// A handoff took place; the callback of the handoff has run. The call holds the payload.
        on_handoff / handoff(from: &Agent<C>, to: &Agent<C>, call: &HandoffCall);
    }
}

hooks! {
    /// Hooks of one agent.
    ///
    /// Every method has a default that does nothing; write the ones you need.
    AgentHooks, DynAgentHooks {
        /// The agent has got the conversation.
        on_start / start(agent: &Agent<C>);
        /// The agent has the final output.
        on_end / end(agent: &Agent<C>, output: &FinalOutput);
        /// The model is about to be asked.
        on_llm_start / llm_start(agent: &Agent<C>, request: &ModelRequest);
        /// The model has answered.
        on_llm_end / llm_end(agent: &Agent<C>, response: &ModelResponse);
        /// A tool is about to run.
        on_tool_start / tool_start(agent: &Agent<C>, tool: &Tool<C>, call: &ToolContext<C>);
        /// A tool has run.
        on_tool_end / tool_end(
            agent: &Agent<C>,
            tool: &Tool<C>,
            call: &ToolContext<C>,
            output: &ToolOutput
        );
        /// The agent, `source`, has handed the conversation to `agent`.
        on_handoff / handoff(agent: &Agent<C>, source: &Agent<C>, call: &HandoffCall);
    }
}
