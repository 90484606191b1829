//! Calling hooks: those of the run, and those of the agent that has the conversation.

use super::{Driver, user_error};
use crate::callback::{BoxFuture, catch_panic};
use crate::context::RunContext;
use crate::error::Error;
use crate::hooks::{HookResult, ToolEnd, Transfer};
use crate::journal::StepKind;
use crate::model::{ModelRequest, ModelResponse};
use crate::output::FinalOutput;
use crate::tool::{Tool, ToolContext};

/// The occasions on which hooks are called.
pub(super) enum HookCall<'a, C> {
    AgentStart,
    AgentEnd(&'a FinalOutput),
    ModelStart(&'a ModelRequest),
    ModelEnd(&'a ModelResponse),
    ToolStart(&'a Tool<C>, &'a ToolContext<C>),
    ToolEnd(&'a Tool<C>, &'a ToolContext<C>, &'a ToolEnd<'a>),
    Handoff(&'a Transfer<'a, C>),
}

impl<C> HookCall<'_, C> {
    fn name(&self) -> &'static str {
        match self {
            Self::AgentStart => "the agent's start",
            Self::AgentEnd(_) => "the agent's end",
            Self::ModelStart(_) => "the model's start",
            Self::ModelEnd(_) => "the model's end",
            Self::ToolStart(..) => "a tool's start",
            Self::ToolEnd(..) => "a tool's end",
            Self::Handoff(..) => "the handoff",
        }
    }

    /// The identifier of the tool call, after a space: calls run concurrently.
    fn call_id(&self) -> String {
        match self {
            Self::ToolStart(_, call) | Self::ToolEnd(_, call, _) => format!(" {}", call.call_id()),
            _ => String::new(),
        }
    }
}

/// Calls hooks one after the other. Those of runs and of agents are different traits with the same
/// methods.
macro_rules! call_each {
    ($all:expr, $driver:expr, $occasion:expr) => {{
        let (ctx, agent) = (&$driver.hook_context($occasion), &$driver.agent);
        for hooks in $all {
            let hooks = &*hooks.0;
            match $occasion {
                HookCall::AgentStart => hooks.agent_start(ctx, agent).await?,
                HookCall::AgentEnd(output) => hooks.agent_end(ctx, agent, output).await?,
                HookCall::ModelStart(request) => hooks.llm_start(ctx, agent, request).await?,
                HookCall::ModelEnd(response) => hooks.llm_end(ctx, agent, response).await?,
                HookCall::ToolStart(tool, call) => hooks.tool_start(ctx, agent, tool, call).await?,
                HookCall::ToolEnd(tool, call, end) => {
                    hooks.tool_end(ctx, agent, tool, call, end).await?;
                }
                HookCall::Handoff(transfer) => hooks.handoff(ctx, transfer).await?,
            }
        }
        Ok(())
    }};
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn has_hooks(&self) -> bool {
        !self.config.hooks.is_empty() || !self.agent.def.hooks.is_empty()
    }

    /// Calls the run's hooks and then the agent's; at a model's end the other way round, as the
    /// reference does.
    pub(super) async fn call_hooks(&self, occasion: HookCall<'_, C>) -> Result<(), Error> {
        if !self.has_hooks() {
            return Ok(());
        }
        self.call_all_hooks(occasion).await
    }

    fn call_all_hooks<'a>(&'a self, occasion: HookCall<'a, C>) -> BoxFuture<'a, Result<(), Error>> {
        let step = self.step_name(format_args!("{}{}", occasion.name(), occasion.call_id()));
        let calls = Box::pin(async move {
            let calls = async {
                if let HookCall::ModelEnd(_) = occasion {
                    self.call_agent_hooks(&occasion).await?;
                    self.call_run_hooks(&occasion).await
                } else {
                    self.call_run_hooks(&occasion).await?;
                    self.call_agent_hooks(&occasion).await
                }
            };
            let outcome = self.trace.within(self.parent_span(), catch_panic(calls));
            let outcome = outcome.await;
            outcome.map_err(|error| user_error(&format!("a hook on {}", occasion.name()), error))
        });
        match self.journal.as_deref() {
            None => calls,
            Some(journal) => journal.carry_out((self.run.turns(), StepKind::Hook, &step), calls),
        }
    }

    async fn call_run_hooks(&self, occasion: &HookCall<'_, C>) -> HookResult {
        call_each!(&self.config.hooks, self, occasion)
    }

    async fn call_agent_hooks(&self, occasion: &HookCall<'_, C>) -> HookResult {
        call_each!(&self.agent.def.hooks, self, occasion)
    }

    /// The context of a hook; at the start and the end of an agent with the input of the turn.
    fn hook_context(&self, occasion: &HookCall<'_, C>) -> RunContext<C> {
        match occasion {
            HookCall::AgentStart | HookCall::AgentEnd(_) => {
                self.ctx().with_turn_input(self.run.turn_input())
            }
            _ => self.ctx(),
        }
    }
}
