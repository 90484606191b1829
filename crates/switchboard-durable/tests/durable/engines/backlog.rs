//! Runs that nobody has submitted, and more of them than a worker takes at once.

use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_durable::{DurableRun, DurableRunner, RunStatus, RunStore};
use tokio::time::{sleep, timeout};

use super::paused::WakesNobody;
use super::worker::{Engine, Place, Team};
use super::{LONG, draining};
use crate::world::echo;

/// A message that was stored by a process which ended before it submitted its run, while a worker is up.
pub(super) async fn a_message_that_was_not_submitted_is_answered_by_a_worker_that_is_up(
    engine: Engine,
) {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(engine, "unsent", folder.path());
    place.team = Team::Echo;
    let durable = place.client().await;
    let _worker = place.worker(None);
    // Its first look at the runs that are due is over by then.
    let first = durable.start("talk", "m1", "Hello").await.unwrap();
    let record = timeout(LONG, first.wait()).await.unwrap().unwrap();
    let engine = WakesNobody {
        name: record.engine.unwrap(),
        runs: RunStore::new(place.store().await),
    };
    let sender = DurableRunner::new(engine, &echo());
    let run = sender.start("talk", "m2", "Hi").await.unwrap();
    let record = timeout(LONG, ended(&run)).await.unwrap();
    assert_eq!(record, Some("re: Hi".to_owned()));
}

/// Waits for the end of a run, and does nothing for it. Returns its output.
async fn ended(run: &DurableRun) -> Option<String> {
    loop {
        let record = run.record().await.unwrap();
        if record.is_ended() {
            return record.text().map(|text| text.into_owned());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Starts runs, and waits until each waits for its approval.
async fn waiting(durable: &DurableRunner, number: usize) -> Vec<DurableRun> {
    let mut runs = Vec::new();
    for at in 0..number {
        let run = durable.start(&format!("wait {at}"), "m1", "send").await;
        runs.push(run.unwrap());
    }
    for run in &runs {
        let record = timeout(LONG, run.wait()).await.unwrap().unwrap();
        assert!(
            matches!(record.status, RunStatus::Waiting { .. }),
            "{record:?}"
        );
    }
    runs
}

async fn approve(run: &DurableRun) {
    let RunStatus::Waiting { interruptions } = run.record().await.unwrap().status else {
        panic!("{:?}", run.record().await);
    };
    let decided = run.decide(&interruptions[0], Decision::approve());
    decided.await.unwrap();
}

/// More runs than a worker takes at once: some wait for a person, others take their time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_worker_on_dbos_takes_no_more_runs_than_it_may_and_those_that_wait_count_half() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "backlog", folder.path());
    (place.team, place.at_once) = (Team::Slow, 2);
    let durable = place.client().await;
    let _worker = place.worker(None);
    let waiting = waiting(&durable, 5).await;
    let mut paying = Vec::new();
    for at in 0..4 {
        let run = durable.start(&format!("pay {at}"), "m1", "pay").await;
        paying.push(run.unwrap());
    }
    for run in &paying {
        let text = timeout(LONG, ended(run)).await.unwrap().unwrap();
        assert!(text.contains("it is paid"), "{text}");
    }
    let (mut at_once, mut most) = (0_usize, 0);
    for effect in place.effects() {
        match effect.as_str() {
            "pay begins" => at_once += 1,
            _ => at_once -= 1,
        }
        most = most.max(at_once);
    }
    assert!((1..=2).contains(&most), "{:?}", place.effects());
    for run in &waiting {
        approve(run).await;
    }
    for run in &waiting {
        let text = timeout(LONG, ended(run)).await.unwrap().unwrap();
        assert!(text.contains("it is sent"), "{text}");
    }
}

/// More messages of one conversation than a worker takes runs at once. The one that is answered when its worker is killed comes
/// back to the end of the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn messages_that_wait_for_their_turn_take_no_places_of_a_worker_on_dbos() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "turns", folder.path());
    (place.team, place.at_once) = (Team::Slow, 1);
    let durable = place.client().await;
    let worker = place.worker(None);
    let mut messages = Vec::new();
    for at in 0..3 {
        let run = durable.start("talk", &format!("m{at}"), "pay").await;
        messages.push(run.unwrap());
    }
    let begun = async {
        while place.effects().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, begun).await.unwrap();
    drop(worker);
    let other = durable.start("other", "m1", "pay").await.unwrap();
    let _worker = place.worker(None);
    let text = timeout(LONG, ended(&other)).await.unwrap().unwrap();
    assert!(text.contains("it is paid"), "{text}");
    let answered = async {
        for run in &messages {
            ended(run).await;
        }
    };
    timeout(LONG, answered).await.unwrap();
    let mut effects = place.effects().into_iter();
    assert_eq!(effects.next().as_deref(), Some("pay begins"));
    let outcomes: Vec<_> = messages.iter().map(|run| run.record()).collect();
    let outcomes = futures_util::future::join_all(outcomes).await;
    let changed = outcomes.iter().map(|run| run.as_ref().unwrap().changed);
    assert!(changed.is_sorted(), "{outcomes:#?}");
}

/// Messages that follow a run which waits: one that was there before it waited, and one that came after its worker was killed. They
/// fail, as there is no such tool, and leave the conversation as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_run_on_dbos_that_waits_while_messages_follow_it_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "follow", folder.path());
    place.team = Team::Slow;
    let durable = place.client().await;
    let start = async |conversation: &str, key: &str, text: &str| {
        let run = durable.start(conversation, key, text).await;
        run.unwrap()
    };
    let before = start("before", "m1", "send").await;
    let next = start("before", "m2", "Hello").await;
    let worker = place.worker(None);
    let after = waiting(&durable, 1).await.remove(0);
    timeout(LONG, ended(&next)).await.unwrap();
    drop(worker);
    let next = start("wait 0", "m2", "Hello").await;
    let _worker = place.worker(None);
    timeout(LONG, ended(&next)).await.unwrap();
    for run in [before, after] {
        approve(&run).await;
        let text = timeout(LONG, ended(&run)).await.unwrap().unwrap();
        assert!(text.contains("it is sent"), "{text}");
        let record = run.record().await.unwrap();
        let last = start(&record.conversation, "m3", "Hello").await;
        timeout(LONG, ended(&last)).await.unwrap();
    }
}

async fn database() -> sqlx::PgPool {
    let url = super::worker::variable("SWITCHBOARD_TEST_POSTGRES");
    sqlx::PgPool::connect(&url).await.unwrap()
}

/// A worker that gets nothing done, as the database does not let it write the states of workflows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_worker_on_dbos_shows_that_it_is_alive_while_it_submits_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "alive", folder.path());
    place.team = Team::Echo;
    let durable = place.client().await;
    // Makes the tables.
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    drop(place.worker(None));
    let pool = database().await;
    let locked = async {
        let mut transaction = pool.begin().await?;
        sqlx::query("LOCK TABLE dbos.workflow_status IN EXCLUSIVE MODE")
            .execute(&mut *transaction)
            .await?;
        Ok::<_, sqlx::Error>(transaction)
    };
    let locked = locked.await.unwrap();
    let _worker = place.worker(None);
    let beats = async {
        loop {
            let beats = sqlx::query_scalar::<_, Option<i64>>(
                "SELECT max(beats) FROM switchboard_executors",
            );
            // The table is there once a worker has begun.
            let beats = beats.fetch_one(&pool).await.ok().flatten();
            if beats >= Some(5) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, beats).await.unwrap();
    locked.rollback().await.unwrap();
    let text = timeout(LONG, ended(&run)).await.unwrap();
    assert_eq!(text.as_deref(), Some("re: Hi"));
}

/// The number of times that DBOS has had the workflow of a run executed, and its status.
async fn attempts(pool: &sqlx::PgPool, place: &Place) -> (i64, String) {
    let row = sqlx::query_as::<_, (i64, String)>(
        "SELECT recovery_attempts, status FROM dbos.workflow_status WHERE application_name = $1",
    );
    let row = row.bind(place.application()).fetch_one(pool).await;
    row.unwrap()
}

/// A run that waits for longer than a hundred workers live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_run_on_dbos_that_has_waited_over_many_restarts_goes_on_once_it_is_decided() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "restarts", folder.path());
    place.team = Team::Slow;
    let durable = place.client().await;
    let pool = database().await;
    let mut worker = place.worker(None);
    let run = waiting(&durable, 1).await.remove(0);
    let (begun, _) = attempts(&pool, &place).await;
    for _ in 0..3 {
        place.end_workers(Duration::from_secs(20));
        draining::gone(worker).await;
        let (given_back, status) = attempts(&pool, &place).await;
        assert_eq!((given_back, &*status), (begun - 1, "ENQUEUED"));
        place.let_workers_begin();
        worker = place.worker(None);
        until_status(&pool, &place, "PENDING").await;
        assert_eq!(attempts(&pool, &place).await.0, begun);
    }

    // Workers that were killed count, and DBOS gives the run up.
    drop(worker);
    set_attempts(&pool, &place).await;
    let _worker = place.worker(None);
    until_status(&pool, &place, "MAX_RECOVERY_ATTEMPTS_EXCEEDED").await;
    approve(&run).await;
    let text = timeout(LONG, ended(&run)).await.unwrap().unwrap();
    assert!(text.contains("it is sent"), "{text}");
}

/// A run that does not wait, and whose workers have ended too often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_run_that_dbos_has_given_up_stops_and_goes_on_when_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(Engine::Dbos, "given_up", folder.path());
    place.team = Team::Echo;
    let durable = place.client().await;
    let pool = database().await;
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    set_attempts(&pool, &place).await;
    let _worker = place.worker(None);
    let next = durable.start("talk", "m2", "Hello").await.unwrap();
    let stopped = async {
        loop {
            let record = run.record().await.unwrap();
            if let RunStatus::Stopped { reason } = record.status {
                return reason;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let reason = timeout(LONG, stopped).await.unwrap();
    assert!(reason.contains("100 times"), "{reason}");
    let text = timeout(LONG, ended(&next)).await.unwrap();
    assert_eq!(text.as_deref(), Some("re: Hello"));
    run.resume().await.unwrap();
    let text = timeout(LONG, ended(&run)).await.unwrap();
    assert_eq!(text.as_deref(), Some("re: Hi"));
}

/// Lets DBOS believe that a workflow was executed so often that the next time is too much.
async fn set_attempts(pool: &sqlx::PgPool, place: &Place) {
    let set = "UPDATE dbos.workflow_status SET recovery_attempts = 101 WHERE application_name = $1";
    let set = sqlx::query(set).bind(place.application()).execute(pool);
    set.await.unwrap();
}

async fn until_status(pool: &sqlx::PgPool, place: &Place, expected: &str) {
    let reached = async {
        while attempts(pool, place).await.1 != expected {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, reached).await.unwrap();
}
