//! Runs inside tools, whose process ends while they run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Tool, tool};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunRecord, RunStatus, Teams};

use crate::world::LEASE;

/// A desk that asks an expert, whose second tool never ends the first time that it runs.
struct World {
    desk: Agent,
    expert_model: ScriptedModel,
    desk_model: ScriptedModel,
    looks: Arc<AtomicUsize>,
    stuck: Arc<AtomicUsize>,
}

fn world(ask: impl Fn(Tool) -> Tool) -> World {
    let (looks, stuck) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let look: Tool = tool("look").run({
        let looks = looks.clone();
        move |_ctx, (): ()| {
            looks.fetch_add(1, Ordering::SeqCst);
            "seen"
        }
    });
    let think: Tool = tool("think").run({
        let stuck = stuck.clone();
        move |_ctx, (): ()| {
            let is_first = stuck.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                "thought"
            }
        }
    });
    let expert_model = ScriptedModel::new()
        .call("look", "{}")
        .call("think", "{}")
        .say("Yes.");
    let expert: Agent = Agent::new("Expert")
        .model(expert_model.clone())
        .tool(look)
        .tool(think);
    let desk_model = ScriptedModel::new()
        .call("ask", r#"{"input":"Is it so?"}"#)
        .say("It is so.");
    let desk = Agent::new("Desk")
        .model(desk_model.clone())
        .tool(ask(expert.as_tool("ask").into()));
    World {
        desk,
        expert_model,
        desk_model,
        looks,
        stuck,
    }
}

#[tokio::test]
async fn a_process_that_ends_inside_an_agent_tool_is_followed_by_one_that_goes_on_inside_it() {
    let world = world(|ask| ask);
    let engine = Embedded::new(Conversations::in_memory()).lease(LEASE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (first_engine, desk) = (engine.clone(), world.desk.clone());
    runtime.spawn(async move {
        let first = DurableRunner::new(first_engine, &desk);
        let run = first.start("talk", "m1", "Is it so?").await.unwrap();
        let _ = run.wait().await;
    });
    while world.stuck.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The process is gone, in the second turn of the run inside the tool.
    runtime.shutdown_background();
    tokio::time::sleep(LEASE).await;

    let second = DurableRunner::new(engine, &world.desk);
    let run = second.attach("talk/m1").await.unwrap();
    run.resume().await.unwrap();
    let ended = until_ended(&run).await;
    assert_eq!(ended.text().as_deref(), Some("It is so."));
    // Of the run inside, only the tool in progress began again.
    let counts = (
        world.desk_model.requests().len(),
        world.expert_model.requests().len(),
        world.looks.load(Ordering::SeqCst),
        world.stuck.load(Ordering::SeqCst),
    );
    assert_eq!(counts, (2, 3, 1, 2));
}

async fn until_ended(run: &DurableRun) -> RunRecord {
    loop {
        let record = run.wait().await.unwrap();
        if record.is_ended() {
            return record;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_run_goes_on_with_the_version_that_it_began_with_or_says_that_there_is_none() {
    let engine = Embedded::new(Conversations::in_memory());
    let calls: Arc<Mutex<Vec<&str>>> = Arc::default();
    let team = |version: &'static str, script: ScriptedModel| {
        let calls = calls.clone();
        let send: Tool = tool("send").needs_approval().run(move |_ctx, (): ()| {
            calls.lock().unwrap().push(version);
            "sent"
        });
        Agent::new("Support").model(script).tool(send)
    };
    let script = ScriptedModel::new().call("send", "{}").say("Sent.");
    let old = team("1", script.clone());
    let new = team("2", script.clone());
    let first = DurableRunner::new(engine.clone(), Teams::new(&old).version("1"));
    let run = first.start("talk", "m1", "Send it").await.unwrap();
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    assert_eq!(run.record().await.unwrap().version.as_deref(), Some("1"));

    let newer = DurableRunner::new(engine.clone(), Teams::new(&new).version("2"));
    let attached = newer.attach(run.id()).await.unwrap();
    attached
        .decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let reason = loop {
        match attached.wait().await.unwrap().status {
            RunStatus::Stopped { reason } => break reason,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(
        reason,
        "the run began with version \"1\" of the team, and this process has version 2. Resume it in a process with \
         that version, or resume it as another version"
    );
    assert!(calls.lock().unwrap().is_empty());

    let both = Teams::new(&new).version("2").previous("1", &old);
    let both = DurableRunner::new(engine, both);
    let attached = both.attach(run.id()).await.unwrap();
    attached.resume().await.unwrap();
    let ended = until_ended(&attached).await;
    assert_eq!(ended.text().as_deref(), Some("Sent."));
    assert_eq!(*calls.lock().unwrap(), ["1"]);
}
