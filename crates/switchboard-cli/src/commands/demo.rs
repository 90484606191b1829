//! `switchboard demo`, and `switchboard` alone: a whole conversation on the offline model.

use std::io::{self, Write as _};
use std::time::Duration;

use switchboard_teamfile::TeamFile;

use super::run::say_all;
use crate::args;
use crate::audience::{Audience as _, JsonLines};
use crate::conversation::{Conversation, Desk};
use crate::event::{Event, Line};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::screen::style::{BOLD, DIM, Language, Look};
use crate::screen::wrap::wrapped;
use crate::session::Kept;
use crate::signals::Signals;
use crate::teams;

pub(super) async fn run(args: &args::Demo, look: Look) -> Result<Exit, Failure> {
    let demo = teams::demo(look.language);
    let file = TeamFile::within(demo.team)?;
    let open = file.opening().model("offline").open()?;
    let desk = Desk::of(file.path(), &open);
    play(desk, &demo.lines, args, look).await
}

/// Plays a conversation by itself.
async fn play(desk: Desk, lines: &[&str], args: &args::Demo, look: Look) -> Result<Exit, Failure> {
    let mut conversation = Conversation::new(desk, Kept::in_memory(), None, None).await?;
    let mut signals = Signals::listen()?;
    if args.json {
        let mut told = JsonLines(io::stdout());
        return say_all(&mut conversation, lines, &mut told, &mut signals).await;
    }
    let mut out = anstream::stdout();
    let (before, after) = around(look.language);
    let before = look.paint(DIM, &wrapped(before, look.width, 0, 0));
    writeln!(out, "{before}\n")?;
    let mut screen = Screen::of_stdout(look);
    let exit = if args.slowly {
        say_slowly(&mut conversation, lines, &mut screen, &mut signals).await?
    } else {
        say_all(&mut conversation, lines, &mut screen, &mut signals).await?
    };
    if exit == Exit::Ok {
        writeln!(out, "\n{}", look.paint(BOLD, after.0))?;
        for line in after.1 {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(exit)
}

/// Says one message after the other, and shows what comes of each as fast as people read.
async fn say_slowly(
    conversation: &mut Conversation,
    messages: &[&str],
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    for message in messages {
        let mut told: Vec<Line> = Vec::new();
        let exit = say_all(conversation, &[message], &mut told, signals).await?;
        for line in &told {
            tokio::select! {
                () = tokio::time::sleep(pause_before(&line.event)) => screen.told(line)?,
                signal = signals.next() => {
                    // What comes next does not stand behind half a sentence.
                    writeln!(io::stdout())?;
                    return Ok(signal.exit());
                }
            }
        }
        if exit != Exit::Ok {
            return Ok(exit);
        }
    }
    Ok(Exit::Ok)
}

/// How long it takes to read what stood there before.
fn pause_before(event: &Event) -> Duration {
    Duration::from_millis(match event {
        Event::RunStarted { .. } => 1500,
        Event::Handoff { .. } => 1000,
        Event::ToolCalled { .. } => 800,
        Event::ToolOutput { .. } => 600,
        Event::TextDelta { .. } => 70,
        _ => 0,
    })
}

/// What stands before the conversation, and what to try after it.
fn around(language: Language) -> (&'static str, (&'static str, [&'static str; 2])) {
    match language {
        Language::En => (
            "A customer talks to a support team. Everything runs on the offline model, which is part \
             of this program: no key, no network.",
            (
                "Now yours:",
                [
                    "switchboard init my-team",
                    "switchboard chat my-team/team.toml",
                ],
            ),
        ),
        Language::Zh => (
            "一位客户正在和客服团队对话。全部由本程序自带的离线模型完成：不需要密钥，不需要网络。",
            (
                "轮到你了：",
                [
                    "switchboard init my-team --lang zh",
                    "switchboard chat my-team/team.toml --lang zh",
                ],
            ),
        ),
    }
}
