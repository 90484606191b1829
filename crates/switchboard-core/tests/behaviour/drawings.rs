//! Teams as graphs for Mermaid and Graphviz.

use switchboard_core::handoff::ToolNames;
use switchboard_core::{Agent, Team, handoff, tool};

#[test]
fn agents_used_as_tools_and_conditions_are_drawn() {
    let expert: Agent = Agent::new("Expert");
    let helper = Agent::new("Helper");
    let team = Team::new()
        .agent(
            Agent::new("Desk")
                .tool(expert.as_tool("ask"))
                .tool(helper.as_tool("help").enabled_if(|_ctx, _agent| true))
                .handoff(
                    handoff("Expert")
                        .enabled_if(|_ctx, _agent| true)
                        .condition_name("it is past six"),
                )
                .handoff(handoff("Desk").enabled(false)),
        )
        .agent(expert)
        .build()
        .unwrap();
    assert_eq!(
        team.graph().to_mermaid(),
        "flowchart LR
    a0([\"Desk\"])
    a1([\"Expert\"])
    a2([\"Helper\"])
    a0 -.->|\"if it is past six\"| a1
    a0 -.->|\"never\"| a0
    a0 --o|\"ask\"| a1
    a0 -.-o|\"help, if allowed\"| a2
"
    );
    let dot = team.graph().to_dot();
    assert!(
        dot.contains("a0 -> a1 [label=\"ask\", style=solid, arrowhead=odot];"),
        "{dot}"
    );
}

#[test]
fn labels_are_the_tool_names_of_the_policy() {
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("账单").handoff("张单"))
        .agent(Agent::new("账单"))
        .agent(Agent::new("张单"))
        .build()
        .unwrap();
    let reference = team.graph().to_mermaid();
    assert!(
        reference.contains("a0 --> a1\n    a0 -->|\"transfer_to____2\"| a2"),
        "{reference}"
    );
    let readable = team.graph_with(ToolNames::Readable).to_mermaid();
    assert!(
        readable.contains("a0 --> a1\n    a0 -->|\"transfer_to_zhang_dan_2\"| a2"),
        "{readable}"
    );
}

#[test]
fn names_are_escaped() {
    let mut team = Team::new();
    let names = [
        "end",
        "",
        "[a](b){c}|d|",
        "\"q\" & <b>#1;",
        "two\r\nlines\u{2028}three\u{7}",
        "`md` %%{init: {}}%% \\n",
        "direction LR",
        "账单 🧾",
    ];
    for name in names {
        team = team.agent(Agent::<()>::new(name));
    }
    let graph = team.build().unwrap().graph();
    assert_eq!(
        graph.to_mermaid(),
        r##"flowchart LR
    a0(["end"])
    a1([" "])
    a2(["[a](b){c}|d|"])
    a3(["#quot;q#quot; #amp; #lt;b#gt;#35;1;"])
    a4(["two<br/>lines<br/>three "])
    a5(["#96;md#96; #37;#37;{init: {}}#37;#37; #92;n"])
    a6(["direction#32;LR"])
    a7(["账单 🧾"])
"##
    );
    assert_eq!(
        graph.to_dot(),
        r#"digraph team {
    rankdir=LR;
    a0 [label="end"];
    a1 [label=""];
    a2 [label="[a](b){c}|d|"];
    a3 [label="\"q\" &amp; <b>#1;"];
    a4 [label="two\nlines\nthree "];
    a5 [label="`md` %%{init: {}}%% \\n"];
    a6 [label="direction LR"];
    a7 [label="账单 🧾"];
}
"#
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
