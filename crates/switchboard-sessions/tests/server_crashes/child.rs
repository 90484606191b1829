//! The process that writes: this program again, with the test of this module.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected,
};
use switchboard_sessions::StoreError;

const KIND: &str = "SWITCHBOARD_TEST_CHILD_KIND";
const NAME: &str = "SWITCHBOARD_TEST_CHILD_NAME";

/// The conversation that is written, by a run of the same name.
pub(crate) const CONVERSATION: &str = "c";

/// The number of entries of a commit; there is no commit 0.
pub(crate) fn batch_size(commit: u32) -> usize {
    if commit == 0 {
        0
    } else {
        1 + commit as usize % 5
    }
}

/// A process that commits as fast as it can.
pub(crate) struct Child {
    process: std::process::Child,
    reader: Option<std::thread::JoinHandle<()>>,
    answered: Arc<(Mutex<u32>, Condvar)>,
    failed: Arc<AtomicU32>,
}

impl Child {
    pub(crate) fn start(kind: &str, name: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "child::commit_forever",
                "--ignored",
                "--nocapture",
            ])
            .env(KIND, kind)
            .env(NAME, name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let answered: Arc<(Mutex<u32>, Condvar)> = Arc::default();
        let failed: Arc<AtomicU32> = Arc::default();
        let shared = (answered.clone(), failed.clone());
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("stored ") {
                    let Ok(number) = number.parse() else { continue };
                    *shared.0.0.lock().unwrap() = number;
                    shared.0.1.notify_all();
                } else if line.starts_with("failed ") {
                    shared.1.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            process,
            reader: Some(reader),
            answered,
            failed,
        }
    }

    /// Waits until one more commit was answered.
    pub(crate) fn wait_for_commit(&mut self) {
        let before = self.answered();
        let guard = self.answered.0.lock().unwrap();
        let wait = self
            .answered
            .1
            .wait_timeout_while(guard, Duration::from_secs(60), |answered| {
                *answered <= before
            });
        assert!(!wait.unwrap().1.timed_out(), "no commit within 60 s");
    }

    /// The last commit that was answered.
    pub(crate) fn answered(&self) -> u32 {
        *self.answered.0.lock().unwrap()
    }

    /// The number of errors that the process was told.
    pub(crate) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Kills the process. Returns the last commit that was answered.
    pub(crate) fn kill(mut self) -> u32 {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.answered()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "started by other tests"]
async fn commit_forever() {
    let (Ok(kind), Ok(name)) = (env::var(KIND), env::var(NAME)) else {
        return;
    };
    match &*kind {
        "postgres" => commit_to(crate::postgres(&name).await).await,
        "redis" => commit_to(crate::redis(&name).await).await,
        _ => commit_to(crate::sqlite(&name).await).await,
    }
}

async fn commit_to(store: impl ConversationStore) {
    let head = store.head(CONVERSATION).await.unwrap();
    let mut number = 1;
    let mut expected = Expected::New;
    if let Some(head) = head {
        let next = head.revision.next;
        let last = store.read(CONVERSATION, next - 1..next).await.unwrap();
        number = last[0].commit + 1;
        expected = Expected::At(head.revision);
    }
    loop {
        let entry = |index| {
            let content = EntryContent::Item(Item::user(format!("{number} {index}")));
            Entry::new(content).made_in(CONVERSATION, 1, number)
        };
        let mut commit = Commit::new(expected, (0..batch_size(number)).map(entry).collect());
        commit.run = CONVERSATION.into();
        commit.number = number;
        match store.commit(CONVERSATION, commit).await {
            Ok(Committed::At(revision)) => {
                println!("stored {number}");
                number += 1;
                expected = Expected::At(revision);
            }
            Ok(other) => panic!("{other:?} at {number}"),
            // The same commit is made again.
            Err(error) => {
                let error: &StoreError = error.downcast_ref().unwrap();
                println!("failed {:?}", error.kind());
            }
        }
    }
}
