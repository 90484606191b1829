//! Runs scenarios in stages: several actions of the application, one after another.

mod model;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Agent, Run, RunConfig, RunResult, Runner, Team};

use crate::case::{Case, StageCase};
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
    let decides = |stage: &StageCase| stage.decisions.is_some() || stage.again.is_some();
    let mut tools = case.agents.iter().flat_map(|agent| &agent.tools);
    let needs_approval = tools.any(|tool| tool.needs_approval.is_some());
    if needs_approval || case.stages.iter().any(decides) {
        return Some("the engine has no approvals of tool calls yet");
    }
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
    let mut agent = scenario::first_agent(case, &scenario.team)?;
    let mut stages = Vec::with_capacity(case.stages.len());
    for (index, stage) in case.stages.iter().enumerate() {
        let (mut got, result) = scenario.run_stage(stage, &agent).await?;
        if let Some(result) = result {
            agent = result.last_agent().clone();
            if way.is_stored && index + 1 < case.stages.len() {
                agent = scenario.restore(result, &mut got)?;
            }
        }
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

impl Scenario<'_> {
    /// Runs a stage. Returns the serialized stage, and its result unless it failed.
    async fn run_stage(
        &self,
        stage: &StageCase,
        agent: &Agent<CaseContext>,
    ) -> Result<(Value, Option<RunResult<CaseContext>>), String> {
        let context = Arc::new(CaseContext::new(&self.case.context));
        let tracer = MemoryTracer::new();
        let observed = self.environment.observed_config(self.case, &tracer)?;
        let config = RunConfig {
            max_turns: stage.max_turns.or(observed.max_turns),
            ..observed
        };
        let runner = Runner::new(agent)
            .replace_config(config)
            .context(context.clone());
        let input = scenario::parse_input(&stage.input)?;
        let mut stream = Vec::new();
        let outcome = scenario::run_input(&runner, input, self.way.mode, &mut stream).await;
        let mut got = scenario::serialize_outcome(&outcome);
        if let Ok(result) = &outcome {
            got["interruptions"] = json!([]);
            got["usage"] = usage(result.run());
        }
        got["model_calls"] = self.scripts.take_calls(&agent_tools(&self.team));
        got["log"] = context.take_log();
        got["spans"] = serialize::spans(&scenario::recorded_spans(self.case, &tracer));
        got["stream"] = stream.into();
        got["context"] = context.value();
        got["on_stream"] = context.take_heard();
        got["session_items"] = serialize::items(&self.environment.session.items());
        got["tool_sessions"] = self.environment.tool_session_items();
        Ok((got, outcome.ok()))
    }

    /// Stores the state of a run and reads it with agents that are built anew. What the run holds is
    /// serialized once more. Returns the agent that has the conversation.
    fn restore(
        &mut self,
        result: RunResult<CaseContext>,
        got: &mut Value,
    ) -> Result<Agent<CaseContext>, String> {
        let stored = serde_json::to_string(result.run()).map_err(|error| error.to_string())?;
        drop(result);
        let run: Run = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        self.team = scenario::build_team(self.case, &self.environment)?;
        got["responses"] = run.raw_responses().len().into();
        got["new_items"] = serialize::run_items(run.new_items());
        got["input_list"] = serialize::items(&run.to_input_list());
        got["usage"] = usage(&run);
        let agent = self.team.get(run.agent());
        Ok(agent.ok_or("the stored run's agent is not there")?.clone())
    }
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
    fn cases_that_need_approvals_or_a_circle_of_agent_tools_are_skipped() {
        let run = json!([{"input": "Hi"}]);
        let approvals = Some("the engine has no approvals of tool calls yet");
        let circle = Some("agents that are tools of each other cannot be built");
        let waits = json!([{"name": "pay", "needs_approval": true}]);
        let decides = json!([{"input": "Hi"}, {"decisions": []}]);
        let ask = json!([{"agent_tool": "Expert"}]);
        let ask_itself = json!([{"agent_tool": "Desk"}]);

        assert_eq!(skip_reason(&case(waits, run.clone())), approvals);
        assert_eq!(skip_reason(&case(ask.clone(), decides)), approvals);
        assert_eq!(skip_reason(&case(ask_itself, run.clone())), circle);
        assert_eq!(skip_reason(&case(ask, run)), None);
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
