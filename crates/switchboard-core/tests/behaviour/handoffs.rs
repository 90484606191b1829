//! Taking a handoff: payloads, callbacks, conditions, custom targets, and what errors leave.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::handoff::{HandoffContext, HandoffInputData, IntoHandoff as _};
use switchboard_core::run::{HandoffOutcome, HandoffPolicy};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Handoff, Item, Runner, Step, filters, handoff, tool};

use crate::{described, kinds};

#[derive(Debug, Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
    level: u8,
}

#[derive(Default)]
struct App {
    calls: AtomicUsize,
    open: std::sync::atomic::AtomicBool,
}

#[tokio::test]
async fn the_payload_arrives_in_the_users_type() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).payload::<Escalation>().on_handoff(
        move |_ctx, escalation: Escalation| {
            noted
                .lock()
                .unwrap()
                .push((escalation.reason, escalation.level));
        },
    ));
    let model = ScriptedModel::new()
        .call(
            "transfer_to_boss",
            r#"{"reason": "angry", "level": 2, "extra": null}"#,
        )
        .say("Sorry.");
    let result = Runner::new(&clerk).model(model).run("!!!").await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(*seen.lock().unwrap(), [("angry".to_owned(), 2)]);
}

#[tokio::test]
async fn a_bad_payload_is_refused_before_any_side_effect_and_the_run_is_kept() {
    for payload in [
        "",
        "{}",
        "[\"angry\", 2]",
        r#"{"reason":"x","level":"2"}"#,
        "{\"reason\":",
    ] {
        let boss = Agent::<App>::new("Boss");
        let clerk = Agent::new("Clerk").handoff(handoff(&boss).payload::<Escalation>().on_handoff(
            |ctx, _| {
                ctx.calls.fetch_add(1, Ordering::SeqCst);
            },
        ));
        let app = Arc::new(App::default());
        let model = ScriptedModel::new().call("transfer_to_boss", payload);
        let runner = Runner::new(&clerk)
            .handoff_policy(HandoffPolicy::reference())
            .context(app.clone())
            .model(model);
        let error = runner.run("!!!").await.unwrap_err();
        assert!(error.is_model_behavior(), "{error}");
        assert_eq!(
            (error.agent(), error.handoff()),
            (Some("Clerk"), Some("transfer_to_boss"))
        );
        assert_eq!(app.calls.load(Ordering::SeqCst), 0);
        let run = error.run().unwrap();
        assert_eq!(run.agent(), "Clerk");
        assert!(
            matches!(run.step(), Step::TakeHandoff([_])),
            "{:?}",
            run.step()
        );
    }
}

#[tokio::test]
async fn a_failing_callback_leaves_the_run_before_the_handoff_and_a_retry_takes_it() {
    let boss = Agent::<App>::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).on_handoff(|ctx| {
        match ctx.calls.fetch_add(1, Ordering::SeqCst) {
            0 => Err("the ticket system is down"),
            _ => Ok(()),
        }
    }));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("Solved.");
    let runner = Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .context(App::default())
        .model(model.clone());
    let error = runner.run("Help").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert_eq!(
        error.to_string(),
        "agent \"Clerk\", handoff \"transfer_to_boss\": the on_handoff callback failed: \
         the ticket system is down"
    );
    let result = runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(
        model.requests().len(),
        2,
        "the first answer is not asked for again"
    );
}

#[tokio::test]
async fn a_failing_filter_leaves_the_run_before_the_handoff() {
    let boss: Agent = Agent::new("Boss");
    let filter = |_: HandoffInputData| Err::<HandoffInputData, _>("no");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filter));
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let error = Runner::new(&clerk)
        .model(model)
        .run("Help")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    let run = error.run().unwrap();
    assert_eq!((run.agent(), run.new_items().len()), ("Clerk", 0));
}

#[tokio::test]
async fn a_schema_written_by_hand_is_made_strict_and_checked() {
    let schema = json!({
        "type": "object",
        "properties": {"rating": {"type": "integer", "minimum": 1, "maximum": 5}},
        "required": ["rating"]
    });
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss)
        .payload_schema(schema)
        .on_handoff(|_ctx, payload: Value| assert_eq!(payload["rating"], 5));
    let clerk = Agent::new("Clerk").handoff(edge);
    let sent: Value = serde_json::from_str(clerk.handoffs()[0].input_json_schema().get()).unwrap();
    assert_eq!(sent["additionalProperties"], false);
    assert!(clerk.handoffs()[0].strict_json_schema());

    let good = ScriptedModel::new()
        .call("transfer_to_boss", r#"{"rating": 5}"#)
        .say("Thanks.");
    Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .model(good)
        .run("x")
        .await
        .unwrap();
    let bad = ScriptedModel::new().call("transfer_to_boss", r#"{"rating": 6}"#);
    let error = Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .model(bad)
        .run("x")
        .await
        .unwrap_err();
    assert!(
        error.is_model_behavior() && error.to_string().contains("/rating"),
        "{error}"
    );
}

#[tokio::test]
async fn a_schema_that_cannot_be_strict_is_an_error_before_the_model_is_asked() {
    let boss: Agent = Agent::new("Boss");
    let open = json!({"type": "object", "additionalProperties": true});
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).payload_schema(open.clone()));
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&clerk)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert_eq!(model.requests().len(), 0);

    let loose = handoff(&boss)
        .payload_schema(open)
        .strict(false)
        .into_handoff();
    assert!(!loose.strict_json_schema());
    let clerk = Agent::new("Clerk").handoff(loose);
    let model = ScriptedModel::new()
        .call("transfer_to_boss", r#"{"a": 1}"#)
        .say("ok");
    Runner::new(&clerk).model(model).run("x").await.unwrap();
}

#[tokio::test]
async fn code_can_pick_the_agent_at_call_time() {
    let (day, night): (Agent, Agent) = (Agent::new("Day"), Agent::new("Night"));
    let (by_day, by_night) = (day.clone(), night.clone());
    let pick = Handoff::custom("Shift", move |_ctx, args: String| {
        let agent = if args.contains("night") {
            by_night.clone()
        } else {
            by_day.clone()
        };
        async move { Ok::<_, std::io::Error>(agent) }
    })
    .tool_name("to_shift")
    .tool_description("Passes to who is on duty.")
    .arguments_schema(json!({"type": "object", "properties": {"when": {"type": "string"}}}))
    .candidate(&day)
    .candidate(&night)
    .filter(filters::keep_last(2));
    let desk = Agent::new("Desk").handoff(pick);
    assert_eq!(
        desk.handoffs()[0].tool_description(),
        "Passes to who is on duty."
    );
    assert!(desk.handoffs()[0].strict_json_schema());
    let model = ScriptedModel::new()
        .call("to_shift", r#"{"when":"night"}"#)
        .fail("later")
        .say("Good night.");
    let runner = Runner::new(&desk).model(model.clone());
    let error = runner.run("x").await.unwrap_err();
    let result = runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(result.last_agent().name(), "Night");
    assert_eq!(model.requests()[2].input.len(), 2, "the filter has its say");
    let outputs = described(&result.to_input_list());
    let expected = r#"output of call_1: {"assistant": "Night"}"#.to_owned();
    assert!(outputs.contains(&expected), "{outputs:?}");
}

#[tokio::test]
async fn an_agent_picked_by_code_is_never_taken_for_another_of_its_name() {
    let known: Agent = Agent::new("Night").instructions("known");
    let picked: Agent = Agent::new("Night").instructions("picked");
    let desk = Agent::new("Desk")
        .handoff(&known)
        .handoff(Handoff::custom("Shift", move |_ctx, _args| picked.clone()));
    let model = ScriptedModel::new()
        .call("transfer_to_shift", "{}")
        .fail("later")
        .say("Hi.");
    let runner = Runner::new(&desk).model(model.clone());
    let error = runner.run("x").await.unwrap_err();
    let instructions = model.requests()[1].instructions.clone();
    assert_eq!(instructions.as_deref(), Some("picked"));
    let error = runner.resume(error.into_run().unwrap()).await.unwrap_err();
    assert!(
        error.is_configuration() && error.to_string().contains("candidate"),
        "{error}"
    );
}

#[tokio::test]
async fn the_finished_stages_of_a_failed_handoff_are_not_repeated() {
    let boss = Agent::<App>::new("Boss");
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let breaks = broken.clone();
    let clerk = Agent::new("Clerk").handoff(
        handoff(&boss)
            .on_handoff(|ctx| {
                ctx.calls.fetch_add(1, Ordering::SeqCst);
            })
            .filter_fn(move |data| {
                if breaks.load(Ordering::SeqCst) {
                    Err("no")
                } else {
                    Ok(data)
                }
            }),
    );
    let app = Arc::new(App::default());
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let runner = Runner::new(&clerk).context(app.clone()).model(model);
    let error = runner.run("x").await.unwrap_err();
    broken.store(false, Ordering::SeqCst);
    let stored = serde_json::to_string(error.run().unwrap()).unwrap();
    let run = serde_json::from_str(&stored).unwrap();
    runner.resume(run).await.unwrap();
    assert_eq!(app.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_condition_is_asked_every_turn_with_the_agent_that_would_hand_off() {
    let boss = Agent::<App>::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(
            tool("open").run(|ctx: switchboard_core::ToolContext<App>, (): ()| {
                ctx.open.store(true, Ordering::SeqCst);
                "opened"
            }),
        )
        .handoff(
            handoff(&boss).enabled_if(|ctx, agent: Agent<App>| async move {
                assert_eq!(agent.name(), "Clerk");
                ctx.open.load(Ordering::SeqCst)
            }),
        );
    let model = ScriptedModel::new()
        .call("open", "{}")
        .call("transfer_to_boss", "{}")
        .say("Hi.");
    let runner = Runner::new(&clerk)
        .context(App::default())
        .model(model.clone());
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
    let offered: Vec<usize> = model.requests().iter().map(|r| r.handoffs.len()).collect();
    assert_eq!(offered, [0, 1, 0]);
}

#[tokio::test]
async fn a_condition_that_the_same_responses_tools_ended_refuses_the_handoff() {
    let boss = Agent::<App>::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(
            tool("close").run(|ctx: switchboard_core::ToolContext<App>, (): ()| {
                ctx.open.store(false, Ordering::SeqCst);
                "closed"
            }),
        )
        .handoff(
            handoff(&boss)
                .enabled_if(|ctx, _| ctx.open.load(Ordering::SeqCst))
                .on_handoff(|ctx: HandoffContext<App>| {
                    ctx.calls.fetch_add(1, Ordering::SeqCst);
                }),
        );
    let app = Arc::new(App::default());
    app.open.store(true, Ordering::SeqCst);
    let model = ScriptedModel::new().calls([("close", "{}"), ("transfer_to_boss", "{}")]);
    let runner = Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .context(app.clone())
        .model(model);
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_model_behavior(), "{error}");
    assert_eq!(app.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_filter_changes_the_models_view_and_input_items_leave_the_record_alone() {
    let boss: Agent = Agent::new("Boss");
    let clerk =
        Agent::new("Clerk")
            .tool(tool("lookup").run(|_ctx, (): ()| "42"))
            .handoff(handoff(&boss).filter(|data: HandoffInputData| {
                data.with_input_items([]).with_pre_handoff_items([])
            }));
    let model = ScriptedModel::new()
        .call("lookup", "{}")
        .call("transfer_to_boss", "{}")
        .say("ok");
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(described(&model.requests()[2].input), ["user: Hi"]);
    assert_eq!(
        kinds(result.new_items()),
        [
            "Clerk tool_call_item",
            "Clerk tool_call_output_item",
            "Clerk handoff_call_item",
            "Clerk handoff_output_item",
            "Boss message_output_item",
        ]
    );
}

#[tokio::test]
async fn filters_chain_sync_and_async_in_order() {
    let add = |word: &'static str| {
        move |data: HandoffInputData| {
            let mut items: Vec<Item> = data.history_items().iter().cloned().collect();
            items.push(Item::system(word));
            data.with_input_history(items)
        }
    };
    let slow = |data: HandoffInputData| async move {
        tokio::task::yield_now().await;
        data
    };
    let boss: Agent = Agent::new("Boss");
    let chain = filters::remove_all_tools()
        .then(add("one"))
        .then(slow)
        .then(add("two"));
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(chain));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    Runner::new(&clerk)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(
        described(&model.requests()[1].input),
        ["user: Hi", "system: one", "system: two"]
    );
}

#[tokio::test]
async fn an_agent_handed_to_by_name_without_a_team_is_a_clear_error() {
    let lost: Agent = Agent::new("Lost").handoff("Nowhere");
    let model = ScriptedModel::new().call("transfer_to_nowhere", "{}");
    let error = Runner::new(&lost).model(model).run("x").await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert!(error.to_string().contains("Team"), "{error}");
}

#[tokio::test]
async fn handoffs_that_were_ignored_are_recorded() {
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let a = Agent::new("A").handoff(&b).handoff(&c);
    let model = ScriptedModel::new()
        .calls([("transfer_to_b", "{}"), ("transfer_to_c", r#"{"x": 1}"#)])
        .say("ok");
    let result = Runner::new(&a).model(model).run("x").await.unwrap();
    let handoffs = result.handoffs().iter();
    let handoffs: Vec<_> = handoffs
        .map(|handoff| {
            (
                &*handoff.to,
                handoff.payload.clone(),
                handoff.outcome.clone(),
            )
        })
        .collect();
    assert_eq!(
        handoffs,
        [
            ("B", json!({}), HandoffOutcome::Taken),
            ("C", json!({"x": 1}), HandoffOutcome::Ignored),
        ]
    );
}

#[tokio::test]
async fn conditions_are_evaluated_at_once_and_those_of_handoffs_after_the_instructions() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |text: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(text.to_owned())
    };
    let begun = Arc::new(AtomicUsize::new(0));
    let condition = |text: &'static str| {
        let (note, begun) = (note(text), begun.clone());
        move |_ctx, _agent| {
            note();
            let begun = begun.clone();
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                // The other one of two conditions must begin while this one waits.
                for _ in 0..100 {
                    if begun.load(Ordering::SeqCst) % 2 == 0 {
                        return Ok(true);
                    }
                    tokio::task::yield_now().await;
                }
                Err("the other condition was not evaluated")
            }
        }
    };
    let made = note("instructions");
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let agent: Agent = Agent::new("A")
        .instructions_fn(move |_ctx, _agent| {
            made();
            "Help."
        })
        .tool(
            tool("t")
                .enabled_if(condition("tool"))
                .run(|_ctx, (): ()| "1"),
        )
        .tool(
            tool("u")
                .enabled_if(condition("tool"))
                .run(|_ctx, (): ()| "2"),
        )
        .handoff(handoff(&b).enabled_if(condition("handoff")))
        .handoff(handoff(&c).enabled_if(condition("handoff")));
    let model = ScriptedModel::new().say("ok");
    Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(
        *log.lock().unwrap(),
        ["tool", "tool", "instructions", "handoff", "handoff"]
    );
}

#[tokio::test]
async fn a_callback_knows_both_agents_and_the_call() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = seen.clone();
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).on_handoff(move |ctx| {
        let text = format!(
            "{} {} {}",
            ctx.from().name(),
            ctx.to().name(),
            ctx.call_id()
        );
        noted.lock().unwrap().push(text);
    }));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    Runner::new(&clerk).model(model).run("x").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["Clerk Boss call_1"]);
}

#[tokio::test]
async fn a_copy_of_a_handoff_may_lead_elsewhere_with_other_words() {
    let (day, night): (Agent, Agent) = (Agent::new("Day"), Agent::new("Night"));
    let by_day = handoff(&day).on_handoff(|_ctx| ()).build();
    let by_night = by_day
        .to_builder()
        .target(&night)
        .transfer_message("You are now with the night shift.")
        .build();
    assert_eq!(by_night.tool_name(), "transfer_to_day");
    assert_eq!(by_night.tool_description(), by_day.tool_description());
    let desk = Agent::new("Desk").handoff(by_night);
    let model = ScriptedModel::new().call("transfer_to_day", "{}").say("ok");
    let result = Runner::new(&desk).model(model).run("x").await.unwrap();
    assert_eq!(result.last_agent().name(), "Night");
    assert_eq!(
        described(&result.to_input_list())[2],
        "output of call_1: You are now with the night shift."
    );
}

#[tokio::test]
async fn a_note_takes_the_place_of_the_notes_of_earlier_handoffs() {
    let note = |text: &'static str| filters::note(move |_data| text);
    let c: Agent = Agent::new("C");
    let b = Agent::new("B").handoff(handoff(&c).filter(note("from B").then(note("also B"))));
    let a = Agent::new("A").handoff(handoff(&b).filter(note("from A")));
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .say("ok");
    let input = vec![Item::developer("Be kind."), Item::user("x")];
    Runner::new(&a)
        .model(model.clone())
        .run(input)
        .await
        .unwrap();
    let notes = |call: usize| {
        let items = described(&model.requests()[call].input);
        let items = items.into_iter();
        items
            .filter(|item| item.starts_with("developer"))
            .collect::<Vec<_>>()
    };
    assert_eq!(notes(1), ["developer: from A", "developer: Be kind."]);
    assert_eq!(
        notes(2),
        [
            "developer: also B",
            "developer: from B",
            "developer: Be kind."
        ]
    );
}
