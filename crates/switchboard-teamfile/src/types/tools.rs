//! Tools: requests to servers, programs, records, other agents.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ApproveSpec, SchemaSpec};

/// A tool, with exactly one of `http`, `command`, `records` and `agent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "tool")]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSpec {
    /// A description for the model.
    pub(crate) description: String,
    /// The JSON Schema of its arguments, or a file that holds it. Without it the tool takes none.
    pub(crate) parameters: Option<SchemaSpec>,
    /// The condition under which the tool is available.
    pub(crate) when: Option<String>,
    /// If true, a person must approve each call. Or the condition under which a person must, such as
    /// `arguments.amount > 100 and tier != "gold"`.
    pub(crate) approve: Option<ApproveSpec>,
    /// Sends a request to a server.
    pub(crate) http: Option<HttpSpec>,
    /// Runs a program, without a shell.
    pub(crate) command: Option<CommandSpec>,
    /// Looks up a record in a file.
    pub(crate) records: Option<RecordsSpec>,
    /// Asks another agent of the file, and answers with its final answer. That agent sees only the
    /// question; the conversation stays with the one that asks.
    pub(crate) agent: Option<String>,
    /// The maximum duration of a call. Without it, 10; for an agent, no limit.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 3600))]
    pub(crate) timeout_seconds: Option<f64>,
    /// The maximum length of the output that the model gets; the rest is cut.
    #[serde(default = "default_max_output_bytes")]
    #[schemars(extend("minimum" = 1, "maximum" = 4194304))]
    pub(crate) max_output_bytes: u32,
}

fn default_max_output_bytes() -> u32 {
    16 * 1024
}

/// A request to a server. `{name}` is replaced by an argument, `{context.name}` by a value of the
/// context, `{payload.name}` by a field of the payload that a handoff has delivered in the context, and
/// `{call.idempotency_key}` by the key of the call, escaped for the part of the URL or text it stands in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "http call")]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpSpec {
    /// The URL, such as `https://api.example.com/invoices/{number}`. The server's name cannot have
    /// placeholders.
    pub(crate) url: String,
    /// The method.
    #[serde(default)]
    pub(crate) method: MethodSpec,
    /// Query parameters. One whose argument is missing is left out.
    #[serde(default)]
    pub(crate) query: IndexMap<String, String>,
    /// Headers. `Authorization` and `Cookie` cannot have placeholders for arguments.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, ValueSpec>,
    /// The JSON to send. A text that is only `{name}` becomes the argument with its type. Without a
    /// body, `POST`, `PUT` and `PATCH` send all arguments.
    pub(crate) body: Option<Value>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "method")]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum MethodSpec {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// Text, or an environment variable.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "value")]
#[serde(untagged)]
pub(crate) enum ValueSpec {
    /// The text itself.
    Text(String),
    /// The value of an environment variable.
    Env(EnvVarSpec),
}

/// An environment variable.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "variable")]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvVarSpec {
    /// The variable's name.
    pub(crate) env: String,
    /// A prefix for its value, such as `Bearer `.
    #[serde(default)]
    pub(crate) prefix: String,
}

/// A program and its arguments. It is started without a shell.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "command")]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandSpec {
    /// The program, which `commands.allow` must have, and its arguments. `{name}` is replaced by an
    /// argument of the tool, `{context.name}` by a value of the context, `{payload.name}` by a field of the
    /// payload that a handoff has delivered in the context, and `{call.idempotency_key}` by the key of the
    /// call, within one argument of the program.
    pub(crate) run: Vec<String>,
    /// The program's standard input, with placeholders like an argument. Without it, nothing.
    pub(crate) stdin: Option<String>,
    /// Environment variables that the program gets beside `PATH`, if they are set.
    #[serde(default)]
    pub(crate) env: Vec<String>,
}

/// A file with a table of records, looked up by an argument.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "records")]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordsSpec {
    /// A JSON or TOML file: a table whose fields are the records.
    pub(crate) file: String,
    /// Allows a file outside the folder of the team file.
    #[serde(default)]
    pub(crate) outside: bool,
    /// The argument that holds the name of a record.
    pub(crate) by: String,
}

/// The programs that tools may start.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "allow-list")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AllowListSpec {
    /// Their names, looked up in `PATH`, or paths relative to the folder of the team file.
    pub(crate) allow: Vec<String>,
}
