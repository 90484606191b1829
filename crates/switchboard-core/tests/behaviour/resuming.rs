//! Storing a run and resuming it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::run::{HandoffPolicy, RunStatus};
use switchboard_core::stream::ItemEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Run, Runner, Team, ToolContext, tool};

#[tokio::test]
async fn a_stored_run_is_resumed_at_its_agent_and_repeats_nothing() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("B"))
        .agent(
            Agent::new("B")
                .handoff("A")
                .tool(tool("t").run(move |_ctx, (): ()| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    "1"
                })),
        )
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("t", "{}")
        .say("ok");
    let runner = Runner::new(&team["A"]).model(model);
    let mut stream = runner.stream("x");
    while let Some(event) = stream.next().await {
        if let EventKind::Item { name, .. } = event.kind
            && name == ItemEvent::ToolOutput
        {
            stream.stop_after_turn();
        }
    }
    let stopped = stream.finish().await.unwrap();
    assert_eq!(stopped.status(), RunStatus::Stopped);
    let stored = serde_json::to_string(stopped.run()).unwrap();

    let run: Run = serde_json::from_str(&stored).unwrap();
    assert_eq!((run.agent(), run.turns()), ("B", 2));
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "ok");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn each_item_is_stored_once() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let marker = "a text that is easy to count";
    let model = ScriptedModel::new().call("transfer_to_b", "{}").say(marker);
    let result = Runner::new(&a).model(model).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    // Once as the item, once as the final output.
    assert_eq!(stored.matches(marker).count(), 2, "{stored}");
}

#[tokio::test]
async fn the_error_for_a_run_whose_agent_is_missing_has_the_run() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .fail("later");
    let error = Runner::new(&a)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    let run = error.into_run().unwrap();
    let stranger: Agent = Agent::new("Stranger");
    let error = Runner::new(&stranger)
        .model(model)
        .resume(run)
        .await
        .unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert_eq!(error.run().unwrap().agent(), "B");
}

#[tokio::test]
async fn a_stored_run_that_was_tampered_with_is_refused() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A")
        .handoff(switchboard_core::handoff(&b).on_handoff(|_ctx| Err::<(), _>("no")));
    let model = ScriptedModel::new().call("transfer_to_b", "{}");
    let error = Runner::new(&a)
        .handoff_policy(HandoffPolicy::reference())
        .model(model)
        .run("x")
        .await
        .unwrap_err();
    let stored = serde_json::to_value(error.run().unwrap()).unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = stored.clone();
        change(&mut changed);
        let read = serde_json::from_str::<Run>(&changed.to_string());
        read.unwrap_err().to_string()
    };
    let message = refused(&|run| *run = serde_json::json!({"version": 99}));
    assert!(
        message.contains("stored in version 99; this program reads versions 3 to 5"),
        "{message}"
    );
    let message = refused(&|run| {
        run["run"]["position"]["phase"]["handoff"]["handoffs"] = serde_json::json!([])
    });
    assert!(message.contains("there is no call of one"), "{message}");
    let message = refused(&|run| {
        run["run"]["position"]["phase"]["handoff"]["items"] = serde_json::json!([7])
    });
    assert!(
        message.contains("refers to run item 7, which is missing"),
        "{message}"
    );
    let message = refused(&|run| run["items"][0] = serde_json::json!(7));
    assert!(message.contains("not an item"), "{message}");
    for nonsense in ["[]", "7", "{}", ""] {
        assert!(serde_json::from_str::<Run>(nonsense).is_err(), "{nonsense}");
    }

    // A number of items at its limit does not overflow.
    let mut last = stored.clone();
    last["run"]["position"]["last_item"] = serde_json::json!(u32::MAX);
    let run: Run = serde_json::from_str(&last.to_string()).unwrap();
    let a = Agent::new("A").handoff(&b);
    let runner = Runner::new(&a)
        .handoff_policy(HandoffPolicy::reference())
        .model(ScriptedModel::new().say("ok"));
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "ok");
}

#[tokio::test]
async fn values_as_deep_as_can_be_read_can_be_stored() {
    let depth = 120;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let value: serde_json::Value = serde_json::from_str(&deep).unwrap();
    let agent: Agent = Agent::new("A")
        .tool(tool("t").run(move |_ctx, (): ()| value.clone()))
        .tool_use_behavior(switchboard_core::agent::ToolUseBehavior::stop_on_first_tool());
    let model = ScriptedModel::new().call("t", "{}");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    let run: Run = serde_json::from_str(&stored).unwrap();
    assert_eq!(run.new_items(), result.new_items());
}

#[tokio::test]
async fn tools_that_ran_beside_one_that_failed_do_not_run_again() {
    struct FailOnce(AtomicUsize);
    impl switchboard_core::hooks::RunHooks for FailOnce {
        async fn on_tool_end(
            &self,
            _ctx: &switchboard_core::RunContext,
            _agent: &Agent,
            tool: &switchboard_core::Tool,
            _call: &switchboard_core::ToolContext,
            _end: &switchboard_core::hooks::ToolEnd<'_>,
        ) -> switchboard_core::hooks::HookResult {
            if tool.name() == "second" && self.0.fetch_add(1, Ordering::SeqCst) == 0 {
                Err("the audit log is down".into())
            } else {
                Ok(())
            }
        }
    }
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let agent: Agent = Agent::new("A")
        .tool(tool("first").run(move |_ctx, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            "1"
        }))
        .tool(tool("second").run(|_ctx, (): ()| "2"));
    let model = ScriptedModel::new()
        .calls([("first", "{}"), ("second", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model)
        .hooks(FailOnce(AtomicUsize::new(0)));
    let error = runner.run("x").await.unwrap_err();
    let stored = serde_json::to_string(error.run().unwrap()).unwrap();
    let result = runner
        .resume(serde_json::from_str(&stored).unwrap())
        .await
        .unwrap();
    assert_eq!(result.final_text(), "ok");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let outputs = crate::described(&result.to_input_list());
    assert_eq!(
        outputs[3..5],
        ["output of call_1: 1", "output of call_2: 2"]
    );
}

#[tokio::test]
async fn a_step_that_is_cancelled_gives_the_run_back() {
    let agent: Agent =
        Agent::new("A").tool(tool("t").run(|_ctx, (): ()| std::future::pending::<String>()));
    let runner = Runner::new(&agent).model(ScriptedModel::new().call("t", "{}"));
    let mut run = runner.begin("x");
    runner.step(&mut run).await.unwrap();
    let before = serde_json::to_string(&run).unwrap();
    let cut_short =
        tokio::time::timeout(std::time::Duration::from_millis(10), runner.step(&mut run));
    assert!(cut_short.await.is_err());
    assert_eq!(serde_json::to_string(&run).unwrap(), before);
}

#[tokio::test]
async fn a_tool_that_was_disabled_since_it_was_called_does_not_run() {
    let offered = Arc::new(AtomicUsize::new(0));
    let asked = offered.clone();
    let agent: Agent = Agent::new("A").tool(
        tool("t")
            .enabled_if(move |_ctx, _agent| asked.fetch_add(1, Ordering::SeqCst) == 0)
            .run(|_ctx, (): ()| -> String { panic!("it ran") }),
    );
    let sibling = Arc::new(AtomicUsize::new(0));
    let counted = sibling.clone();
    let agent = agent.tool(tool("sibling").run(move |_ctx, (): ()| {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let model = ScriptedModel::new().calls([("sibling", "{}"), ("t", "{}")]);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.is_model_behavior(), "{error}");
    assert!(
        error.to_string().contains("\"t\", which has been disabled"),
        "{error}"
    );
    assert_eq!(sibling.load(Ordering::SeqCst), 0);
}

/// Two tools, the second of which fails once at its guardrail.
fn half_done(output: switchboard_core::tool::ToolOutput) -> Runner {
    let asked = AtomicUsize::new(0);
    let once = ToolGuardrail::on_call("once", move |_ctx| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("no"),
            _ => ToolVerdict::Allow,
        }
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("first").run(move |_ctx, (): ()| output.clone()))
        .tool(tool("second").guardrail(once).run(|_ctx, (): ()| "2"));
    let model = ScriptedModel::new()
        .calls([("first", "{}"), ("second", "{}")])
        .say("ok");
    Runner::new(&agent).model(model)
}

#[tokio::test]
async fn the_output_of_a_tool_is_the_same_after_it_was_stored() {
    use switchboard_core::tool::ToolOutput;
    for (output, text) in [
        (ToolOutput::Json(serde_json::json!("x")), "\"x\""),
        (ToolOutput::from("x"), "x"),
        (ToolOutput::Json(serde_json::json!([1])), "[1]"),
    ] {
        let runner = half_done(output);
        let error = runner.run("x").await.unwrap_err();
        let result = runner.resume(crate::stored(error.run().unwrap())).await;
        let made = crate::described(&result.unwrap().to_input_list());
        assert_eq!(made[3], format!("output of call_1: {text}"));
    }
}

#[tokio::test]
async fn a_stored_run_whose_tools_are_not_those_it_called_is_refused() {
    let error = half_done("1".into()).run("x").await.unwrap_err();
    let stored = serde_json::to_value(error.run().unwrap()).unwrap();
    let read = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = stored.clone();
        change(&mut changed["run"]["position"]["phase"]["tools"]["tools"]);
        serde_json::from_str::<Run>(&changed.to_string())
    };
    read(&|_| {}).unwrap();
    let changes: [&dyn Fn(&mut serde_json::Value); 3] = [
        &|turn| turn["done"][0]["at"] = 2.into(),
        &|turn| {
            let again = turn["done"][0].clone();
            turn["done"].as_array_mut().unwrap().push(again);
        },
        &|turn| turn["started"] = serde_json::json!([0, 0]),
    ];
    for change in changes {
        let message = read(change).unwrap_err().to_string();
        assert!(
            message.contains("which does not exist or is listed twice"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_step_counts_its_usage_and_runs_its_tools_again() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let agent: Agent = Agent::new("A")
        .tool(tool("quick").run(move |ctx: ToolContext, (): ()| {
            ctx.add_usage(switchboard_core::model::Usage {
                input_tokens: 5,
                ..Default::default()
            });
            counted.fetch_add(1, Ordering::SeqCst);
        }))
        .tool(tool("slow").run(|_ctx, (): ()| std::future::pending::<String>()));
    let model = ScriptedModel::new().calls([("quick", "{}"), ("slow", "{}")]);
    let runner = Runner::new(&agent).model(model);
    let mut run = runner.begin("x");
    runner.step(&mut run).await.unwrap();
    for _ in 0..2 {
        let step = runner.step(&mut run);
        let cut_short = tokio::time::timeout(std::time::Duration::from_millis(10), step);
        assert!(cut_short.await.is_err());
    }
    assert!(matches!(
        run.step(),
        switchboard_core::Step::RunTools([_, _])
    ));
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    assert_eq!(run.usage().input_tokens, 10);
}
