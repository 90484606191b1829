//! Steps that end their process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Tool, tool};
use switchboard_durable::{DurableRunner, Embedded, RunStatus, Teams};

const LEASE: Duration = Duration::from_millis(20);

/// The calls of two tools, which do not come back before the one at `ends_at`.
#[derive(Clone)]
struct Calls {
    number: Arc<AtomicUsize>,
    ends_at: Vec<usize>,
    model: ScriptedModel,
}

impl Calls {
    fn new(ends_at: &[usize]) -> Self {
        let model = ScriptedModel::new();
        Self {
            number: Arc::default(),
            ends_at: ends_at.to_vec(),
            model: model.call("first", "{}").call("second", "{}").say("Done."),
        }
    }

    fn number(&self) -> usize {
        self.number.load(Ordering::SeqCst)
    }

    fn teams(&self) -> Teams {
        let tool = |name: &str| -> Tool {
            let this = self.clone();
            tool(name).run(move |_ctx, (): ()| {
                let call = this.number.fetch_add(1, Ordering::SeqCst) + 1;
                let ends = this.ends_at.contains(&call);
                async move {
                    if !ends {
                        std::future::pending::<()>().await;
                    }
                    "done"
                }
            })
        };
        let agent: Agent = Agent::new("Worker").model(self.model.clone());
        let agent = agent.tool(tool("first")).tool(tool("second"));
        Teams::new(&agent).interruptions(3)
    }
}

/// Has the run executed in a process that is gone once a tool was called.
async fn interrupt(store: &Conversations, calls: &Calls) {
    let (store, teams, calls) = (store.clone(), calls.teams(), calls.clone());
    let process = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let next = calls.number() + 1;
        runtime.block_on(async {
            let durable = DurableRunner::new(Embedded::new(store).lease(LEASE), teams);
            durable.start("talk", "m1", "Go").await.unwrap();
            while calls.number() < next {
                durable.recover().await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // A tool that comes back is recorded, and the next one is called.
            while calls.ends_at.contains(&calls.number()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        runtime.shutdown_background();
    });
    process.await.unwrap();
}

#[tokio::test]
async fn a_step_that_has_ended_its_process_too_often_stops_the_run() {
    let store = Conversations::in_memory();
    let calls = Calls::new(&[4, 5]);
    for _ in 0..3 {
        interrupt(&store, &calls).await;
    }
    let engine = Embedded::new(store.clone()).lease(LEASE);
    let durable = DurableRunner::new(engine, calls.teams());
    let run = durable.start("talk", "m1", "Go").await.unwrap();
    let RunStatus::Stopped { reason } = run.wait().await.unwrap().status else {
        panic!("{:?}", run.record().await);
    };
    assert!(
        reason.starts_with("step \"1/tool/first call_1\""),
        "{reason}"
    );
    assert!(reason.contains("interrupted 3 times in a row"), "{reason}");
    assert_eq!(calls.number(), 3);
    assert_eq!(durable.recover().await.unwrap(), 0);

    run.resume().await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."));
}

#[tokio::test]
async fn interruptions_of_different_steps_are_counted_apart() {
    let store = Conversations::in_memory();
    let calls = Calls::new(&[3, 6]);
    // Twice in the first tool, and then, after the third call, twice in the second one.
    for _ in 0..4 {
        interrupt(&store, &calls).await;
    }
    assert_eq!(calls.number(), 5);
    let engine = Embedded::new(store.clone()).lease(LEASE);
    let durable = DurableRunner::new(engine, calls.teams());
    let run = durable.start("talk", "m1", "Go").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."), "{ended:?}");
}
