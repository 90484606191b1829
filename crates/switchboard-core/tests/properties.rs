//! What holds for every team and every script.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[path = "properties/filters.rs"]
mod of_filters;

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use switchboard_core::filters::{self, Filter};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, HandoffCall, HookResult, HooksHandle, Item, ItemKind, Items, MemorySession,
    ModelRequest, Run, RunConfig, RunContext, RunHooks, RunResult, Runner, Step, Team, UnknownTool,
    handoff, tool,
};

/// A team of up to four agents, each with edges to others.
#[derive(Debug, Clone)]
struct Plan {
    agents: Vec<Vec<Edge>>,
    answers: Vec<Vec<Part>>,
    nests: bool,
    in_session: bool,
}

#[derive(Debug, Clone)]
struct Edge {
    to: usize,
    filter: u8,
    nests: Option<bool>,
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
    let edge = (0..4_usize, 0..5_u8, any::<Option<bool>>());
    let edge = edge.prop_map(|(to, filter, nests)| Edge { to, filter, nests });
    let agents = prop::collection::vec(prop::collection::vec(edge, 0..4), 4);
    let part = prop_oneof![
        2 => Just(Part::Message),
        1 => Just(Part::Reasoning),
        3 => Just(Part::Tool),
        1 => Just(Part::UnknownTool),
        4 => (0..4_usize).prop_map(Part::Handoff),
    ];
    let answers = prop::collection::vec(prop::collection::vec(part, 0..4), 0..8);
    (agents, answers, any::<bool>(), any::<bool>()).prop_map(
        |(agents, answers, nests, in_session)| Plan {
            agents,
            answers,
            nests,
            in_session,
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
            agent = agent.handoff(builder);
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

/// Notes who does what.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Note>>>);

#[derive(Debug, Clone, PartialEq)]
enum Note {
    Asked(String),
    Handed(String, String),
}

impl RunHooks<()> for Notes {
    async fn on_llm_start(
        &self,
        _ctx: &RunContext<()>,
        agent: &Agent,
        _request: &ModelRequest,
    ) -> HookResult {
        self.0
            .lock()
            .unwrap()
            .push(Note::Asked(agent.name().to_owned()));
        Ok(())
    }

    async fn on_handoff(
        &self,
        _ctx: &RunContext<()>,
        from: &Agent,
        to: &Agent,
        _call: &HandoffCall,
    ) -> HookResult {
        let note = Note::Handed(from.name().to_owned(), to.name().to_owned());
        self.0.lock().unwrap().push(note);
        Ok(())
    }
}

/// What a run came to, and everything that could be seen of it.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Result<(String, Items), String>,
    requests: Vec<(Option<Arc<str>>, Items)>,
    notes: Vec<Note>,
    stored: Items,
}

enum Way {
    Plain,
    Streamed,
    StoredBetweenSteps,
    /// The model fails at this call, and the run is stored and resumed.
    FailingAt(usize),
}

fn play(plan: &Plan, way: Way) -> Seen {
    let team = team(plan);
    let failing_at = match way {
        Way::FailingAt(at) => Some(at),
        _ => None,
    };
    let model = script(plan, failing_at);
    let notes = Notes::default();
    let session = MemorySession::new();
    let config = RunConfig {
        model: Some(model.clone().into()),
        max_turns: Some(12),
        nest_handoff_history: plan.nests,
        unknown_tool: UnknownTool::TellModel,
        hooks: Some(HooksHandle::new(notes.clone())),
        session: plan.in_session.then(|| (&session).into()),
        ..RunConfig::default()
    };
    let runner = Runner::new(&team["0"]).config(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        match way {
            Way::Plain => runner.run("Hello").await.map(told),
            Way::Streamed => runner.stream("Hello").finish().await.map(told),
            Way::StoredBetweenSteps => step_by_step(&runner).await,
            Way::FailingAt(_) => match runner.run("Hello").await {
                Err(error) if error.is_model() => {
                    let stored = serde_json::to_string(error.run().unwrap()).unwrap();
                    let run: Run = serde_json::from_str(&stored).unwrap();
                    runner.resume(run).await.map(told)
                }
                outcome => outcome.map(told),
            },
        }
    });
    let requests = model.requests();
    let notes = notes.0.lock().unwrap().clone();
    Seen {
        outcome: outcome.map_err(|error| error.to_string()),
        requests: requests
            .into_iter()
            .map(|r| (r.instructions, r.input))
            .collect(),
        notes,
        stored: session.items(),
    }
}

fn told(result: RunResult) -> (String, Items) {
    (result.final_text().into_owned(), result.to_input_list())
}

async fn step_by_step(runner: &Runner) -> Result<(String, Items), Error> {
    let mut run = runner.begin("Hello");
    loop {
        let stored = serde_json::to_string(&run).unwrap();
        run = serde_json::from_str::<Run>(&stored).unwrap();
        assert_eq!(
            serde_json::to_string(&run).unwrap(),
            stored,
            "storing changes nothing"
        );
        if let Step::Done(output) = run.step() {
            return Ok((output.text().into_owned(), run.to_input_list()));
        }
        runner.step(&mut run).await?;
    }
}

/// Every call has exactly one output, after it, and no output stands alone.
fn is_paired(items: &Items) -> bool {
    let of = |kind: ItemKind| {
        let items = items
            .iter()
            .enumerate()
            .filter(move |(_, item)| item.kind() == kind);
        items
            .map(|(at, item)| (item.call_id().unwrap().into_owned(), at))
            .collect::<Vec<_>>()
    };
    let (calls, outputs) = (of(ItemKind::FunctionCall), of(ItemKind::FunctionCallOutput));
    calls.len() == outputs.len()
        && calls.iter().all(|(id, at)| {
            let answers: Vec<_> = outputs.iter().filter(|(other, _)| other == id).collect();
            matches!(answers.as_slice(), [(_, answer)] if answer > at)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_call_a_model_is_shown_has_exactly_one_output(plan in plans()) {
        for (_, input) in play(&plan, Way::Plain).requests {
            prop_assert!(is_paired(&input), "{:#?}", input);
        }
    }

    #[test]
    fn the_agent_changes_only_between_turns_and_only_by_a_handoff(plan in plans()) {
        let seen = play(&plan, Way::Plain);
        let mut current = "0".to_owned();
        let mut asked = false;
        for note in &seen.notes {
            match note {
                Note::Asked(agent) => {
                    prop_assert_eq!(agent, &current);
                    asked = true;
                }
                Note::Handed(from, to) => {
                    prop_assert!(asked, "a handoff follows a model call of its own");
                    prop_assert_eq!(from, &current);
                    current.clone_from(to);
                    asked = false;
                }
            }
        }
        for ((instructions, _), note) in seen.requests.iter().zip(
            seen.notes.iter().filter(|note| matches!(note, Note::Asked(_))),
        ) {
            prop_assert_eq!(note, &Note::Asked(instructions.as_deref().unwrap().to_owned()));
        }
    }

    #[test]
    fn plain_and_streamed_runs_agree(plan in plans()) {
        prop_assert_eq!(play(&plan, Way::Plain), play(&plan, Way::Streamed));
    }

    #[test]
    fn a_run_that_failed_and_was_resumed_ends_the_same(plan in plans(), at in 0..8_usize) {
        let (smooth, rough) = (play(&plan, Way::Plain), play(&plan, Way::FailingAt(at)));
        prop_assert_eq!(smooth.outcome, rough.outcome);
        prop_assert_eq!(smooth.stored, rough.stored);
    }

    #[test]
    fn a_run_stored_and_restored_between_any_two_steps_ends_the_same(plan in plans()) {
        prop_assert_eq!(play(&plan, Way::Plain), play(&plan, Way::StoredBetweenSteps));
    }
}
