//! Guardrails on the calls and the outputs of tools.

use super::Driver;
use crate::agent::ToolResult;
use crate::callback::Outcome;
use crate::error::Error;
use crate::guardrail::{GuardrailKind, GuardrailResult, ToolCheck, ToolGuardrail, ToolVerdict};
use crate::tool::{Tool, ToolContext, ToolOutput};

impl<C: Send + Sync + 'static> Driver<C> {
    /// The guardrails on a tool: its own, the agent's, the run's.
    pub(super) fn tool_guardrails(&self, tool: &Tool<C>) -> Vec<ToolGuardrail<C>> {
        let own = tool.guardrails().iter();
        own.chain(&self.agent.def.tool_guardrails)
            .chain(&self.config.tool_guardrails)
            .cloned()
            .collect()
    }

    /// Asks the guardrails on the call. Returns the output for the model if the tool must not run.
    pub(super) async fn check_call(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Call(check) = &guardrail.check {
                let asked =
                    self.ask_tool_guardrail(&guardrail, ctx, || check(ctx.clone()), results);
                if let Some(output) = asked.await? {
                    return Ok(Some(output));
                }
            }
        }
        Ok(None)
    }

    /// Asks the guardrails on the output, each with the tool's own. The first replacement ends it.
    pub(super) async fn check_tool_output(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        result: &mut ToolResult,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<(), Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Output(check) = &guardrail.check {
                let check = || check(ctx.clone(), result.output.clone());
                let asked = self.ask_tool_guardrail(&guardrail, ctx, check, results);
                if let Some(replacement) = asked.await? {
                    result.output = replacement;
                    // What the tool attached may say what the guardrail hides.
                    result.data = None;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the replacement of a guardrail on a tool. A tripwire is an error.
    pub(super) async fn ask_tool_guardrail(
        &self,
        guardrail: &ToolGuardrail<C>,
        ctx: &ToolContext<C>,
        check: impl FnOnce() -> Outcome<ToolVerdict> + Send,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        let mut replacement = None;
        let replace = |output: ToolOutput| Ok(replacement.insert(output).text().into_owned());
        let name = guardrail.name_arc();
        let asked = self.ask_about(ctx.call_id(), GuardrailKind::Tool, name, check, replace);
        let result = [Box::pin(asked).await?];
        let passed = self.check_trip(GuardrailKind::Tool, &result).await;
        results.extend(result);
        passed.map(|()| replacement)
    }
}
