//! Approvals that meet forks, failures, filters, added input and other waits.

use std::collections::HashSet;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::run::RunStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, Team, Tool, filters, handoff, tool};

use super::{Ran, decide_all};
use crate::{described, stored};

fn call(id: &str, name: &str) -> Item {
    Item::function_call(id, name, "{}")
}

/// A tool that notes its idempotency keys.
fn pay(keys: &Ran) -> Tool {
    let keys = keys.clone();
    tool::<()>("pay").needs_approval().run(move |ctx, (): ()| {
        keys.add(ctx.idempotency_key());
        "paid"
    })
}

#[tokio::test]
async fn calls_that_are_made_after_a_fork_have_keys_of_their_own() {
    for is_inside in [false, true] {
        let keys = Ran::default();
        let model = || {
            ScriptedModel::new()
                .reply([call("c1", "pay")])
                .reply([call("c2", "pay")])
                .say("Paid.")
                .reply([call("c2", "pay")])
                .say("Paid.")
        };
        let clerk: Agent = Agent::new("Clerk").tool(pay(&keys)).model(model());
        let agent = if is_inside {
            let ask = Item::function_call("a1", "ask", r#"{"input":"Pay"}"#);
            let model = ScriptedModel::new().reply([ask]).say("Ok.").say("Ok.");
            Agent::new("Front").tool(clerk.as_tool("ask")).model(model)
        } else {
            clerk
        };
        let runner = Runner::new(&agent);
        let run = runner.run("Pay").await.unwrap().into_run();
        let fork = stored(&run.fork());
        for mut run in [run, fork] {
            // What waited, and what was called afterwards.
            for _ in 0..2 {
                decide_all(&mut run, &Decision::approve());
                run = runner.resume(run).await.unwrap().into_run();
            }
        }
        let made = keys.take();
        let unique: HashSet<&String> = made.iter().collect();
        assert_eq!(unique.len(), 4, "inside: {is_inside}: {made:?}");
    }
}

#[tokio::test]
async fn keys_inside_an_agent_tool_name_the_conversation() {
    let keys = Ran::default();
    let clerk: Agent = Agent::new("Clerk").tool(pay(&keys)).model(
        ScriptedModel::new()
            .reply([call("c1", "pay")])
            .say("Paid.")
            .say("Paid."),
    );
    let ask = Item::function_call("a1", "ask", r#"{"input":"Pay"}"#);
    let model = ScriptedModel::new().reply([ask]).say("Ok.").say("Ok.");
    let front: Agent = Agent::new("Front").tool(clerk.as_tool("ask")).model(model);
    let session = Conversations::in_memory().get("customer-42");
    let runner = Runner::new(&front).session(&session);
    runner.run("Pay").await.unwrap();
    let fork = session.fork("customer-43", None).await.unwrap();
    let of_fork = Runner::new(&front).session(&fork);
    for (runner, session) in [(&runner, &session), (&of_fork, &fork)] {
        let mut run = session.waiting_run().await.unwrap().unwrap();
        decide_all(&mut run, &Decision::approve());
        runner.resume(run).await.unwrap();
    }
    let made = keys.take();
    assert!(made[0].starts_with("customer-42/"), "{made:?}");
    assert!(made[1].starts_with("customer-43/"), "{made:?}");
}

#[tokio::test]
async fn a_standing_approval_of_a_handoff_lasts_over_handoffs_and_no_longer_than_the_run() {
    let team: Team = Team::new()
        .agent(
            Agent::new("A")
                .handoff(handoff("B").needs_approval())
                .handoff("C"),
        )
        .agent(Agent::new("B").handoff("A"))
        .agent(Agent::new("C").handoff(handoff("B").needs_approval()))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_b")])
        .reply([call("c2", "transfer_to_a")])
        .reply([call("c3", "transfer_to_b")])
        .reply([call("c4", "transfer_to_a")])
        .reply([call("c5", "transfer_to_c")])
        .reply([call("c6", "transfer_to_b")])
        .say("I am B.")
        .reply([call("c7", "transfer_to_b")]);
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&team["A"]).model(model).session(&session);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve().always());

    let result = runner.resume(stored(&run)).await.unwrap();

    // Agent A is not asked about a second time; C has not been decided.
    let [waiting] = <[_; 1]>::try_from(result.interruptions()).unwrap();
    assert_eq!((&*waiting.agent, &*waiting.call_id), ("C", "c6"));
    let mut run = result.into_run();
    decide_all(&mut run, &Decision::approve());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "I am B.");
    session.set_agent(Some("A")).await.unwrap();
    let result = runner.run("And again").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
}

#[tokio::test]
async fn input_that_is_added_while_a_handoff_waits_reaches_the_next_agent_behind_any_filter() {
    let allow = || HandoffGuardrail::new("seen", |_request| HandoffVerdict::Allow);
    for is_guarded in [false, true] {
        for filter in [
            filters::remove_all_tools(),
            filters::keep_last(1),
            filters::nest_history(),
        ] {
            let billing: Agent = Agent::new("Billing");
            let mut edge = handoff(&billing).needs_approval().filter(filter);
            if is_guarded {
                edge = edge.guardrail(allow());
            }
            let triage = Agent::new("Triage").handoff(edge);
            let model = ScriptedModel::new()
                .reply([call("c1", "transfer_to_billing")])
                .say("Hello.");
            let runner = Runner::new(&triage).model(model.clone());
            let mut run = runner.run("My bill").await.unwrap().into_run();
            run.add_input("It is of May").unwrap();
            decide_all(&mut run, &Decision::approve());
            let result = runner.resume(stored(&run)).await.unwrap();
            assert_eq!(result.final_text(), "Hello.");
            let seen = described(&model.requests()[1].input);
            assert_eq!(
                seen.last().map(String::as_str),
                Some("user: It is of May"),
                "{seen:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_approved_handoff_does_not_call_back_where_no_turn_is_left_for_the_next_agent() {
    let called = Ran::default();
    let noted = called.clone();
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(
        handoff(&boss)
            .needs_approval()
            .on_handoff(move |_ctx| noted.add("called back")),
    );
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .say("Yes?");
    let runner = Runner::new(&clerk).model(model);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve());
    let strict = runner.clone().max_turns(1);
    let error = strict.resume(run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxTurns);
    assert_eq!(called.take(), [""; 0]);
    let result = runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(result.final_text(), "Yes?");
    assert_eq!(called.take(), ["called back"]);
}

#[tokio::test]
async fn after_a_failed_resumption_the_next_message_knows_what_was_carried_out() {
    let ran = Ran::default();
    let noted = ran.clone();
    let pay = tool::<()>("pay").needs_approval().run(move |_ctx, (): ()| {
        noted.add("pay");
        "paid"
    });
    let post = tool::<()>("post")
        .needs_approval()
        .fail_run()
        .run(|_ctx, (): ()| async {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            Err::<&str, _>("no network")
        });
    let clerk: Agent = Agent::new("Clerk").tool(pay).tool(post);
    let model = ScriptedModel::new()
        .reply([call("c1", "pay"), call("c2", "post")])
        .say("It is paid.");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&clerk).model(model.clone()).session(&session);
    runner.run("Pay and post").await.unwrap();
    let mut run = session.waiting_run().await.unwrap().unwrap();
    decide_all(&mut run, &Decision::approve());
    runner.resume(run).await.unwrap_err();
    assert_eq!(ran.take(), ["pay"]);

    // Whoever looks into the conversation now, in whichever process, must not pay again.
    assert!(session.waiting_run().await.unwrap().is_none());
    runner.run("Is it paid?").await.unwrap();
    let seen = described(&model.requests()[1].input);
    assert!(seen.contains(&"output of c1: paid".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn equal_calls_inside_equal_agent_tools_are_told_apart() {
    let ran = Ran::default();
    let noted = ran.clone();
    let pay = tool::<()>("pay").needs_approval().run(move |ctx, (): ()| {
        noted.add(ctx.run_context().outer_call().unwrap().call_id.to_string());
        "paid"
    });
    let clerk: Agent = Agent::new("Clerk").tool(pay).model(
        ScriptedModel::new()
            .reply([call("c1", "pay")])
            .reply([call("c1", "pay")])
            .say("Ok.")
            .say("Ok."),
    );
    let ask = |id: &str| Item::function_call(id, "ask", r#"{"input":"Pay"}"#);
    let model = ScriptedModel::new()
        .reply([ask("a1"), ask("a2")])
        .say("Done.");
    let front: Agent = Agent::new("Front").tool(clerk.as_tool("ask")).model(model);
    let runner = Runner::new(&front);
    let mut run = runner.run("Pay twice").await.unwrap().into_run();
    let waiting = run.interruptions();
    assert_eq!(waiting.len(), 2);
    run.decide(&waiting[1], Decision::approve()).unwrap();
    run.decide(&waiting[0], Decision::reject()).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["a2"]);
}
