//! Policies that meet, where it matters which comes first. Every other pair is in `tests/properties/policies.rs`.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::model::ToolChoice;
use switchboard_core::run::{
    AnnouncedHandoffs, AtBudget, AtLoopLimit, Budget, Budgets, HandoffOutcome, HandoffPolicy,
    HandoffRetries, LoopLimits, RunStatus, SeveralHandoffs,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, handoff, tool};

use crate::approvals::{Ran, decide_all};
use crate::{described, stored};

#[derive(Deserialize, JsonSchema)]
struct Reason {
    #[expect(dead_code, reason = "only its schema counts")]
    reason: String,
}

fn call(id: &str, name: &str) -> Item {
    Item::function_call(id, name, "{}")
}

fn policy() -> HandoffPolicy {
    HandoffPolicy::production()
}

/// A clerk with a guarded handoff to Boss, which needs approval, and a plain one to Deputy. All stages are
/// noted.
fn clerk(stages: &Ran) -> Agent {
    let (guarded, called) = (stages.clone(), stages.clone());
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let guardrail = HandoffGuardrail::<()>::new("g", move |_request| {
        guarded.add("guardrail");
        HandoffVerdict::Allow
    });
    let edge = handoff(&boss)
        .guardrail(guardrail)
        .needs_approval()
        .on_handoff(move |_ctx| called.add("callback"));
    Agent::new("Clerk").handoff(edge).handoff(&deputy)
}

#[tokio::test]
async fn several_handoffs_are_refused_before_any_of_them_is_looked_at() {
    for several in [SeveralHandoffs::AskToChoose, SeveralHandoffs::Refuse] {
        let stages = Ran::default();
        let model = ScriptedModel::new()
            .reply([
                call("c1", "transfer_to_boss"),
                call("c2", "transfer_to_deputy"),
            ])
            .say("I stay.");
        let limits = LoopLimits::none().handoffs(0);
        let runner = Runner::new(&clerk(&stages))
            .model(model.clone())
            .handoff_policy(policy().several(several).loops(limits));
        // Neither the limit, nor the guardrail, nor a person is asked.
        let result = runner.run("Hi").await.unwrap();
        assert_eq!(result.final_text(), "I stay.");
        assert_eq!(stages.take(), [""; 0]);
        let shown = described(&model.requests()[1].input);
        let outputs = shown.iter().filter(|item| item.starts_with("output"));
        assert_eq!(outputs.count(), 2, "{shown:?}");
    }
}

#[tokio::test]
async fn a_limit_on_circles_comes_before_guardrail_approval_and_callback() {
    for (at_limit, outcome) in [
        (AtLoopLimit::Fail, Err(ErrorKind::HandoffLoop)),
        (AtLoopLimit::Refuse, Ok("I stay.")),
        (AtLoopLimit::Answer("Enough.".into()), Ok("Enough.")),
        (AtLoopLimit::Redirect("Deputy".into()), Ok("I stay.")),
    ] {
        let stages = Ran::default();
        let model = ScriptedModel::new()
            .reply([call("c1", "transfer_to_boss")])
            .say("I stay.");
        let limits = LoopLimits::none().handoffs(0).at_limit(at_limit.clone());
        let runner = Runner::new(&clerk(&stages))
            .model(model)
            .handoff_policy(policy().loops(limits));
        let result = runner.run("Hi").await;
        let ended = result.map(|result| result.final_text().into_owned());
        assert_eq!(
            ended.as_deref().map_err(switchboard_core::Error::kind),
            outcome,
            "{at_limit:?}"
        );
        assert_eq!(stages.take(), [""; 0], "{at_limit:?}");
    }
}

#[tokio::test]
async fn the_guardrail_is_asked_before_a_person_and_the_callback_after() {
    let stages = Ran::default();
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .say("Hello.");
    let runner = Runner::new(&clerk(&stages)).model(model);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    assert_eq!(stages.take(), ["guardrail"]);
    decide_all(&mut run, &Decision::approve());
    runner.resume(stored(&run)).await.unwrap();
    assert_eq!(stages.take(), ["callback"]);
}

#[tokio::test]
async fn a_wrong_payload_is_told_before_a_limit_counts_and_before_a_person_is_asked() {
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss)
        .payload::<Reason>()
        .on_handoff(|_ctx, _reason| ());
    let clerk = Agent::new("Clerk").handoff(edge.needs_approval());
    let good = Item::function_call("c2", "transfer_to_boss", r#"{"reason":"x"}"#);
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .reply([good])
        .say("Hello.");
    let retries = HandoffRetries::new(1, 1);
    let limits = LoopLimits::none().handoffs(1);
    let runner = Runner::new(&clerk)
        .model(model)
        .handoff_policy(policy().retries(retries).loops(limits));
    let result = runner.run("Hi").await.unwrap();
    // A handoff that failed is none that the limit counts.
    assert_eq!(&*result.interruptions()[0].call_id, "c2");
    assert!(matches!(
        result.handoffs()[0].outcome,
        HandoffOutcome::Failed(_)
    ));
    let mut run = result.into_run();
    decide_all(&mut run, &Decision::approve());
    assert_eq!(
        runner.resume(run).await.unwrap().last_agent().name(),
        "Boss"
    );
}

#[tokio::test]
async fn a_redirect_is_counted_by_the_limits_under_the_agent_that_gets_the_conversation() {
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let clerk = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect("Deputy")))
        .handoff(&deputy);
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .say("I stay.");
    let limits = LoopLimits::none().per_edge(0).at_limit(AtLoopLimit::Refuse);
    let runner = Runner::new(&clerk).model(model);
    let limited = runner.clone().handoff_policy(policy().loops(limits));
    let result = limited.run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Clerk");
    assert!(matches!(
        result.handoffs()[0].outcome,
        HandoffOutcome::Refused(_)
    ));
}

#[tokio::test]
async fn the_agent_at_the_limit_of_a_budget_is_not_asked_for_a_handoff_that_another_announced() {
    let boss: Agent = Agent::new("Boss");
    let night: Agent = Agent::new("Night");
    let clerk = Agent::new("Clerk").handoff(&boss).handoff(&night);
    let model = ScriptedModel::new()
        .say("I'll transfer you to Boss.")
        .say("Good night.");
    let budgets = Budgets::new()
        .agent("Clerk", Budget::new().turns(1))
        .at_limit(AtBudget::HandTo("Night".into()));
    let runner = Runner::new(&clerk)
        .model(model.clone())
        .budgets(budgets)
        .handoff_policy(policy().announced(AnnouncedHandoffs::default()));
    let result = runner.run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Night");
    assert_eq!(result.final_text(), "Good night.");
    let choice: &Option<ToolChoice> = &model.requests()[1].settings.tool_choice;
    assert_eq!(*choice, None);
}

#[tokio::test]
async fn an_announced_handoff_that_needs_approval_waits_for_it() {
    let stages = Ran::default();
    let model = ScriptedModel::new()
        .say("I'll transfer you to Boss.")
        .reply([call("c1", "transfer_to_boss")])
        .say("Hello.");
    let runner = Runner::new(&clerk(&stages))
        .model(model)
        .handoff_policy(policy().announced(AnnouncedHandoffs::default()));
    let result = runner.run("Hi").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = stored(result.run());
    decide_all(&mut run, &Decision::reject().message("No."));
    let result = runner.resume(run).await.unwrap();
    // It was asked once, and is not asked again.
    assert_eq!(result.final_text(), "Hello.");
    assert_eq!(stages.take(), ["guardrail"]);
}

#[tokio::test]
async fn what_was_approved_does_not_run_where_the_budget_is_used_up() {
    let ran = Ran::default();
    let noted = ran.clone();
    let pay = tool("pay").needs_approval().run(move |_ctx, (): ()| {
        noted.add("pay");
        "paid"
    });
    let desk: Agent = Agent::new("Desk").tool(pay);
    let model = ScriptedModel::new().reply([call("c1", "pay")]).say("Done.");
    let runner = Runner::new(&desk).model(model);
    let budget = |turns: u32, at_limit: AtBudget| {
        let budgets = Budgets::new().run(Budget::new().turns(turns));
        runner.clone().budgets(budgets.at_limit(at_limit))
    };
    let mut run = runner.run("Hi").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve());

    let error = budget(1, AtBudget::Fail)
        .resume(run.fork())
        .await
        .unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Budget);
    assert_eq!(ran.take(), [""; 0]);
    let run = error.into_run().unwrap();
    // Where the run would end with what there is, the tool is part of it.
    let finished = budget(1, AtBudget::Finish("Later.".into()))
        .resume(run.fork())
        .await;
    assert_eq!(finished.unwrap().final_text(), "Later.");
    assert_eq!(ran.take(), ["pay"]);
    let result = budget(2, AtBudget::Fail).resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["pay"]);
}
