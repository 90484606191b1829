//! Commits whose callers have gone.

use tokio::sync::watch;

/// The number of commits that still run although their callers have dropped them. What is asked for
/// later waits until there are none, so that no commit becomes visible after it was found missing.
#[derive(Debug, Clone)]
pub(crate) struct Abandoned(watch::Sender<usize>);

/// The part of a commit that its caller holds.
#[derive(Debug)]
pub(crate) struct Caller(watch::Sender<State>, watch::Sender<usize>);

/// The part of a commit that its task holds.
#[derive(Debug)]
pub(crate) struct Running(watch::Sender<State>, watch::Sender<usize>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Abandoned,
    Done,
}

impl Abandoned {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// The two parts of a commit that begins.
    pub(crate) fn begin(&self) -> (Caller, Running) {
        let state = watch::Sender::new(State::Running);
        (
            Caller(state.clone(), self.0.clone()),
            Running(state, self.0.clone()),
        )
    }

    /// Waits until all commits that were abandoned are done.
    pub(crate) async fn settled(&self) {
        let mut count = self.0.subscribe();
        // The sender is alive: it is a part of `self`.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.send_modify(|state| {
            if *state == State::Running {
                *state = State::Abandoned;
                self.1.send_modify(|count| *count += 1);
            }
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|state| {
            if *state == State::Abandoned {
                self.1.send_modify(|count| *count -= 1);
            }
            *state = State::Done;
        });
    }
}
