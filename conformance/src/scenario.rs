//! Builds the agents of a case, runs them, and serializes the outcome.

mod agents;
mod durable;
mod filters;
mod guardrails;
mod hooks;
mod settings;
mod tools;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use switchboard_core::handoff::HistoryMarkers;
use switchboard_core::hooks::HooksHandle;
use switchboard_core::model::ModelHandle;
use switchboard_core::run::ModelFilter;
use switchboard_core::session::Session as _;
use switchboard_core::trace::{MemoryTracer, Span, SpanData, Tracing};
use switchboard_core::{
    Agent, Error, EventKind, FinalOutput, Input, Item, MemorySession, Run, RunConfig, RunContext,
    RunResult, RunStream, Runner, StreamEvent, Team, ToolContext,
};

pub(crate) use agents::{build_order, build_team, history_markers};

use crate::case::{Case, Record};
use crate::compare;
use crate::lock::lock;
use crate::models::RecordingModel;
use crate::payloads::{Counts, Escalation, Order, Query, Ticket};
use crate::serialize;

/// The method of `Runner` that runs a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Streamed,
    /// As a durable run, whose result is made again from its journal.
    Durable,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
            Self::Durable => "durable",
        })
    }
}

/// The run context of a case: its own context value, the log of its callbacks, and the events that
/// the listeners of agent tools got.
#[derive(Default)]
pub(crate) struct CaseContext {
    value: Mutex<Value>,
    log: Mutex<Vec<Value>>,
    /// By the id of the outer call.
    heard: Mutex<BTreeMap<String, Vec<Value>>>,
}

impl CaseContext {
    pub(crate) fn new(value: &Value) -> Self {
        Self {
            value: Mutex::new(value.clone()),
            ..Self::default()
        }
    }

    /// The context value.
    pub(crate) fn value(&self) -> Value {
        lock(&self.value).clone()
    }

    /// Returns `true` if a field of the context value has this value.
    fn has(&self, field: &str, value: &Value) -> bool {
        compare::plain(value, &lock(&self.value)[field]).is_none()
    }

    /// Sets fields of the context value.
    fn set(&self, fields: &Map<String, Value>) {
        let mut value = lock(&self.value);
        for (name, field) in fields {
            value[name] = field.clone();
        }
    }

    /// The number of entries in the log.
    pub(crate) fn log_length(&self) -> usize {
        lock(&self.log).len()
    }

    pub(crate) fn take_log(&self) -> Value {
        std::mem::take(&mut *lock(&self.log)).into()
    }

    /// Records an event that a listener got.
    fn heard(&self, call_id: &str, event: Value) {
        let mut heard = lock(&self.heard);
        heard.entry(call_id.to_owned()).or_default().push(event);
    }

    pub(crate) fn take_heard(&self) -> Value {
        json!(std::mem::take(&mut *lock(&self.heard)))
    }
}

/// Contexts of callbacks, which log with the call of the agent tool that they are inside of.
trait Log {
    fn run_context(&self) -> &RunContext<CaseContext>;

    fn log(&self, mut entry: Value) {
        let ctx = self.run_context();
        if let Some(call) = ctx.outer_call() {
            entry["in"] = Value::from(&*call.call_id);
        }
        lock(&ctx.log).push(entry);
    }
}

impl Log for RunContext<CaseContext> {
    fn run_context(&self) -> &RunContext<CaseContext> {
        self
    }
}

impl Log for ToolContext<CaseContext> {
    fn run_context(&self) -> &RunContext<CaseContext> {
        ToolContext::run_context(self)
    }
}

/// The parts of a scenario that its agents are built with.
pub(crate) struct Environment {
    pub(crate) markers: HistoryMarkers,
    /// The models of agents, by name. Agents that are not there have that of the run.
    pub(crate) models: HashMap<String, ModelHandle>,
    /// The filter on all model calls.
    pub(crate) model_filter: Option<ModelFilter<CaseContext>>,
    /// The session of the runs.
    pub(crate) session: MemorySession,
    /// The sessions of agent tools.
    pub(crate) tool_sessions: Mutex<BTreeMap<String, MemorySession>>,
}

impl Environment {
    pub(crate) fn new(case: &Case) -> Self {
        Self {
            markers: history_markers(case),
            models: HashMap::new(),
            model_filter: None,
            session: MemorySession::new(),
            tool_sessions: Mutex::default(),
        }
    }

    /// The settings of a run with hooks, a tracer, and the session if the case has one.
    pub(crate) fn observed_config(
        &self,
        case: &Case,
        tracer: &MemoryTracer,
    ) -> Result<RunConfig<CaseContext>, String> {
        Ok(RunConfig {
            max_turns: Some(case.max_turns.unwrap_or(10)),
            hooks: vec![HooksHandle::new(hooks::LoggingHooks::default())],
            tracing: Tracing::to(tracer.clone()),
            session: case.session.then(|| self.session.clone().into()),
            server_history: settings::server_history(case),
            recovery: settings::recovery(&case.error_handlers),
            ..self.run_config(&case.run_config)?
        })
    }

    /// The items in the sessions of agent tools.
    pub(crate) fn tool_session_items(&self) -> Value {
        let sessions = lock(&self.tool_sessions);
        let items = sessions
            .iter()
            .map(|(tool, session)| (tool.clone(), serialize::items(&session.items())));
        items.collect()
    }
}

/// Waits for a scenario.
///
/// # Errors
/// Returns an error if the case cannot be read.
pub(crate) fn block_on(
    scenario: impl Future<Output = Result<Value, String>>,
) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|error| error.to_string())?
        .block_on(scenario)
}

/// Runs a case and serializes the outcome.
///
/// # Errors
/// Returns an error if the case cannot be read.
pub(crate) async fn run(case: &Case, mode: Mode, model: &RecordingModel) -> Result<Value, String> {
    let context = Arc::new(CaseContext::new(&case.context));
    let tracer = MemoryTracer::new();
    let environment = Environment::new(case);
    if !case.session_starts_with.is_empty() {
        let items = parse_items(&case.session_starts_with)?;
        let stored = environment.session.append(&items).await;
        stored.map_err(|error| error.to_string())?;
    }
    let config = Arc::new(RunConfig {
        model: Some(model.clone().into()),
        ..environment.observed_config(case, &tracer)?
    });

    let team = build_team(case, &environment)?;
    let mut agent = first_agent(case, &team)?;

    let mut stream = Vec::new();
    let mut got = json!({});
    let inputs = match case.turns.as_slice() {
        [] => std::slice::from_ref(&case.input),
        turns => turns,
    };
    for input in inputs {
        let runner = Runner::new(&agent)
            .replace_config(config.clone())
            .context(context.clone());
        let input = parse_input(input)?;
        let outcome = if mode == Mode::Durable {
            // A replay must not be seen where the run itself is.
            let unobserved = RunConfig {
                tracing: Tracing::Off,
                ..(*config).clone()
            };
            let replay = Runner::new(&agent)
                .replace_config(unobserved)
                .context(Arc::new(CaseContext::new(&case.context)));
            durable::run_input(&runner, &replay, input, &mut stream).await?
        } else {
            run_input(&runner, input, mode, &mut stream).await
        };
        got = serialize_outcome(&outcome);
        if let Ok(result) = &outcome
            && case.records.contains(&Record::Usage)
        {
            got["usage"] = serialize::usage(result.usage(), result.request_usage());
        }
        match outcome {
            Ok(result) => agent = result.last_agent().clone(),
            Err(_) => break,
        }
    }
    let requests = model.requests();
    let model_calls = requests.iter();
    got["model_calls"] = model_calls
        .map(|request| serialize::recorded_call(request, &case.records))
        .collect();
    if case.records.contains(&Record::Context) {
        got["context"] = context.value();
    }
    got["log"] = context.take_log();
    got["spans"] = serialize::spans(&recorded_spans(case, &tracer));
    got["stream"] = stream.into();
    got["session_items"] = serialize::items(&environment.session.items());
    Ok(got)
}

/// The spans that the reference makes as well: it has none for guardrails on tools.
pub(crate) fn recorded_spans(case: &Case, tracer: &MemoryTracer) -> Vec<Span> {
    let tools = case.agents.iter().flat_map(|agent| &agent.tools);
    let guardrails = tools.flat_map(|tool| {
        let outputs = tool.output_guardrails.iter();
        tool.input_guardrails.iter().chain(outputs)
    });
    let names: HashSet<&str> = guardrails.map(|it| it.name.as_str()).collect();
    let mut spans = tracer.spans();
    spans.retain(|span| match &span.data {
        SpanData::Guardrail { name, .. } => !names.contains(&**name),
        _ => true,
    });
    spans
}

/// The agent that a scenario begins at.
pub(crate) fn first_agent(
    case: &Case,
    team: &Team<CaseContext>,
) -> Result<Agent<CaseContext>, String> {
    let agent = team.get(&case.start);
    Ok(agent.ok_or("the first agent is not there")?.clone())
}

/// Runs one input. Adds the names of the events of a streamed run to `stream`.
pub(crate) async fn run_input(
    runner: &Runner<CaseContext, Arc<CaseContext>>,
    input: Input,
    mode: Mode,
    stream: &mut Vec<Value>,
) -> Result<RunResult<CaseContext>, Error> {
    match mode {
        Mode::Plain => runner.run(input).await,
        Mode::Streamed | Mode::Durable => read_events(runner.stream(input), stream).await,
    }
}

/// Resumes a run. Adds the names of the events of a streamed run to `stream`.
pub(crate) async fn resume(
    runner: &Runner<CaseContext, Arc<CaseContext>>,
    run: Run,
    mode: Mode,
    stream: &mut Vec<Value>,
) -> Result<RunResult<CaseContext>, Error> {
    match mode {
        Mode::Plain => runner.resume(run).await,
        Mode::Streamed | Mode::Durable => read_events(runner.resume_stream(run)?, stream).await,
    }
}

async fn read_events(
    mut events: RunStream<CaseContext>,
    names: &mut Vec<Value>,
) -> Result<RunResult<CaseContext>, Error> {
    while let Some(event) = events.next().await {
        names.extend(event_name(&event).map(Value::from));
    }
    events.finish().await
}

pub(crate) fn serialize_outcome(outcome: &Result<RunResult<CaseContext>, Error>) -> Value {
    match outcome {
        Ok(result) => json!({
            "final_output": result.final_output().map(|output| typed(result.last_agent(), output)),
            "last_agent": result.last_agent().name(),
            "responses": result.raw_responses().len(),
            "new_items": serialize::run_items(result.new_items()),
            "input_list": serialize::items(&result.to_input_list()),
        }),
        Err(error) => json!({
            "error": {"type": serialize::error_type(error), "message": error.to_string()},
        }),
    }
}

/// Serializes a final output through its type, which drops unknown fields.
fn typed(agent: &Agent<CaseContext>, output: &FinalOutput) -> Value {
    fn round_trip<T: Serialize + DeserializeOwned>(output: &FinalOutput) -> Option<Value> {
        serde_json::to_value(output.parse::<T>().ok()?).ok()
    }
    let value = match agent.output_type().map(|output| output.name()) {
        Some("Escalation") => round_trip::<Escalation>(output),
        Some("Query") => round_trip::<Query>(output),
        Some("Ticket") => round_trip::<Ticket>(output),
        Some("Order") => round_trip::<Order>(output),
        Some("Counts") => round_trip::<Counts>(output),
        _ => None,
    };
    value.unwrap_or_else(|| output.to_value())
}

fn event_name(event: &StreamEvent) -> Option<String> {
    match &event.kind {
        EventKind::AgentUpdated { .. } => Some(format!("agent_updated:{}", event.agent)),
        EventKind::Item { name, .. } => Some(name.as_str().to_owned()),
        _ => None,
    }
}

/// Parses the input of a case: text, or a list of items.
pub(crate) fn parse_input(input: &Value) -> Result<Input, String> {
    match input {
        Value::String(text) => Ok(text.into()),
        Value::Array(items) => Ok(parse_items(items)?.into()),
        other => Err(format!(
            "an input must be text or a list of items, not {other}"
        )),
    }
}

fn parse_items(items: &[Value]) -> Result<Vec<Item>, String> {
    items
        .iter()
        .map(Item::from_value)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
