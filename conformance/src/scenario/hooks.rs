//! Hooks that log their calls.

use serde_json::json;
use switchboard_core::hooks::{AgentHooks, HookResult, RunHooks, ToolEnd, Transfer};
use switchboard_core::{
    Agent, FinalOutput, ModelRequest, ModelResponse, RunContext, Tool, ToolContext,
};

use super::{CaseContext, typed};

/// Logs the calls of run hooks.
pub(super) struct LoggingHooks;

impl RunHooks<CaseContext> for LoggingHooks {
    async fn on_agent_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "agent_start", "agent": agent.name()}));
        Ok(())
    }

    async fn on_agent_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        output: &FinalOutput,
    ) -> HookResult {
        let output = typed(agent, output);
        ctx.log(json!({"run_hook": "agent_end", "agent": agent.name(), "output": output}));
        Ok(())
    }

    async fn on_llm_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        _request: &ModelRequest,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "llm_start", "agent": agent.name()}));
        Ok(())
    }

    async fn on_llm_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        _response: &ModelResponse,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "llm_end", "agent": agent.name()}));
        Ok(())
    }

    async fn on_tool_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        tool: &Tool<CaseContext>,
        _call: &ToolContext<CaseContext>,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "tool_start", "agent": agent.name(), "tool": tool.name()}));
        Ok(())
    }

    async fn on_tool_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        tool: &Tool<CaseContext>,
        _call: &ToolContext<CaseContext>,
        _end: &ToolEnd<'_>,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "tool_end", "agent": agent.name(), "tool": tool.name()}));
        Ok(())
    }

    async fn on_handoff(
        &self,
        ctx: &RunContext<CaseContext>,
        transfer: &Transfer<'_, CaseContext>,
    ) -> HookResult {
        let (from, to) = (transfer.from.name(), transfer.to.name());
        ctx.log(json!({"run_hook": "handoff", "from": from, "to": to}));
        Ok(())
    }
}

/// Logs the calls of agent hooks, with the name of the agent.
pub(super) struct LoggingAgentHooks(pub(super) String);

impl AgentHooks<CaseContext> for LoggingAgentHooks {
    async fn on_start(
        &self,
        ctx: &RunContext<CaseContext>,
        _agent: &Agent<CaseContext>,
    ) -> HookResult {
        ctx.log(json!({"agent_hook": "start", "of": self.0}));
        Ok(())
    }

    async fn on_end(
        &self,
        ctx: &RunContext<CaseContext>,
        _agent: &Agent<CaseContext>,
        _output: &FinalOutput,
    ) -> HookResult {
        ctx.log(json!({"agent_hook": "end", "of": self.0}));
        Ok(())
    }

    async fn on_handoff(
        &self,
        ctx: &RunContext<CaseContext>,
        transfer: &Transfer<'_, CaseContext>,
    ) -> HookResult {
        let (source, to) = (transfer.from.name(), transfer.to.name());
        ctx.log(json!({"agent_hook": "handoff", "of": self.0, "to": to, "source": source}));
        Ok(())
    }
}
