//! Calls that wait for a decision.

use switchboard_core::approval::{Decision, Interruption, InterruptionKind};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Item, RunResult};
use switchboard_teamfile::{ApprovalRules, Context, Problems, TeamFile};

const TEAM: &str = r#"
    [context]
    tier = "basic"

    [agents.Desk]
    tools = ["refund", "delete", "ask_expert"]
    handoffs = [
        { to = "Manager", approve = "payload.priority == 'urgent' or tier == 'gold'", payload = { properties = { priority = { type = "string" } } } },
        { to = "Expert", approve = true },
    ]

    [agents.Manager]
    description = "A person."

    [agents.Expert]
    description = "Knows all."
    tools = ["refund"]

    [tools.refund]
    description = "Pays back."
    approve = "arguments.amount > 100 and tier != 'gold'"
    parameters = { properties = { amount = { type = "number" }, order = { type = "string" } } }
    records = { file = "orders.toml", by = "order" }

    [tools.delete]
    description = "Deletes."
    approve = true
    records = { file = "orders.toml", by = "order" }
    parameters = { properties = { order = { type = "string" } } }

    [tools.ask_expert]
    description = "Asks the expert."
    agent = "Expert"
"#;

fn parse(text: &str) -> Result<TeamFile, Problems> {
    let records = "A-1 = { paid = true }\n";
    TeamFile::from_embedded(&[("team.toml", text), ("orders.toml", records)])
}

async fn run(model: &ScriptedModel, tier: &str) -> RunResult<Context> {
    let file = parse(TEAM).unwrap_or_else(|problems| panic!("{problems}"));
    let options = file.open_options().model_handle(model.clone());
    let team = options.context("tier", tier).unwrap().open().unwrap();
    team.runner().run("Hi").await.unwrap()
}

fn call(id: &str, tool: &str, arguments: &str) -> Item {
    Item::function_call(id, tool, arguments)
}

fn waiting(result: &RunResult<Context>) -> Vec<String> {
    let waiting = result.interruptions();
    let name = |call: &Interruption| format!("{}: {} {}", call.agent, call.tool, call.call_id);
    waiting.iter().map(name).collect()
}

#[tokio::test]
async fn calls_wait_by_their_arguments_and_the_context() {
    let calls = || {
        [
            call("c1", "refund", r#"{"amount":100,"order":"A-1"}"#),
            call("c2", "refund", r#"{"amount":100.5,"order":"A-1"}"#),
            call("c3", "refund", r#"{"order":"A-1"}"#),
            call("c4", "delete", r#"{"order":"A-1"}"#),
        ]
    };
    let basic = run(&ScriptedModel::new().reply(calls()), "basic").await;
    assert_eq!(
        waiting(&basic),
        ["Desk: refund c2", "Desk: refund c3", "Desk: delete c4"]
    );
    let gold = run(&ScriptedModel::new().reply(calls()), "gold").await;
    assert_eq!(waiting(&gold), ["Desk: delete c4"]);
}

#[tokio::test]
async fn handoffs_wait_by_their_payload_and_the_context() {
    for (tool, payload, tier, waits) in [
        (
            "transfer_to_manager",
            r#"{"priority":"urgent"}"#,
            "basic",
            true,
        ),
        (
            "transfer_to_manager",
            r#"{"priority":"normal"}"#,
            "basic",
            false,
        ),
        (
            "transfer_to_manager",
            r#"{"priority":"normal"}"#,
            "gold",
            true,
        ),
        ("transfer_to_expert", "{}", "basic", true),
    ] {
        let model = ScriptedModel::new()
            .reply([call("c1", tool, payload)])
            .say("Yes?");
        let result = run(&model, tier).await;
        assert_eq!(
            result.interruptions().len(),
            usize::from(waits),
            "{tool} {payload}"
        );
    }
}

#[tokio::test]
async fn calls_inside_an_agent_that_a_tool_asks_wait_outside() {
    let model = ScriptedModel::new()
        .reply([call("a1", "ask_expert", r#"{"input":"refund it"}"#)])
        .reply([call("c1", "refund", r#"{"amount":500,"order":"A-1"}"#)])
        .say("It is out.")
        .say("Done.");
    let file = parse(TEAM).unwrap();
    let team = file
        .open_options()
        .model_handle(model.clone())
        .open()
        .unwrap();
    let mut run = team.runner().run("Hi").await.unwrap().into_run();
    let waiting = run.interruptions();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (&*waiting[0].agent, &*waiting[0].tool),
        ("Expert", "refund")
    );
    assert_eq!(waiting[0].inside, ["a1".into()]);
    run.decide(&waiting[0], Decision::approve()).unwrap();
    let result = team.runner().resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
    assert_eq!(result.final_text(), "Done.");
}

/// The line and column of a part of a text.
fn position(text: &str, part: &str) -> (Option<usize>, Option<usize>) {
    let start = text.find(part).unwrap();
    let before = &text[..start];
    let column = before.len() - before.rfind('\n').unwrap();
    (Some(before.matches('\n').count() + 1), Some(column))
}

#[test]
fn nonsense_is_reported_with_its_position() {
    let agent = "agent = \"Expert\"";
    for (from, to, message, at) in [
        (
            "arguments.amount",
            "arguments.amuont",
            "the tool has no argument \"amuont\"",
            "arguments.amuont",
        ),
        (
            "arguments.amount > 100",
            "arguments.amount > 'x'",
            "a number cannot be compared with text",
            "arguments.amount > 'x'",
        ),
        (
            "payload.priority",
            "payload.urgency",
            "the payload has no field \"urgency\"",
            "payload.urgency",
        ),
        (
            "approve = true },",
            "approve = 'payload.x == 1' },",
            "the handoff has no payload",
            "payload.x",
        ),
        (
            "tier != 'gold'",
            "teir != 'gold'",
            "the context has no \"teir\"",
            "teir",
        ),
        (
            agent,
            "agent = \"Expret\"",
            "there is no agent \"Expret\"",
            "\"Expret\"",
        ),
        (
            agent,
            "agent = \"Desk\" # here",
            "\"Desk\" would ask itself",
            "\"Desk\" # here",
        ),
        (
            agent,
            "parameters.type = \"object\"\nagent = \"Expert\"",
            "a tool that asks an agent has no parameters of its own",
            "parameters.type",
        ),
    ] {
        let text = TEAM.replacen(from, to, 1);
        let problems = parse(&text).unwrap_err();
        let (line, column) = position(&text, at);
        let found: Vec<_> = problems
            .iter()
            .map(|problem| (problem.message.as_str(), problem.line, problem.column))
            .collect();
        assert_eq!(found, [(message, line, column)]);
    }
    let text = TEAM.replace("approve = true },", "approve = 'yes' },");
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.iter().count(), 1, "{problems}");
}

fn waiting_call(tool: &str, agent: &str, arguments: &str) -> Interruption {
    let json = serde_json::json!({
        "kind": InterruptionKind::Tool, "agent": agent, "tool": tool, "call_id": "c1",
        "arguments": arguments,
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules = r#"
        [[rules]]
        tool = "refund"
        agent = "Expert"
        decision = "reject"
        message = "Experts pay nothing."

        [[rules]]
        tool = "refund"
        when = "arguments.amount <= 1000 or tier == 'gold'"
        decision = "approve"

        [[rules]]
        tool = "refund"
        decision = "reject"
    "#;
    let file = parse(TEAM).unwrap();
    let rules = ApprovalRules::parse(rules, "rules.toml", &file).unwrap();
    let team = file.open().unwrap();
    let decide = |tool: &str, agent: &str, arguments: &str| {
        rules.decide(&waiting_call(tool, agent, arguments), team.context())
    };
    let refused = Decision::reject().message("Experts pay nothing.");
    assert_eq!(decide("refund", "Expert", r#"{"amount":1}"#), Some(refused));
    assert_eq!(
        decide("refund", "Desk", r#"{"amount":1000}"#),
        Some(Decision::approve())
    );
    assert_eq!(
        decide("refund", "Desk", r#"{"amount":1001}"#),
        Some(Decision::reject())
    );
    // What a rule cannot judge is left to a person.
    for arguments in ["{}", "", r#"{"amount":"1001"}"#, "not JSON"] {
        assert_eq!(decide("refund", "Desk", arguments), None, "{arguments}");
    }
    assert_eq!(decide("delete", "Desk", "{}"), None);
}

#[test]
fn the_problems_of_rules_are_reported() {
    let file = parse(TEAM).unwrap();
    for (rules, message) in [
        ("", "there are no rules"),
        (
            "[[rules]]\ntool = 'refnud'\ndecision = 'approve'",
            "the team has no tool \"refnud\"",
        ),
        (
            "[[rules]]\nagent = 'Manager'\ntool = 'refund'\ndecision = 'approve'",
            "the agent \"Manager\" has no tool \"refund\"",
        ),
        (
            "[[rules]]\nagent = 'Boss'\ntool = 'refund'\ndecision = 'approve'",
            "the team has no agent \"Boss\"",
        ),
        (
            "[[rules]]\ntool = 'refund'\nwhen = 'arguments.amonut > 1'\ndecision = 'approve'",
            "the tool has no argument \"amonut\"",
        ),
        (
            "[[rules]]\ntool = 'refund'\nwhen = 'arguments.order > 1'\ndecision = 'approve'",
            "text cannot be compared with a number",
        ),
        (
            "[[rules]]\ntool = 'transfer_to_manager'\nwhen = 'payload.prority == 1'\ndecision = 'approve'",
            "the tool has no argument \"prority\"",
        ),
        (
            "[[rules]]\nagent = 'Boss'\ndecision = 'approve'",
            "the team has no agent \"Boss\"",
        ),
        (
            "[[rules]]\nwhen = 'amount > 1'\ndecision = 'approve'",
            "the context has no \"amount\"",
        ),
        (
            "[[rules]]\ndecision = 'approve'\nmessage = 'x'",
            "a call that is approved has no message for the model",
        ),
    ] {
        let problems = ApprovalRules::parse(rules, "rules.toml", &file).unwrap_err();
        let found: Vec<_> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(found, [message]);
    }
    for rules in [
        "[[rules]]\ntool = 'refund'",
        "[[rules]]\ndecision = 'maybe'",
    ] {
        assert!(
            ApprovalRules::parse(rules, "rules.toml", &file).is_err(),
            "{rules}"
        );
    }
}
