//! Stores what was heard of an answer that was interrupted.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::items::ItemKind;
use switchboard_core::run::RunStatus;
use switchboard_core::session::SessionHandle;
use switchboard_core::{Error, Item, RunResult, Runner, Step};

use super::playback::{Segment, heard_text};

/// The number of items of an answer that are looked at: its messages, and the reasoning before them.
const MAX_ANSWER_ITEMS: usize = 32;

/// The outcome of storing what was heard.
pub(super) enum HeardOutcome {
    /// The conversation has the user's words and what was heard.
    Stored,
    /// The conversation does not have the user's words: they belong to the next turn.
    Unstored,
    /// The run has failed.
    RunFailed(Error),
    /// The conversation could not be changed.
    SessionFailed(BoxError),
}

/// Makes the conversation hold what was heard of an answer, instead of what was written.
///
/// Only the last message is corrected. Messages of turns before it, such as what an agent says when it hands
/// over, stay as they are: calls and outputs follow them.
pub(super) async fn store_heard<C: Send + Sync + 'static>(
    runner: Runner<C, Arc<C>>,
    session: SessionHandle,
    outcome: Result<RunResult<C>, Error>,
    input: Option<String>,
    segments: Vec<Segment>,
    played: Duration,
) -> HeardOutcome {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return HeardOutcome::RunFailed(error),
    };
    let turns = result.run().turns();
    match result.status() {
        RunStatus::Completed => {
            let is_last = |segment: &Segment| segment.turn >= turns;
            let heard = heard_text(&segments, played, is_last);
            let written: String = segments
                .iter()
                .filter(|segment| is_last(segment))
                .map(|segment| &*segment.text)
                .collect();
            if heard == written.trim_end() {
                return HeardOutcome::Stored;
            }
            let replaced = replace_last_message(&session, &written, &heard).await;
            replaced.map_or_else(HeardOutcome::SessionFailed, |()| HeardOutcome::Stored)
        }
        // The calls that wait are stored.
        RunStatus::Interrupted => HeardOutcome::Stored,
        _ => {
            // An answer that was complete, and not the run's output yet, is of the run's last turn.
            let is_concluding = matches!(result.run().step(), Step::Conclude(_));
            let first = if is_concluding { turns } else { turns + 1 };
            let heard = heard_text(&segments, played, |segment| segment.turn >= first);
            match runner.store_stopped(result.run(), &heard).await {
                Ok(true) => HeardOutcome::Stored,
                Ok(false) if turns > 0 => HeardOutcome::Stored,
                Ok(false) => match is_last_item(&session, input.as_deref()).await {
                    Ok(true) => HeardOutcome::Stored,
                    Ok(false) => HeardOutcome::Unstored,
                    Err(error) => HeardOutcome::SessionFailed(error),
                },
                Err(error) => HeardOutcome::SessionFailed(error.into()),
            }
        }
    }
}

/// Returns `true` if the last item of the conversation is this message of the user.
async fn is_last_item(session: &SessionHandle, input: Option<&str>) -> Result<bool, BoxError> {
    let Some(input) = input else {
        return Ok(true);
    };
    let items = session.load(Some(1)).await?;
    let last = items.last();
    Ok(last.is_some_and(|item| {
        item.role().as_deref() == Some("user") && item.text().as_deref() == Some(input)
    }))
}

/// Replaces the last messages of the conversation, which say `written`, by one that says `heard`. The
/// reasoning before them goes as well: it led to other words.
async fn replace_last_message(
    session: &SessionHandle,
    written: &str,
    heard: &str,
) -> Result<(), BoxError> {
    let items = session.load(Some(MAX_ANSWER_ITEMS)).await?;
    let is_answer = |item: &&Item| match item.kind() {
        ItemKind::Message => item.role().as_deref() == Some("assistant"),
        kind => kind == ItemKind::Reasoning,
    };
    let answer: Vec<Item> = items.iter().rev().take_while(is_answer).cloned().collect();
    let texts: String = answer.iter().rev().filter_map(Item::text).collect();
    let without_spaces = |text: &str| -> String { text.split_whitespace().collect() };
    if without_spaces(&texts) != without_spaces(written) {
        return Err("the conversation has changed since the answer was written".into());
    }
    for _ in &answer {
        session.pop().await?;
    }
    if heard.is_empty() {
        return Ok(());
    }
    session.append(&[Item::assistant(heard)]).await
}
