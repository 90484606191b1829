//! Agents that name each other.

use std::sync::{Arc, Weak};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Team, handoff, tool};

#[tokio::test]
async fn agents_in_a_cycle_hand_the_conversation_round() {
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("B"))
        .agent(Agent::new("B").handoff(handoff("C").tool_name("on")))
        .agent(Agent::new("C").handoff("A").handoff("C"))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("on", "{}")
        .call("transfer_to_c", "{}")
        .call("transfer_to_a", "{}")
        .say("Round.");
    let result = Runner::new(&team["A"]).model(model).run("x").await.unwrap();
    assert_eq!(result.last_agent().name(), "A");
    assert_eq!(result.run().turns(), 5);
}

#[test]
fn a_cycle_leaks_nothing() {
    let alive = Arc::new(());
    let watch: Weak<()> = Arc::downgrade(&alive);
    let (in_tool, in_callback) = (alive.clone(), alive);
    let team: Team = Team::new()
        .agent(
            Agent::new("A")
                .tool(tool("t").run(move |_ctx, (): ()| format!("{in_tool:?}")))
                .handoff("B"),
        )
        .agent(
            Agent::new("B").handoff(handoff("A").on_handoff(move |_ctx| {
                let _ = &in_callback;
            })),
        )
        .build()
        .unwrap();
    let kept = team["B"].clone();
    drop(team);
    assert!(watch.upgrade().is_some(), "an agent keeps its team");
    assert_eq!(kept.handoffs()[0].agent_name(), "A");
    drop(kept);
    assert!(watch.upgrade().is_none(), "and the last one takes it along");
}

#[test]
fn descriptions_are_found_by_name() {
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("B"))
        .agent(Agent::new("B").handoff_description("Knows all."))
        .build()
        .unwrap();
    assert_eq!(
        team["A"].handoffs()[0].tool_description(),
        "Handoff to the B agent to handle the request. Knows all."
    );
}

#[test]
fn agents_given_by_value_come_along() {
    let b: Agent = Agent::new("B").handoff("A");
    let team = Team::new()
        .agent(Agent::new("A").handoff(&b))
        .build()
        .unwrap();
    assert_eq!(team["B"].handoffs()[0].agent_name(), "A");
    assert_eq!(team.agents().len(), 2);
}

#[test]
fn everything_wrong_with_a_team_is_said_at_once() {
    let error = Team::new()
        .agent(Agent::<()>::new("A").handoff("Biling"))
        .agent(Agent::new("Billing"))
        .agent(Agent::new("Billing"))
        .build()
        .unwrap_err();
    assert!(error.is_configuration());
    let message = error.to_string();
    assert!(
        message.contains("\"A\" hands off to \"Biling\""),
        "{message}"
    );
    assert!(message.contains("only \"A\", \"Billing\""), "{message}");
    assert!(
        message.contains("two different agents are named \"Billing\""),
        "{message}"
    );
}

#[test]
#[should_panic(expected = "the team has no agent \"C\", only \"A\"")]
fn asking_for_an_agent_that_is_not_there_says_which_are() {
    let team: Team = Team::new().agent(Agent::new("A")).build().unwrap();
    let _ = &team["C"];
}
