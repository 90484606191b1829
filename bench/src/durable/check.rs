//! A check that nothing is lost under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use switchboard_core::Session as _;
use switchboard_core::conversation::{ConversationStore, Conversations};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunEvent};

use super::counting::CountingStore;
use super::team::{ANSWER, MESSAGE, team};
use super::{Failed, load, runtime, work};

/// Starts runs, 32 at once, and reads what each has left: its answer, its events, and its conversation. Returns the number of
/// each, and of the commits to the store.
///
/// # Errors
/// An error of the store or the engine.
pub fn check_durable(address: &str, runs: u32) -> Result<Value, Failed> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let store = CountingStore::new(switchboard_sessions::open(address).await?);
        let conversations = Conversations::new(store.clone());
        let runner = DurableRunner::new(Embedded::new(conversations.clone()), team());
        let totals: Arc<[AtomicU64; 3]> = Arc::default();
        let counted = totals.clone();
        let started = work(move |name| {
            let (runner, conversations, totals) =
                (runner.clone(), conversations.clone(), counted.clone());
            async move {
                let run = runner.start(&name, "m1", MESSAGE).await?;
                let ended = run.wait().await?;
                let is_answered = ended.text().as_deref() == Some(ANSWER);
                totals[0].fetch_add(u64::from(is_answered), Ordering::Relaxed);
                totals[1].fetch_add(events(&run).await?, Ordering::Relaxed);
                let items = conversations.get(name).load(None).await?;
                totals[2].fetch_add(items.len() as u64, Ordering::Relaxed);
                Ok(())
            }
        });
        load::measure(&started, 32, f64::INFINITY, runs).await?;
        let [answered, events, items] = &*totals;
        let counts = store.counts();
        ConversationStore::close(&store).await;
        Ok(json!({
            "runs": runs,
            "answered": answered.load(Ordering::Relaxed),
            "events_read": events.load(Ordering::Relaxed),
            "items": items.load(Ordering::Relaxed),
            "counts": counts.to_json(),
        }))
    })
}

/// The number of events of a run; an error if one comes twice or out of order.
async fn events(run: &DurableRun) -> Result<u64, Failed> {
    let (mut events, mut number, mut last) = (run.events(None), 0, None);
    while let Some(event) = events.next().await? {
        let position = event.position();
        if last.is_some_and(|last| position <= last) {
            return Err(format!("the run \"{}\" has event {position} twice", run.id()).into());
        }
        last = Some(position);
        number += u64::from(matches!(event, RunEvent::Event { .. }));
    }
    Ok(number)
}
