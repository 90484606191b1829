//! The task of child processes: tests run this program again with this test.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};
use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded, RunRecord, RunStore, Teams};
use switchboard_sessions::{Durability, PostgresOptions, SqliteStore};

use crate::fault_store::{FaultStore, Moment};
use crate::killed::max_kills;
use crate::world::{LEASE, Note, decide_until_ended, runner};

const FOLDER: &str = "SWITCHBOARD_TEST_FOLDER";
const STORE: &str = "SWITCHBOARD_TEST_STORE";
const RUNS: &str = "SWITCHBOARD_TEST_RUNS";
const KILL: &str = "SWITCHBOARD_TEST_KILL";

/// The number of runs that a process has at once. It takes all of them anew before it is killed.
const AT_ONCE: usize = 16;

/// A command that runs conversations and kills itself at a moment that the number of earlier kills determines.
pub(crate) fn child(folder: &Path, store: Option<&str>, runs: u64, kills: u64) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "child_process::run_until_killed", "--ignored"])
        .env(FOLDER, folder)
        .env(STORE, store.unwrap_or_default())
        .env(RUNS, runs.to_string())
        .env(KILL, kills.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The store at this address, with the name of a schema after `#` where there is one, or else a database in the folder.
pub(crate) async fn open(folder: &Path, address: Option<&str>) -> Conversations {
    match address.filter(|address| !address.is_empty()) {
        Some(address) => match address.split_once("#") {
            Some((address, schema)) => {
                let options = PostgresOptions::new(address).unwrap().schema(schema);
                Conversations::new(options.open().await.unwrap())
            }
            None => switchboard_sessions::open(address).await.unwrap(),
        },
        None => {
            let options = SqliteStore::options().durability(Durability::Normal);
            let path = folder.join("conversations.db");
            Conversations::new(options.open(path).await.unwrap())
        }
    }
}

/// The side effects of all processes, each after the seed of its run.
pub(crate) fn read_effects(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("effects")).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn kill_this_process() {
    let id = std::process::id().to_string();
    let _ = Command::new("kill").args(["-9", &id]).status();
    // The signal may take a moment.
    loop {
        std::thread::park();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn run_until_killed() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let number = |name: &str| -> u64 { env::var(name).unwrap().parse().unwrap() };
    let (runs, kill) = (number(RUNS), number(KILL));
    let mut random = fastrand::Rng::with_seed(kill);
    let is_killed = kill < max_kills(runs);
    // A kill in an effect is one before its outcome is known to anybody.
    let in_effect = (is_killed && random.usize(..3) == 0).then(|| random.usize(1..40));
    let moment = if random.bool() {
        Moment::BeforeWrite
    } else {
        Moment::AfterWrite
    };
    let at_write = (is_killed && in_effect.is_none()).then(|| (random.usize(1..80), moment));

    let store = open(&folder, env::var(STORE).ok().as_deref()).await;
    let records = RunStore::new(store.clone()).list(None).await.unwrap();
    let ended = records.into_iter().filter(RunRecord::is_ended);
    let ended: BTreeSet<String> = ended.map(|run| run.conversation).collect();
    let store = FaultStore::new(store, at_write, Some(kill_this_process));
    let engine = Embedded::new(Conversations::new(store)).lease(LEASE);
    let effects = Arc::new(AtomicUsize::new(0));
    // Storing what is stored already would be all that a process does before it is killed.
    let all = (0..runs).filter(|seed| !ended.contains(&seed.to_string()));
    let all = all.map(|seed| {
        let mut file = OpenOptions::new();
        let file = file
            .create(true)
            .append(true)
            .open(folder.join("effects"))
            .unwrap();
        let effects = effects.clone();
        let note: Note = Arc::new(move |effect: &str| {
            let is_last = in_effect == Some(effects.fetch_add(1, Ordering::SeqCst) + 1);
            let moment = if is_last { kill % 2 } else { 2 };
            if moment == 0 {
                kill_this_process();
            }
            // One write each, so that lines stay whole.
            (&file)
                .write_all(format!("{seed} {effect}\n").as_bytes())
                .unwrap();
            if moment == 1 {
                kill_this_process();
            }
        });
        // A process does so little before the next one that a run may be interrupted often in a row.
        let teams = Teams::new(runner(seed, &note)).interruptions(u32::MAX);
        let durable = DurableRunner::new(engine.clone(), teams);
        async move {
            let run = durable
                .start(&seed.to_string(), "m1", "Hello")
                .await
                .unwrap();
            // Another runner of this process may have taken the run up, with the team of another seed, so each
            // takes up its own only: `start` does, again and again until the lease of the process before ends.
            tokio::select! {
                record = decide_until_ended(&run) => record,
                () = async {
                    loop {
                        tokio::time::sleep(LEASE).await;
                        durable.start(&seed.to_string(), "m1", "Hello").await.unwrap();
                    }
                } => unreachable!("the loop has no end"),
            }
        }
    });
    let mut all = stream::iter(all).buffer_unordered(AT_ONCE);
    while let Some(record) = all.next().await {
        assert!(record.is_ended(), "{record:?}");
    }
}
