//! Teams: agents that refer to each other by name, and checks on them.

use std::sync::{Arc, Weak};

use switchboard_core::handoff::ToolNames;
use switchboard_core::team::{Finding, FindingCode};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Team, Tool, handoff, tool};

#[tokio::test]
async fn agents_hand_off_in_a_cycle() {
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
    assert!(watch.upgrade().is_some(), "an agent keeps its team alive");
    assert_eq!(kept.handoffs()[0].agent_name(), "A");
    drop(kept);
    assert!(
        watch.upgrade().is_none(),
        "dropping the last agent drops the team"
    );
}

#[test]
fn a_handoff_by_name_has_the_description_of_its_target() {
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
fn agents_given_by_value_become_members() {
    let b: Agent = Agent::new("B").handoff("A");
    let team = Team::new()
        .agent(Agent::new("A").handoff(&b))
        .build()
        .unwrap();
    assert_eq!(team["B"].handoffs()[0].agent_name(), "A");
    assert_eq!(team.agents().len(), 2);
}

#[test]
fn an_error_lists_all_problems_of_a_team() {
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
fn indexing_an_unknown_agent_panics_with_the_known_names() {
    let team: Team = Team::new().agent(Agent::new("A")).build().unwrap();
    let _ = &team["C"];
}

fn codes(team: &Team) -> Vec<String> {
    let findings = team.check();
    let tell = |finding: &Finding| format!("{} {}", finding.code.as_str(), finding.agent);
    findings.iter().map(tell).collect()
}

#[test]
fn a_valid_team_has_no_findings() {
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
fn findings_are_sorted_by_severity() {
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
    let readable = team.check_with(ToolNames::Readable);
    assert!(!readable.iter().any(|f| f.code.as_str() == "name-too-long"));
    let cycle = team.check().pop().unwrap().to_string();
    assert!(
        cycle.contains("\"Round\", \"About\" can hand off in a cycle"),
        "{cycle}"
    );
}

#[test]
fn a_large_and_deep_team_can_be_checked() {
    // A long chain that leads into a large cycle.
    let (ring, end) = (50_000, 100_000);
    let mut team = Team::new();
    for n in 0..end {
        let next = if n + 1 < end { n + 1 } else { ring };
        let agent = Agent::<()>::new(format!("{n}")).handoff_description("One of many.");
        team = team.agent(agent.handoff(format!("{next}")));
    }
    let findings = team.build().unwrap().check();
    let [finding] = &findings[..] else {
        panic!("{} findings", findings.len());
    };
    assert_eq!(finding.code, FindingCode::UnboundedCycle);
    assert_eq!(finding.agent, "50000");
    let (first, last) = (
        "\"50000\", \"50001\", ",
        "\"50007\" and 49992 more can hand off in a cycle",
    );
    assert!(
        finding.message.starts_with(first) && finding.message.contains(last),
        "{finding}"
    );
}

#[tokio::test]
async fn findings_name_tools_as_the_model_sees_them() {
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("账单").handoff("技术"))
        .agent(Agent::new("账单"))
        .agent(Agent::new("技术"))
        .build()
        .unwrap();
    for names in [ToolNames::Reference, ToolNames::Readable] {
        let model = ScriptedModel::new().say("ok");
        let runner = Runner::new(&team["A"]).tool_names(names);
        runner.model(model.clone()).run("x").await.unwrap();
        let offered = model.requests()[0].handoffs.clone();
        let offered: Vec<String> = offered.iter().map(|h| h.tool_name.to_string()).collect();
        let findings = team.check_with(names).into_iter();
        let findings = findings.filter(|f| f.code == FindingCode::EmptyDescription);
        let named: Vec<String> = findings.filter_map(|finding| finding.tool).collect();
        assert_eq!(named, offered);
    }
}

#[test]
fn agents_used_as_tools_are_checked_too() {
    let expert: Agent = Agent::new("Expert");
    // This agent is not a member of the team.
    let helper: Agent = Agent::new("Helper").tool(tool("look up").run(|_ctx, (): ()| "1"));
    let librarian = Agent::new("Librarian").tool(helper.as_tool("help"));
    let team = Team::new()
        .agent(
            Agent::new("Desk")
                .tool(expert.as_tool("ask_expert"))
                .tool(librarian.as_tool("ask_librarian")),
        )
        .agent(expert)
        .agent(Agent::new("Lost"))
        .build()
        .unwrap();
    assert_eq!(team.agents().len(), 3, "they do not become members");
    assert_eq!(codes(&team), ["name-invalid Helper", "unreachable Lost"]);
    assert_eq!(
        team["Desk"].tools()[0].agent().map(Agent::name),
        Some("Expert")
    );
}

#[tokio::test]
async fn a_handoff_to_an_unknown_name_fails_before_the_model_is_called() {
    let agent: Agent = Agent::new("A")
        .handoff(handoff("Nobody").enabled(false))
        .handoff("Ghost");
    let model = ScriptedModel::new().say("never");
    let runner = Runner::new(&agent).model(model.clone());
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_configuration());
    assert_eq!(
        error.to_string(),
        "agent \"A\": handoff \"transfer_to_ghost\" leads to \"Ghost\" by name, and the agent is in no \
         team with an agent of that name; put both into a Team"
    );
    assert_eq!(model.requests().len(), 0);
}

/// A desk that uses a librarian as a tool, who uses an expert, who hands off by name.
fn desk_with_expert(to: &str) -> Agent {
    let expert: Agent = Agent::new("Expert").handoff(to);
    let librarian = Agent::new("Librarian").tool(expert.as_tool("ask_expert"));
    Agent::new("Desk").tool(librarian.as_tool("ask_librarian"))
}

#[test]
fn an_unknown_name_is_found_in_an_agent_used_as_a_tool() {
    let team = Team::new().agent(desk_with_expert("Ghost")).build();
    assert_eq!(
        team.unwrap_err().to_string(),
        "this team cannot work: agent \"Expert\", used as a tool, hands off to \"Ghost\": the team has \
         no agent \"Ghost\", only \"Desk\""
    );
}

#[tokio::test]
async fn an_agent_used_as_a_tool_hands_off_to_members_by_name() {
    let billing = |about: &str| Agent::new("Billing").handoff_description(about);
    let desk = desk_with_expert("Billing");
    // The same desk is in two teams, each with its own billing agent.
    for about in ["Bills.", "Invoices."] {
        let team: Team = Team::new()
            .agent(desk.clone())
            .agent(billing(about))
            .build()
            .unwrap();
        let model = ScriptedModel::new()
            .call("ask_librarian", r#"{"input": "?"}"#)
            .call("ask_expert", r#"{"input": "?"}"#)
            .call("transfer_to_billing", "{}")
            .say("42")
            .say("He says 42.")
            .say("It is 42.");
        let runner = Runner::new(&team["Desk"]).model(model.clone());
        let result = runner.run("x").await.unwrap();
        assert_eq!(result.final_text(), "It is 42.");
        assert_eq!(model.requests_of("Billing").len(), 1);
        let offered = &model.requests_of("Expert")[0].handoffs[0];
        assert_eq!(
            &*offered.tool_description,
            format!("Handoff to the Billing agent to handle the request. {about}")
        );
        let drawn = team.graph().to_mermaid();
        assert!(drawn.contains("a3 --> a1"), "{drawn}");
        assert_eq!(codes(&team), ["empty-description Expert"]);
    }
}

#[test]
fn an_agent_with_the_name_of_a_member_is_not_confused_with_it() {
    let expert: Agent = Agent::new("Expert");
    let other: Agent = Agent::new("Expert").tool(tool("guess").run(|_ctx, (): ()| "1"));
    let team = Team::new()
        .agent(
            Agent::new("Desk")
                .tool(expert.as_tool("ask"))
                .tool(other.as_tool("ask_other")),
        )
        .agent(expert)
        .build()
        .unwrap();
    assert_eq!(codes(&team), ["name-collision Expert"]);
    assert_eq!(
        team.graph().to_mermaid(),
        "flowchart LR
    a0([\"Desk\"])
    a1([\"Expert\"])
    a2([\"Expert\"])
    a2t0[/\"guess\"/]
    a2 --- a2t0
    a0 --o|\"ask\"| a1
    a0 --o|\"ask_other\"| a2
"
    );
}

#[test]
fn a_shared_name_is_one_finding_and_disabled_tools_do_not_count() {
    let go = |enabled| tool("go").enabled(enabled).run(|_ctx, (): ()| "1");
    let handoff_named = |name| handoff("Desk").tool_name(name).tool_description("Round.");
    let team: Team = Team::new()
        .agent(
            Agent::new("Desk")
                .tool(go(true))
                .tool(go(true))
                .tool(go(false))
                .tool(tool("stay").enabled(false).run(|_ctx, (): ()| "1"))
                .handoff(handoff_named("go"))
                .handoff(handoff_named("stay")),
        )
        .build()
        .unwrap();
    let findings = team.check().into_iter();
    let findings = findings.filter(|finding| finding.code == FindingCode::NameCollision);
    assert_eq!(
        findings.map(|f| f.to_string()).collect::<Vec<_>>(),
        [
            "warning[name-collision] agent \"Desk\", \"go\": a tool, a tool, the handoff to \"Desk\" \
             have this name, and one gets all calls; give each its own name"
        ]
    );
}

#[test]
fn many_handoffs_with_the_same_tool_name_are_named_fast() {
    let count = 20_000;
    let mut team = Team::new();
    let mut desk = Agent::<()>::new("Desk");
    for n in 0..count {
        // The reference's policy gives all of these the same tool name.
        let name: String = format!("{n:016b}").replace('0', "账").replace('1', "单");
        desk = desk.handoff(name.as_str());
        team = team.agent(Agent::new(name));
    }
    let team = team.agent(desk).build().unwrap();
    let codes = team.check().into_iter().map(|finding| finding.code);
    assert!(
        !codes
            .into_iter()
            .any(|code| code == FindingCode::NameCollision)
    );
}

#[test]
fn an_invalid_schema_is_found_in_an_agent_used_as_a_tool() {
    let far: Agent = Agent::new("远");
    let expert: Agent = Agent::new("Expert").handoff(
        handoff(&far)
            .payload_schema(serde_json::json!({"type": "object", "additionalProperties": true})),
    );
    let team = Team::new()
        .agent(Agent::new("Desk").tool(expert.as_tool("ask")))
        .build()
        .unwrap();
    let findings = team.check_with(ToolNames::Readable);
    assert_eq!(
        (findings[0].code, findings[0].tool.as_deref()),
        (FindingCode::BadSchema, Some("transfer_to_yuan"))
    );
}

#[test]
fn a_disabled_handoff_does_not_reach_its_target() {
    let team: Team = Team::new()
        .agent(
            Agent::new("A")
                .handoff_description("A.")
                .handoff(handoff("B").enabled(false)),
        )
        .agent(Agent::new("B").handoff_description("B.").handoff("A"))
        .build()
        .unwrap();
    assert_eq!(codes(&team), ["unreachable B"]);
}

#[tokio::test]
async fn instructions_can_list_the_handoffs() {
    let b: Agent = Agent::new("B");
    let c: Agent = Agent::new("C");
    let a = Agent::new("A")
        .instructions("Route.")
        .explain_handoffs()
        .handoff(&b)
        .handoff(handoff(&c).enabled(false));
    let model = ScriptedModel::new().say("ok");
    Runner::new(&a).model(model.clone()).run("x").await.unwrap();
    let instructions = model.requests()[0].instructions.clone().unwrap();
    assert!(
        instructions.starts_with(switchboard_core::handoff::HANDOFF_PROMPT),
        "{instructions}"
    );
    assert!(
        instructions.ends_with("conversation to:\n- B (transfer_to_b)\n\nRoute."),
        "{instructions}"
    );
}

#[test]
fn different_outputs_and_tools_that_ignore_their_timeout_are_found() {
    let timeout = std::time::Duration::from_secs(1);
    let quick: Tool = tool("quick").timeout(timeout).run(|_ctx, (): ()| "1");
    let fine: Tool = tool("fine")
        .timeout(timeout)
        .run(|_ctx, (): ()| async { "1" });
    let thread: Tool = tool("thread")
        .timeout(timeout)
        .run_blocking(|_ctx, (): ()| "1");
    let team = Team::new()
        .agent(
            Agent::new("Triage")
                .handoff("Billing")
                .tool(quick)
                .tool(fine)
                .tool(thread),
        )
        .agent(
            Agent::new("Billing")
                .handoff_description("Bills.")
                .handoff("Triage")
                .output::<Vec<u32>>(),
        )
        .build()
        .unwrap();
    let findings = team.check();
    let of = |code: FindingCode| {
        let findings = findings.iter().filter(|finding| finding.code == code);
        findings
            .map(|finding| finding.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(FindingCode::MixedOutputs),
        [
            "note[mixed-outputs] agent \"Triage\": it answers with text, and it hands off to \
             \"Billing\" (Array_of_uint32); read the final output by the agent that gave it, or \
             give all the same type",
            "note[mixed-outputs] agent \"Billing\": it answers with Array_of_uint32, and it hands \
             off to \"Triage\" (text); read the final output by the agent that gave it, or give all \
             the same type",
        ]
    );
    let blocking = of(FindingCode::BlockingTool);
    assert_eq!(blocking.len(), 1, "{blocking:?}");
    assert!(blocking[0].contains("\"quick\""), "{blocking:?}");
}

switchboard_core::output_union! {
    /// The outputs of the team.
    #[derive(Debug, PartialEq)]
    enum Answer {
        Text(String),
        Numbers(Vec<u32>),
    }
}

#[tokio::test]
async fn the_output_of_a_team_is_one_of_the_types_of_its_agents() {
    let triage = || Agent::new("Triage").handoff("Counter");
    let counter = Agent::<()>::new("Counter").output::<Vec<u32>>();
    let team = Team::new().agent(triage()).agent(counter).build().unwrap();
    team.check_output::<Answer>().unwrap();
    let model = ScriptedModel::new()
        .say("Hello.")
        .call("transfer_to_counter", "{}")
        .say(r#"{"response": [1, 2]}"#);
    let runner = Runner::new(&team["Triage"]).model(model);
    let answer = runner.run("x").await.unwrap().output_of::<Answer>();
    assert_eq!(answer.unwrap(), Answer::Text("Hello.".into()));
    let answer = runner.run("x").await.unwrap().output_of::<Answer>();
    assert_eq!(answer.unwrap(), Answer::Numbers(vec![1, 2]));

    let other = Agent::<()>::new("Counter").output::<Vec<String>>();
    let team = Team::new().agent(triage()).agent(other).build().unwrap();
    let error = team.check_output::<Answer>().unwrap_err();
    assert!(error.is_configuration());
    assert!(
        error.to_string().contains("\"Counter\" (Array_of_string)"),
        "{error}"
    );
}
