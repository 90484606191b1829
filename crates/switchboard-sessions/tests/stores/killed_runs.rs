//! Runs that are killed after any of their steps, and go on in a new process, on every store: the history is the
//! same, and each side effect happens once.

use std::sync::{Arc, Mutex};

use switchboard_core::approval::Decision;
use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Conversations,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ModelRequest, ModelResponse, Run, RunConfig, Runner, Step, Tool, filters, handoff, tool,
};

use crate::*;

/// The side effects of tools and callbacks.
type Effects = Arc<Mutex<Vec<String>>>;

/// The answers of the model, by what it is shown, so that a process that begins anew goes on where the last one
/// was.
fn answer(request: &ModelRequest) -> ModelResponse {
    let call = |id: &str, name: &str| Item::function_call(id, name, "{}");
    let outputs = request.input.iter();
    let outputs = outputs.filter(|item| item.output().is_some()).count();
    let is_closing = request.tools.iter().any(|spec| *spec.name == *"close");
    ModelResponse::new(match (is_closing, outputs) {
        (true, 0) => vec![call("c8", "close"), call("c9", "look")],
        (true, _) => vec![Item::output_message("m2", "Closed.")],
        (false, 0) => vec![
            call("c1", "look"),
            call("c2", "pay"),
            Item::function_call("c3", "ask", r#"{"input":"refund"}"#),
        ],
        (false, 3) => vec![call("c4", "pay"), call("c5", "transfer_to_closing")],
        (false, _) => vec![Item::output_message("m1", "Nothing more.")],
    })
}

fn expert_answer(request: &ModelRequest) -> ModelResponse {
    ModelResponse::new(match request.input.len() {
        1 => vec![Item::function_call("e1", "pay", "{}")],
        _ => vec![Item::output_message("em", "Paid.")],
    })
}

fn model(answer: fn(&ModelRequest) -> ModelResponse) -> ScriptedModel {
    (0..20).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(move |request| Ok(answer(request)))
    })
}

/// The team as each process builds it.
fn runner(effects: &Effects, session: &Conversation) -> Runner {
    let effect = |name: &'static str, needs_approval: bool| -> Tool {
        let effects = effects.clone();
        let builder = if needs_approval {
            tool::<()>(name).needs_approval()
        } else {
            tool::<()>(name)
        };
        builder.run(move |ctx, (): ()| {
            effects
                .lock()
                .unwrap()
                .push(format!("{name} {}", ctx.call_id()));
            "done"
        })
    };
    let expert: Agent = Agent::new("Expert").tool(effect("pay", true));
    let settings = RunConfig {
        model: Some(model(expert_answer).into()),
        ..RunConfig::default()
    };
    let called = effects.clone();
    let closing: Agent = Agent::new("Closing")
        .tool(effect("close", true))
        .tool(effect("look", false));
    let desk = Agent::new("Desk")
        .tool(effect("look", false))
        .tool(effect("pay", true))
        .tool(expert.as_tool("ask").config(settings).needs_approval())
        .handoff(
            handoff(&closing)
                .on_handoff(move |ctx| {
                    called
                        .lock()
                        .unwrap()
                        .push(format!("callback {}", ctx.call_id()));
                })
                .filter(filters::remove_all_tools())
                .needs_approval(),
        );
    Runner::new(&desk)
        .model(model(answer))
        .max_turns(20)
        .session(session)
}

/// The moments at which the process is killed.
#[derive(Debug, Clone, Copy)]
enum Kills {
    Never,
    AfterStep(usize),
    AfterEachStep,
    /// While the run waits; the next process knows only the conversation.
    AtEachWait,
}

/// The traces of a run in the store and in the world.
#[derive(Debug, PartialEq)]
struct Left {
    record: Vec<String>,
    view: Vec<String>,
    agent: Option<String>,
    output: String,
    effects: Vec<String>,
}

async fn run_with<B: crate::backends::Backend>(backend: &B, kills: Kills) -> (Left, usize) {
    let effects = Effects::default();
    let id = format!("{kills:?}");
    let mut session = Conversations::new(backend.open().await).get(&*id);
    let mut process = runner(&effects, &session);
    let mut run = process.begin("Close my account");
    let mut steps = 0;
    while !matches!(run.step(), Step::Done(_)) {
        if let Some(waiting) = run.interruptions().first() {
            run.decide(waiting, Decision::approve()).unwrap();
        }
        process.step(&mut run).await.unwrap();
        steps += 1;
        assert!(steps < 60, "the run does not end");
        let is_waiting = run.step() == Step::AwaitDecision;
        let is_killed = match kills {
            Kills::Never => false,
            Kills::AfterStep(at) => steps == at,
            Kills::AfterEachStep => true,
            Kills::AtEachWait => is_waiting,
        };
        if is_killed {
            let stored = serde_json::to_string(&run).unwrap();
            session = Conversations::new(backend.open().await).get(&*id);
            process = runner(&effects, &session);
            run = match kills {
                Kills::AtEachWait => session.waiting_run().await.unwrap().unwrap(),
                _ => Run::from_json(&stored).unwrap(),
            };
        }
    }
    assert!(session.waiting_run().await.unwrap().is_none());
    let Step::Done(output) = run.step() else {
        unreachable!()
    };
    let record = session.record(None).await.unwrap();
    let items = record.iter().filter_map(|entry| entry.content.item());
    let view = session.view().await.unwrap();
    let json = |item: &Item| item.as_json().to_owned();
    let agent = session.agent().await.unwrap();
    let left = Left {
        record: items.map(json).collect(),
        view: view.iter().map(json).collect(),
        agent: agent.map(|agent| agent.to_string()),
        output: output.text().into_owned(),
        effects: effects.lock().unwrap().clone(),
    };
    (left, steps)
}

tests! {
    async fn a_run_killed_after_any_step_leaves_the_same_conversation_and_each_side_effect_once(backend) {
        let (whole, steps) = run_with(&backend, Kills::Never).await;
        let mut effects = whole.effects.clone();
        effects.sort();
        let expected =
            ["callback c5", "close c8", "look c1", "look c9", "pay c2", "pay c4", "pay e1"];
        assert_eq!(effects, expected);
        assert_eq!(whole.output, "Closed.");
        assert_eq!(whole.agent.as_deref(), Some("Closing"));
        for at in 1..steps {
            let (killed, _) = run_with(&backend, Kills::AfterStep(at)).await;
            assert_eq!(killed, whole, "after step {at}");
        }
        assert_eq!(run_with(&backend, Kills::AfterEachStep).await.0, whole);
        assert_eq!(run_with(&backend, Kills::AtEachWait).await.0, whole);
    }

    async fn of_two_processes_that_resume_a_run_one_does_what_was_approved(backend) {
        let effects = Effects::default();
        let session = Conversations::new(backend.open().await).get("c");
        runner(&effects, &session).run("Close my account").await.unwrap();
        effects.lock().unwrap().clear();
        // Two handles, as two processes have them. A fork has a wait of its own, as in another process.
        let first = Conversations::new(backend.open().await).get("c");
        let second = Conversations::new(backend.open().await).get("c");
        let approved = async |session: &Conversation| {
            let mut run = session.waiting_run().await.unwrap().unwrap().fork();
            let waiting = run.interruptions();
            run.decide(&waiting[0], Decision::approve()).unwrap();
            run
        };
        let (one, other) = (approved(&first).await, approved(&second).await);
        let (first, second) = (runner(&effects, &first), runner(&effects, &second));
        let (one, other) = tokio::join!(first.resume(one), second.resume(other));
        let errors: Vec<_> = [one.err(), other.err()].into_iter().flatten().collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        let cause = errors[0].cause().and_then(|cause| cause.downcast_ref::<ConversationError>());
        let kind = cause.map(ConversationError::kind);
        assert!(
            matches!(kind, Some(ConversationErrorKind::Leased | ConversationErrorKind::WaitIsOver)),
            "{errors:?}"
        );
        assert_eq!(*effects.lock().unwrap(), ["pay c2"]);
    }
}
