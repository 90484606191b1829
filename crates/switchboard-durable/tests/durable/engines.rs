//! Runs whose workers are killed with signal 9, and the servers of their engines too. The servers are those of `with-servers`:
//!
//! ```sh
//! crates/switchboard-sessions/tests/with-servers cargo test -p switchboard-durable --features restate,dbos \
//!     --test durable -- --ignored --test-threads=1 --skip worker engines
//! ```

mod backlog;
mod draining;
mod paused;
mod places;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunEvent, RunRecord, RunStatus};
use tokio::time::sleep;

use crate::world::{Note, check_effects, decide_until_ended, outcome, questions, runner};
use backlog::a_message_that_was_not_submitted_is_answered_by_a_worker_that_is_up;
use draining::{
    a_worker_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on,
    a_worker_whose_tool_takes_too_long_ends_without_it,
};
use paused::a_run_that_waits_for_a_time_notices_messages_without_being_woken;
use places::applications_and_teams_on_one_server_answer_their_own_messages;
use worker::{Engine, Place, Team};

/// The time that a test may take at most.
const LONG: Duration = Duration::from_secs(60);

fn silent() -> Note {
    Arc::new(|_| {})
}

/// The number of runs.
fn runs(usual: usize) -> usize {
    let number = std::env::var("SWITCHBOARD_TEST_RUNS").ok();
    number.map_or(usual, |number| number.parse().unwrap())
}

fn message(number: usize) -> String {
    format!("Hello, this is number {number}")
}

/// The outcome of a run that nothing interrupts, and the number of its waits.
async fn undisturbed(number: usize) -> (Vec<String>, usize) {
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), runner(0, &silent()));
    let run = durable
        .start("talk", "m1", &*message(number))
        .await
        .unwrap();
    let mut waits = 0;
    loop {
        let record = run.wait().await.unwrap();
        match &record.status {
            RunStatus::Waiting { .. } => waits += 1,
            _ => return (outcome(&store, &record).await, waits),
        }
        decide_first(&run, &record).await;
        while matches!(run.record().await.unwrap().status, RunStatus::Waiting { ref interruptions }
            if matches!(&record.status, RunStatus::Waiting { interruptions: before } if before == interruptions))
        {
            tokio::task::yield_now().await;
        }
    }
}

async fn decide_first(run: &DurableRun, record: &RunRecord) {
    let RunStatus::Waiting { interruptions } = &record.status else {
        return;
    };
    let Some(waiting) = interruptions.first() else {
        return;
    };
    // As `decide_until_ended` decides.
    let decision = match waiting.call_id.bytes().last().unwrap_or_default() % 3 {
        0 => Decision::reject(),
        _ => Decision::approve(),
    };
    let _ = run.decide(waiting, decision).await;
}

/// Starts runs, decides what they wait for, and returns their states once all have ended.
async fn start_and_decide(durable: &DurableRunner, runs: usize) -> Vec<RunRecord> {
    let all = (0..runs).map(|number| async move {
        let conversation = number.to_string();
        // A server that is being restarted refuses messages; the key makes it safe to send them again.
        let run = loop {
            match durable.start(&conversation, "m1", &*message(number)).await {
                Ok(run) => break run,
                Err(error) => eprintln!("{error}"),
            }
            sleep(Duration::from_millis(100)).await;
        };
        decide_with_patience(&run).await
    });
    // Each may meet a worker that is killed.
    let time = LONG + Duration::from_secs(3) * u32::try_from(runs).unwrap();
    let Ok(records) = tokio::time::timeout(time, join_all(all)).await else {
        let records = durable.list(None).await.unwrap();
        let left: Vec<_> = records.iter().filter(|run| !run.is_ended()).collect();
        panic!("not all runs have ended: {left:#?}");
    };
    records
}

/// Decides what a run waits for until it ends, also while servers are restarted.
async fn decide_with_patience(run: &DurableRun) -> RunRecord {
    loop {
        match run.wait().await {
            Ok(record) if record.is_ended() => return record,
            Ok(record) if matches!(record.status, RunStatus::Waiting { .. }) => {
                decide_first(run, &record).await;
            }
            Ok(record) => panic!("{record:?}"),
            Err(error) => eprintln!("{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Compares runs with those that nothing interrupts, and checks their side effects.
async fn check(place: &Place, records: &[RunRecord]) {
    let store = place.store().await;
    for record in records {
        let number = record.conversation.parse().unwrap();
        let (expected, _) = undisturbed(number).await;
        let lines = outcome(&store, record).await;
        assert_eq!(lines, expected, "run {number}");
    }
    let effects = place.effects();
    check_effects(&effects);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for effect in &effects {
        *counts.entry(effect).or_default() += 1;
    }
    // Each call of a tool that has an output took place.
    let reads = counts.keys().filter(|effect| effect.starts_with("read "));
    assert!(reads.count() > 0, "no tool has run");
}

/// Workers that kill themselves, one after the other, as many as there are runs, and every third time the server is killed too.
async fn workers_and_servers_are_killed(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(engine, "killed", folder.path());
    let durable = place.client().await;
    let kill = async {
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0.. {
            // The last ones live, so that the test ends.
            let kill = (number < runs(12)).then(|| random.usize(1..40));
            let mut worker = place.worker(kill);
            if number % 3 == 1 {
                sleep(Duration::from_millis(random.u64(400..900))).await;
                place.restart_server();
            }
            while !worker.is_gone() {
                sleep(Duration::from_millis(10)).await;
            }
        }
    };
    let records = tokio::select! {
        records = start_and_decide(&durable, runs(12)) => records,
        () = kill => unreachable!("a worker that nobody kills works on"),
    };
    check(&place, &records).await;
}

async fn one_of_three_workers_is_killed(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(engine, "three", folder.path());
    let durable = place.client().await;
    let number = runs(20);
    let mut workers = vec![place.worker(None), place.worker(None), place.worker(None)];
    let kill = async {
        while place.effects().len() < number * 2 {
            sleep(Duration::from_millis(5)).await;
        }
        drop(workers.pop());
        std::future::pending::<()>().await;
    };
    let records = tokio::select! {
        records = start_and_decide(&durable, number) => records,
        () = kill => unreachable!("it has no end"),
    };
    check(&place, &records).await;
}

/// A run whose decision comes after its worker and the server were killed, and whose events are read throughout.
async fn a_decision_comes_after_everything_was_killed(engine: Engine) {
    let mut number = 0;
    while undisturbed(number).await.1 == 0 {
        number += 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(engine, "decision", folder.path());
    let durable = place.client().await;
    let worker = place.worker(None);
    let conversation = number.to_string();
    let run = durable
        .start(&conversation, "m1", &*message(number))
        .await
        .unwrap();
    let waiting = tokio::time::timeout(LONG, run.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(
        matches!(waiting.status, RunStatus::Waiting { .. }),
        "{waiting:?}"
    );
    let mut positions = Vec::new();
    let mut seen = Vec::new();
    read_events(&run, &mut positions, &mut seen).await;
    drop(worker);
    place.restart_server();

    let _worker = place.worker(None);
    let record = tokio::time::timeout(LONG, decide_with_patience(&run))
        .await
        .unwrap();
    read_events(&run, &mut positions, &mut seen).await;
    assert!(
        positions.is_sorted_by(|first, second| first < second),
        "{positions:?}"
    );
    let mut again = (Vec::new(), Vec::new());
    read_events(&run, &mut again.0, &mut again.1).await;
    assert_eq!(
        (positions, seen),
        again,
        "a reader that comes again sees the same"
    );
    check(&place, &[record]).await;
}

async fn read_events(run: &DurableRun, positions: &mut Vec<u64>, seen: &mut Vec<String>) {
    let mut events = run.events(positions.last().copied());
    while let Some(event) = events.next().await.unwrap() {
        positions.push(event.position());
        seen.push(match &event {
            RunEvent::Event { event, .. } => serde_json::to_string(event).unwrap(),
            other => format!("{other:?}"),
        });
    }
}

async fn a_run_that_waits_is_cancelled(engine: Engine) {
    let mut number = 0;
    while undisturbed(number).await.1 == 0 {
        number += 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(engine, "cancelled", folder.path());
    let durable = place.client().await;
    let _worker = place.worker(None);
    let run = durable
        .start("talk", "m1", &*message(number))
        .await
        .unwrap();
    tokio::time::timeout(LONG, run.wait())
        .await
        .unwrap()
        .unwrap();
    run.cancel().await.unwrap();
    let ended = async {
        loop {
            let record = run.record().await.unwrap();
            if record.is_ended() {
                return record.status;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let status = tokio::time::timeout(LONG, ended).await.unwrap();
    assert_eq!(status, RunStatus::Cancelled);
    // The conversation goes on with the next message.
    let next = durable
        .start("talk", "m2", &*message(number))
        .await
        .unwrap();
    let record = tokio::time::timeout(LONG, decide_until_ended(&next))
        .await
        .unwrap();
    assert!(record.is_ended(), "{record:?}");
}

/// The number of a message whose run waits for the tool `send` first, outside of other tools.
async fn waits_for_sending() -> usize {
    for number in 0.. {
        let store = Conversations::in_memory();
        let durable = DurableRunner::new(Embedded::new(store), runner(0, &silent()));
        let run = durable.start("talk", "m1", &*message(number)).await;
        let record = run.unwrap().wait().await.unwrap();
        if let RunStatus::Waiting { interruptions } = &record.status
            && interruptions
                .first()
                .is_some_and(|waiting| &*waiting.tool == "send" && waiting.inside.is_empty())
        {
            return number;
        }
    }
    unreachable!("some run waits for it")
}

/// A run that stops in a worker with another team, and is resumed in one with its own.
async fn a_run_that_has_stopped_is_resumed_and_has_a_result(engine: Engine) {
    let number = waits_for_sending().await;
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(engine, "stopped", folder.path());
    let durable = place.client().await;
    let worker = place.worker(None);
    let conversation = number.to_string();
    let run = durable.start(&conversation, "m1", &*message(number)).await;
    let run = run.unwrap();
    let waiting = tokio::time::timeout(LONG, run.wait()).await.unwrap();
    drop(worker);
    let mut renamed = place.clone();
    renamed.team = Team::Renamed;
    let renamed = renamed.worker(None);
    let RunStatus::Waiting { interruptions } = waiting.unwrap().status else {
        panic!("the run waits");
    };
    run.decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let stopped = async {
        loop {
            let record = run.record().await.unwrap();
            if matches!(record.status, RunStatus::Stopped { .. }) {
                return record;
            }
            assert!(!record.is_ended(), "{record:?}");
            sleep(Duration::from_millis(20)).await;
        }
    };
    let stopped = tokio::time::timeout(LONG, stopped).await.unwrap();
    assert_eq!(stopped.log, 0);
    drop(renamed);

    let _worker = place.worker(None);
    run.resume().await.unwrap();
    let record = tokio::time::timeout(LONG, decide_with_patience(&run)).await;
    let Ok(record) = record else {
        panic!("{:#?}", run.record().await)
    };
    assert_eq!(record.log, 1);
    // As it ends if nothing stops it, but that the first call was approved.
    let effects = place.effects();
    check_effects(&effects);
    assert!(
        effects.iter().any(|effect| effect.starts_with("send ")),
        "{effects:?}"
    );
    match (run.result().await.unwrap(), &record.status) {
        (Ok(result), RunStatus::Done { output }) => {
            assert_eq!(result.final_output().unwrap().to_value(), *output);
        }
        (Err(error), RunStatus::Failed { kind, .. }) => assert_eq!(error.kind(), *kind),
        (_, status) => panic!("{status:?}"),
    }
    assert_eq!(place.effects(), effects, "a result takes no effect");
}

/// Messages of one conversation, of whose workers one after the other is killed.
async fn messages_over_several_workers_are_answered_in_their_order(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(engine, "order", folder.path());
    place.team = Team::Echo;
    let durable = place.client().await;
    let mut workers: Vec<_> = (0..3).map(|_| place.worker(None)).collect();
    let mut runs = Vec::new();
    for number in 0..12 {
        let text = format!("message {number}");
        runs.push(durable.start("talk", &text, &*text).await.unwrap());
    }
    for (number, run) in runs.iter().enumerate() {
        let record = tokio::time::timeout(LONG, run.wait()).await.unwrap();
        let record = record.unwrap();
        let expected = format!("re: message {number}");
        assert_eq!(record.text(), Some(expected.into()), "{record:?}");
        if number % 4 == 1 {
            drop(workers.remove(0));
            workers.push(place.worker(None));
        }
    }
    let expected: Vec<String> = (0..12).map(|number| format!("message {number}")).collect();
    assert_eq!(questions(&place.store().await).await, expected);
}

mod embedded {
    use super::Engine::Embedded;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs PostgreSQL"]
    async fn workers_and_servers_are_killed() {
        super::workers_and_servers_are_killed(Embedded).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs PostgreSQL"]
    async fn one_of_three_workers_is_killed() {
        super::one_of_three_workers_is_killed(Embedded).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs PostgreSQL"]
    async fn messages_over_several_workers_are_answered_in_their_order() {
        super::messages_over_several_workers_are_answered_in_their_order(Embedded).await;
    }
}

macro_rules! on_each_engine {
    ($($test:ident),* $(,)?) => {
        mod restate {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "needs PostgreSQL and Restate"]
                async fn $test() {
                    super::$test(super::Engine::Restate).await;
                }
            )*
        }
        mod dbos {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "needs PostgreSQL"]
                async fn $test() {
                    super::$test(super::Engine::Dbos).await;
                }
            )*
        }
    };
}

on_each_engine!(
    workers_and_servers_are_killed,
    one_of_three_workers_is_killed,
    a_decision_comes_after_everything_was_killed,
    a_run_that_waits_is_cancelled,
    a_run_that_has_stopped_is_resumed_and_has_a_result,
    messages_over_several_workers_are_answered_in_their_order,
    a_worker_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on,
    a_worker_whose_tool_takes_too_long_ends_without_it,
    a_run_that_waits_for_a_time_notices_messages_without_being_woken,
    applications_and_teams_on_one_server_answer_their_own_messages,
    a_message_that_was_not_submitted_is_answered_by_a_worker_that_is_up,
);
