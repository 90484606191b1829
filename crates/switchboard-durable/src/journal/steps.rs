//! Steps of a run: made again from the journal, or taken and recorded.

use serde_json::value::RawValue;
use switchboard_core::callback::BoxError;
use switchboard_core::journal::{Effect, Journal, Outcome, Repeat, StepKey, StepKind, Stepped};

use super::{End, RunJournal, ended};
use crate::entry::JournalEntry;
use crate::error::DurableError;

/// The part of a step that the journal knows.
enum Known {
    Nothing,
    Outcome(Stepped),
    /// It may take place once, and was interrupted.
    Begun,
    /// Its tool waited for a person.
    Waits,
}

impl Journal for RunJournal {
    async fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: Effect<'_>,
    ) -> Result<Stepped, BoxError> {
        if self.state().is_logged() {
            // The log does not have it, and is not at its end.
            let is_new = self.is_new_in_log(key)?;
            if is_new {
                drop(effect.await);
                return Ok(Stepped::Ran);
            }
            self.read_log_up_to(key).await?;
        }
        match self.known(key, repeat) {
            Known::Outcome(outcome) => return Ok(outcome),
            Known::Waits => {
                return match effect.await {
                    Outcome::Waits => Ok(Stepped::Ran),
                    _ => Err(self.diverged(key, "waited for a person").into()),
                };
            }
            Known::Begun => {
                self.begin(key)?;
                self.append([JournalEntry::Unknown(key.clone())]).await?;
                return Ok(Stepped::Unknown);
            }
            Known::Nothing => self.begin(key)?,
        }
        if repeat == Repeat::AtMostOnce {
            self.append([JournalEntry::Begun(key.clone())]).await?;
        }
        self.store_log_before(key, repeat).await?;
        // The outcome of what has taken place is recorded also if the run cannot go on.
        let entry = match effect.await {
            Outcome::Value(outcome) => {
                let outcome = RawValue::from_string(outcome.as_ref().to_owned())?;
                JournalEntry::Step(key.clone(), outcome)
            }
            Outcome::Waits => JournalEntry::Waits(key.clone()),
            _ => {
                if repeat == Repeat::AtMostOnce {
                    let again = JournalEntry::BeginsAgain(key.clone());
                    self.append([again]).await?;
                }
                self.skip_in_log();
                return Ok(Stepped::Ran);
            }
        };
        if repeat == Repeat::Idempotent {
            self.append_later(entry)?;
        } else {
            self.append([entry]).await?;
        }
        self.state().record.failures = 0;
        Ok(Stepped::Ran)
    }

    fn is_last_attempt(&self) -> bool {
        let state = self.state();
        state.record.failures >= state.max_failures
    }
}

impl RunJournal {
    fn known(&self, key: &StepKey, repeat: Repeat) -> Known {
        let mut state = self.state();
        if let Some(outcome) = state.outcomes.get(key).cloned() {
            state.ahead.remove(key);
            return Known::Outcome(Stepped::Recorded(outcome));
        }
        if state.waits.contains(key) {
            return Known::Waits;
        }
        if state.unknown.contains(key) {
            return Known::Outcome(Stepped::Unknown);
        }
        if repeat == Repeat::AtMostOnce && state.begun.contains(key) {
            return Known::Begun;
        }
        Known::Nothing
    }

    /// Stores the steps that the log has, before an effect outside: if the run stops in a process that cannot read the log to
    /// its end, with another version of the team, and is resumed with a new log, no step takes place again but the last ones.
    async fn store_log_before(&self, key: &StepKey, repeat: Repeat) -> Result<(), DurableError> {
        let has_effect = key.kind != StepKind::Model && repeat != Repeat::Idempotent;
        if has_effect && self.state().is_logged() {
            self.store_log().await?;
        }
        Ok(())
    }

    /// Checks that a step that is not recorded is one that the journal can go on with.
    fn begin(&self, key: &StepKey) -> Result<(), DurableError> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(ended(&self.0.id, end));
        }
        // Hooks watch a run, and may come and go while it is interrupted.
        if key.kind != StepKind::Hook
            && let Some(did) = state.did_instead_of(key)
        {
            drop(state);
            return Err(self.diverged(key, &did));
        }
        if state.interruptions >= state.max_interruptions {
            let times = state.interruptions;
            drop(state);
            return Err(self.interrupted(key, times));
        }
        state.is_live = true;
        Ok(())
    }

    /// Returns `true` for a hook that a log has not which is still read. The store has what it has, but for the last steps, so
    /// that a run that takes other steps than before is found out before its engine compares them with its own journal.
    ///
    /// # Errors
    /// An error for another step: the run has diverged.
    fn is_new_in_log(&self, key: &StepKey) -> Result<bool, DurableError> {
        let state = self.state();
        let is_known = state.knows(key) || state.in_log.contains(key);
        if is_known || !state.is_replayed() || state.in_log.is_empty() || state.end.is_some() {
            return Ok(false);
        }
        match state.did_instead_of(key) {
            None => Ok(false),
            // A hook that came later is called, and nothing is recorded of it.
            Some(_) if key.kind == StepKind::Hook => Ok(true),
            Some(did) => {
                drop(state);
                Err(self.diverged(key, &did))
            }
        }
    }

    /// Stops the run: a step was interrupted too often.
    fn interrupted(&self, key: &StepKey, times: u32) -> DurableError {
        let reason = format!(
            "step \"{key}\" was interrupted {times} times in a row: the process that took it has ended each time. Find out \
             why, and resume the run, or cancel it"
        );
        let end = End::Interrupted(reason);
        let error = ended(&self.0.id, &end);
        self.set_end(end);
        error
    }

    /// Stops the run: the code of today does something else than the journal has.
    fn diverged(&self, key: &StepKey, did: &str) -> DurableError {
        let reason = format!(
            "the code of today takes step \"{key}\", where the run {did} before it was interrupted; a tool, an \
             agent, a handoff or a filter has changed. Go on with the code from then, or cancel the run"
        );
        let end = End::Diverged(reason);
        let error = ended(&self.0.id, &end);
        self.set_end(end);
        error
    }
}
