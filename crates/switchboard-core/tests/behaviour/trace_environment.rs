//! Defaults from the environment. It is read once, so each test runs itself in a process of its own.

use std::fmt;
use std::process::Command;
use std::sync::{Arc, Mutex};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Agent, RunConfig, Runner, tool};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Current, Id, Record};

/// Runs [`report`] with variables, and returns what it prints.
fn report_with(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "--ignored",
        "--nocapture",
        "trace_environment::report",
    ]);
    for name in [
        "DISABLE_TRACING",
        "TRACE_INCLUDE_SENSITIVE_DATA",
        "DONT_LOG_TOOL_DATA",
    ] {
        child.env_remove(format!("OPENAI_AGENTS_{name}"));
    }
    let ran = child.envs(variables.iter().copied()).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}");
    printed
}

/// A subscriber that records the texts of events.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        *self.0.lock().unwrap() += &format!("{field}={value:?} ");
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn current_span(&self) -> Current {
        Current::none()
    }
}

#[test]
#[ignore = "run by the tests below, each with an environment of its own"]
fn report() {
    let agent: Agent = Agent::new("A")
        .tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("row 7 is locked")));
    let tracer = MemoryTracer::new();
    let model = ScriptedModel::new().call("broken", "{}").say("ok");
    let run = Runner::new(&agent)
        .model(model)
        .tracer(tracer.clone())
        .run("x");
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        futures_util::FutureExt::now_or_never(run).unwrap().unwrap();
    });
    println!("spans: {}", tracer.spans().len());
    let config: RunConfig = RunConfig::default();
    println!("sensitive: {}", config.trace_sensitive_data);
    println!("warnings: {}", warnings.0.lock().unwrap());
}

#[test]
fn without_variables_runs_are_traced_and_warnings_do_not_quote_tools() {
    let report = report_with(&[]);
    assert!(report.contains("spans: 7"), "{report}");
    assert!(report.contains("sensitive: true"), "{report}");
    assert!(report.contains("a tool failed"), "{report}");
    assert!(!report.contains("row 7"), "{report}");
}

#[test]
fn the_environment_disables_tracing_for_every_run() {
    let report = report_with(&[("OPENAI_AGENTS_DISABLE_TRACING", "1")]);
    assert!(report.contains("spans: 0"), "{report}");
}

#[test]
fn the_environment_leaves_sensitive_data_out_of_traces() {
    let report = report_with(&[("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", "false")]);
    assert!(report.contains("sensitive: false"), "{report}");
    assert!(report.contains("spans: 7"), "{report}");
}

#[test]
fn the_environment_lets_warnings_quote_tools() {
    let report = report_with(&[("OPENAI_AGENTS_DONT_LOG_TOOL_DATA", "0")]);
    assert!(report.contains("row 7 is locked"), "{report}");
}
