//! Keys that are the same whenever a call is carried out.

use std::collections::HashSet;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, handoff, tool};

use crate::approvals::{Ran, decide_all};
use crate::stored;

#[tokio::test]
async fn keys_are_stable_over_retries_and_unique() {
    let keys = Ran::default();
    let (of_tool, of_handoff) = (keys.clone(), keys.clone());
    let pay = tool::<()>("pay")
        .needs_approval()
        .fail_run()
        .run(move |ctx, (): ()| {
            of_tool.add(ctx.idempotency_key());
            Err::<&str, _>("the bank is closed")
        });
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(pay)
        .handoff(handoff(&boss).on_handoff(move |ctx| of_handoff.add(ctx.idempotency_key())));
    let session = Conversations::in_memory().get("customer-42");
    let model = ScriptedModel::new()
        .reply([Item::function_call("c1", "transfer_to_boss", "{}")])
        .say("Hi.")
        .reply([Item::function_call("c1", "pay", "{}")])
        .reply([Item::function_call("c1", "pay", "{}")]);
    let runner = Runner::new(&clerk).model(model).session(&session);
    runner.run("Boss, please").await.unwrap();
    session.set_agent(Some("Clerk")).await.unwrap();

    let mut run = stored(runner.run("Pay").await.unwrap().run());
    decide_all(&mut run, &Decision::approve());
    let error = runner.resume(run).await.unwrap_err();
    let error = runner
        .resume(stored(error.run().unwrap()))
        .await
        .unwrap_err();
    drop(error);

    let made = keys.take();
    assert_eq!(made.len(), 3);
    assert_eq!(made[1], made[2]);
    let unique: HashSet<&String> = made.iter().collect();
    assert_eq!(unique.len(), 2);
    assert!(
        made.iter()
            .all(|key| key.starts_with("customer-42/") && key.ends_with("/c1"))
    );
}
