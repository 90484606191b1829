//! Hooks that log their calls.

use serde_json::{Value, json};
use switchboard_core::hooks::{AgentHooks, HookResult, RunHooks, ToolEnd, Transfer};
use switchboard_core::{
    Agent, FinalOutput, ModelRequest, ModelResponse, RunContext, Tool, ToolContext,
};

use super::{CaseContext, Log as _, typed};

/// Logs the calls of run hooks.
#[derive(Default)]
pub(crate) struct LoggingHooks {
    /// The agent tool that they were given to.
    pub(super) of_tool: Option<String>,
}

impl LoggingHooks {
    fn log(&self, ctx: &RunContext<CaseContext>, mut entry: Value) -> HookResult {
        if let Some(tool) = &self.of_tool {
            entry["hooks_of"] = Value::from(tool.as_str());
        }
        ctx.log(entry);
        Ok(())
    }
}

impl RunHooks<CaseContext> for LoggingHooks {
    async fn on_agent_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
    ) -> HookResult {
        self.log(
            ctx,
            json!({"run_hook": "agent_start", "agent": agent.name()}),
        )
    }

    async fn on_agent_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        output: &FinalOutput,
    ) -> HookResult {
        let output = typed(agent, output);
        self.log(
            ctx,
            json!({"run_hook": "agent_end", "agent": agent.name(), "output": output}),
        )
    }

    async fn on_llm_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        _request: &ModelRequest,
    ) -> HookResult {
        self.log(ctx, json!({"run_hook": "llm_start", "agent": agent.name()}))
    }

    async fn on_llm_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        _response: &ModelResponse,
    ) -> HookResult {
        self.log(ctx, json!({"run_hook": "llm_end", "agent": agent.name()}))
    }

    async fn on_tool_start(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        tool: &Tool<CaseContext>,
        call: &ToolContext<CaseContext>,
    ) -> HookResult {
        self.log(ctx, tool_hook("tool_start", agent, tool, call))
    }

    async fn on_tool_end(
        &self,
        ctx: &RunContext<CaseContext>,
        agent: &Agent<CaseContext>,
        tool: &Tool<CaseContext>,
        call: &ToolContext<CaseContext>,
        _end: &ToolEnd<'_>,
    ) -> HookResult {
        self.log(ctx, tool_hook("tool_end", agent, tool, call))
    }

    async fn on_handoff(
        &self,
        ctx: &RunContext<CaseContext>,
        transfer: &Transfer<'_, CaseContext>,
    ) -> HookResult {
        let (from, to) = (transfer.from.name(), transfer.to.name());
        self.log(ctx, json!({"run_hook": "handoff", "from": from, "to": to}))
    }
}

/// The entry of a hook on a tool. The call id serves to check what lies inside the call.
fn tool_hook(
    hook: &str,
    agent: &Agent<CaseContext>,
    tool: &Tool<CaseContext>,
    call: &ToolContext<CaseContext>,
) -> Value {
    json!({
        "run_hook": hook, "agent": agent.name(), "tool": tool.name(), "call_id": call.call_id(),
    })
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
