//! The number of entries that runs read.

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, Session, filters, handoff, tool};

use super::observed_store::ObservedStore;

#[tokio::test]
async fn a_message_to_a_long_conversation_reads_no_more_than_to_a_short_one() {
    let mut costs = Vec::new();
    for items in [1_000, 10_000, 100_000] {
        let store = ObservedStore::default();
        let session = Conversations::new(store.clone()).get("c");
        let model = ScriptedModel::new().say("One.").say("Two.");
        let agent: Agent = Agent::new("A");
        let runner = Runner::new(&agent)
            .model(model.clone())
            .session(&session)
            .session_limit(50);
        let said: Vec<Item> = (0..items)
            .map(|number| Item::user(number.to_string()))
            .collect();
        session.append(&said).await.unwrap();
        runner.run("Hi").await.unwrap();
        store.take();
        session.record(50).await.unwrap();
        let shown = store.take();
        runner.run("Hi again").await.unwrap();
        costs.push((shown, store.take()));
        assert_eq!(model.requests()[1].input.len(), 51);
    }
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0], costs[2]);
    let (entries, calls) = costs[0].1;
    assert!(
        entries < 100 && calls < 10,
        "{entries} entries in {calls} calls"
    );
}

#[tokio::test]
async fn a_turn_is_written_once_and_nothing_is_read_in_between() {
    let store = ObservedStore::default();
    let session = Conversations::new(store.clone()).get("c");
    let said: Vec<Item> = (0..1_000)
        .map(|number| Item::user(number.to_string()))
        .collect();
    session.append(&said).await.unwrap();
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Hello.");
    let runner = Runner::new(&triage)
        .model(model)
        .session(&session)
        .session_limit(50);
    store.take();
    runner.run("Hi").await.unwrap();
    // One head, one read, and two commits.
    let (_, calls) = store.take();
    assert_eq!(calls, 4);
}

#[tokio::test]
async fn a_change_of_the_agent_costs_the_same_however_the_view_is_cut_up() {
    let session = Conversations::in_memory().get("c");
    let mut said = Vec::new();
    for number in 0..500 {
        let call = format!("call_{number}");
        said.push(Item::user(number.to_string()));
        said.push(Item::function_call(&call, "look", "{}"));
        said.push(Item::function_call_output(&call, "nothing"));
    }
    session.append(&said).await.unwrap();
    let team = switchboard_core::Team::new()
        .agent(
            Agent::new("Triage").handoff(
                switchboard_core::handoff("Billing")
                    .filter(switchboard_core::filters::remove_all_tools()),
            ),
        )
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("transfer_to_triage", "{}")
        .say("Hello.")
        .say("Bye.");
    let start: &Agent = &team["Triage"];
    let runner = Runner::new(start).model(model.clone()).session(&session);
    runner.run("Hi").await.unwrap();
    let entries = session.entries(0..10_000).await.unwrap();
    let states = entries
        .iter()
        .filter(|entry| entry.content.kind() == "state");
    let sizes: Vec<usize> = states.map(|entry| entry.content.as_json().len()).collect();
    assert_eq!(sizes.len(), 2);
    assert!(sizes[0] > 4_000 && sizes[1] < 100, "{sizes:?}");
    runner.run("Thanks").await.unwrap();
    let shown = model.requests()[3].input.len();
    assert_eq!(session.view().await.unwrap().len(), shown + 1);
    assert!((500..510).contains(&shown), "{shown}");
}

#[tokio::test]
async fn a_resumed_run_does_not_copy_the_view_when_a_later_turn_filters_it() {
    let session = Conversations::in_memory().get("c");
    let said: Vec<Item> = (0..200)
        .map(|number| Item::user(number.to_string()))
        .collect();
    session.append(&said).await.unwrap();
    let billing: Agent = Agent::new("Billing");
    let redacted = handoff(&billing).filter(filters::redact_pii());
    let triage = Agent::new("Triage")
        .tool(tool("look").run(|_ctx, (): ()| "ok"))
        .handoff(redacted);
    let model = ScriptedModel::new()
        .fail("down")
        .call("look", "{}")
        .call("transfer_to_billing", "{}")
        .say("Done.");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    let error = runner.run("My card is 4111 1111 1111 1111").await;
    let run = error.unwrap_err().into_run().unwrap();
    runner.resume(run).await.unwrap();
    let entries = session.entries(200..1_000).await.unwrap();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry.content.kind()).collect();
    let expected = "item item item state item item replacement state item";
    assert_eq!(kinds, expected.split(' ').collect::<Vec<_>>());
    let shown = model.requests()[3].input.len();
    assert_eq!(session.view().await.unwrap().len(), shown + 1);
}
