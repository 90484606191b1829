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

fn codes(team: &Team) -> Vec<String> {
    let findings = team.check();
    let tell = |finding: &switchboard_core::Finding| {
        format!("{} {}", finding.code.as_str(), finding.agent)
    };
    findings.iter().map(tell).collect()
}

#[test]
fn a_team_that_is_fine_has_nothing_to_find() {
    let team: Team = Team::new()
        .agent(
            Agent::new("Triage")
                .handoff_description("First.")
                .handoff("Billing"),
        )
        .agent(
            Agent::new("Billing")
                .handoff_description("Bills.")
                .handoff(handoff("Triage").enabled_if(|_ctx, _agent| true)),
        )
        .build()
        .unwrap();
    assert_eq!(codes(&team), [""; 0]);
}

#[test]
fn a_team_is_looked_over() {
    let long = "x".repeat(60);
    let team: Team = Team::new()
        .agent(
            Agent::new("Triage")
                .handoff(
                    handoff("Billing")
                        .tool_description("Bills.")
                        .tool_name("go"),
                )
                .handoff(handoff("Round").tool_description("Round.").tool_name("go"))
                .handoff(handoff(long.as_str()).tool_description("Long."))
                .tool(tool("look up").run(|_ctx, (): ()| "1")),
        )
        .agent(Agent::new("Billing"))
        .agent(Agent::new("Round").handoff("About"))
        .agent(
            Agent::new("About")
                .handoff("Round")
                .handoff_description("About."),
        )
        .agent(Agent::new(long.as_str()).handoff("Billing"))
        .agent(Agent::new("Lost"))
        .build()
        .unwrap();
    assert_eq!(
        codes(&team),
        [
            "name-invalid Triage",
            "name-too-long Triage",
            "name-collision Triage",
            "empty-description About",
            &format!("empty-description {long}"),
            "unreachable Lost",
            "dead-end Billing",
            "unbounded-cycle Round",
        ]
    );
    let readable = team.check_with(switchboard_core::ToolNames::Readable);
    assert!(!readable.iter().any(|f| f.code.as_str() == "name-too-long"));
    let cycle = team.check().pop().unwrap().to_string();
    assert!(
        cycle.contains("\"Round\", \"About\" can hand the conversation round"),
        "{cycle}"
    );
}

#[test]
fn a_team_is_drawn_with_its_cycles_conditions_payloads_and_tools() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Refund {
        amount: u32,
    }
    let team: Team = Team::new()
        .agent(
            Agent::new("Tri\"age")
                .handoff("Billing")
                .tool(tool("lookup").run(|_ctx, (): ()| "1")),
        )
        .agent(
            Agent::new("Billing")
                .handoff(
                    handoff("Tri\"age")
                        .tool_name("back")
                        .enabled_if(|_ctx, _agent| true),
                )
                .handoff(handoff("Billing").payload::<Refund>()),
        )
        .build()
        .unwrap();
    assert_eq!(
        team.graph().to_mermaid(),
        "flowchart LR
    a0([\"Tri#quot;age\"])
    a0t0[/\"lookup\"/]
    a0 --- a0t0
    a1([\"Billing\"])
    a0 --> a1
    a1 -.->|\"back, if allowed\"| a0
    a1 -->|\"with Refund\"| a1
"
    );
    assert_eq!(
        team.graph().to_dot(),
        "digraph team {
    rankdir=LR;
    a0 [label=\"Tri\\\"age\"];
    a0t0 [label=\"lookup\", shape=box];
    a0 -> a0t0 [arrowhead=none];
    a1 [label=\"Billing\"];
    a0 -> a1 [label=\"\", style=solid];
    a1 -> a0 [label=\"back, if allowed\", style=dashed];
    a1 -> a1 [label=\"with Refund\", style=solid];
}
"
    );
}

#[tokio::test]
async fn an_agent_can_be_told_of_its_colleagues() {
    let b: Agent = Agent::new("B");
    let c: Agent = Agent::new("C");
    let a = Agent::new("A")
        .instructions("Route.")
        .explain_handoffs()
        .handoff(&b)
        .handoff(handoff(&c).enabled(false));
    let model = ScriptedModel::new().say("ok");
    Runner::new(&a).model(model.clone()).run("x").await.unwrap();
    let told = model.requests()[0].instructions.clone().unwrap();
    assert!(told.starts_with(switchboard_core::HANDOFF_PROMPT), "{told}");
    assert!(
        told.ends_with("conversation to:\n- B (transfer_to_b)\n\nRoute."),
        "{told}"
    );
}
