//! Tests of team files through the public API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that panics has failed"
)]

mod approvals;
mod budgets;
mod commands;
mod diagnostics;
mod guide;
mod hostile;
mod http;
mod people;
mod policies;
mod policy_checks;
mod records;
mod remote_agents;
mod running;
mod schema;

use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Error, RunResult};
use switchboard_teamfile::{Context, TeamFile};

/// A team of one agent with one tool; `tool` holds further fields of the tool.
fn with_tool(tool: &str) -> String {
    format!(
        "[context]\ncustomer = \"C-1\"\n[commands]\nallow = [\"sh\", \"cat\", \"printf\", \"env\", \"./missing\", \"./here.sh\"]\n\
         [agents.A]\ntools = [\"t\"]\n[tools.t]\ndescription = \"Action it.\"\n{tool}"
    )
}

/// Runs the team of a text with a model that calls the tool `t` with these arguments.
async fn call(text: &str, arguments: &str) -> Result<RunResult<Context>, Error> {
    call_traced(text, arguments, MemoryTracer::new()).await
}

/// Runs the team like [`call`], with a tracer.
async fn call_traced(
    text: &str,
    arguments: &str,
    tracer: MemoryTracer,
) -> Result<RunResult<Context>, Error> {
    let file = TeamFile::parse(text, "team.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let model = ScriptedModel::new().call("t", arguments).say("Done.");
    let options = file.open_options().model_handle(model);
    let vars = |name: &str| match name {
        "TOKEN" => Some("s3cret".to_owned()),
        _ => None,
    };
    let team = options.vars(vars).open().unwrap();
    team.runner().tracer(tracer).run("Go").await
}

/// The output of the tool call, as the model gets it.
async fn call_output(text: &str, arguments: &str) -> String {
    let result = call(text, arguments).await.unwrap();
    let outputs = result.new_items().iter().filter_map(|item| {
        let output = item.item().output()?;
        Some(output.into_owned())
    });
    outputs.collect::<Vec<_>>().join("\n")
}
