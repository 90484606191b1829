//! Stored runs of every version since 3 are read and resumed.
//!
//! `tests/data/stored_runs/v<N>/` was written by the program of version N, with
//! `cargo test -p switchboard-core --test behaviour -- --ignored stored_runs::write_fixtures`.

use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::guardrail::{InputGuardrail, OutputGuardrail, ToolGuardrail, ToolVerdict};
use switchboard_core::model::Usage;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{HistoryPolicy, RunStatus, ServerHistory};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Handoff, Item, Json, MemorySession, ModelRequest, ModelResponse, Run, RunConfig,
    RunResult, Runner, Session, Step, ToolContext, filters, handoff, tool,
};

/// A conversation whose run is stored after every step.
struct Scenario {
    name: &'static str,
    /// Its agents and settings; with `fails`, code of the user's fails at some step.
    runner: fn(fails: bool) -> Runner,
    answers: fn() -> Vec<ModelResponse>,
}

#[derive(Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
}

fn call(id: &str, name: &str, arguments: &str) -> Item {
    Item::function_call(id, name, arguments)
}

fn say(id: &str, text: &str) -> Item {
    Item::output_message(id, text)
}

fn answer<const N: usize>(items: [Item; N]) -> ModelResponse {
    ModelResponse::new(items).usage(Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: 2,
        ..Usage::default()
    })
}

fn reasoning(id: &str) -> Item {
    Item::from_json(format!(
        r#"{{"type":"reasoning","id":"{id}","summary":[],"new_field":[1.0,"\ud800"]}}"#
    ))
    .unwrap()
}

fn error(fails: bool) -> Result<(), &'static str> {
    if fails { Err("not yet") } else { Ok(()) }
}

const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "handoff_with_tools_and_payload",
        runner: |_| {
            let billing: Agent = Agent::new("Billing")
                .tool(tool("lookup").run(|_ctx, (): ()| Json(json!({"id": 42, "open": true}))));
            let triage = Agent::new("Triage")
                .tool(tool("account").run(|_ctx, (): ()| "account 42"))
                .tool(tool("date").run(|_ctx, (): ()| Json(json!("1 May"))))
                .handoff(handoff(&billing).payload::<Escalation>().on_handoff(
                    |_ctx, escalation| {
                        assert_eq!(escalation.reason, "a bill");
                    },
                ));
            Runner::new(&triage)
        },
        answers: || {
            let transfer = call("c3", "transfer_to_billing", r#"{"reason":"a bill"}"#);
            vec![
                answer([
                    reasoning("rs_1"),
                    call("c1", "account", "{}"),
                    call("c2", "date", "{}"),
                ]),
                answer([say("m1", "One moment."), transfer]),
                answer([call("c4", "lookup", "{}")]),
                answer([say("m2", "Your bill is fixed.")]),
            ]
        },
    },
    Scenario {
        name: "nested_twice",
        runner: |_| {
            let c: Agent = Agent::new("C");
            let b = Agent::new("B").handoff(&c);
            let a = Agent::new("A").handoff(&b);
            Runner::new(&a).nest_handoff_history(true)
        },
        answers: || {
            vec![
                answer([say("m1", "To B."), call("c1", "transfer_to_b", "{}")]),
                answer([say("m2", "To C."), call("c2", "transfer_to_c", "{}")]),
                answer([say("m3", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "filtered_with_a_session",
        runner: |_| {
            let b: Agent = Agent::new("B");
            let a = Agent::new("A")
                .tool(tool("t").run(|_ctx, (): ()| "1"))
                .handoff(handoff(&b).filter(filters::remove_all_tools()));
            let session = MemorySession::new();
            let before = [Item::user("Earlier"), Item::assistant("Yes?")];
            futures_util::FutureExt::now_or_never(session.append(&before))
                .unwrap()
                .unwrap();
            // With a conversation, the run could only be resumed in that one.
            Runner::new(&a)
                .session(&session)
                .history(HistoryPolicy::Reference)
        },
        answers: || {
            vec![
                answer([call("c1", "t", "{}"), call("c2", "transfer_to_b", "{}")]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "several_handoffs_one_refused",
        runner: |_| {
            let c: Agent = Agent::new("C");
            let b: Agent = Agent::new("B");
            let refused = handoff(&b)
                .on_handoff(|_ctx| switchboard_core::handoff::HandoffDecision::refuse("closed"));
            let a = Agent::new("A").handoff(refused).handoff(&c);
            Runner::new(&a).unknown_tool(switchboard_core::run::UnknownTool::TellModel)
        },
        answers: || {
            vec![
                answer([call("c0", "nothing", "{}")]),
                answer([
                    call("c1", "transfer_to_b", "{}"),
                    call("c2", "transfer_to_c", "{}"),
                ]),
                answer([call("c3", "transfer_to_c", "")]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "a_filter_that_fails_after_the_callback",
        runner: |fails| {
            let b: Agent = Agent::new("B");
            let picked = b.clone();
            let custom = Handoff::custom("Desk", move |_ctx, _arguments| picked.clone())
                .candidate(&b)
                .filter_fn(move |data: switchboard_core::handoff::HandoffInputData| {
                    error(fails).map(|()| data)
                });
            let a: Agent = Agent::new("A").handoff(custom);
            Runner::new(&a)
        },
        answers: || {
            vec![
                answer([call("c1", "transfer_to_desk", r#"{"x":[1]}"#)]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "a_tool_that_trips_beside_one_that_ran",
        runner: |fails| {
            let guardrail =
                ToolGuardrail::<()>::on_output("late", move |_ctx: ToolContext, _output| {
                    if fails {
                        ToolVerdict::trip("not yet")
                    } else {
                        ToolVerdict::Allow
                    }
                });
            let agent: Agent = Agent::new("A")
                .tool(tool("quick").run(|_ctx, (): ()| "1"))
                .tool(tool("guarded").guardrail(guardrail).run(|_ctx, (): ()| "2"));
            Runner::new(&agent)
        },
        answers: || {
            vec![
                answer([call("c1", "quick", "{}"), call("c2", "guarded", "{}")]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "a_decision_after_tools_that_fails",
        runner: |fails| {
            let agent: Agent = Agent::new("A")
                .tool(tool("t").run(|_ctx, (): ()| Json(json!([1, null]))))
                .tool_use_behavior(switchboard_core::agent::ToolUseBehavior::decide(
                    move |_ctx, _results| {
                        error(fails).map(|()| None::<switchboard_core::FinalOutput>)
                    },
                ));
            Runner::new(&agent)
        },
        answers: || {
            vec![
                answer([call("c1", "t", "{}")]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "guardrails_on_input_and_output",
        runner: |fails| {
            let masked = InputGuardrail::replacing("masked", |_ctx, _agent, input| {
                let input: switchboard_core::Input = input;
                input
                    .last_words()
                    .map(|words| words.replace("4242", "****"))
            });
            let agent: Agent = Agent::new("A")
                .input_guardrail(masked)
                .input_guardrail(InputGuardrail::new("fine", |_ctx, _agent, _input| ()))
                .output_guardrail(OutputGuardrail::replacing(
                    "late",
                    move |_ctx, _agent, _output| error(fails),
                ));
            Runner::new(&agent)
        },
        answers: || vec![answer([say("m1", "Done.")])],
    },
    Scenario {
        name: "calls_that_wait_for_approval",
        runner: |_| {
            let refund = || {
                tool("refund")
                    .needs_approval()
                    .run(|_ctx, (): ()| "refunded")
            };
            // It is built anew when the run is resumed, and answers by what it is shown.
            let reply = |request: &ModelRequest| match request.input.len() {
                1 => Ok(answer([call("c1", "refund", "{}")])),
                _ => Ok(answer([say("m0", "It is out.")])),
            };
            let model = ScriptedModel::new().respond_by(reply).respond_by(reply);
            let settings = RunConfig {
                model: Some(model.into()),
                ..RunConfig::default()
            };
            let expert: Agent = Agent::new("Expert").tool(refund());
            let b: Agent = Agent::new("B");
            let a = Agent::new("A")
                .tool(refund())
                .tool(tool("t").run(|_ctx, (): ()| "1"))
                .tool(expert.as_tool("ask").config(settings))
                .handoff(handoff(&b).needs_approval());
            Runner::new(&a)
        },
        answers: || {
            vec![
                answer([
                    call("c2", "refund", "{}"),
                    call("c3", "t", "{}"),
                    call("c4", "ask", r#"{"input":"x"}"#),
                    call("c5", "transfer_to_b", "{}"),
                ]),
                answer([say("m1", "Done.")]),
            ]
        },
    },
    Scenario {
        name: "a_conversation_at_the_provider",
        runner: |_| {
            let b: Agent = Agent::new("B");
            let a = Agent::new("A").handoff(&b);
            Runner::new(&a).server_history(ServerHistory::Conversation("conv_1".into()))
        },
        answers: || {
            let mut first = answer([call("c1", "transfer_to_b", "{}")]);
            first.response_id = Some("resp_1".into());
            vec![first, answer([say("m1", "Done.")])]
        },
    },
    Scenario {
        name: "a_person_and_a_way_back",
        runner: |_| {
            let billing: Agent = Agent::new("Billing");
            let ann = Agent::person("Ann").handoff(handoff(&billing).returns::<Escalation>());
            let a = Agent::new("A").handoff(&ann);
            Runner::new(&a)
        },
        answers: || {
            vec![
                answer([call("c1", "transfer_to_ann", "{}")]),
                answer([call("c2", "hand_back", r#"{"reason":"paid"}"#)]),
            ]
        },
    },
];

impl Scenario {
    /// The runner, with a model that gives the answers that are left after `used`.
    fn runner(&self, fails: bool, used: usize) -> Runner {
        let answers = (self.answers)().into_iter().skip(used);
        let model = answers.fold(ScriptedModel::new(), ScriptedModel::respond_with);
        (self.runner)(fails).model(model)
    }

    /// The run after every step, up to the end or to the step that fails.
    async fn stored(&self) -> Vec<Run> {
        let runner = self.runner(true, 0);
        let mut run = runner.begin("My card is 4242");
        let mut stored = vec![run.clone()];
        while !matches!(run.step(), Step::Done(_)) {
            approve_first(&mut run);
            if let Step::TakeAnswer(_) = run.step() {
                stored.push(run.clone());
            }
            let outcome = runner.step(&mut run).await;
            stored.push(run.clone());
            if outcome.is_err() {
                break;
            }
        }
        stored
    }

    async fn resumed(&self, run: Run) -> Value {
        let runner = self.runner(false, run.raw_responses().len());
        // The state with an answer is the one that waited for it.
        let fork = run.fork();
        let ids = [id(&fork), id(&run)];
        let mut result = runner.resume(fork).await.unwrap();
        while result.status() == RunStatus::Interrupted {
            let mut run = result.into_run();
            approve_first(&mut run);
            result = runner.resume(run).await.unwrap();
        }
        // The calls of people are named after the run.
        let text = described(&result).to_string().replace(&ids[0], &ids[1]);
        serde_json::from_str(&text).unwrap()
    }
}

/// The identifier of a run.
fn id(run: &Run) -> String {
    // A lone surrogate is kept, and is no text for a `Value`.
    let stored = serde_json::to_string(run).unwrap().replace(r"\ud800", "");
    let stored: Value = serde_json::from_str(&stored).unwrap();
    stored["run"]["id"].as_str().unwrap().to_owned()
}

/// Approves the first call that waits, or answers for the person, if there is one.
fn approve_first(run: &mut Run) {
    let waiting = run.interruptions();
    let Some(waiting) = waiting.first() else {
        return;
    };
    if let InterruptionKind::Person { .. } = waiting.kind {
        let answer = if run.handoffs().len() == 1 {
            PersonAnswer::hand_to("Billing")
                .message("One moment.")
                .note("In a hurry.")
        } else {
            PersonAnswer::reply("It is paid.").then_hand_back()
        };
        run.answer(waiting, answer).unwrap();
    } else {
        run.decide(waiting, Decision::approve()).unwrap();
    }
}

fn described(result: &RunResult) -> Value {
    let handoffs = result.handoffs().iter();
    let handoffs = handoffs.map(|handoff| serde_json::to_value(handoff).unwrap());
    let items = result.to_input_list();
    let items: Vec<&str> = items.iter().map(Item::as_json).collect();
    json!({
        "output": result.final_text(),
        "agent": result.last_agent().name(),
        "handoffs": handoffs.collect::<Vec<Value>>(),
        "items": items,
        "usage": result.usage(),
    })
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/stored_runs")
}

#[tokio::test]
#[ignore = "writes the fixtures of this version"]
async fn write_fixtures() {
    for scenario in &SCENARIOS {
        let stored = scenario.stored().await;
        let result = scenario.resumed(stored[stored.len() - 1].clone()).await;
        let version = serde_json::to_value(&stored[0]).unwrap()["version"].clone();
        let folder = folder().join(format!("v{version}"));
        fs::create_dir_all(&folder).unwrap();
        let stored: Vec<String> = stored
            .iter()
            .map(|run| serde_json::to_string(run).unwrap())
            .collect();
        let text = format!(
            "{{\"result\":{result},\n\"stored\":[\n{}\n]}}\n",
            stored.join(",\n")
        );
        fs::write(folder.join(format!("{}.json", scenario.name)), text).unwrap();
    }
}

#[derive(Deserialize)]
struct Fixture {
    result: Value,
    stored: Vec<Run>,
}

/// Versions up to 4 recorded neither ignored handoffs nor the turns of handoffs.
fn as_before(mut result: Value) -> Value {
    if let Some(handoffs) = result["handoffs"].as_array_mut() {
        handoffs.retain(|handoff| handoff["outcome"] != "ignored");
        for handoff in handoffs {
            if let Some(fields) = handoff.as_object_mut() {
                fields.shift_remove("turn");
                fields.shift_remove("made_progress");
            }
        }
    }
    result
}

/// The JSON schema of stored runs.
fn schema() -> jsonschema::Validator {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-state.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// The differences between the stored form of a run and the schema.
fn schema_problems(schema: &jsonschema::Validator, run: &Run) -> Vec<String> {
    // A lone surrogate is kept, and is no text for a `Value`.
    let state = serde_json::to_string(run).unwrap().replace(r"\ud800", "");
    let state: Value = serde_json::from_str(&state).unwrap();
    let problems = schema.iter_errors(&state);
    problems
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect()
}

/// Checks that the schema describes the stored form of a run.
pub(crate) fn assert_fits_schema(run: &Run) {
    assert_eq!(schema_problems(&schema(), run), [""; 0]);
}

#[tokio::test]
async fn the_schema_describes_every_state_that_is_stored() {
    let schema = schema();
    let mut checked = 0;
    for scenario in &SCENARIOS {
        for (step, run) in scenario.stored().await.into_iter().enumerate() {
            let problems = schema_problems(&schema, &run);
            assert_eq!(problems, [""; 0], "{} after step {step}", scenario.name);
            checked += 1;
        }
    }
    assert!(checked >= 40, "only {checked} states were checked");
    let mut other = serde_json::to_value(Runner::new(&Agent::<()>::new("A")).begin("x")).unwrap();
    assert!(schema.is_valid(&other));
    other["run"]["position"]["phase"] = json!("asleep");
    assert!(!schema.is_valid(&other));
}

#[tokio::test]
async fn runs_stored_by_every_version_can_be_resumed() {
    let mut read = 0;
    for version in fs::read_dir(folder()).unwrap() {
        let version = version.unwrap().path();
        for scenario in &SCENARIOS {
            let path = version.join(format!("{}.json", scenario.name));
            let fixture: Fixture = match fs::read_to_string(&path) {
                Ok(text) => serde_json::from_str(&text).unwrap(),
                // A scenario may be younger than a version.
                Err(_) => continue,
            };
            for (step, run) in fixture.stored.into_iter().enumerate() {
                let resumed = scenario.resumed(run).await;
                assert_eq!(
                    as_before(resumed),
                    as_before(fixture.result.clone()),
                    "{} after step {step}",
                    path.display()
                );
                read += 1;
            }
        }
    }
    assert!(read >= 40, "only {read} runs were read");
}
