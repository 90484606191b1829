//! `switchboard run`: sends messages to a team and shows the run.

use std::io;

use super::open_conversation;
use crate::args;
use crate::conversation::{Conversation, RunOutcome};
use crate::event_sink::{EventSink, JsonLines};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::loaded_team::LoadedTeam;
use crate::screen::Screen;
use crate::screen::style::Look;
use crate::signals::Signals;

pub(super) async fn run(args: args::Run, look: Look) -> Result<Exit, Failure> {
    let team = LoadedTeam::read(&args.talk.team)?;
    // Words without quotes are one message as well.
    let message = (!args.message.is_empty()).then(|| args.message.join(" "));
    let messages = input::messages(message, args.input.as_deref())?;
    let (mut conversation, trace) = open_conversation(team, &args.talk).await?;
    let mut signals = Signals::listen()?;
    let exit = if args.json {
        let mut lines = JsonLines(io::stdout());
        send_all(&mut conversation, &messages, &mut lines, &mut signals).await
    } else {
        let mut screen = Screen::of_stdout(look, conversation.team().names());
        send_all(&mut conversation, &messages, &mut screen, &mut signals).await
    };
    conversation.close().await;
    // The trace of a run that failed is complete as well.
    if let Some(trace) = trace {
        trace.finish()?;
    }
    exit
}

/// Sends one message after the other, until a run does not finish.
pub(super) async fn send_all<M: AsRef<str>>(
    conversation: &mut Conversation,
    messages: &[M],
    sink: &mut dyn EventSink,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    for message in messages {
        match conversation.send(message.as_ref(), sink, signals).await? {
            RunOutcome::Finished => {}
            RunOutcome::Stopped(signal) => return Ok(signal.exit()),
            RunOutcome::Failed(exit) => return Ok(exit),
        }
    }
    Ok(Exit::Ok)
}
