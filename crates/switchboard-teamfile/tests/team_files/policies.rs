//! The policy for handoffs: what a file sets, and what becomes of handoffs.

use switchboard_core::approval::Decision;
use switchboard_core::run::{
    AnnouncedHandoffs, ApprovalGuardrails, AtLoopLimit, BranchFailures, FanOut, HandoffOutcome,
    HandoffPolicy, HandoffRetries, LoopLimits, ResumeChecks, SeveralHandoffs,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{ErrorKind, RunResult};
use switchboard_teamfile::{Context, OpenTeam, TeamFile};

fn open(text: &str, model: &ScriptedModel, context: &[(&str, &str)]) -> OpenTeam {
    let file = TeamFile::parse(text, "team.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let mut options = file.open_options().model_handle(model.clone());
    for (key, value) in context {
        options = options.context(key, value).unwrap();
    }
    options
        .open()
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_policy_is_its_base_with_the_points_that_the_file_sets() {
    let production = HandoffPolicy::production;
    for (run, expected) in [
        ("", production()),
        ("policy = 'production'", production()),
        ("policy = 'reference'", HandoffPolicy::reference()),
        (
            "retries = { per_run = 7 }",
            production().retries(HandoffRetries::new(7, 2)),
        ),
        (
            "policy = 'reference'\nretries = { per_edge = 1 }",
            HandoffPolicy::reference().retries(HandoffRetries::new(5, 1)),
        ),
        (
            "loops = { per_edge = 2 }",
            production().loops(LoopLimits::none().without_progress(3).per_edge(2)),
        ),
        (
            "loops = { without_progress = 'unlimited', handoffs = 5, ping_pong = 4, at_limit = 'refuse' }",
            production().loops(
                LoopLimits::none()
                    .handoffs(5)
                    .ping_pong(4)
                    .at_limit(AtLoopLimit::Refuse),
            ),
        ),
        (
            "loops = { ping_pong = 4, ping_pong_window = 12 }",
            production().loops(
                LoopLimits::none()
                    .without_progress(3)
                    .ping_pong_within(4, 12),
            ),
        ),
        (
            "loops.at_limit = { redirect = 'B' }",
            production().loops(
                LoopLimits::none()
                    .without_progress(3)
                    .at_limit(AtLoopLimit::Redirect("B".into())),
            ),
        ),
        (
            "loops.at_limit = { answer = 'Later.' }",
            production().loops(
                LoopLimits::none()
                    .without_progress(3)
                    .at_limit(AtLoopLimit::Answer("Later.".into())),
            ),
        ),
        ("loops.at_limit = 'fail'", production()),
        ("several_handoffs = 'first'", production()),
        (
            "several_handoffs = 'choose'",
            production().several(SeveralHandoffs::AskToChoose),
        ),
        (
            "several_handoffs = 'refuse'",
            production().several(SeveralHandoffs::Refuse),
        ),
        (
            "several_handoffs = { fan_out = {} }",
            production().several(SeveralHandoffs::FanOut(FanOut::to_caller())),
        ),
        (
            "several_handoffs.fan_out = { join = 'B', failures = 'fail' }",
            production().several(SeveralHandoffs::FanOut(
                FanOut::to_agent("B").failures(BranchFailures::FailRun),
            )),
        ),
        (
            "announced_handoffs = true",
            production().announced(AnnouncedHandoffs::default()),
        ),
        ("announced_handoffs = false", production()),
        (
            "announced_handoffs = { phrases = ['Ich verbinde Sie'] }",
            production().announced(AnnouncedHandoffs::default().phrase("ich verbinde sie")),
        ),
        ("approval_guardrails = 'before_decision'", production()),
        (
            "approval_guardrails = 'after_decision'",
            production().approval_guardrails(ApprovalGuardrails::AfterDecision),
        ),
        (
            "approval_guardrails = 'both'",
            production().approval_guardrails(ApprovalGuardrails::Both),
        ),
        ("resume_checks = 'before_side_effects'", production()),
        (
            "resume_checks = 'when_reached'",
            production().resume_checks(ResumeChecks::WhenReached),
        ),
    ] {
        let text = format!("[run]\n{run}\n[agents.A]\n[agents.B]\n");
        let team = open(&text, &ScriptedModel::new(), &[]);
        assert_eq!(team.config().handoff_policy, expected, "{run}");
    }
}

const RULES: &str = r#"
    [context]
    is_open = true
    tier = "basic"

    [agents.Triage]
    handoffs = [
        { to = "Billing", approve = "tier == 'new'", rules = [
            { when = "not is_open", redirect = "Night desk" },
            { when = "payload.amount > 1000 and tier != 'gold'", refuse = "More than 1000 is for the director." },
            { when = "payload.amount > 500", redirect = "Manager" },
        ], payload = { properties = { amount = { type = ["number", "null"] } }, required = ["amount"] } },
        { to = "Manager", when = "tier != 'banned'", payload = { properties = { amount = { type = ["number", "null"] } }, required = ["amount"] } },
        { to = "Sales", rules = [{ when = "tier == 'banned'", refuse = "Not for this customer." }] },
    ]

    [agents.Billing]
    description = "Bills."
    [agents."Night desk"]
    description = "At night."
    [agents.Manager]
    description = "Decides."
    [agents.Sales]
    description = "Sells."
"#;

fn outcome(result: &RunResult<Context>) -> (String, Option<String>) {
    let made = result.handoffs().last().unwrap();
    let reason = match &made.outcome {
        HandoffOutcome::Refused(reason) => Some(reason.clone()),
        _ => None,
    };
    (result.last_agent().name().to_owned(), reason)
}

#[tokio::test]
async fn the_first_rule_that_applies_refuses_or_redirects() {
    let director = "More than 1000 is for the director.";
    let banned = "Not for this customer.";
    for (call, payload, context, agent, reason) in [
        ("billing", r#"{"amount":5}"#, &[][..], "Billing", None),
        (
            "billing",
            r#"{"amount":5}"#,
            &[("is_open", "false")],
            "Night desk",
            None,
        ),
        (
            "billing",
            r#"{"amount":1001}"#,
            &[],
            "Triage",
            Some(director),
        ),
        (
            "billing",
            r#"{"amount":1001}"#,
            &[("tier", "gold")],
            "Manager",
            None,
        ),
        ("billing", r#"{"amount":501}"#, &[], "Manager", None),
        // A condition that cannot be decided applies.
        (
            "billing",
            r#"{"amount":null}"#,
            &[],
            "Triage",
            Some(director),
        ),
        ("sales", "{}", &[], "Sales", None),
        ("sales", "{}", &[("tier", "banned")], "Triage", Some(banned)),
    ] {
        let model = ScriptedModel::new()
            .call(&format!("transfer_to_{call}"), payload)
            .say("Yes?");
        let result = open(RULES, &model, context)
            .runner()
            .run("Hi")
            .await
            .unwrap();
        let reason = reason.map(str::to_owned);
        assert_eq!(
            outcome(&result),
            (agent.to_owned(), reason.clone()),
            "{call} {payload} {context:?}"
        );
        if let Some(reason) = reason {
            let shown = &model.requests()[1].input;
            let answer = shown.iter().next_back().unwrap().output_text();
            assert_eq!(answer.as_deref(), Some(reason.as_str()));
        }
    }
}

#[tokio::test]
async fn a_redirect_is_asked_for_as_the_handoff_it_takes() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"amount":600}"#)
        .say("Sorry.");
    let team = open(RULES, &model, &[("tier", "banned")]);
    let result = team.runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Triage");
    let failed = &result.handoffs()[0].outcome;
    assert!(matches!(failed, HandoffOutcome::Failed(_)), "{failed:?}");
}

#[tokio::test]
async fn rules_decide_before_a_person_is_asked_and_again_after() {
    let new = ("tier", "new");
    let refused = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"amount":1001}"#)
        .say("Sorry.");
    let result = open(RULES, &refused, &[new])
        .runner()
        .run("Hi")
        .await
        .unwrap();
    assert!(result.interruptions().is_empty());
    assert_eq!(result.last_agent().name(), "Triage");

    let model = || {
        ScriptedModel::new()
            .call("transfer_to_billing", r#"{"amount":5}"#)
            .say("Yes?")
    };
    for (is_open, agent) in [("true", "Billing"), ("false", "Night desk")] {
        let model = model();
        let by_day = open(RULES, &model, &[new]);
        let mut run = by_day.runner().run("Hi").await.unwrap().into_run();
        for waiting in run.interruptions() {
            run.decide(&waiting, Decision::approve()).unwrap();
        }
        let later = open(RULES, &model, &[new, ("is_open", is_open)]);
        let result = later.runner().resume(run).await.unwrap();
        assert_eq!(result.last_agent().name(), agent);
    }
}

const CIRCLE: &str = r#"
    [agents.Sales]
    handoffs = ["Billing", "Desk"]
    [agents.Billing]
    description = "Bills."
    handoffs = ["Sales"]
    [agents.Desk]
    description = "A desk."
    [run]
"#;

fn circle() -> ScriptedModel {
    ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("transfer_to_sales", "{}")
        .call("transfer_to_billing", "{}")
        .say("I take care of it.")
}

#[tokio::test]
async fn a_circle_ends_as_the_file_says() {
    for (at_limit, agent, answer) in [
        ("'refuse'", "Sales", "I take care of it."),
        ("{ redirect = 'Desk' }", "Desk", "I take care of it."),
        ("{ answer = 'We call you.' }", "Sales", "We call you."),
    ] {
        let text = format!("{CIRCLE}loops = {{ per_edge = 1, at_limit = {at_limit} }}");
        let team = open(&text, &circle(), &[]);
        let result = team.runner().run("Hi").await.unwrap();
        let found = (result.last_agent().name(), result.final_text());
        assert_eq!(found, (agent, answer.into()), "{at_limit}");
    }
    let text = format!("{CIRCLE}loops = {{ per_edge = 1 }}");
    let run = open(&text, &circle(), &[]).runner().run("Hi").await;
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffLoop);
}

#[tokio::test]
async fn a_failed_handoff_is_told_as_often_as_the_file_says() {
    let bad = || {
        ScriptedModel::new()
            .call("transfer_to_billing", r#"{"amount":"much"}"#)
            .call("transfer_to_billing", r#"{"amount":1}"#)
            .say("Yes?")
    };
    for (run, is_told) in [
        ("", true),
        ("policy = 'reference'", false),
        ("retries = { per_run = 0 }", false),
        ("policy = 'reference'\nretries = {}", true),
    ] {
        let text = format!("{RULES}\n[run]\n{run}");
        let result = open(&text, &bad(), &[]).runner().run("Hi").await;
        assert_eq!(result.is_ok(), is_told, "{run}");
    }
}

#[tokio::test]
async fn announced_and_several_handoffs_are_noticed() {
    let announced = ScriptedModel::new()
        .say("Ich verbinde Sie mit Billing.")
        .call("transfer_to_billing", "{}")
        .say("Bills here.");
    let text = format!("{CIRCLE}announced_handoffs = {{ phrases = ['ich verbinde sie'] }}");
    let result = open(&text, &announced, &[])
        .runner()
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(result.final_text(), "Bills here.");

    let several = ScriptedModel::new()
        .calls([("transfer_to_billing", "{}"), ("transfer_to_desk", "{}")])
        .call("transfer_to_desk", "{}")
        .say("Desk here.");
    let side_by_side = ScriptedModel::new()
        .calls([("transfer_to_billing", "{}"), ("transfer_to_desk", "{}")])
        .say("Bills.")
        .say("Desk.")
        .say("Both have answered.");
    let text = format!("{CIRCLE}several_handoffs.fan_out.join = 'Desk'");
    let team = open(&text, &side_by_side, &[]);
    let result = team.runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
    assert_eq!(result.final_text(), "Both have answered.");

    let text = format!("{CIRCLE}several_handoffs = 'choose'");
    let result = open(&text, &several, &[]).runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
}
