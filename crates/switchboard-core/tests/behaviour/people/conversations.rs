//! People in stored conversations.

use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::guardrail::{OutputGuardrail, Verdict};
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{ActiveAgent, RunStatus};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, FinalOutput, MemorySession, Runner};

use super::{ann, asked, triage};
use crate::described;

fn stored(agent: &Agent, model: &ScriptedModel) -> (Runner, Conversation) {
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(agent).model(model.clone()).session(&session);
    (runner, session)
}

/// Answers for the person that the conversation waits for.
async fn answer(runner: &Runner, session: &Conversation, answer: PersonAnswer) -> String {
    let mut run = session.waiting_run().await.unwrap().unwrap();
    run.answer(&asked(&run), answer).unwrap();
    let result = runner.resume(run).await.unwrap();
    result.final_text().into_owned()
}

#[tokio::test]
async fn the_person_keeps_the_conversation_until_it_is_handed_back() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("I am back.")
        .say("Anything else?");
    let (runner, session) = stored(&triage(), &model);

    let result = runner.run("A person, please!").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    answer(&runner, &session, PersonAnswer::reply("I am Ann.")).await;
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Ann"));
    assert!(session.waiting_run().await.unwrap().is_none());

    // The next message waits for her again, and she still knows where the conversation came from.
    let result = runner.run("My bill is wrong").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let waiting = asked(result.run());
    assert_eq!(&*waiting.tool, "transfer_to_ann");
    assert_eq!(&*waiting.arguments, "{}");
    assert_eq!(model.requests().len(), 1);
    let said = answer(&runner, &session, PersonAnswer::hand_back()).await;
    assert_eq!(said, "I am back.");
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    let seen = described(&model.requests()[1].input);
    assert_eq!(
        seen[..5],
        [
            "user: A person, please!",
            "call transfer_to_ann",
            r#"output of call_1: {"assistant": "Ann"}"#,
            "assistant: I am Ann.",
            "user: My bill is wrong",
        ],
        "{seen:?}"
    );

    let result = runner.run("No").await.unwrap();
    assert_eq!(result.final_text(), "Anything else?");
}

#[tokio::test]
async fn a_message_before_the_answer_is_not_lost_and_waits_with_the_others() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let (runner, session) = stored(&triage(), &model);
    runner.run("A person, please!").await.unwrap();
    let first = session.waiting_run().await.unwrap().unwrap();
    runner.run("Hello?").await.unwrap();
    let result = runner.run("Anybody there?").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let run = session.waiting_run().await.unwrap().unwrap();
    let sees = described(&run.to_input_list());
    let users: Vec<_> = sees
        .iter()
        .filter(|item| item.starts_with("user"))
        .collect();
    assert_eq!(
        users,
        [
            "user: A person, please!",
            "user: Hello?",
            "user: Anybody there?"
        ]
    );

    // An answer that was written for the first message is taken by the run that waits now.
    let old = asked(&first);
    let mut stale = first;
    stale.answer(&old, PersonAnswer::reply("Yes?")).unwrap();
    let error = runner.resume(stale).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    let mut run = run;
    run.answer(&old, PersonAnswer::reply("Yes?")).unwrap();
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "Yes?");
    let view = described(&session.view().await.unwrap());
    assert_eq!(
        view[3..],
        ["user: Hello?", "user: Anybody there?", "assistant: Yes?"]
    );
}

#[tokio::test]
async fn the_first_message_to_a_person_is_stored_while_it_waits() {
    let ann: Agent = Agent::person("Ann");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&ann).session(&session);
    runner.run("One").await.unwrap();
    assert_eq!(described(&session.view().await.unwrap()), ["user: One"]);
    runner.run("Two").await.unwrap();
    answer(&runner, &session, PersonAnswer::reply("Both read.")).await;
    runner.run("Three").await.unwrap();
    answer(&runner, &session, PersonAnswer::reply("Both read.")).await;
    assert_eq!(
        described(&session.view().await.unwrap()),
        [
            "user: One",
            "user: Two",
            "assistant: Both read.",
            "user: Three",
            "assistant: Both read."
        ]
    );
    // Taking back the last message takes back its answer.
    assert!(session.undo().await.unwrap());
    assert_eq!(session.view().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_plain_session_has_the_message_and_the_reply() {
    let ann: Agent = Agent::person("Ann");
    let session = MemorySession::new();
    let runner = Runner::new(&ann).session(&session);
    let mut run = runner.run("One").await.unwrap().into_run();
    run.answer(&asked(&run), PersonAnswer::reply("Yes."))
        .unwrap();
    runner.resume(run).await.unwrap();
    assert_eq!(
        described(&session.items()),
        ["user: One", "assistant: Yes."]
    );
}

#[tokio::test]
async fn a_reply_that_a_guardrail_refuses_can_be_given_again() {
    let polite = OutputGuardrail::new("polite", |_ctx, _agent, output: FinalOutput| {
        if output.text().contains("idiot") {
            Verdict::trip("rude")
        } else {
            Verdict::Allow
        }
    });
    let ann: Agent = Agent::person("Ann").output_guardrail(polite);
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&ann).session(&session);
    runner.run("Hello?").await.unwrap();
    let mut run = session.waiting_run().await.unwrap().unwrap();
    run.add_input("Quick!").unwrap();
    run.answer(&asked(&run), PersonAnswer::reply("You idiot"))
        .unwrap();
    assert!(runner.resume(run).await.is_err());

    let said = answer(&runner, &session, PersonAnswer::reply("Hello.")).await;
    assert_eq!(said, "Hello.");
    assert_eq!(
        described(&session.view().await.unwrap()),
        ["user: Hello?", "assistant: Hello."]
    );
}

#[tokio::test]
async fn an_answer_is_taken_once_between_processes() {
    let ann: Agent = Agent::person("Ann");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&ann).session(&session);
    runner.run("Hello?").await.unwrap();
    let mut run = session.waiting_run().await.unwrap().unwrap();
    run.answer(&asked(&run), PersonAnswer::reply("One."))
        .unwrap();
    // Another process has read the same state.
    let other = run.fork();
    runner.resume(run).await.unwrap();
    let error = runner.resume(other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    assert_eq!(session.view().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_conversation_that_returns_to_its_start_leaves_the_person_after_the_reply() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Triage here.");
    let (runner, session) = stored(&triage(), &model);
    let runner = runner.active_agent(ActiveAgent::ReturnToStart);
    runner.run("A person, please!").await.unwrap();
    // While she is asked, the conversation is hers.
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Ann"));
    answer(&runner, &session, PersonAnswer::reply("Hello.")).await;
    let result = runner.run("Thanks").await.unwrap();
    assert_eq!(result.final_text(), "Triage here.");
}

#[tokio::test]
async fn the_application_gives_a_conversation_to_a_person() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(ann(&billing));
    let model = ScriptedModel::new().say("Hi.");
    let (runner, session) = stored(&triage, &model);
    runner.run("Hello").await.unwrap();
    session.set_agent(Some("Ann")).await.unwrap();
    let result = runner.run("Hello?").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = session.waiting_run().await.unwrap().unwrap();
    // Nobody handed it to her.
    let error = run.answer(&asked(&run), PersonAnswer::hand_back());
    assert!(error.unwrap_err().to_string().contains("Billing"));
}
