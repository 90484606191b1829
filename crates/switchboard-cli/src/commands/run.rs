//! `switchboard run`: messages go in, and what comes of them is shown.

use std::io;

use super::conversation;
use crate::args;
use crate::audience::{Audience, JsonLines};
use crate::conversation::{Answered, Conversation};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::open;
use crate::screen::Screen;
use crate::screen::style::Look;
use crate::signals::Signals;

pub(super) async fn run(args: args::Run, look: Look) -> Result<Exit, Failure> {
    let desk = open::team(&args.talk.team)?;
    // Words that were not put in quotes are one message as well.
    let message = (!args.message.is_empty()).then(|| args.message.join(" "));
    let messages = input::messages(message, args.input.as_deref())?;
    let (mut conversation, trace) = conversation(desk, &args.talk).await?;
    let mut signals = Signals::listen()?;
    let exit = if args.json {
        let mut lines = JsonLines(io::stdout());
        say_all(&mut conversation, &messages, &mut lines, &mut signals).await
    } else {
        let mut screen = Screen::of_stdout(look);
        say_all(&mut conversation, &messages, &mut screen, &mut signals).await
    };
    conversation.end().await;
    // What was traced is worth having also where the run failed.
    if let Some(trace) = trace {
        trace.finish()?;
    }
    exit
}

/// Says one message after the other, until one is not answered.
pub(super) async fn say_all<M: AsRef<str>>(
    conversation: &mut Conversation,
    messages: &[M],
    audience: &mut dyn Audience,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    for message in messages {
        match conversation
            .say(message.as_ref(), audience, signals)
            .await?
        {
            Answered::Finished => {}
            Answered::Stopped(signal) => return Ok(signal.exit()),
            Answered::Failed(exit) => return Ok(exit),
        }
    }
    Ok(Exit::Ok)
}
