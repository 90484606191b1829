//! `switchboard graph`.

use crate::support::Folder;

#[test]
fn a_team_is_drawn_as_text() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        r#"
[context]
tier = "basic"
[agents.Triage]
instructions = "x"
handoffs = ["Billing", { to = "Desk", when = "tier == 'gold'", tool_name = "escalate" }]
[agents.Billing]
description = "Bills."
tools = ["find", "ask"]
handoffs = ["Triage", "Desk"]
[agents.Desk]
description = "Difficult cases."
person = true
[agents.Expert]
instructions = "x"
[tools.find]
description = "Finds."
http.url = "https://example.com"
[tools.ask]
description = "Asks."
agent = "Expert"
"#,
    );
    let ran = folder.run(&["graph", "team.toml", "--format", "text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "\
Triage
├─▶ Billing
│  │ find()
│  ├─▶ Triage ↺
│  ├─▶ Desk (person) …
│  └─○ Expert  ask
└┄▶ Desk (person)  escalate, if tier == 'gold'
   ├┄▶ Triage ↺  hand_back
   └┄▶ Billing …  hand_back

┄▶ under a condition · ─○ asked as a tool · ↺ back to an agent above it · … drawn elsewhere
"
    );
}

#[test]
fn a_team_is_drawn_as_an_image_without_another_program() {
    let folder = Folder::new();
    let ran = folder.run(&["graph", "team.toml", "-f", "svg"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let image = &ran.stdout;
    assert!(
        image.starts_with("<svg ") && image.ends_with("</svg>\n"),
        "{image}"
    );
    for name in ["Triage", "Billing", "Manager", "Concierge"] {
        assert!(image.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(
        image.contains("if tier == &quot;premium&quot;</text>"),
        "{image}"
    );
    assert!(image.contains("stroke-dasharray"), "{image}");
    assert_eq!(image.matches("marker-end=").count(), 3);
}

#[test]
fn a_pipe_gets_mermaid() {
    let ran = Folder::new().run(&["graph", "team.toml"]);
    assert!(ran.stdout.starts_with("flowchart LR\n"), "{ran:?}");
}
