//! Conversations kept between runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::InputGuardrail;
use switchboard_core::items::Items;
use switchboard_core::run::HandoffPolicy;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, MemorySession, Runner, Session, tool};

use crate::{DescribedSession, described};

#[tokio::test]
async fn the_next_run_continues_where_the_last_one_ended() {
    let agent: Agent = Agent::new("A");
    let session = MemorySession::new();
    let model = ScriptedModel::new().say("Hello Ann.").say("Ann.");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run("I am Ann").await.unwrap();
    runner.run("Who am I?").await.unwrap();
    let seen = described(&model.requests()[1].input);
    assert_eq!(
        seen,
        ["user: I am Ann", "assistant: Hello Ann.", "user: Who am I?"]
    );
    assert_eq!(session.items().len(), 4);
}

#[tokio::test]
async fn a_session_pops_clears_and_loads_the_latest() {
    let session = MemorySession::new();
    session
        .append(&[Item::user("1"), Item::user("2"), Item::user("3")])
        .await
        .unwrap();
    assert_eq!(
        described(&session.load(Some(2)).await.unwrap()),
        ["user: 2", "user: 3"]
    );
    assert_eq!(session.pop().await.unwrap(), Some(Item::user("3")));
    assert_eq!(session.items().len(), 2);
    session.clear().await.unwrap();
    assert_eq!(session.pop().await.unwrap(), None);
}

/// A session whose writes fail while `fails` is set.
#[derive(Clone, Default)]
struct Flaky {
    held: MemorySession,
    fails: Arc<AtomicBool>,
}

impl Session for Flaky {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.held.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if self.fails.load(Ordering::SeqCst) {
            Err("disk full".into())
        } else {
            self.held.append(items).await
        }
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.held.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.held.clear().await
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_written_loses_nothing() {
    let session = Flaky::default();
    let fails = session.fails.clone();
    let agent: Agent = Agent::new("A").tool(tool("t").run(move |_ctx, (): ()| {
        fails.store(true, Ordering::SeqCst);
        "1"
    }));
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    assert!(error.to_string().contains("disk full"), "{error}");
    assert_eq!(described(&session.held.items()), ["user: x"]);

    session.fails.store(false, Ordering::SeqCst);
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(
        described(&session.held.items()),
        ["user: x", "call t", "output of call_1: 1", "assistant: ok"]
    );
}

#[tokio::test]
async fn tools_that_ran_before_a_failing_handoff_are_stored_once() {
    let boss: Agent = Agent::new("Boss");
    let tries = Arc::new(AtomicBool::new(false));
    let agent = Agent::new("A")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .handoff(switchboard_core::handoff(&boss).on_handoff(move |_ctx| {
            if tries.swap(true, Ordering::SeqCst) {
                Ok(())
            } else {
                Err("not yet")
            }
        }));
    let session = MemorySession::new();
    let model = ScriptedModel::new()
        .calls([("t", "{}"), ("transfer_to_boss", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .handoff_policy(HandoffPolicy::reference())
        .model(model)
        .session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(
        described(&session.items()),
        ["user: x", "call t", "output of call_1: 1"]
    );
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(
        described(&session.items()),
        [
            "user: x",
            "call t",
            "output of call_1: 1",
            "call transfer_to_boss",
            r#"output of call_2: {"assistant": "Boss"}"#,
            "assistant: ok"
        ]
    );
}

#[tokio::test]
async fn a_limit_leaves_no_orphaned_call() {
    let session = MemorySession::new();
    let items = [
        Item::user("1"),
        Item::function_call("c", "t", "{}"),
        Item::function_call_output("c", "2"),
        Item::assistant("3"),
    ];
    session.append(&items).await.unwrap();
    let agent: Agent = Agent::new("A");
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .session_limit(2);
    runner.run("4").await.unwrap();
    assert_eq!(
        described(&model.requests()[0].input),
        ["assistant: 3", "user: 4"]
    );
}

#[tokio::test]
async fn a_run_begun_without_a_session_is_stored_whole_once_it_has_one() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new().call("t", "{}").fail("later").say("ok");
    let error = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(
        described(&session.items()),
        ["user: x", "call t", "output of call_1: 1", "assistant: ok"]
    );
}

/// A session that takes its time.
#[derive(Clone, Default)]
struct Slow(MemorySession);

impl Session for Slow {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.0.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        self.0.append(items).await?;
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        Ok(())
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.0.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.0.clear().await
    }
}

#[tokio::test]
async fn a_stop_while_the_session_is_written_stores_nothing_twice() {
    let session = Slow::default();
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().say("ok"))
        .session(&session);
    let stream = runner.stream("x");
    let stopper = stream.stop_handle();
    let finished = tokio::spawn(stream.finish());
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    stopper.stop();
    let stopped = finished.await.unwrap().unwrap();
    runner.resume(stopped.into_run()).await.unwrap();
    assert_eq!(described(&session.0.items()), ["user: x", "assistant: ok"]);
}

#[tokio::test]
async fn a_session_may_have_a_limit_of_its_own() {
    let agent: Agent = Agent::new("A");
    for (limit, expected) in [(None, 3), (Some(1), 2)] {
        let session = DescribedSession {
            limit: Some(2),
            ..DescribedSession::default()
        };
        let old: Vec<_> = (0..6).map(|n| Item::user(n.to_string())).collect();
        session.append(&old).await.unwrap();
        let model = ScriptedModel::new().say("ok");
        let mut runner = Runner::new(&agent).model(model.clone()).session(session);
        if let Some(limit) = limit {
            runner = runner.session_limit(limit);
        }
        runner.run("x").await.unwrap();
        assert_eq!(model.requests()[0].input.len(), expected);
    }
}

#[tokio::test]
async fn the_application_may_merge_the_history_with_new_input() {
    let agent: Agent = Agent::new("A");
    let session = MemorySession::new();
    let old = [
        Item::user("old 1"),
        Item::user("old 2"),
        Item::user("old 2"),
    ];
    session.append(&old).await.unwrap();
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .session_input(|_ctx, history: Items, new: Items| async move {
            // An item dropped, one equal to an old one made anew, one added, the rest reordered.
            let again = Item::user("old 2");
            let added = Item::developer("Be kind.");
            let rest = history.into_iter().skip(1).take(1);
            new.into_iter()
                .chain([again, added])
                .chain(rest)
                .collect::<Items>()
        });
    runner.run("x").await.unwrap();
    assert_eq!(
        described(&model.requests()[0].input),
        [
            "user: x",
            "user: old 2",
            "developer: Be kind.",
            "user: old 2"
        ]
    );
    assert_eq!(
        described(&session.items())[3..],
        ["user: x", "developer: Be kind.", "assistant: ok"]
    );
}

#[tokio::test]
async fn identifiers_of_reasoning_can_be_left_out() {
    let reasoning = |id: &str| {
        let json = format!(r#"{{"type":"reasoning","id":"{id}","summary":[]}}"#);
        Item::from_json(json).unwrap()
    };
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let session = MemorySession::new();
    let old = [
        Item::user("old"),
        reasoning("rs_0"),
        Item::output_message("m0", "hm"),
    ];
    session.append(&old).await.unwrap();
    let model = ScriptedModel::new()
        .reply([reasoning("rs_1"), Item::function_call("c1", "t", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .omit_reasoning_ids(true);
    let result = runner.run("x").await.unwrap();
    let sent = format!("{:?}", model.requests()[1].input);
    assert_eq!(sent.matches("reasoning").count(), 2, "{sent}");
    assert!(!sent.contains("rs_"), "{sent}");
    assert!(!format!("{:?}", result.to_input_list()).contains("rs_"));
    assert!(!format!("{:?}", session.items()).contains("rs_1"));
    assert!(format!("{:?}", result.raw_responses()).contains("rs_1"));
}

#[tokio::test]
async fn a_guardrail_replaces_the_new_message_wherever_the_application_put_it() {
    let mask = InputGuardrail::replacing("mask", |_ctx, _agent, _input| Some("masked"));
    let agent: Agent = Agent::new("A").input_guardrail(mask);
    let session = MemorySession::new();
    session.append(&[Item::user("old")]).await.unwrap();
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .session_input(|_ctx, history: Items, new: Items| {
            new.into_iter().chain(history).collect::<Items>()
        });
    runner.run("my number is 123").await.unwrap();
    assert_eq!(
        described(&model.requests()[0].input),
        ["user: masked", "user: old"]
    );
}
