//! The behaviour of runs, through the public API. One module for each concern.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod agent_tools;
mod approvals;
mod cancelling;
mod completed_tools;
mod conversations;
mod coverage;
mod drawings;
mod filters;
mod free_form_tools;
mod guardrails;
mod handoff_policies;
mod handoffs;
mod hooks;
mod hosted_tools;
mod input_guardrails;
mod journals;
mod malformed_model_output;
mod panics;
mod people;
mod prompt_cache;
mod recovering;
mod redaction;
mod repeating;
mod results;
mod resuming;
mod retries;
mod server_history;
mod sessions;
mod settings;
mod stored_runs;
mod streams;
mod teams;
mod test_kit;
mod tool_arguments;
mod tool_failures;
mod tool_outputs;
mod tools;
mod trace_environment;
mod trace_export;
mod trace_scopes;
mod traces;
mod usage;
mod ways_back;

use switchboard_core::callback::BoxError;
use switchboard_core::items::{Items, RunItems};
use switchboard_core::{Item, MemorySession, Run, Session};

/// The run as it is after it was stored and read back.
fn stored(run: &Run) -> Run {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

/// Items in short: `user: Hi`, `call lookup`, `output of call_1: 42`.
fn described(items: &Items) -> Vec<String> {
    let describe = |item: &switchboard_core::Item| match (item.role(), item.name(), item.output()) {
        (Some(role), _, _) => format!("{role}: {}", item.text().unwrap_or_default()),
        (None, Some(name), _) => format!("call {name}"),
        (None, None, Some(output)) => {
            format!("output of {}: {output}", item.call_id().unwrap_or_default())
        }
        _ => item.as_json().to_owned(),
    };
    items.iter().map(describe).collect()
}

/// The kinds of run items, with the agents that made them.
fn kinds(made: &RunItems) -> Vec<String> {
    let describe = |made: &switchboard_core::items::RunItem| {
        format!("{} {}", made.agent(), made.kind().as_str())
    };
    made.iter().map(describe).collect()
}

/// A session in memory with an identifier and a limit of its own.
#[derive(Default)]
struct DescribedSession {
    items: MemorySession,
    id: Option<&'static str>,
    limit: Option<usize>,
}

impl Session for DescribedSession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.items.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        self.items.append(items).await
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.items.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.items.clear().await
    }

    fn id(&self) -> Option<&str> {
        self.id
    }

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}
