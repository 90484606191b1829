//! What tools do: ask a server, start a program, look something up.

mod command;
mod http;
mod records;
mod url;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use command::CommandTool;
pub(crate) use http::{Body, Filled, HeaderPlan, HttpTool};
pub(crate) use records::RecordsTool;
use serde_json::{Map, Value, json};
use switchboard_core::{BoxError, Tool, ToolContext, tool};
pub(crate) use url::UrlTemplate;

use crate::condition::Condition;
use crate::context::Context;
use crate::template::Filling;

/// A tool of the file, before the environment is looked at.
#[derive(Debug, Clone)]
pub(crate) struct ToolPlan {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Option<Map<String, Value>>,
    pub(crate) when: Option<Condition>,
    pub(crate) limits: Limits,
    pub(crate) does: Does,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    pub(crate) output: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Does {
    Http(HttpTool),
    Command(CommandTool),
    Records(RecordsTool),
}

/// Looks up a variable of the environment.
pub(crate) type Vars<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why a tool cannot be used as things are.
#[derive(Debug)]
pub(crate) enum UnusableTool {
    /// A variable that the file names and the environment does not have.
    NotSet { variable: String, header: String },
    /// No request can be made on this machine.
    NoClient(String),
}

impl UnusableTool {
    /// The code of the problem, what is wrong, and what to do.
    pub(crate) fn told(&self) -> (&'static str, String, String) {
        match self {
            Self::NotSet { variable, .. } => (
                "variable",
                format!("the environment has no variable {variable} that could be sent"),
                format!("set it, as in export {variable}=…"),
            ),
            Self::NoClient(why) => (
                "http",
                format!("no requests can be made: {why}"),
                "see that the system has certificates".to_owned(),
            ),
        }
    }
}

/// The client of all tools, made when the first of them needs it: reading whom the system trusts
/// takes a while.
#[derive(Default)]
pub(crate) struct SharedClient(Option<reqwest::Client>);

impl SharedClient {
    fn get(&mut self) -> Result<reqwest::Client, UnusableTool> {
        if let Some(client) = &self.0 {
            return Ok(client.clone());
        }
        let no_client = |error: &dyn std::fmt::Display| UnusableTool::NoClient(error.to_string());
        let builder = switchboard_models::__private::trusting_system();
        let builder = builder.map_err(|error| no_client(&error))?;
        // The environment's proxies are not the file's.
        let client = builder.no_proxy().build();
        let client = client.map_err(|error| no_client(&error))?;
        Ok(self.0.insert(client).clone())
    }
}

impl ToolPlan {
    /// The tool, with what it needs of the environment; without a client it is only to be looked at.
    pub(crate) fn open(
        &self,
        folder: &Path,
        client: Option<&mut SharedClient>,
        vars: Vars<'_>,
    ) -> Result<Tool<Context>, UnusableTool> {
        let parameters = match &self.parameters {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        };
        let mut builder = tool::<Context>(self.name.as_str())
            .description(self.description.as_str())
            .timeout(self.limits.time)
            // What went wrong is in our words or the server's, and the model can often act on it.
            .failure_text(|_ctx, error| format!("The tool failed: {error}"));
        if let Some(when) = self.when.clone() {
            builder = builder.enabled_if(move |ctx, _agent| when.holds(&ctx));
        }
        let limits = self.limits;
        Ok(match &self.does {
            Does::Http(_) if client.is_none() => {
                builder.run_checked(parameters, |_ctx, _arguments| String::new())
            }
            Does::Http(call) => {
                let client =
                    client.map_or_else(|| SharedClient::default().get(), SharedClient::get)?;
                let call = Arc::new(call.open(client, vars)?);
                builder.run_checked(parameters, move |ctx, arguments| {
                    let call = call.clone();
                    async move { call.run(filling(&ctx, &arguments)?, limits).await }
                })
            }
            Does::Command(command) => {
                let command = Arc::new(command.open(folder, vars));
                builder.run_checked(parameters, move |ctx, arguments| {
                    let command = command.clone();
                    async move { command.run(filling(&ctx, &arguments)?, limits).await }
                })
            }
            Does::Records(records) => {
                let records = records.clone();
                builder.run_checked(parameters, move |ctx: ToolContext<Context>, arguments| {
                    records.find(filling(&ctx, &arguments)?, limits)
                })
            }
        })
    }
}

fn filling<'a>(
    ctx: &'a ToolContext<Context>,
    arguments: &'a Value,
) -> Result<Filling<'a>, BoxError> {
    Ok(Filling {
        arguments: arguments
            .as_object()
            .ok_or("the arguments are not an object")?,
        context: ctx.run_context().state(),
    })
}

/// As much of an output as may be shown, with a note where it is not all.
pub(crate) fn shown(output: &[u8], is_all: bool, limits: Limits) -> String {
    let cut = output.len() > limits.output || !is_all;
    let mut output = &output[..output.len().min(limits.output)];
    // The limit may fall within a character.
    if cut
        && let Err(error) = std::str::from_utf8(output)
        && error.error_len().is_none()
    {
        output = &output[..error.valid_up_to()];
    }
    let mut text = String::from_utf8_lossy(output).into_owned();
    if cut {
        text.push_str(&format!("\n[cut after {} bytes]", limits.output));
    }
    text
}
