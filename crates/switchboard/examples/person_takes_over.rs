//! A person in the team: an agent hands the conversation to Ann, who has a specialist check the bill, answers
//! the customer, keeps the conversation for another message, and hands it back. Everything that waits is stored
//! in the conversation, so each step could be another process.
//!
//! `cargo run --example person_takes_over`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use switchboard::approval::InterruptionKind;
use switchboard::callback::BoxError;
use switchboard::conversation::{Conversation, Conversations};
use switchboard::people::PersonAnswer;
use switchboard::run::RunStatus;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, RunResult, Runner, Team, filters, handoff};

/// The reason for which a person is asked.
#[derive(Deserialize, JsonSchema)]
struct Complaint {
    reason: String,
}

/// The result of checking a bill.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Finding {
    is_wrong: bool,
    refund: u32,
}

fn team() -> Result<Team, switchboard::Error> {
    let to_ann = handoff("Ann")
        .payload::<Complaint>()
        .on_handoff(|_ctx, complaint| println!("  [Ann's phone rings: {}]", complaint.reason));
    // Billing has a way back to whoever asked it, who need not see how it came to its result.
    let to_billing = handoff::<()>("Billing")
        .returns::<Finding>()
        .on_return(|ctx, finding: Finding| println!("  [{}: {finding:?}]", ctx.from().name()))
        .return_filter(filters::remove_all_tools());
    Team::new()
        .agent(
            Agent::new("Triage")
                .instructions("Help the customer. Hand complaints to Ann.")
                .handoff(to_ann),
        )
        .agent(
            Agent::person("Ann")
                .handoff_description("Complaints, and customers who ask for a person.")
                .handoff(to_billing),
        )
        .agent(
            Agent::new("Billing")
                .instructions("Check the bill, then hand back.")
                .handoff_description("Checks bills."),
        )
        .build()
}

/// Prints the answer, or the person that the conversation waits for.
fn show(result: &RunResult) {
    match result.status() {
        RunStatus::Completed => println!("{}", result.final_text()),
        _ => {
            for waiting in result.interruptions() {
                if let InterruptionKind::Person { may_hand_to, .. } = waiting.kind {
                    let others = may_hand_to.join(", ");
                    println!("  [waits for {}, who may hand to {others}]", waiting.agent);
                }
            }
        }
    }
}

/// A message of the customer.
async fn customer(runner: &Runner, text: &str) -> Result<(), BoxError> {
    println!("customer: {text}");
    show(&runner.run(text).await?);
    Ok(())
}

/// An answer of Ann to what waits in the conversation.
async fn ann(
    runner: &Runner,
    session: &Conversation,
    answer: PersonAnswer,
) -> Result<(), BoxError> {
    let mut run = session
        .waiting_run()
        .await?
        .ok_or("nothing waits for Ann")?;
    for waiting in run.interruptions() {
        run.answer(&waiting, answer.clone())?;
    }
    let result = runner.resume(run).await?;
    if result.last_agent().is_person() && result.status() == RunStatus::Completed {
        print!("Ann: ");
    }
    show(&result);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let team = team()?;
    println!("{}", team.graph().to_mermaid());

    let finding = json!({"is_wrong": true, "refund": 20}).to_string();
    let model = ScriptedModel::new()
        .call("transfer_to_ann", r#"{"reason": "the third wrong bill"}"#)
        .call("hand_back", &finding)
        .say("Triage: You are welcome. Is there anything else?");
    let session = Conversations::in_memory().get("customer-42");
    let runner = Runner::new(&team["Triage"]).model(model).session(&session);

    customer(&runner, "This is the third wrong bill. I want a person!").await?;
    customer(&runner, "Is anybody there?").await?;
    // Both messages wait for Ann. She lets Billing check first, and has the conversation again.
    let check = PersonAnswer::hand_to("Billing").note("The bill of May, please.");
    ann(&runner, &session, check).await?;
    let reply = PersonAnswer::reply("I am sorry. You get 20 back. May I do more for you?");
    ann(&runner, &session, reply).await?;
    customer(&runner, "No, that was all. Thank you!").await?;
    ann(&runner, &session, PersonAnswer::hand_back()).await?;

    let agent = session.agent().await?;
    println!(
        "the conversation is with {}",
        agent.as_deref().unwrap_or("nobody")
    );
    Ok(())
}
