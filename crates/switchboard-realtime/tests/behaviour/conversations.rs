//! Conversations that are kept, and go on in writing or aloud.

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, MemorySession, Runner, Session as _, tool};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeRunner};

use crate::support::{open, read_answer_of, read_until_event};

fn desk() -> Agent {
    let lookup = tool("lookup").run(|_ctx, (): ()| "12 euros");
    let billing = Agent::new("Billing").tool(lookup);
    Agent::new("Desk").handoff(&billing)
}

#[tokio::test]
async fn a_text_run_goes_on_with_what_was_said() {
    let stored = Conversations::in_memory().get("caller");
    let desk = desk();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.call("lookup", "{}"))
        .turn(|turn| turn.say("It is 12 euros."));
    let runner = RealtimeRunner::new(&RealtimeAgent::try_from(&desk).unwrap()).session(&stored);
    let mut session = open(runner, &model).await;
    session.send_message("What is my bill?").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    read_answer_of(&mut session, "Billing").await;
    session.close().await.unwrap();

    assert_eq!(stored.agent().await.unwrap().as_deref(), Some("Billing"));
    let text = ScriptedModel::new().say("Yes, 12.");
    let runner = Runner::new(&desk).model(text.clone()).session(&stored);
    let result = runner.run("Really?").await.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
    let shown: Vec<String> = text.requests()[0]
        .input
        .iter()
        .map(|item| match (item.text(), item.output(), item.name()) {
            (Some(text), _, _) => text.into_owned(),
            (_, Some(output), _) => output.into_owned(),
            (_, _, Some(name)) => name.into_owned(),
            _ => String::new(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "What is my bill?",
            "transfer_to_billing",
            r#"{"assistant": "Billing"}"#,
            "lookup",
            "12 euros",
            "It is 12 euros.",
            "Really?",
        ]
    );
}

#[tokio::test]
async fn a_session_goes_on_with_what_was_written_and_with_the_agent_that_has_it() {
    let stored = Conversations::in_memory().get("caller");
    let desk = desk();
    let text = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("lookup", "{}")
        .say("It is 12 euros.");
    let runner = Runner::new(&desk).model(text).session(&stored);
    runner.run("What is my bill?").await.unwrap();

    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Yes, twelve."));
    let runner = RealtimeRunner::new(&RealtimeAgent::try_from(&desk).unwrap()).session(&stored);
    let mut session = open(runner, &model).await;
    assert_eq!(&*session.agent(), "Billing");
    assert_eq!(model.configs()[0].history.len(), 4);
    session.send_message("Really?").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    session.close().await.unwrap();
    let last = stored.load(Some(2)).await.unwrap();
    let last: Vec<_> = last.iter().filter_map(|item| item.text()).collect();
    assert_eq!(last, ["Really?", "Yes, twelve."]);
}

#[tokio::test]
async fn any_session_keeps_the_items() {
    let stored = MemorySession::new();
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hello there."));
    let solo: RealtimeAgent = RealtimeAgent::new("Solo");
    let mut session = open(RealtimeRunner::new(&solo).session(&stored), &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Solo").await;
    session.close().await.unwrap();
    let items = stored.items();
    let texts: Vec<_> = items.iter().filter_map(|item| item.text()).collect();
    assert_eq!(texts, ["Hello", "Hello there."]);
}

#[tokio::test]
async fn a_session_that_is_closed_while_calls_are_open_leaves_no_call_without_an_output() {
    let stored = Conversations::in_memory().get("caller");
    let slow = tool("slow").run(|_ctx, (): ()| std::future::pending::<String>());
    let refund = tool("refund").needs_approval().run(|_ctx, (): ()| "paid");
    let desk: Agent = Agent::new("Desk").tool(slow).tool(refund);
    let model = ScriptedRealtimeModel::new().turn(|turn| {
        turn.say("One moment.")
            .call_as("call_1", "slow", "{}")
            .call_as("call_2", "refund", "{}")
    });
    let runner = RealtimeRunner::new(&RealtimeAgent::try_from(&desk).unwrap()).session(&stored);
    let mut session = open(runner, &model).await;
    session.send_message("My money").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    session.close().await.unwrap();

    let text = ScriptedModel::new().say("Nothing was paid.");
    let runner = Runner::new(&desk).model(text.clone()).session(&stored);
    runner.run("Is it paid?").await.unwrap();
    let input = &text.requests()[0].input;
    let calls = input.iter().filter(|item| item.name().is_some()).count();
    let outputs = input.iter().filter(|item| item.output().is_some()).count();
    assert_eq!(calls, outputs, "{input:?}");
    let said: Vec<_> = input.iter().filter_map(|item| item.text()).collect();
    assert_eq!(said.first().map(|text| &**text), Some("My money"));
    assert_eq!(said.last().map(|text| &**text), Some("Is it paid?"));
}
