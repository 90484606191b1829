//! Runs scenarios in stages: several actions of the application, one after another.

mod model;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Error, Run, RunConfig, RunResult, Runner, Team};

use crate::case::{Case, DecisionCase, StageCase};
use crate::scenario::{self, CaseContext, Environment, Mode};
use crate::serialize;
use model::Scripts;

/// The way in which a scenario runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    mode: Mode,
    /// Set if the state is written to text between stages, and read with agents that are built anew.
    is_stored: bool,
}

impl Way {
    /// The ways in which a case runs. The state is stored only where another stage follows.
    pub(crate) fn all(case: &Case) -> Vec<Self> {
        let ways = [Mode::Plain, Mode::Streamed].into_iter().flat_map(|mode| {
            let with = |is_stored| Self { mode, is_stored };
            [with(false), with(true)]
        });
        let has_next_stage = case.stages.len() > 1;
        ways.filter(|way| has_next_stage || !way.is_stored)
            .collect()
    }

    /// Returns `true` if the stages have events to compare.
    pub(crate) fn has_events(self) -> bool {
        self.mode == Mode::Streamed
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stored = if self.is_stored { ", stored" } else { "" };
        write!(f, "{}{stored}", self.mode)
    }
}

/// The reason why a case cannot run, or `None` if it can.
pub(crate) fn skip_reason(case: &Case) -> Option<&'static str> {
    let is_built = scenario::build_order(case).is_some();
    (!is_built).then_some("agents that are tools of each other cannot be built")
}

/// Runs a case and serializes the outcome of each stage.
///
/// # Errors
/// Returns an error if the case cannot be read.
pub(crate) async fn run(case: &Case, way: Way) -> Result<Value, String> {
    let scripts = Scripts::new(case)?;
    let mut environment = Environment::new(case);
    environment.models = scripts.models(case);
    environment.model_filter = Some(model::tag_calls());
    let mut scenario = Scenario {
        case,
        way,
        team: scenario::build_team(case, &environment)?,
        environment,
        scripts,
    };
    let mut states: Vec<Option<State>> = Vec::new();
    let mut stages = Vec::with_capacity(case.stages.len());
    for (index, stage) in case.stages.iter().enumerate() {
        let before = stage.again.or(index.checked_sub(1));
        let before = before.and_then(|index| states.get(index)?.as_ref());
        let (mut got, mut state) = match &stage.decisions {
            None => scenario.begin(stage, before).await?,
            Some(decisions) => {
                let before = before.ok_or("there is no state to resume")?;
                scenario.resume(stage, decisions, before).await?
            }
        };
        if let Some(state) = &mut state
            && way.is_stored
            && index + 1 < case.stages.len()
        {
            scenario.store(state, &mut got)?;
        }
        states.push(state);
        stages.push(got);
    }
    Ok(json!({"stages": stages}))
}

/// The parts of a scenario that live through its stages.
struct Scenario<'a> {
    case: &'a Case,
    way: Way,
    environment: Environment,
    scripts: Scripts,
    team: Team<CaseContext>,
}

/// The state that a stage ended in.
struct State {
    run: Run,
    /// The name of the agent that the runner began with.
    start: String,
    context: Arc<CaseContext>,
}

impl Scenario<'_> {
    /// Begins a run, with the agent that the stage before ended with.
    async fn begin(
        &self,
        stage: &StageCase,
        before: Option<&State>,
    ) -> Result<(Value, Option<State>), String> {
        let start = before.map_or(self.case.start.as_str(), |state| state.run.agent());
        let context = Arc::new(CaseContext::new(&self.case.context));
        let input = scenario::parse_input(&stage.input)?;
        let (tracer, mut events) = (MemoryTracer::new(), Vec::new());
        let runner = self.runner(start, stage.max_turns, &context, &tracer)?;
        let outcome = scenario::run_input(&runner, input, self.way.mode, &mut events).await;
        let got = self.serialize(&outcome, &context, &tracer, events);
        Ok((got, state(outcome, start, context)))
    }

    /// Resumes the run of another stage after decisions. A limit of turns that is given here is not
    /// used, as in the reference; without the conformance runner it counts.
    async fn resume(
        &self,
        _stage: &StageCase,
        decisions: &[DecisionCase],
        before: &State,
    ) -> Result<(Value, Option<State>), String> {
        let mut run = before.run.clone();
        let refused = decide(&mut run, decisions, &self.case.start)?;
        let context = before.context.clone();
        context.take_log();
        let (tracer, mut events) = (MemoryTracer::new(), Vec::new());
        let runner = self.runner(&before.start, None, &context, &tracer)?;
        let outcome = scenario::resume(&runner, run, self.way.mode, &mut events).await;
        let mut got = self.serialize(&outcome, &context, &tracer, events);
        if !refused.is_empty() {
            got["refused_decisions"] = refused.into();
        }
        Ok((got, state(outcome, &before.start, context)))
    }

    fn runner(
        &self,
        start: &str,
        max_turns: Option<u32>,
        context: &Arc<CaseContext>,
        tracer: &MemoryTracer,
    ) -> Result<Runner<CaseContext, Arc<CaseContext>>, String> {
        let observed = self.environment.observed_config(self.case, tracer)?;
        let config = RunConfig {
            max_turns: max_turns.or(observed.max_turns),
            ..observed
        };
        let agent = self.team.get(start).ok_or("the agent is not there")?;
        let runner = Runner::new(agent).replace_config(config);
        Ok(runner.context(context.clone()))
    }

    fn serialize(
        &self,
        outcome: &Result<RunResult<CaseContext>, Error>,
        context: &CaseContext,
        tracer: &MemoryTracer,
        events: Vec<Value>,
    ) -> Value {
        let mut got = scenario::serialize_outcome(outcome);
        if let Ok(result) = outcome {
            got["interruptions"] = interruptions(result.run());
            got["usage"] = usage(result.run());
        }
        got["model_calls"] = self.scripts.take_calls(&agent_tools(&self.team));
        got["log"] = context.take_log();
        got["spans"] = serialize::spans(&scenario::recorded_spans(self.case, tracer));
        got["stream"] = events.into();
        got["context"] = context.value();
        got["on_stream"] = context.take_heard();
        got["session_items"] = serialize::items(&self.environment.session.items());
        got["tool_sessions"] = self.environment.tool_session_items();
        got
    }

    /// Stores the state of a run and reads it, for agents that are built anew. What the run holds is
    /// serialized once more.
    fn store(&mut self, state: &mut State, got: &mut Value) -> Result<(), String> {
        let stored = serde_json::to_string(&state.run).map_err(|error| error.to_string())?;
        let run: Run = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        let again = serde_json::to_string(&run).map_err(|error| error.to_string())?;
        if stored != again {
            return Err("a stored run is written differently once it was read".to_owned());
        }
        self.team = scenario::build_team(self.case, &self.environment)?;
        got["responses"] = run.raw_responses().len().into();
        got["new_items"] = serialize::run_items(run.new_items());
        got["input_list"] = serialize::items(&run.to_input_list());
        got["interruptions"] = interruptions(&run);
        got["usage"] = usage(&run);
        state.run = run;
        state.context = Arc::new(CaseContext::new(&state.context.value()));
        Ok(())
    }
}

fn state(
    outcome: Result<RunResult<CaseContext>, Error>,
    start: &str,
    context: Arc<CaseContext>,
) -> Option<State> {
    let run = outcome.ok()?.into_run();
    let start = start.to_owned();
    Some(State {
        run,
        start,
        context,
    })
}

/// Makes decisions on the calls that wait. Returns those that were refused.
fn decide(
    run: &mut Run,
    decisions: &[DecisionCase],
    first_agent: &str,
) -> Result<Vec<Value>, String> {
    let waiting = run.interruptions();
    let mut refused = Vec::new();
    for decision in decisions {
        let outcome = match decision {
            DecisionCase::AddInput { add_input } => {
                run.add_input(scenario::parse_input(add_input)?)
            }
            DecisionCase::Call {
                call_id,
                approve,
                always,
                message,
                tool,
                arguments,
            } => {
                let known = waiting.iter().find(|known| *known.call_id == **call_id);
                let made_up = json!({
                    "kind": "tool", "agent": first_agent, "tool": tool,
                    "call_id": call_id, "arguments": arguments,
                });
                let made_up = serde_json::from_value(made_up).map_err(|error| error.to_string())?;
                let mut decided = if *approve {
                    Decision::approve()
                } else {
                    Decision::reject()
                };
                if let Some(message) = message {
                    decided = decided.message(message.as_str());
                }
                if *always {
                    decided = decided.always();
                }
                run.decide(known.unwrap_or(&made_up), decided)
            }
        };
        if let Err(error) = outcome {
            refused.push(json!({"type": "UserError", "message": error.to_string()}));
        }
    }
    Ok(refused)
}

/// The calls that wait for a decision.
fn interruptions(run: &Run) -> Value {
    let waiting = run.interruptions();
    let waiting = waiting.iter().map(|waiting| {
        json!({
            "agent": waiting.agent, "tool": waiting.tool,
            "arguments": waiting.arguments, "call_id": waiting.call_id,
        })
    });
    waiting.collect()
}

fn usage(run: &Run) -> Value {
    let usage = run.usage();
    json!({
        "requests": usage.requests, "input": usage.input_tokens, "output": usage.output_tokens,
    })
}

/// The names of agents with the names of their tools that are agents.
fn agent_tools(team: &Team<CaseContext>) -> HashSet<(String, String)> {
    let agents = team.agents().iter();
    let tools = agents.flat_map(|agent| {
        let tools = agent.tools().iter().filter(|tool| tool.agent().is_some());
        let names = tools.map(|tool| (agent.name().to_owned(), tool.name().to_owned()));
        names.collect::<Vec<_>>()
    });
    tools.collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn case(tools: Value, stages: Value) -> Case {
        let agents = json!([
            {"name": "Desk", "tools": tools},
            {"name": "Expert", "tools": [{"agent_tool": "Clerk"}]},
            {"name": "Clerk"},
        ]);
        let case = json!({"agents": agents, "start": "Desk", "model": [], "stages": stages});
        Case::deserialize(case).unwrap()
    }

    #[test]
    fn cases_with_a_circle_of_agent_tools_are_skipped() {
        let run = json!([{"input": "Hi"}]);
        let circle = Some("agents that are tools of each other cannot be built");
        let waits = json!([{"name": "pay", "needs_approval": true}]);
        let ask_itself = json!([{"agent_tool": "Desk"}]);

        assert_eq!(skip_reason(&case(ask_itself, run.clone())), circle);
        assert_eq!(skip_reason(&case(waits, run)), None);
    }

    #[test]
    fn the_state_is_stored_only_where_a_stage_follows() {
        let ways = |stages: Value| -> Vec<String> {
            let ways = Way::all(&case(json!([]), stages));
            ways.iter().map(Way::to_string).collect()
        };
        let stage = json!({"input": "Hi"});

        assert_eq!(ways(json!([stage])), ["plain", "streamed"]);
        assert_eq!(
            ways(json!([stage, stage])),
            ["plain", "plain, stored", "streamed", "streamed, stored"]
        );
    }
}
