//! The consequence of the way in which a drive has ended.

use std::time::Duration;

use switchboard_core::callback::DynError;
use switchboard_core::conversation::{ConversationError, ConversationErrorKind};
use switchboard_core::run::StateProblems;
use switchboard_core::{Error, FinalOutput, RunResult};

use super::TeamExecutor;
use crate::journal::{End, Pause, RunJournal};
use crate::record::RunStatus;

/// The pause before a run that found its conversation in use is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// The pauses after failures that may pass: the first, which doubles, and the longest.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// The reason for a pause that an earlier execution has begun.
const UNFINISHED: &str = "a tool has not finished";

/// The outcome of driving a run.
pub(super) enum Driven<C> {
    Done(FinalOutput),
    Waiting(RunResult<C>),
    Failed(Error),
}

/// The consequence of the end of a drive.
pub(super) enum After {
    /// The run has this status.
    Status(RunStatus),
    /// The run pauses, after this number of failures.
    Pause {
        reason: Option<String>,
        failures: u32,
        time: Duration,
    },
    /// The run waits for a time.
    Timer(Pause),
    /// Nothing may be written any more.
    Nothing,
}

impl<C: Send + Sync + 'static> TeamExecutor<C> {
    /// The consequence of the end of a drive; `None` if the run was not driven.
    pub(super) fn after(&self, journal: &RunJournal, driven: Option<Driven<C>>) -> After {
        let id = journal.id();
        if let Some(until) = journal.pauses_until() {
            let reason = UNFINISHED.to_owned();
            return After::Timer(Pause { until, reason });
        }
        match (journal.end(), driven) {
            (Some(End::Taken), _) => {
                tracing::warn!(run = id, "another process has taken the run");
                After::Nothing
            }
            (Some(End::Broken(reason)), _) => {
                tracing::warn!(
                    run = id,
                    reason,
                    "the journal of a run cannot be used; the run is taken up again later"
                );
                After::Nothing
            }
            (Some(End::Over), _) => After::Nothing,
            (Some(End::Cancelled), _) => After::Status(RunStatus::Cancelled),
            (Some(End::Diverged(reason)), _) => {
                tracing::warn!(
                    run = id,
                    reason,
                    "a run cannot go on with the code of today"
                );
                After::Status(RunStatus::Stopped { reason })
            }
            (Some(End::Interrupted(reason)), _) => {
                tracing::warn!(run = id, reason, "a run was interrupted too often");
                After::Status(RunStatus::Stopped { reason })
            }
            (Some(End::Draining), _) => After::Pause {
                reason: Some("its process shut down".to_owned()),
                failures: journal.failures(),
                time: Duration::ZERO,
            },
            (None, Some(Driven::Done(output))) => {
                let output = output.to_value();
                After::Status(RunStatus::Done { output })
            }
            (None, Some(Driven::Failed(error))) => self.after_failure(journal, &error),
            (None, Some(Driven::Waiting(_)) | None) => After::Nothing,
        }
    }

    pub(super) fn after_failure(&self, journal: &RunJournal, error: &Error) -> After {
        if let Some(until) = error.retry_at() {
            let reason = error.to_string();
            return After::Timer(Pause { until, reason });
        }
        if error.is_transient() {
            let is_busy = error.cause().is_some_and(is_leased);
            let failures = journal.failures() + u32::from(!is_busy);
            if failures <= self.teams.max_failures {
                let (first, longest) = RETRY_PAUSES;
                let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(16));
                let time = if is_busy {
                    BUSY_PAUSE
                } else {
                    doubled.min(longest)
                };
                let reason = Some(error.to_string());
                return After::Pause {
                    reason,
                    failures,
                    time,
                };
            }
        }
        let ahead = journal.steps_ahead();
        if let Some(first) = ahead.first()
            && !journal.is_live()
            && !error.is_guardrail()
        {
            let reason = format!(
                "the code of today fails where the run took step \"{first}\" before it was interrupted; a tool, \
                 an agent, a handoff or a filter has changed. Go on with the code from then, or cancel the run. \
                 The failure: {error}"
            );
            tracing::warn!(
                run = journal.id(),
                reason,
                "a run cannot go on with the code of today"
            );
            return After::Status(RunStatus::Stopped { reason });
        }
        if is_of_other_team(error) {
            let reason = format!(
                "this process has another team than the run: {error}. Resume it in a process with the team of the run, \
                 or cancel it"
            );
            tracing::warn!(run = journal.id(), reason, "a run cannot go on here");
            return After::Status(RunStatus::Stopped { reason });
        }
        let (kind, message) = (error.kind(), error.to_string());
        After::Status(RunStatus::Failed { kind, message })
    }
}

/// Returns `true` if a run has not begun because its agents, or those of its conversation, are not in the team.
fn is_of_other_team(error: &Error) -> bool {
    use ConversationErrorKind::{OtherTeam, UnknownAgent};
    let Some(cause) = error.cause() else {
        return false;
    };
    let conversation = cause.downcast_ref::<ConversationError>();
    cause.is::<StateProblems>()
        || conversation.is_some_and(|error| matches!(error.kind(), OtherTeam | UnknownAgent))
}

fn is_leased(cause: &DynError) -> bool {
    let error = cause.downcast_ref::<ConversationError>();
    error.is_some_and(|error| error.kind() == ConversationErrorKind::Leased)
}
