//! Runs that the user has stopped, of which a part was shown.

use switchboard_core::conversation::{Conversation, ConversationErrorKind, Conversations};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::model::ModelEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Run, Runner, Session as _, filters, handoff, tool};

use super::{PlainSession, cause, record, shown, transfer};
use crate::described;

/// A part of an answer.
fn part(text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        item: "msg".into(),
        text: text.into(),
    }
}

/// The run of a message, which is stopped once text is shown.
async fn stopped(runner: &Runner, message: &str) -> Run {
    let mut stream = runner.stream(message);
    while let Some(event) = stream.next().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            stream.stop();
        }
    }
    stream.finish().await.unwrap().into_run()
}

fn runner(agent: &Agent, session: &Conversation, model: &ScriptedModel) -> Runner {
    Runner::new(agent).session(session).model(model.clone())
}

#[tokio::test]
async fn the_message_and_the_part_that_was_shown_are_a_turn_of_the_run() {
    let agent: Agent = Agent::new("A").tool(tool("look").run(|_ctx, (): ()| "ok"));
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new()
        .say("Hello.")
        .call("look", "{}")
        .stream_events([part("Once upon")])
        .stream_events([part("There")]);
    let runner = runner(&agent, &session, &model).team_name("tellers");
    runner.run("Hi").await.unwrap();
    let run = stopped(&runner, "A story").await;
    assert!(runner.store_stopped(&run, "Once upon").await.unwrap());
    let whole = [
        "0 - user: Hi",
        "1 A assistant: Hello.",
        "0 - user: A story",
        "1 A call look",
        "1 A output of call_1: ok",
        "2 A assistant: Once upon",
    ];
    assert_eq!(record(&session).await, whole);
    // The same again changes nothing.
    assert!(runner.store_stopped(&run, "Once upon").await.unwrap());
    assert_eq!(record(&session).await, whole);
    // One message is taken back, with all its turns.
    session.undo().await.unwrap();
    assert_eq!(record(&session).await, whole[..2]);

    // The first turn of a conversation stores its agent and its team too.
    let session = Conversations::in_memory().get("c");
    let runner = runner.session(&session);
    let run = stopped(&runner, "A story").await;
    assert!(runner.store_stopped(&run, "There").await.unwrap());
    assert_eq!(
        record(&session).await,
        ["0 - user: A story", "1 A assistant: There"]
    );
    let head = session.head().await.unwrap().unwrap();
    assert_eq!(head.agent.as_deref(), Some("A"));
    assert_eq!(
        head.details.as_deref(),
        Some(r#"{"team":{"name":"tellers","start":"A","agents":["A"],"tools":{"A":["look"]}}}"#)
    );
}

#[tokio::test]
async fn a_part_is_not_stored_once_another_writer_has_changed_the_conversation() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().stream_events([part("Your card")]);
    let slow = runner(&triage, &session, &model);
    let run = stopped(&slow, "My card is 4111 1111 1111 1111").await;

    let model = transfer().say("Which bill?").say("Hello.");
    let other = runner(&triage, &session, &model);
    other.run("My bill").await.unwrap();
    let error = slow.store_stopped(&run, "Your card").await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    assert_eq!(
        error.to_string(),
        "agent \"Triage\": the session cannot be used; send the message again in a new run: the \
         conversation \"c\" was changed by another writer since it was loaded, so nothing of this \
         change was stored; `exclusive` lets runs wait for each other"
    );
    other.run("Hi").await.unwrap();
    assert!(!format!("{:?}", shown(&model)).contains("4111"));
    assert_eq!(session.load(None).await.unwrap().len(), 6);
}

#[tokio::test]
async fn a_message_that_guardrails_have_yet_to_pass_is_not_stored_with_a_part() {
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        std::future::pending::<()>().await;
        InputVerdict::trip_if(false, "fine")
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().stream_events([part("Well")]);
    let runner = runner(&agent, &session, &model);
    let run = stopped(&runner, "my password is hunter2").await;
    assert!(!runner.store_stopped(&run, "Well").await.unwrap());
    assert_eq!(session.head().await.unwrap(), None);
}

#[tokio::test]
async fn nothing_is_stored_of_a_run_that_has_its_output_or_has_shown_nothing() {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new()
        .say("Hello.")
        .stream_events([part(" ")]);
    let runner = runner(&agent, &session, &model);
    let result = runner.run("Hi").await.unwrap();
    assert!(!runner.store_stopped(result.run(), "Hello").await.unwrap());
    let run = stopped(&runner, "And?").await;
    assert!(!runner.store_stopped(&run, " ").await.unwrap());
    assert_eq!(session.load(None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_session_of_the_users_own_gets_the_message_and_the_part() {
    let agent: Agent = Agent::new("A");
    let session = PlainSession::default();
    let model = ScriptedModel::new().stream_events([part("Once upon")]);
    let runner = Runner::new(&agent).session(session.clone()).model(model);
    let run = stopped(&runner, "A story").await;
    runner.store_stopped(&run, "Once upon").await.unwrap();
    let items = session.load(None).await.unwrap();
    assert_eq!(described(&items), ["user: A story", "assistant: Once upon"]);
}
