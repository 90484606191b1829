//! Conversations that are spoken and written by turns, on every store.

use std::time::Duration;

use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::testing::{ScriptedModel, describe_item};
use switchboard_core::{Agent, Runner, Session as _, tool};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner};

use crate::backends::Backend;

fn desk() -> Agent {
    let lookup = tool("lookup").run(|_ctx, (): ()| "12 euros");
    let billing = Agent::new("Billing").tool(lookup);
    Agent::new("Desk").handoff(&billing)
}

/// Says something in a realtime session, and waits for so many answers.
async fn speak(conversation: &Conversation, model: ScriptedRealtimeModel, answers: usize) {
    let desk = RealtimeAgent::try_from(&desk()).unwrap();
    let runner = RealtimeRunner::new(&desk)
        .model(model)
        .session(conversation);
    let mut session = runner.connect().await.unwrap();
    session.send_message("What is my bill?").await.unwrap();
    let answered = async {
        let mut left = answers;
        while left > 0 {
            let event = session.next().await.unwrap().unwrap();
            left -= usize::from(matches!(event, RealtimeEvent::AgentEnd { .. }));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered)
        .await
        .unwrap();
    session.close().await.unwrap();
}

async fn write(conversation: &Conversation, model: ScriptedModel) -> String {
    let desk = desk();
    let runner = Runner::new(&desk).model(model).session(conversation);
    let result = runner.run("Really?").await.unwrap();
    result.last_agent().name().to_owned()
}

/// The conversation as another process would open it.
async fn reopened(backend: &impl Backend) -> Conversation {
    Conversations::new(backend.open().await).get("caller")
}

async fn stored(backend: &impl Backend) -> (Option<String>, Vec<String>) {
    let conversation = reopened(backend).await;
    let agent = conversation.agent().await.unwrap();
    let items = conversation.load(None).await.unwrap();
    let items = items.iter().map(describe_item).collect();
    (agent.map(|agent| agent.to_string()), items)
}

tests! {
    async fn a_text_run_goes_on_with_what_was_said(backend) {
        let spoken = ScriptedRealtimeModel::new()
            .turn(|turn| turn.call_as("call_1", "transfer_to_billing", "{}"))
            .turn(|turn| turn.call_as("call_2", "lookup", "{}"))
            .turn(|turn| turn.say("It is 12 euros."));
        speak(&reopened(&backend).await, spoken, 3).await;
        let agent = write(&reopened(&backend).await, ScriptedModel::new().say("Yes, 12.")).await;
        assert_eq!(agent, "Billing");
        let expected = [
            "user: What is my bill?",
            "call transfer_to_billing {}",
            "output {\"assistant\": \"Billing\"}",
            "call lookup {}",
            "output 12 euros",
            "assistant: It is 12 euros.",
            "user: Really?",
            "assistant: Yes, 12.",
        ];
        assert_eq!(
            stored(&backend).await,
            (Some("Billing".to_owned()), expected.map(str::to_owned).to_vec())
        );
    }

    async fn a_realtime_session_goes_on_with_what_was_written(backend) {
        let text = ScriptedModel::new().call("transfer_to_billing", "{}").say("It is 12 euros.");
        assert_eq!(write(&reopened(&backend).await, text).await, "Billing");
        let spoken = ScriptedRealtimeModel::new().turn(|turn| turn.say("Twelve."));
        speak(&reopened(&backend).await, spoken.clone(), 1).await;
        assert_eq!(spoken.configs()[0].history.len(), 3);
        let expected = [
            "user: Really?",
            "call transfer_to_billing {}",
            "output {\"assistant\": \"Billing\"}",
            "assistant: It is 12 euros.",
            "user: What is my bill?",
            "assistant: Twelve.",
        ];
        assert_eq!(
            stored(&backend).await,
            (Some("Billing".to_owned()), expected.map(str::to_owned).to_vec())
        );
    }
}
