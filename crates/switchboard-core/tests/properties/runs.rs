//! Properties of runs that hold for every team and every script.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use switchboard_core::filters::{self, Filter};
use switchboard_core::hooks::{HookResult, HooksHandle, RunHooks, Transfer};
use switchboard_core::items::{ItemKind, Items};
use switchboard_core::model::ModelHandle;
use switchboard_core::run::{FanOut, HandoffPolicy, HandoffTrigger, SeveralHandoffs, UnknownTool};
use switchboard_core::session::SessionHandle;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, Item, MemorySession, ModelRequest, Run, RunConfig, RunContext, RunResult, Runner,
    Step, Team, handoff, tool,
};

/// A team of four agents with handoffs to each other, and the script of its model.
#[derive(Debug, Clone)]
struct Plan {
    agents: Vec<Vec<HandoffPlan>>,
    answers: Vec<Vec<Part>>,
    nests: bool,
    in_session: bool,
    fans_out: bool,
}

#[derive(Debug, Clone)]
struct HandoffPlan {
    to: usize,
    filter: u8,
    nests: Option<bool>,
    condition: Option<HandoffTrigger>,
}

/// One item of a scripted answer.
#[derive(Debug, Clone)]
enum Part {
    Message,
    Reasoning,
    Tool,
    UnknownTool,
    Handoff(usize),
}

fn plans() -> impl Strategy<Value = Plan> {
    plans_with(Just(None), Just(false))
}

/// Plans with handoffs that conditions take, and with handoffs side by side.
fn plans_with_policies() -> impl Strategy<Value = Plan> {
    let condition = prop_oneof![
        4 => Just(None),
        1 => Just(Some(HandoffTrigger::BeforeTurn)),
        1 => Just(Some(HandoffTrigger::AfterTurn)),
    ];
    plans_with(condition, any::<bool>())
}

fn plans_with(
    condition: impl Strategy<Value = Option<HandoffTrigger>>,
    fans_out: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Plan> {
    let edge = (0..4_usize, 0..5_u8, any::<Option<bool>>(), condition);
    let edge = edge.prop_map(|(to, filter, nests, condition)| HandoffPlan {
        to,
        filter,
        nests,
        condition,
    });
    let agents = prop::collection::vec(prop::collection::vec(edge, 0..4), 4);
    let part = prop_oneof![
        2 => Just(Part::Message),
        1 => Just(Part::Reasoning),
        3 => Just(Part::Tool),
        1 => Just(Part::UnknownTool),
        4 => (0..4_usize).prop_map(Part::Handoff),
    ];
    let answers = prop::collection::vec(prop::collection::vec(part, 0..4), 0..8);
    (agents, answers, any::<bool>(), any::<bool>(), fans_out).prop_map(
        |(agents, answers, nests, in_session, fans_out)| Plan {
            agents,
            answers,
            nests,
            in_session,
            fans_out,
        },
    )
}

fn filter(which: u8) -> Option<Filter<()>> {
    match which {
        1 => Some(filters::remove_all_tools()),
        2 => Some(filters::nest_history()),
        3 => Some(filters::nest_history().then(filters::remove_all_tools())),
        4 => Some(filters::remove_all_tools().then(filters::nest_history())),
        _ => None,
    }
}

fn team(plan: &Plan) -> Team {
    let mut team = Team::new();
    for (n, edges) in plan.agents.iter().enumerate() {
        let mut agent = Agent::new(format!("{n}"))
            .instructions(format!("{n}"))
            .tool(tool("t").run(|_ctx, (): ()| "1"));
        let mut seen = Vec::new();
        for edge in edges {
            if seen.contains(&edge.to) {
                continue;
            }
            seen.push(edge.to);
            let mut builder = handoff(edge.to.to_string());
            if let Some(filter) = filter(edge.filter) {
                builder = builder.filter(filter);
            }
            if let Some(nests) = edge.nests {
                builder = builder.nest_history(nests);
            }
            agent = agent.handoff(match edge.condition {
                Some(HandoffTrigger::BeforeTurn) => builder.before_turn_if(|_ctx, _agent| true),
                Some(_) => builder.after_turn_if(|_ctx, _agent| true),
                None => builder,
            });
        }
        team = team.agent(agent);
    }
    team.build().unwrap()
}

fn script(plan: &Plan, failing_at: Option<usize>) -> ScriptedModel {
    let mut model = ScriptedModel::new();
    let mut count = 0;
    for (at, answer) in plan.answers.iter().enumerate() {
        if failing_at == Some(at) {
            model = model.fail("overloaded");
        }
        let items = answer.iter().map(|part| {
            count += 1;
            let call = |name: &str| Item::function_call(&format!("call_{count}"), name, "{}");
            match part {
                Part::Message => Item::output_message(&format!("msg_{count}"), "hm\nhm"),
                Part::Reasoning => {
                    let json = format!(r#"{{"type":"reasoning","id":"rs_{count}","summary":[]}}"#);
                    Item::from_json(json).unwrap()
                }
                Part::Tool => call("t"),
                Part::UnknownTool => call("nope"),
                Part::Handoff(to) => call(&format!("transfer_to_{to}")),
            }
        });
        model = model.reply(items.collect::<Vec<_>>());
    }
    model.say("done")
}

/// Hooks that record model calls and handoffs.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Event>>>);

#[derive(Debug, Clone, PartialEq)]
enum Event {
    ModelCall(String),
    Handoff(String, String),
}

impl RunHooks<()> for Recorder {
    async fn on_llm_start(
        &self,
        _ctx: &RunContext<()>,
        agent: &Agent,
        _request: &ModelRequest,
    ) -> HookResult {
        let event = Event::ModelCall(agent.name().to_owned());
        self.0.lock().unwrap().push(event);
        Ok(())
    }

    async fn on_handoff(&self, _ctx: &RunContext<()>, transfer: &Transfer<'_>) -> HookResult {
        let event = Event::Handoff(
            transfer.from.name().to_owned(),
            transfer.to.name().to_owned(),
        );
        self.0.lock().unwrap().push(event);
        Ok(())
    }
}

/// Everything that can be observed of a run.
#[derive(Debug, PartialEq)]
struct Observation {
    outcome: Result<(String, Items), String>,
    requests: Vec<(Option<Arc<str>>, Items)>,
    events: Vec<Event>,
    stored: Items,
}

enum Mode {
    Plain,
    Streamed,
    StoredBetweenSteps,
    /// The model fails at this call, and the run is stored and resumed.
    FailingAt(usize),
}

fn run_plan(plan: &Plan, mode: Mode) -> Observation {
    let team = team(plan);
    let failing_at = match mode {
        Mode::FailingAt(at) => Some(at),
        _ => None,
    };
    let model = script(plan, failing_at);
    let recorder = Recorder::default();
    let session = MemorySession::new();
    let config = RunConfig {
        model: Some(ModelHandle::new(model.clone())),
        max_turns: Some(12),
        nest_handoff_history: plan.nests,
        unknown_tool: UnknownTool::TellModel,
        handoff_policy: if plan.fans_out {
            HandoffPolicy::production().several(SeveralHandoffs::FanOut(FanOut::to_caller()))
        } else {
            HandoffPolicy::production()
        },
        // Agents side by side share a script, so they answer one after the other.
        tool_concurrency: plan.fans_out.then_some(NonZeroUsize::MIN),
        hooks: vec![HooksHandle::new(recorder.clone())],
        session: plan.in_session.then(|| SessionHandle::new(session.clone())),
        ..RunConfig::default()
    };
    let runner = Runner::new(&team["0"]).replace_config(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        match mode {
            Mode::Plain => runner.run("Hello").await.map(output_and_items),
            Mode::Streamed => runner.stream("Hello").finish().await.map(output_and_items),
            Mode::StoredBetweenSteps => step_by_step(&runner).await,
            Mode::FailingAt(_) => match runner.run("Hello").await {
                Err(error) if error.is_model() => {
                    let stored = serde_json::to_string(error.run().unwrap()).unwrap();
                    let run: Run = serde_json::from_str(&stored).unwrap();
                    runner.resume(run).await.map(output_and_items)
                }
                outcome => outcome.map(output_and_items),
            },
        }
    });
    let requests = model.requests().into_iter();
    let events = recorder.0.lock().unwrap().clone();
    Observation {
        outcome: outcome.map_err(|error| error.to_string()),
        requests: requests.map(|r| (r.instructions, r.input)).collect(),
        events,
        stored: session.items(),
    }
}

fn output_and_items(result: RunResult) -> (String, Items) {
    (result.final_text().into_owned(), result.to_input_list())
}

async fn step_by_step(runner: &Runner) -> Result<(String, Items), Error> {
    let mut run = runner.begin("Hello");
    loop {
        let stored = serde_json::to_string(&run).unwrap();
        run = serde_json::from_str::<Run>(&stored).unwrap();
        assert_eq!(serde_json::to_string(&run).unwrap(), stored);
        if let Step::Done(output) = run.step() {
            return Ok((output.text().into_owned(), run.to_input_list()));
        }
        runner.step(&mut run).await?;
    }
}

/// Returns `true` if every call has exactly one output, after it, and every output has a call.
fn is_paired(items: &Items) -> bool {
    let of = |kind: ItemKind| {
        let items = items.iter().enumerate();
        let items = items.filter(move |(_, item)| item.kind() == kind);
        let ids = items.map(|(index, item)| (item.call_id().unwrap().into_owned(), index));
        ids.collect::<Vec<_>>()
    };
    let (calls, outputs) = (of(ItemKind::FunctionCall), of(ItemKind::FunctionCallOutput));
    calls.len() == outputs.len()
        && calls.iter().all(|(id, call)| {
            let matching: Vec<_> = outputs.iter().filter(|(other, _)| other == id).collect();
            matches!(matching.as_slice(), [(_, output)] if output > call)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_call_a_model_is_shown_has_exactly_one_output(plan in plans()) {
        for (_, input) in run_plan(&plan, Mode::Plain).requests {
            prop_assert!(is_paired(&input), "{:#?}", input);
        }
    }

    #[test]
    fn with_any_policy_every_call_is_answered_once_and_the_turns_hold(plan in plans_with_policies()) {
        let run = run_plan(&plan, Mode::Plain);
        prop_assert!(run.requests.len() <= 12);
        for (_, input) in &run.requests {
            prop_assert!(is_paired(input), "{:#?}", input);
        }
        if let Ok((_, items)) = &run.outcome {
            prop_assert!(is_paired(items), "{:#?}", items);
        }
        prop_assert_eq!(&run, &run_plan(&plan, Mode::Streamed));
        prop_assert_eq!(&run, &run_plan(&plan, Mode::StoredBetweenSteps));
    }

    #[test]
    fn the_agent_changes_only_between_turns_and_only_by_a_handoff(plan in plans()) {
        let run = run_plan(&plan, Mode::Plain);
        let mut current = "0".to_owned();
        let mut has_called = false;
        for event in &run.events {
            match event {
                Event::ModelCall(agent) => {
                    prop_assert_eq!(agent, &current);
                    has_called = true;
                }
                Event::Handoff(from, to) => {
                    prop_assert!(has_called, "a handoff follows a model call of its own");
                    prop_assert_eq!(from, &current);
                    current.clone_from(to);
                    has_called = false;
                }
            }
        }
        let calls = run.events.iter().filter(|event| matches!(event, Event::ModelCall(_)));
        for ((instructions, _), call) in run.requests.iter().zip(calls) {
            prop_assert_eq!(call, &Event::ModelCall(instructions.as_deref().unwrap().to_owned()));
        }
    }

    #[test]
    fn plain_and_streamed_runs_agree(plan in plans()) {
        prop_assert_eq!(run_plan(&plan, Mode::Plain), run_plan(&plan, Mode::Streamed));
    }

    #[test]
    fn a_run_that_failed_and_was_resumed_has_the_same_outcome(plan in plans(), at in 0..8_usize) {
        let (plain, resumed) = (run_plan(&plan, Mode::Plain), run_plan(&plan, Mode::FailingAt(at)));
        prop_assert_eq!(plain.outcome, resumed.outcome);
        prop_assert_eq!(plain.stored, resumed.stored);
    }

    #[test]
    fn a_run_stored_and_restored_between_any_two_steps_has_the_same_outcome(plan in plans()) {
        prop_assert_eq!(run_plan(&plan, Mode::Plain), run_plan(&plan, Mode::StoredBetweenSteps));
    }
}
