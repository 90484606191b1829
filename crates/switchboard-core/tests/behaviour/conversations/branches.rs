//! Undoing, rewinding, forking, exporting and importing.

use std::time::{Duration, SystemTime};

use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Conversations, Exported,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, Session, filters, handoff, tool};

use super::shown;
use crate::described;

fn kind(error: &switchboard_core::callback::BoxError) -> ConversationErrorKind {
    error.downcast_ref::<ConversationError>().unwrap().kind()
}

/// A conversation with a handoff, a redaction and a tool call.
async fn with_handoff(model: &ScriptedModel) -> (Agent, Conversation) {
    let billing: Agent = Agent::new("Billing").tool(tool("look_up").run(|_ctx, (): ()| "42"));
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("Hello").await.unwrap();
    runner.run("My card is 4111 1111 1111 1111").await.unwrap();
    (triage, session)
}

fn script() -> ScriptedModel {
    ScriptedModel::new()
        .say("Hi.")
        .call("transfer_to_billing", "{}")
        .call("look_up", "{}")
        .say("It is 42.")
}

#[tokio::test]
async fn undoing_takes_back_a_message_with_its_handoff_and_its_tool_calls() {
    let model = script().say("What else?").say("Ok.");
    let (triage, session) = with_handoff(&model).await;
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
    assert!(session.undo().await.unwrap());
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    let items = session.load(None).await.unwrap();
    assert_eq!(described(&items), ["user: Hello", "assistant: Hi."]);

    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("Never mind").await.unwrap();
    let last = shown(&model).pop().unwrap();
    assert_eq!(last, ["user: Hello", "assistant: Hi.", "user: Never mind"]);
    // The old branch is still in the record, and leads to it again.
    let all = session.entries(0..100).await.unwrap();
    let is_old = |item: &Item| item.text().is_some_and(|text| text == "It is 42.");
    let old = all
        .iter()
        .find(|entry| entry.content.item().is_some_and(is_old));
    session.rewind(old.unwrap().position + 1).await.unwrap();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
    runner.run("And now?").await.unwrap();
    let last = shown(&model).pop().unwrap();
    assert_eq!(last[2], "user: My card is [CARD]");
    assert_eq!(
        last[last.len() - 2..],
        ["assistant: It is 42.", "user: And now?"]
    );

    for left in [2, 1, 0] {
        assert!(session.undo().await.unwrap());
        let entries = session.record(None).await.unwrap();
        let messages = entries.iter().filter(|entry| entry.agent.is_none()).count();
        assert_eq!(messages, left);
    }
    assert!(!session.undo().await.unwrap());
}

#[tokio::test]
async fn a_message_is_edited_by_rewinding_to_it() {
    let model = script().say("It is gold.");
    let (triage, session) = with_handoff(&model).await;
    let record = session.record(None).await.unwrap();
    let message = record.iter().find(|entry| entry.agent.is_none()).unwrap();
    session.rewind(message.position).await.unwrap();
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("Hello, what is my tier?").await.unwrap();
    let last = shown(&model).pop().unwrap();
    assert_eq!(last, ["user: Hello, what is my tier?"]);
}

#[tokio::test]
async fn only_whole_turns_can_be_kept() {
    let (_, session) = with_handoff(&script()).await;
    let record = session.record(None).await.unwrap();
    let at = |text: &str| {
        let is_it = |item: &Item| item.as_json().contains(text);
        let found = record
            .iter()
            .find(|entry| entry.content.item().is_some_and(is_it));
        found.unwrap().position
    };
    for inside in ["Hi.", "transfer_to_billing", "call_1", "\"42\""] {
        let error = session.rewind(at(inside)).await.unwrap_err();
        assert_eq!(kind(&error), ConversationErrorKind::WithinTurn, "{inside}");
    }
    // Between the turns of a run: after the handoff.
    session.rewind(at("look_up")).await.unwrap();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
    let view = session.view().await.unwrap();
    assert_eq!(view.len(), 5);
    assert!(!view.iter().any(|item| item.as_json().contains("4111")));
}

#[tokio::test]
async fn a_fork_goes_on_by_itself() {
    let model = script().say("In the fork.").say("In the original.");
    let (triage, session) = with_handoff(&model).await;
    let fork = session.fork("copy", None).await.unwrap();
    let error = session.fork("copy", None).await.unwrap_err();
    assert_eq!(kind(&error), ConversationErrorKind::Exists);
    for conversation in [&fork, &session] {
        let runner = Runner::new(&triage)
            .model(model.clone())
            .session(conversation);
        runner.run("Where am I?").await.unwrap();
    }
    let [.., in_fork, in_original] = &shown(&model)[..] else {
        panic!("two requests");
    };
    assert_eq!(in_fork, in_original);
    assert_eq!(fork.agent().await.unwrap().as_deref(), Some("Billing"));

    let second = session.record(None).await.unwrap()[2].position;
    let early = session.fork("early", second).await.unwrap();
    assert_eq!(early.agent().await.unwrap().as_deref(), Some("Triage"));
    assert_eq!(early.view().await.unwrap().len(), 2);
    let stored = serde_json::to_string(&early.export().await.unwrap()).unwrap();
    for later in ["4111", "transfer_to_billing", "Billing"] {
        assert!(!stored.contains(later), "{later}: {stored}");
    }
    // The copy of a copy, and a message in it.
    let again = early.fork("again", second).await.unwrap();
    let runner = Runner::new(&triage)
        .model(model.say("Yes."))
        .session(&again);
    runner.run("Still there?").await.unwrap();
    assert_eq!(again.view().await.unwrap().len(), 4);
    assert!(again.undo().await.unwrap());
    assert_eq!(again.view().await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_exported_conversation_is_the_same_in_another_store() {
    let model = script().say("Bye.");
    let (triage, session) = with_handoff(&model).await;
    session.undo().await.unwrap();
    session.clear().await.unwrap();
    let runner = Runner::new(&triage).model(script()).session(&session);
    runner.run("Hello").await.unwrap();
    runner.run("My card is 4111 1111 1111 1111").await.unwrap();

    let json = serde_json::to_string(&session.export().await.unwrap()).unwrap();
    let exported: Exported = serde_json::from_str(&json).unwrap();
    let copy = Conversations::in_memory().get("elsewhere");
    copy.import(&exported).await.unwrap();
    assert_eq!(copy.view().await.unwrap(), session.view().await.unwrap());
    assert_eq!(
        copy.load(None).await.unwrap(),
        session.load(None).await.unwrap()
    );
    assert_eq!(copy.agent().await.unwrap(), session.agent().await.unwrap());
    let times = |entries: Vec<switchboard_core::conversation::Entry>| -> Vec<SystemTime> {
        entries.iter().map(|entry| entry.time).collect()
    };
    assert_eq!(
        times(copy.record(None).await.unwrap()),
        times(session.record(None).await.unwrap())
    );
    let error = copy.import(&exported).await.unwrap_err();
    assert_eq!(kind(&error), ConversationErrorKind::Exists);
    assert!(
        serde_json::from_str::<Exported>(&json.replace("\"item\"", "\"thing\"")).is_err(),
        "an entry of an unknown kind"
    );
}

#[tokio::test]
async fn the_last_entries_are_read_without_the_others() {
    let conversations = Conversations::in_memory();
    let session = conversations.get("c");
    for number in 0..1_000 {
        let item = Item::user(number.to_string());
        session.append(&[item]).await.unwrap();
    }
    let last = session.record(50).await.unwrap();
    assert_eq!(last.len(), 50);
    assert_eq!(last[0].position, 950);
    assert_eq!(session.load(Some(3)).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_popped_item_is_gone_from_the_view_too() {
    let session = Conversations::in_memory().get("c");
    session
        .append(&[Item::user("1"), Item::user("2")])
        .await
        .unwrap();
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("2")));
    session.append(&[Item::user("3")]).await.unwrap();
    let view = session.view().await.unwrap();
    assert_eq!(described(&view), ["user: 1", "user: 3"]);
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("3")));
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("1")));
    assert_eq!(session.pop().await.unwrap(), None);
}

#[tokio::test]
async fn conversations_are_listed_searched_and_removed_when_their_time_has_passed() {
    let conversations = Conversations::in_memory();
    for name in ["a", "b"] {
        let session = conversations.get(name);
        session
            .append(&[Item::user(format!("Hello from {name}"))])
            .await
            .unwrap();
    }
    let found = conversations.search("hello FROM b", 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].conversation, "b");
    let past = SystemTime::now() - Duration::from_secs(1);
    conversations.get("a").expire_at(past).await.unwrap();
    let future = SystemTime::now() + Duration::from_secs(1_000);
    conversations.get("b").expire_at(future).await.unwrap();
    assert_eq!(conversations.delete_expired().await.unwrap(), 1);
    let left = conversations.list(None).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(&*left[0].id, "b");
    let kept = conversations.get("b").load(None).await.unwrap();
    assert_eq!(described(&kept), ["user: Hello from b"]);
}

#[tokio::test]
async fn only_positions_that_the_conversation_has_can_be_returned_to() {
    let (_, session) = with_handoff(&script()).await;
    let end = session.head().await.unwrap().unwrap().revision.next;
    for position in [end + 1, 1_000, u64::MAX] {
        let error = session.rewind(position).await.unwrap_err();
        assert_eq!(kind(&error), ConversationErrorKind::NoSuchPosition);
    }
    let before = session.view().await.unwrap();
    session.rewind(end).await.unwrap();
    assert_eq!(session.view().await.unwrap(), before);
}

#[tokio::test]
async fn undoing_what_no_run_has_made_goes_back_to_the_last_message() {
    let session = Conversations::in_memory().get("c");
    for number in 0..3 {
        let question = Item::user(format!("Question {number}"));
        let answer = Item::assistant(format!("Answer {number}"));
        session.append(&[question, answer]).await.unwrap();
    }
    assert!(session.undo().await.unwrap());
    let view = session.view().await.unwrap();
    assert_eq!(
        described(&view),
        [
            "user: Question 0",
            "assistant: Answer 0",
            "user: Question 1",
            "assistant: Answer 1"
        ]
    );
}

#[tokio::test]
async fn a_refused_message_is_not_what_is_undone() {
    use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
    let refuses = InputGuardrail::new("no", |_ctx, _agent, input: switchboard_core::Input| {
        let words = input.last_words().unwrap_or_default();
        InputVerdict::trip_if(words.contains("secret"), "a secret")
    });
    let agent: Agent = Agent::new("A").input_guardrail(refuses);
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().say("One.");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("Hello").await.unwrap();
    runner.run("secret").await.unwrap_err();
    assert!(session.undo().await.unwrap());
    assert_eq!(session.view().await.unwrap().len(), 0);
}

#[tokio::test]
async fn items_that_a_filter_replaced_are_popped_with_what_replaced_them() {
    let model = ScriptedModel::new()
        .say("Hi.")
        .call("transfer_to_billing", "{}")
        .fail("down");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model).session(&session);
    runner.run("Hello").await.unwrap();
    let card = "My card is 4111 1111 1111 1111";
    runner.run(card).await.unwrap_err();
    let view = described(&session.view().await.unwrap());
    assert_eq!(view[2], "user: My card is [CARD]");
    session.append(&[Item::assistant("Sorry.")]).await.unwrap();
    session.pop().await.unwrap();
    assert_eq!(described(&session.view().await.unwrap()), view);
    // Without the output of the transfer, it has not happened.
    session.pop().await.unwrap();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    let view = session.view().await.unwrap();
    assert_eq!(view, session.load(None).await.unwrap());
    assert_eq!(view.len(), 4);
    while session.pop().await.unwrap().is_some() {
        let view = session.view().await.unwrap();
        assert_eq!(view, session.load(None).await.unwrap());
    }
}

#[tokio::test]
async fn undoing_takes_back_what_the_application_added_to_a_run_with_the_run() {
    let agent: Agent = Agent::new("A").tool(tool("look").run(|_ctx, (): ()| "ok"));
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new()
        .say("One.")
        .call("look", "{}")
        .fail("down");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("1").await.unwrap();
    runner.run("2").await.unwrap_err();
    session.append(&[Item::assistant("Sorry.")]).await.unwrap();
    assert!(session.undo().await.unwrap());
    let items = session.load(None).await.unwrap();
    assert_eq!(described(&items), ["user: 1", "assistant: One."]);
}

#[tokio::test]
async fn the_turns_before_a_refused_answer_can_be_kept() {
    use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
    let refuses = OutputGuardrail::new(
        "no",
        |_ctx, _agent, output: switchboard_core::FinalOutput| {
            OutputVerdict::trip_if(output.text().contains("secret"), "a secret")
        },
    );
    let agent: Agent = Agent::new("A")
        .tool(tool("look").run(|_ctx, (): ()| "ok"))
        .output_guardrail(refuses);
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().call("look", "{}").say("A secret.");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("Hi").await.unwrap_err();
    let record = session.record(None).await.unwrap();
    let mark = record.last().unwrap();
    assert_eq!(mark.content.kind(), "refused");
    let fork = session.fork("copy", mark.position).await.unwrap();
    assert_eq!(fork.view().await.unwrap(), session.view().await.unwrap());
    let error = session.fork("other", 2).await.unwrap_err();
    assert_eq!(kind(&error), ConversationErrorKind::WithinTurn);
}

#[tokio::test]
async fn a_copy_expires_like_its_original_and_one_that_begins_anew_does_not() {
    let conversations = Conversations::in_memory();
    let session = conversations.get("c");
    session.append(&[Item::user("1")]).await.unwrap();
    let time = switchboard_core::conversation::now();
    session.expire_at(time).await.unwrap();
    let fork = session.fork("fork", None).await.unwrap();
    let json = serde_json::to_string(&session.export().await.unwrap()).unwrap();
    let exported: Exported = serde_json::from_str(&json).unwrap();
    let imported = conversations.get("imported");
    imported.import(&exported).await.unwrap();
    for copy in [&fork, &imported] {
        let head = copy.head().await.unwrap().unwrap();
        assert_eq!(head.expires, Some(time), "{copy:?}");
    }
    session.clear().await.unwrap();
    session.append(&[Item::user("2")]).await.unwrap();
    assert_eq!(conversations.delete_expired().await.unwrap(), 2);
    let items = session.load(None).await.unwrap();
    assert_eq!(described(&items), ["user: 2"]);
}

#[tokio::test]
async fn a_conversation_that_was_cleared_is_forked_and_imported_as_it_is() {
    let conversations = Conversations::in_memory();
    let session = conversations.get("c");
    session.append(&[Item::user("1")]).await.unwrap();
    session.clear().await.unwrap();
    let imported = conversations.get("imported");
    let exported = session.export().await.unwrap();
    imported.import(&exported).await.unwrap();
    assert_eq!(imported.head().await.unwrap().unwrap().entries(), 0);
    assert_eq!(imported.load(None).await.unwrap().len(), 0);
    session.append(&[Item::user("2")]).await.unwrap();
    // Position 0 was that of the item that is gone.
    let error = session.fork("fork", 0).await.unwrap_err();
    assert_eq!(kind(&error), ConversationErrorKind::NoSuchPosition);
    assert!(conversations.get("fork").head().await.unwrap().is_none());
    let fork = session.fork("fork", 2).await.unwrap();
    assert_eq!(fork.load(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_damaged_export_is_refused() {
    let file = |position: u64, content: &str, details: &str| {
        format!(
            r#"{{"switchboard_conversation":1,"id":"x","agent":null,"details":{details},"entries":[
            {{"position":{position},"kind":"state","run":"","turn":0,"commit":0,"agent":null,"time":0,
            "content":{content}}}]}}"#
        )
    };
    let read = |json: &str| serde_json::from_str::<Exported>(json);
    let error = read(&file(u64::MAX, "{}", "null")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there is no position 18446744073709551615"),
        "{error}"
    );
    let damaged = [
        file(5, r#"{"view":[[5,6]]}"#, "null"),
        file(5, r#"{"record":[[4,5]]}"#, "null"),
        file(5, r#"{"view":[[5,2]]}"#, "null"),
        file(5, r#"{"previous":5}"#, "null"),
        file(5, r#"{"extends":7}"#, "null"),
        file(5, r#"{"notes":[9]}"#, "null"),
        file(5, r#"{"view":7}"#, "null"),
        file(5, "{}", r#""[1]""#),
    ];
    let session = Conversations::in_memory().get("c");
    for json in damaged {
        let exported = read(&json).unwrap();
        let error = session.import(&exported).await.unwrap_err();
        assert_eq!(kind(&error), ConversationErrorKind::Damaged, "{json}");
        assert!(session.head().await.unwrap().is_none());
    }
    let whole = read(&file(5, "{}", r#""{}""#)).unwrap();
    session.import(&whole).await.unwrap();
}
