//! Commits whose callers have gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The commits that still run although their callers have dropped them. What is asked for later waits
/// for those of its conversation, so that no commit becomes visible after it was found missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Abandoned(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug)]
struct Entry {
    id: Arc<str>,
    done: watch::Sender<bool>,
}

/// The part of a commit that its caller holds.
#[derive(Debug)]
pub(crate) struct Caller {
    all: Abandoned,
    id: Arc<str>,
    done: watch::Sender<bool>,
}

/// The part of a commit that its task holds.
#[derive(Debug)]
pub(crate) struct Running {
    all: Abandoned,
    done: watch::Sender<bool>,
}

impl Abandoned {
    /// The two parts of a commit that begins.
    pub(crate) fn begin(&self, id: &Arc<str>) -> (Caller, Running) {
        let done = watch::Sender::new(false);
        let running = Running {
            all: self.clone(),
            done: done.clone(),
        };
        let caller = Caller {
            all: self.clone(),
            id: id.clone(),
            done,
        };
        (caller, running)
    }

    /// Waits for the commits to a conversation that were abandoned until now; with `None`, for those to
    /// all conversations.
    pub(crate) async fn settled(&self, id: Option<&str>) {
        let waiting: Vec<watch::Receiver<bool>> = {
            let entries = self.entries();
            let entries = entries
                .iter()
                .filter(|entry| id.is_none_or(|id| *entry.id == *id));
            entries.map(|entry| entry.done.subscribe()).collect()
        };
        for mut done in waiting {
            // An error says that the commit is done and forgotten.
            let _ = done.wait_for(|is_done| *is_done).await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut entries = self.all.entries();
        if !*self.done.borrow() {
            entries.push(Entry {
                id: self.id.clone(),
                done: self.done.clone(),
            });
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut entries = self.all.entries();
        self.done.send_replace(true);
        entries.retain(|entry| !entry.done.same_channel(&self.done));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_commits_to_the_same_conversation_are_waited_for() {
        let abandoned = Abandoned::default();
        let (caller, running) = abandoned.begin(&"a".into());
        let (other, other_running) = abandoned.begin(&"b".into());
        // As long as the caller waits itself, nobody else does.
        assert_eq!(abandoned.settled(Some("a")).now_or_never(), Some(()));
        drop(caller);
        assert_eq!(abandoned.settled(Some("a")).now_or_never(), None);
        assert_eq!(abandoned.settled(None).now_or_never(), None);
        assert_eq!(abandoned.settled(Some("b")).now_or_never(), Some(()));
        drop(running);
        assert_eq!(abandoned.settled(None).now_or_never(), Some(()));
        drop(other_running);
        drop(other);
        assert_eq!(abandoned.settled(None).now_or_never(), Some(()));
        assert!(abandoned.entries().is_empty());
    }
}
