//! Tools that send a request, run a command or look up a record.

mod argument;
mod command;
mod http;
mod records;
mod url;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::HeaderName;
pub(crate) use argument::ArgumentTemplate;
pub(crate) use command::CommandTool;
pub(crate) use http::{Body, HeaderTemplate, HttpTool, JsonTemplate};
pub(crate) use records::RecordsTool;
use serde_json::{Map, Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::{Agent, Tool, ToolContext, tool};
use switchboard_models::__private::{HttpClient, direct_http_settings};
pub(crate) use url::UrlTemplate;

use crate::approve::Approve;
use crate::condition::Condition;
use crate::context::Context;
use crate::diagnostics::Problem;
use crate::template::TemplateValues;

/// A tool of the file, without the environment variables it uses.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Option<Map<String, Value>>,
    pub(crate) when: Option<Condition>,
    pub(crate) approve: Option<Approve>,
    pub(crate) limits: Limits,
    pub(crate) action: Action,
}

/// The maximum duration of a call, unless the file sets it.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) output_bytes: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Http(HttpTool),
    Command(CommandTool),
    Records(RecordsTool),
    Agent(AgentQuestion),
}

/// A question to an agent of the file.
#[derive(Debug, Clone)]
pub(crate) struct AgentQuestion {
    pub(crate) agent: String,
    pub(crate) timeout: Option<Duration>,
}

/// Looks up an environment variable.
pub(crate) type Vars<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The reason a tool cannot be used in this environment.
pub(crate) struct ToolError {
    /// The header whose environment variable is missing.
    pub(crate) header: Option<HeaderName>,
    /// The problem, without a position.
    pub(crate) problem: Box<Problem>,
}

/// The HTTP client of all tools. Created on first use, as loading the system's certificates is slow.
#[derive(Default)]
pub(crate) struct SharedClient(Option<HttpClient>);

impl SharedClient {
    fn get(&mut self) -> Result<HttpClient, ToolError> {
        if let Some(client) = &self.0 {
            return Ok(client.clone());
        }
        let no_client = |reason: String| {
            let message = format!("no requests can be made: {reason}");
            let problem = Problem::without_file("http", message);
            ToolError {
                header: None,
                problem: Box::new(problem.help("see that the system has certificates")),
            }
        };
        // Without the environment's proxies: a file uses nothing that it does not name.
        let settings = direct_http_settings().map_err(|error| no_client(error.to_string()))?;
        Ok(self.0.insert(HttpClient::new(settings)).clone())
    }
}

impl ResolvedTool {
    /// Creates the tool with the environment variables it uses. Without a client, a tool that sends
    /// requests can be inspected but returns nothing. `None` for a tool that asks an agent.
    pub(crate) fn open(
        &self,
        folder: &Path,
        client: Option<&mut SharedClient>,
        vars: Vars<'_>,
    ) -> Result<Option<Tool<Context>>, ToolError> {
        let parameters = match &self.parameters {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        };
        let mut builder = tool::<Context>(self.name.as_str())
            .description(self.description.as_str())
            .timeout(self.limits.timeout)
            // The model can often act on the reason.
            .failure_text(|_ctx, error| format!("The tool failed: {error}"));
        if let Some(when) = self.when.clone() {
            builder = builder.enabled_if(move |ctx, _agent| when.holds(&ctx));
        }
        if let Some(approve) = self.approve.clone() {
            builder = match approve {
                Approve::Always => builder.needs_approval(),
                approve => builder.needs_approval_if(move |ctx, arguments| {
                    approve.applies(ctx.run_context().state(), &arguments)
                }),
            };
        }
        let limits = self.limits;
        Ok(Some(match (&self.action, client) {
            (Action::Http(_), None) => {
                builder.run_checked(parameters, |_ctx, _arguments| String::new())
            }
            (Action::Http(request), Some(client)) => {
                let request = Arc::new(request.open(client.get()?, vars)?);
                builder.run_checked(parameters, move |ctx, arguments| {
                    let request = request.clone();
                    async move {
                        let call = Call::of(&ctx);
                        request.send(call.values(&ctx, &arguments)?, limits).await
                    }
                })
            }
            (Action::Command(command), _) => {
                let command = Arc::new(command.open(folder, vars));
                builder.run_checked(parameters, move |ctx, arguments| {
                    let command = command.clone();
                    async move {
                        let call = Call::of(&ctx);
                        command.run(call.values(&ctx, &arguments)?, limits).await
                    }
                })
            }
            (Action::Records(records), _) => {
                let records = records.clone();
                builder.run_checked(parameters, move |ctx: ToolContext<Context>, arguments| {
                    records.find(Call::of(&ctx).values(&ctx, &arguments)?, limits)
                })
            }
            (Action::Agent(_), _) => return Ok(None),
        }))
    }

    /// The question, if the tool asks an agent.
    pub(crate) fn question(&self) -> Option<&AgentQuestion> {
        match &self.action {
            Action::Agent(question) => Some(question),
            _ => None,
        }
    }

    /// Creates the tool that asks this agent.
    pub(crate) fn open_question(
        &self,
        question: &AgentQuestion,
        agent: &Agent<Context>,
    ) -> Tool<Context> {
        let mut tool = agent
            .as_tool(self.name.as_str())
            .description(self.description.as_str());
        if let Some(timeout) = question.timeout {
            tool = tool.timeout(timeout);
        }
        if let Some(when) = self.when.clone() {
            tool = tool.enabled_if(move |ctx, _agent| when.holds(&ctx));
        }
        if let Some(approve) = self.approve.clone() {
            tool = match approve {
                Approve::Always => tool.needs_approval(),
                approve => tool.needs_approval_if(move |ctx, arguments| {
                    approve.applies(ctx.run_context().state(), &arguments)
                }),
            };
        }
        tool.into()
    }
}

/// The values of a call beside its arguments.
struct Call {
    key: Value,
    payload: Value,
}

impl Call {
    fn of(ctx: &ToolContext<Context>) -> Self {
        Self {
            key: ctx.idempotency_key().into(),
            payload: ctx.run_context().handoff_payload().unwrap_or_default(),
        }
    }

    fn values<'a>(
        &'a self,
        ctx: &'a ToolContext<Context>,
        arguments: &'a Value,
    ) -> Result<TemplateValues<'a>, BoxError> {
        Ok(TemplateValues {
            arguments: arguments
                .as_object()
                .ok_or("the arguments are not an object")?,
            context: ctx.run_context().state(),
            call_key: &self.key,
            payload: &self.payload,
        })
    }
}

/// Converts an output to text, cut to the limit. `is_complete` is `false` if more was not read.
fn output_text(output: &[u8], is_complete: bool, limits: Limits) -> String {
    let is_cut = output.len() > limits.output_bytes || !is_complete;
    let mut output = &output[..output.len().min(limits.output_bytes)];
    // The limit may fall within a character.
    if is_cut
        && let Err(error) = std::str::from_utf8(output)
        && error.error_len().is_none()
    {
        output = &output[..error.valid_up_to()];
    }
    let mut text = String::from_utf8_lossy(output).into_owned();
    if is_cut {
        text.push_str(&format!("\n[cut after {} bytes]", limits.output_bytes));
    }
    text
}
