//! A voice agent that passes the caller on without dropping the line: a tool, a handoff with a payload,
//! an approval, and the conversation kept for a text run.
//!
//! `cargo run --example realtime --features realtime`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::approval::Decision;
use switchboard::callback::BoxError;
use switchboard::conversation::Conversations;
use switchboard::realtime::testing::ScriptedRealtimeModel;
use switchboard::realtime::{
    FirstWords, RealtimeAgent, RealtimeEvent, RealtimePolicy, RealtimeRunner, realtime_handoff,
};
use switchboard::tool::{Json, tool};

/// The payload of the handoff to billing.
#[derive(Debug, Deserialize, JsonSchema)]
struct Complaint {
    /// The reason for the call.
    reason: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let refund = tool("refund")
        .description("Pays the last bill back.")
        .needs_approval()
        .run(|_ctx, (): ()| Json(serde_json::json!({"paid": "12 euros"})));
    let billing: RealtimeAgent = RealtimeAgent::new("Billing")
        .instructions("You handle bills.")
        .handoff_description("Bills, invoices and payments.")
        .tool(refund);
    let (note, notes) = std::sync::mpsc::channel();
    let desk = RealtimeAgent::new("Front desk")
        .instructions("Greet the caller.")
        .handoff(
            realtime_handoff(&billing)
                .payload::<Complaint>()
                .on_handoff(move |_ctx, complaint| drop(note.send(complaint.reason))),
        );

    // Any `RealtimeModel` will do; this one follows a script. Over the network it is
    // `OpenAiRealtimeModel`.
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| {
            turn.say("One moment, please.")
                .call("transfer_to_billing", r#"{"reason": "charged twice"}"#)
        })
        .turn(|turn| turn.call_as("call_refund", "refund", "{}"))
        .turn(|turn| turn.say("Your 12 euros are on their way."));

    let policy = RealtimePolicy {
        first_words: FirstWords::Instruct("Do not mention the transfer.".into()),
        ..RealtimePolicy::production()
    };
    let kept = Conversations::in_memory().get("caller-42");
    let mut session = RealtimeRunner::new(&desk)
        .model(model)
        .policy(policy)
        .session(&kept)
        .connect()
        .await?;
    session.send_message("I was charged twice").await?;

    let (mut speaker, mut answers) = (session.agent(), 0);
    while let Some(event) = session.next().await {
        match event? {
            RealtimeEvent::AgentStart { agent } => speaker = agent,
            RealtimeEvent::TranscriptDelta { delta, .. } => println!("{speaker}: {delta}"),
            RealtimeEvent::Handoff { from, to } => {
                // The callback has run before the agent changes.
                notes
                    .try_iter()
                    .for_each(|reason| println!("  noted: {reason}"));
                println!("{from} → {to}");
            }
            RealtimeEvent::ApprovalRequired(call) => {
                println!("  a person approves {}", call.tool);
                session.decide(call.call_id, Decision::approve()).await?;
            }
            RealtimeEvent::ToolEnd { call, output } => println!("  {} → {output}", call.tool),
            RealtimeEvent::AgentEnd { .. } => answers += 1,
            _ => {}
        }
        if answers == 3 {
            break;
        }
    }
    session.close().await?;

    println!(
        "{} has the conversation",
        kept.agent().await?.unwrap_or_default()
    );
    Ok(())
}
