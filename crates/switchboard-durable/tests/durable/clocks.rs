//! Processes whose clocks differ.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, ListQuery, SearchQuery,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Tool, tool};
use switchboard_durable::{DurableRunner, Embedded, RunStatus};

/// The time by which the clock was set back.
const SET_BACK: Duration = Duration::from_secs(3600);

/// A store as a process sees it after the clock was set back: what was written before lies in the future.
#[derive(Clone)]
struct AfterSetBack {
    store: Conversations,
    written_since: Arc<Mutex<HashSet<String>>>,
}

impl AfterSetBack {
    fn new(store: &Conversations) -> Self {
        Self {
            store: store.clone(),
            written_since: Arc::default(),
        }
    }

    fn shifted(&self, mut head: Head) -> Head {
        if !self.written_since.lock().unwrap().contains(&*head.id) {
            head.created += SET_BACK;
            head.changed += SET_BACK;
            head.expires = head.expires.map(|time| time + SET_BACK);
        }
        head
    }
}

impl ConversationStore for AfterSetBack {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        Ok(self.store.head(id).await?.map(|head| self.shifted(head)))
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.store.read(id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        let committed = self.store.commit(id, commit).await?;
        if let Committed::At(_) = committed {
            self.written_since.lock().unwrap().insert(id.to_owned());
        }
        Ok(committed)
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        self.store.clear(id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.store.delete(id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        ConversationStore::delete_expired(&self.store, id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let mut all = query.clone();
        (all.expired_before, all.expired_from, all.limit) = (None, None, None);
        let heads = ConversationStore::list(&self.store, &all).await?;
        let mut heads: Vec<Head> = heads.into_iter().map(|head| self.shifted(head)).collect();
        if let Some(time) = query.expired_before {
            heads.retain(|head| head.expires.is_some_and(|at| at <= time));
        }
        if let Some(time) = query.expired_from {
            heads.retain(|head| head.expires.is_some_and(|at| at >= time));
        }
        heads.sort_by_key(|head| std::cmp::Reverse(head.changed));
        if query.expired_from.is_some() {
            heads.sort_by_key(|head| head.expires);
        }
        heads.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(heads)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        ConversationStore::search(&self.store, query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.store.release(id, owner).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

fn agent(calls: &Arc<Mutex<Vec<&'static str>>>, name: &'static str, ends: bool) -> Agent {
    let calls = calls.clone();
    let work: Tool = tool("work").run(move |_ctx, (): ()| {
        calls.lock().unwrap().push(name);
        async move {
            if !ends {
                std::future::pending::<()>().await;
            }
            "done"
        }
    });
    let model = ScriptedModel::new().call("work", "{}").say("Done.");
    Agent::new("Worker").model(model).tool(work)
}

#[tokio::test]
async fn the_run_of_a_process_that_is_gone_goes_on_though_the_clock_was_set_back() {
    let store = Conversations::in_memory();
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let lease = Duration::from_millis(200);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let first = Embedded::new(store.clone()).lease(lease);
    let id = {
        let (calls, store_of_first) = (calls.clone(), first);
        let task = runtime.spawn(async move {
            let durable = DurableRunner::new(store_of_first, &agent(&calls, "first", false));
            let run = durable.start("talk", "m1", "Go").await.unwrap();
            while calls.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            run.id().to_owned()
        });
        task.await.unwrap()
    };
    // Its process is gone.
    runtime.shutdown_background();

    let after = Conversations::new(AfterSetBack::new(&store));
    let engine = Embedded::new(after).lease(lease);
    // This answers with what the journal has not.
    let rest = agent(&calls, "second", true);
    let rest = rest.model(ScriptedModel::new().say("Done."));
    let durable = DurableRunner::new(engine, &rest);
    let run = durable.attach(&id).await.unwrap();
    let before = run.record().await.unwrap();
    assert!(matches!(before.status, RunStatus::Running {}));
    assert!(before.due > Some(SystemTime::now() + SET_BACK / 2));
    assert_eq!(durable.recover().await.unwrap(), 0, "its lease is not over");
    let worker = durable.clone();
    let work = tokio::spawn(async move { worker.work().await });
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."));
    assert_eq!(*calls.lock().unwrap(), ["first", "second"]);
    work.abort();
}

/// After the clock was set back, the leases of all runs of a process that is gone seem to be over at the same time.
#[tokio::test]
async fn no_more_runs_than_there_is_room_for_are_taken_after_the_clock_was_set_back() {
    let store = Conversations::in_memory();
    let lease = Duration::from_millis(100);
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let (stored, calls_of_first) = (store.clone(), calls.clone());
    let process = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            for conversation in ["a", "b", "c", "d", "e"] {
                let first = Embedded::new(stored.clone()).lease(lease);
                let agent = agent(&calls_of_first, "first", false);
                let durable = DurableRunner::new(first, &agent);
                durable.start(conversation, "m1", "Go").await.unwrap();
            }
            while calls_of_first.lock().unwrap().len() < 5 {
                tokio::task::yield_now().await;
            }
        });
        runtime.shutdown_background();
    });
    process.await.unwrap();

    let after = Conversations::new(AfterSetBack::new(&store));
    let engine = Embedded::new(after).lease(lease).at_once(2);
    let durable = DurableRunner::new(engine, &agent(&calls, "second", false));
    let mut taken = 0;
    while taken == 0 {
        taken += durable.recover().await.unwrap();
        tokio::time::sleep(lease / 4).await;
    }
    tokio::time::sleep(lease).await;
    assert_eq!(taken + durable.recover().await.unwrap(), 2);
}
