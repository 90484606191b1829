//! Builds a case's agents, runs it, and writes down what it did.

mod filters;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_core::{
    Agent, AgentHooks, Error, FinalOutput, Handoff, HandoffCall, HistoryMarkers, HookResult, Input,
    InputGuardrail, IntoHandoff as _, Item, MemorySession, MemoryTracer, ModelRequest,
    ModelResponse, OutputGuardrail, RunConfig, RunContext, RunHooks, RunResult, Runner,
    StreamEvent, Team, Tool, ToolContext, ToolOutput, ToolUseBehavior, Tracing, handoff, tool,
};

use crate::compare;
use crate::models::Recorded;
use crate::types::{
    AgentCase, Case, DetailedHandoff, EnabledCase, Escalation, HandoffCase, Order, Query, Ticket,
    ToolCase, TypeName,
};
use crate::written;

/// A way to run a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Streamed,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
        })
    }
}

/// A case's context, and the log that everything writes to.
pub(crate) struct World {
    context: Value,
    log: Mutex<Vec<Value>>,
}

impl World {
    pub(crate) fn log(&self, entry: Value) {
        // Nothing panics while the lock is held.
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    }

    fn take_log(&self) -> Value {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *log).into()
    }
}

/// Runs a case. `Err` where the case itself cannot be read.
pub(crate) fn run(case: &Case, mode: Mode, model: &Recorded) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|error| error.to_string())?
        .block_on(play(case, mode, model))
}

async fn play(case: &Case, mode: Mode, model: &Recorded) -> Result<Value, String> {
    let world = Arc::new(World {
        context: case.context.clone(),
        log: Mutex::default(),
    });
    let tracer = MemoryTracer::new();
    let session = MemorySession::new();
    let markers = markers(case);
    let mut config = RunConfig {
        model: Some(model.clone().into()),
        max_turns: Some(case.max_turns.unwrap_or(10)),
        nest_handoff_history: case.run_config.nest_handoff_history,
        handoff_input_filter: filters::optional(&case.run_config.handoff_input_filter, &markers)?,
        handoff_history_mapper: filters::mapper(case.run_config.handoff_history_mapper.as_deref())?,
        history_markers: markers.clone(),
        hooks: Some(switchboard_core::HooksHandle::new(LoggingHooks)),
        tracing: Tracing::To(Arc::new(tracer.clone())),
        ..RunConfig::default()
    };
    if case.session {
        config.session = Some((&session).into());
    }
    let config = Arc::new(config);

    let mut team = Team::new();
    for agent in &case.agents {
        team = team.agent(build_agent(agent, &markers)?);
    }
    let team = team.build().map_err(|error| error.to_string())?;
    let mut agent = team
        .get(&case.start)
        .ok_or("the first agent is not there")?
        .clone();

    let mut stream = Vec::new();
    let mut got = json!({});
    let inputs = match case.turns.as_slice() {
        [] => std::slice::from_ref(&case.input),
        turns => turns,
    };
    for input in inputs {
        let runner = Runner::new(&agent)
            .config(config.clone())
            .context(world.clone());
        let input = input_of(input)?;
        let outcome = match mode {
            Mode::Plain => runner.run(input).await,
            Mode::Streamed => {
                let mut events = runner.stream(input);
                while let Some(event) = events.next().await {
                    stream.extend(event_name(&event));
                }
                events.finish().await
            }
        };
        got = write_outcome(&outcome);
        match outcome {
            Ok(result) => agent = result.last_agent().clone(),
            Err(_) => break,
        }
    }
    let calls = model.requests();
    got["model_calls"] = calls.iter().map(written::model_call).collect();
    got["log"] = world.take_log();
    got["spans"] = written::spans(&tracer.spans());
    got["stream"] = stream.into();
    got["session_items"] = written::items(&session.items());
    Ok(got)
}

fn write_outcome(outcome: &Result<RunResult<World>, Error>) -> Value {
    match outcome {
        Ok(result) => json!({
            "final_output": result.final_output().map(|output| typed(result.last_agent(), output)),
            "last_agent": result.last_agent().name(),
            "responses": result.raw_responses().len(),
            "new_items": written::run_items(result.new_items()),
            "input_list": written::items(&result.to_input_list()),
        }),
        Err(error) => json!({
            "error": {"type": written::error_type(error.kind()), "message": error.to_string()},
        }),
    }
}

/// A final output as its type has it, without fields the type does not know.
fn typed(agent: &Agent<World>, output: &FinalOutput) -> Value {
    fn through<T: Serialize + DeserializeOwned>(output: &FinalOutput) -> Option<Value> {
        serde_json::to_value(output.parse::<T>().ok()?).ok()
    }
    let value = match agent.output_type().map(|output| output.name()) {
        Some("Escalation") => through::<Escalation>(output),
        Some("Query") => through::<Query>(output),
        Some("Ticket") => through::<Ticket>(output),
        Some("Order") => through::<Order>(output),
        _ => None,
    };
    value.unwrap_or_else(|| output.to_value())
}

fn event_name(event: &StreamEvent<World>) -> Option<Value> {
    match event {
        StreamEvent::AgentUpdated(agent) => {
            Some(Value::from(format!("agent_updated:{}", agent.name())))
        }
        StreamEvent::Item(event, _) => Some(Value::from(event.as_str())),
        _ => None,
    }
}

/// A case's input: text, or a list of items.
pub(crate) fn input_of(input: &Value) -> Result<Input, String> {
    match input {
        Value::String(text) => Ok(text.into()),
        Value::Array(items) => Ok(items_of(items)?.into()),
        other => Err(format!(
            "an input must be text or a list of items, not {other}"
        )),
    }
}

fn items_of(items: &[Value]) -> Result<Vec<Item>, String> {
    let items = items.iter().map(Item::from_value);
    items
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn markers(case: &Case) -> HistoryMarkers {
    let mut markers = HistoryMarkers::default();
    if let Some(wrappers) = &case.history_wrappers {
        if let Some(start) = &wrappers.start {
            markers.start = start.clone().into();
        }
        if let Some(end) = &wrappers.end {
            markers.end = end.clone().into();
        }
    }
    markers
}

fn build_agent(case: &AgentCase, markers: &HistoryMarkers) -> Result<Agent<World>, String> {
    let mut agent = Agent::new(case.name.as_str());
    if let Some(instructions) = &case.instructions {
        agent = agent.instructions(instructions.as_str());
    }
    if let Some(description) = &case.handoff_description {
        agent = agent.handoff_description(description.as_str());
    }
    if case.hooks {
        agent = agent.hooks(LoggingAgentHooks(case.name.clone()));
    }
    for tool in &case.tools {
        agent = agent.tool(build_tool(tool));
    }
    for handoff in &case.handoffs {
        agent = agent.handoff(build_handoff(handoff, markers)?);
    }
    for guardrail in case.input_guardrails.iter().cloned() {
        let name = guardrail.name.clone();
        let check = move |ctx: RunContext<World>, agent: Agent<World>, input: Input| {
            ctx.log(json!({"input_guardrail": guardrail.name, "agent": agent.name()}));
            written::input(&input)
                .to_string()
                .contains(&guardrail.trips_on)
        };
        agent = agent.input_guardrail(InputGuardrail::new(name, check));
    }
    for guardrail in case.output_guardrails.iter().cloned() {
        let name = guardrail.name.clone();
        let check = move |ctx: RunContext<World>, agent: Agent<World>, output: FinalOutput| {
            ctx.log(json!({"output_guardrail": guardrail.name, "agent": agent.name()}));
            output.text().contains(&guardrail.trips_on)
        };
        agent = agent.output_guardrail(OutputGuardrail::new(name, check));
    }
    agent = match case.output_type {
        None => agent,
        Some(TypeName::Escalation) => agent.output::<Escalation>(),
        Some(TypeName::Query) => agent.output::<Query>(),
        Some(TypeName::Ticket) => agent.output::<Ticket>(),
        Some(TypeName::Order) => agent.output::<Order>(),
    };
    Ok(match &case.tool_use_behavior {
        None | Some(Value::Null) => agent,
        Some(Value::String(rule)) if rule == "run_llm_again" => agent,
        Some(Value::String(rule)) if rule == "stop_on_first_tool" => {
            agent.tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        }
        Some(rule) => {
            let names = rule["stop_at_tool_names"].as_array();
            let names = names.ok_or_else(|| format!("unknown tool_use_behavior {rule}"))?;
            let names = names.iter().filter_map(Value::as_str);
            agent.tool_use_behavior(ToolUseBehavior::stop_at(names))
        }
    })
}

fn build_tool(case: &ToolCase) -> Tool<World> {
    let parameters = case.parameters.clone().unwrap_or_else(|| json!({}));
    let (returns, fails) = (case.returns.clone(), case.fails.clone());
    tool::<World>(case.name.as_str())
        .description(case.description.as_str())
        .run_raw(&parameters, move |ctx| {
            ctx.log(json!({"tool": ctx.tool(), "arguments": ctx.arguments()}));
            match &fails {
                Some(error) => Err(error.clone()),
                None => Ok(returns.clone()),
            }
        })
}

fn build_handoff(case: &HandoffCase, markers: &HistoryMarkers) -> Result<Handoff<World>, String> {
    let case = match case {
        HandoffCase::Name(name) => return Ok(name.as_str().into_handoff()),
        HandoffCase::Detailed(case) => case,
    };
    let mut builder = handoff::<World>(case.agent.as_str());
    if let Some(name) = &case.tool_name_override {
        builder = builder.tool_name(name.as_str());
    }
    if let Some(description) = &case.tool_description_override {
        builder = builder.tool_description(description.as_str());
    }
    if let Some(filter) = filters::optional(&case.input_filter, markers)? {
        builder = builder.filter(filter);
    }
    if let Some(nest) = case.nest_handoff_history {
        builder = builder.nest_history(nest);
    }
    builder = match case.is_enabled.clone() {
        None => builder,
        Some(EnabledCase::Fixed(enabled)) => builder.enabled(enabled),
        Some(EnabledCase::Context { context, equals }) => builder.enabled_if(move |ctx, _agent| {
            compare::plain(&equals, &ctx.context[&context]).is_none()
        }),
    };
    macro_rules! typed {
        ($type:ty) => {{
            let log = logging_callback(case);
            builder
                .payload::<$type>()
                .on_handoff(move |ctx, payload| {
                    let payload = serde_json::to_value(&payload).map_err(|e| e.to_string())?;
                    log(&ctx, Some(payload))
                })
                .into_handoff()
        }};
    }
    Ok(match case.input_type {
        Some(TypeName::Escalation) => typed!(Escalation),
        Some(TypeName::Query) => typed!(Query),
        Some(TypeName::Ticket) => typed!(Ticket),
        Some(TypeName::Order) => typed!(Order),
        None if case.on_handoff => {
            let log = logging_callback(case);
            builder
                .on_handoff(move |ctx| log(&ctx, None))
                .into_handoff()
        }
        None => builder.into_handoff(),
    })
}

/// A callback that notes that it ran, and fails where the case says so.
fn logging_callback(
    case: &DetailedHandoff,
) -> impl Fn(&RunContext<World>, Option<Value>) -> Result<(), String> + use<> {
    let (agent, fails) = (case.agent.clone(), case.on_handoff_fails.clone());
    move |ctx, payload| {
        ctx.log(json!({"on_handoff": agent, "input": payload}));
        fails.clone().map_or(Ok(()), Err)
    }
}

struct LoggingHooks;

impl RunHooks<World> for LoggingHooks {
    async fn on_agent_start(&self, ctx: &RunContext<World>, agent: &Agent<World>) -> HookResult {
        ctx.log(json!({"run_hook": "agent_start", "agent": agent.name()}));
        Ok(())
    }

    async fn on_agent_end(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        output: &FinalOutput,
    ) -> HookResult {
        let output = typed(agent, output);
        ctx.log(json!({"run_hook": "agent_end", "agent": agent.name(), "output": output}));
        Ok(())
    }

    async fn on_llm_start(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        _request: &ModelRequest,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "llm_start", "agent": agent.name()}));
        Ok(())
    }

    async fn on_llm_end(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        _response: &ModelResponse,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "llm_end", "agent": agent.name()}));
        Ok(())
    }

    async fn on_tool_start(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        tool: &Tool<World>,
        _call: &ToolContext<World>,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "tool_start", "agent": agent.name(), "tool": tool.name()}));
        Ok(())
    }

    async fn on_tool_end(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        tool: &Tool<World>,
        _call: &ToolContext<World>,
        _output: &ToolOutput,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "tool_end", "agent": agent.name(), "tool": tool.name()}));
        Ok(())
    }

    async fn on_handoff(
        &self,
        ctx: &RunContext<World>,
        from: &Agent<World>,
        to: &Agent<World>,
        _call: &HandoffCall,
    ) -> HookResult {
        ctx.log(json!({"run_hook": "handoff", "from": from.name(), "to": to.name()}));
        Ok(())
    }
}

/// Hooks of the agent of this name.
struct LoggingAgentHooks(String);

impl AgentHooks<World> for LoggingAgentHooks {
    async fn on_start(&self, ctx: &RunContext<World>, _agent: &Agent<World>) -> HookResult {
        ctx.log(json!({"agent_hook": "start", "of": self.0}));
        Ok(())
    }

    async fn on_end(
        &self,
        ctx: &RunContext<World>,
        _agent: &Agent<World>,
        _output: &FinalOutput,
    ) -> HookResult {
        ctx.log(json!({"agent_hook": "end", "of": self.0}));
        Ok(())
    }

    async fn on_handoff(
        &self,
        ctx: &RunContext<World>,
        agent: &Agent<World>,
        source: &Agent<World>,
        _call: &HandoffCall,
    ) -> HookResult {
        let (to, source) = (agent.name(), source.name());
        ctx.log(json!({"agent_hook": "handoff", "of": self.0, "to": to, "source": source}));
        Ok(())
    }
}
