//! Tools that fail: the texts for the model, the errors of runs, and the marks in traces.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;

use super::Driver;
use crate::callback::call;
use crate::environment::environment;
use crate::error::{Error, ErrorKind};
use crate::run::turn::ToolCall;
use crate::runner::ToolErrorMessage;
use crate::tool::{Tool, ToolContext, ToolError, ToolErrorKind, ToolNotFound, ToolOutput};
use crate::trace::trace_handle::OpenSpan;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Returns the tool's output, or the failure text for the model and the failure.
    pub(super) async fn outcome_for_model(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        span: &mut OpenSpan,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<(ToolOutput, Option<ToolError>), Error> {
        let error = match outcome {
            Ok(output) => return Ok((output, None)),
            Err(error) => error,
        };
        if tool.ends_run(&error) {
            self.mark_failed_tool(span, tool, &error);
            return Err(self.tool_failed(tool, error));
        }
        let data = || self.tool_error_data(tool, &error);
        span.fail_with("Error running tool (non-fatal)", data);
        let is_logged = self.config.trace_sensitive_data && environment().logs_tool_data;
        let logged = is_logged.then(|| error.to_string());
        tracing::warn!(
            tool = tool.name(),
            error = logged,
            "a tool failed; the model is told"
        );
        let text = match tool.failure_text(ctx.clone(), &error).await {
            Some(text) => text,
            None => {
                let call_id = ctx.call_id().into();
                self.formatted(error.clone(), ctx.tool().into(), call_id)
                    .await
            }
        };
        Ok((text.into(), Some(error)))
    }

    /// Marks the span of a tool whose failure ends the run: its own, or that of a guardrail or a hook.
    pub(super) fn mark_failed_tool(
        &self,
        span: &mut OpenSpan,
        tool: &Tool<C>,
        error: &impl Display,
    ) {
        span.fail_with("Error running tool", || self.tool_error_data(tool, error));
    }

    /// The details of a tool's error for a span. The error may quote the arguments.
    pub(super) fn tool_error_data(&self, tool: &Tool<C>, error: &impl Display) -> Value {
        let mut data = self.error_data(error);
        data["tool_name"] = tool.name().into();
        data
    }

    /// The text for the model about a call of a tool that does not exist.
    pub(super) async fn not_found_text(&self, call: &ToolCall) -> String {
        let error = ToolError::new(ToolNotFound(call.tool.clone()));
        let call_id = call.call.call_id().unwrap_or_default().into();
        self.formatted(error, call.tool.clone(), call_id).await
    }

    /// The run's text for a failure, or the default.
    pub(super) async fn formatted(
        &self,
        error: ToolError,
        tool: Arc<str>,
        call_id: Arc<str>,
    ) -> String {
        let default = error.default_text();
        let Some(text) = &self.config.tool_error_text else {
            return default;
        };
        let failure = ToolErrorMessage {
            error,
            tool,
            call_id,
            default_text: default.clone(),
        };
        let made = call(|| text.call(self.ctx(), failure));
        let made = self.trace.within(self.parent_span(), made);
        match Box::pin(made).await {
            Ok(text) => text.unwrap_or(default),
            Err(error) => {
                let error = environment().logs_tool_data.then(|| error.to_string());
                tracing::warn!(
                    error,
                    "the function for texts of tool errors failed; the model gets the default"
                );
                default
            }
        }
    }

    /// The error of a run that a tool's failure ends: that of a run inside the tool, where it is one.
    pub(super) fn tool_failed(&self, tool: &Tool<C>, error: ToolError) -> Error {
        let inner = error.cause().downcast_ref::<Error>();
        let kind = match (inner, error.kind()) {
            (Some(inner), _) => inner.kind(),
            (None, ToolErrorKind::InvalidArguments) => ErrorKind::ModelBehavior,
            (None, _) => ErrorKind::Tool,
        };
        let name = tool.name();
        let message = match error.kind() {
            ToolErrorKind::InvalidArguments => {
                format!("invalid JSON input for tool \"{name}\": {error}")
            }
            _ => format!("the tool \"{name}\" failed: {error}"),
        };
        Error::new(kind, message)
            .caused_by(error)
            .at_agent(self.agent.name())
    }
}
