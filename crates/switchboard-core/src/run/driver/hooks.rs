//! Telling hooks: those of the run, and those of the agent that has the conversation.

use super::{Driver, Soon, at_once, later};
use crate::agent::Agent;
use crate::callback::no_panic;
use crate::error::Error;
use crate::hooks::{DynAgentHooks, DynRunHooks, HookResult};
use crate::model::{ModelRequest, ModelResponse};
use crate::output::FinalOutput;
use crate::run::turn::HandoffCall;
use crate::tool::{Tool, ToolContext, ToolOutput};

/// Something hooks are told of.
pub(super) enum Told<'a, C> {
    AgentStart,
    AgentEnd(&'a FinalOutput),
    ModelStart(&'a ModelRequest),
    ModelEnd(&'a ModelResponse),
    ToolStart(&'a Tool<C>, &'a ToolContext<C>),
    ToolEnd(&'a Tool<C>, &'a ToolContext<C>, &'a ToolOutput),
    Handoff(&'a Agent<C>, &'a HandoffCall),
}

impl<C> Told<'_, C> {
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
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn has_hooks(&self) -> bool {
        self.config.hooks.is_some() || self.agent.agent_hooks().is_some()
    }

    /// Tells the run's hooks and then the agent's; of a model's end, the other way round, as the
    /// reference does.
    pub(super) fn tell_hooks<'a>(&'a self, told: Told<'a, C>) -> Soon<'a, Result<(), Error>> {
        if self.has_hooks() {
            later(self.tell_both(told))
        } else {
            at_once(Ok(()))
        }
    }

    async fn tell_both(&self, told: Told<'_, C>) -> Result<(), Error> {
        let run = self.config.hooks.as_ref().map(|hooks| &*hooks.0);
        let telling = async {
            match &told {
                Told::ModelEnd(_) => {
                    self.tell_agent(&told).await?;
                    self.tell_run(run, &told).await
                }
                _ => {
                    self.tell_run(run, &told).await?;
                    self.tell_agent(&told).await
                }
            }
        };
        let outcome = no_panic(telling).await;
        outcome.map_err(|error| self.user_error(&format!("a hook on {}", told.name()), error))
    }

    async fn tell_run(&self, hooks: Option<&dyn DynRunHooks<C>>, told: &Told<'_, C>) -> HookResult {
        let Some(hooks) = hooks else {
            return Ok(());
        };
        let (ctx, agent) = (self.ctx(), &self.agent);
        let telling = match told {
            Told::AgentStart => hooks.agent_start(&ctx, agent),
            Told::AgentEnd(output) => hooks.agent_end(&ctx, agent, output),
            Told::ModelStart(request) => hooks.llm_start(&ctx, agent, request),
            Told::ModelEnd(response) => hooks.llm_end(&ctx, agent, response),
            Told::ToolStart(tool, call) => hooks.tool_start(&ctx, agent, tool, call),
            Told::ToolEnd(tool, call, output) => hooks.tool_end(&ctx, agent, tool, call, output),
            Told::Handoff(to, call) => hooks.handoff(&ctx, agent, to, call),
        };
        telling.await
    }

    async fn tell_agent(&self, told: &Told<'_, C>) -> HookResult {
        let Some(hooks): Option<&dyn DynAgentHooks<C>> = self.agent.agent_hooks() else {
            return Ok(());
        };
        let (ctx, agent) = (self.ctx(), &self.agent);
        let telling = match told {
            Told::AgentStart => hooks.start(&ctx, agent),
            Told::AgentEnd(output) => hooks.end(&ctx, agent, output),
            Told::ModelStart(request) => hooks.llm_start(&ctx, agent, request),
            Told::ModelEnd(response) => hooks.llm_end(&ctx, agent, response),
            Told::ToolStart(tool, call) => hooks.tool_start(&ctx, agent, tool, call),
            Told::ToolEnd(tool, call, output) => hooks.tool_end(&ctx, agent, tool, call, output),
            Told::Handoff(to, call) => hooks.handoff(&ctx, to, agent, call),
        };
        telling.await
    }
}
