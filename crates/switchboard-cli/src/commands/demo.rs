//! `switchboard demo`, and `switchboard` alone: a whole conversation on the offline model.

use std::io::{self, Write as _};
use std::time::Duration;

use switchboard_core::EventKind;
use switchboard_teamfile::TeamFile;

use super::run::Messenger;
use crate::approvals::Approvals;
use crate::args;
use crate::conversation::Conversation;
use crate::conversation_store::ConversationStore;
use crate::embedded_teams;
use crate::event_line::EventLine;
use crate::event_sink::{EventSink as _, JsonLines};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::Screen;
use crate::screen::style::{BOLD, DIM, Language, Look};
use crate::screen::wrap::wrapped;
use crate::signals::Signals;

pub(super) async fn run(args: &args::Demo, look: Look) -> Result<Exit, Failure> {
    let demo = embedded_teams::demo(look.language);
    let file = TeamFile::from_embedded(demo.team)?;
    let open = file.open_options().model("offline").open()?;
    let team = LoadedTeam::new(file.path(), open);
    let mut screen = Screen::of_stdout(look, team.names());
    let store = ConversationStore::in_memory();
    let mut conversation = Conversation::new(team, store, None, None).await?;
    let mut signals = Signals::listen()?;
    let approvals = Approvals::none(look);
    if args.json {
        let mut lines = JsonLines::new(io::stdout(), look.language);
        let mut messenger = Messenger::new(&mut conversation, &approvals, &mut lines, &mut signals);
        return messenger.send_all(&demo.messages).await;
    }
    let mut out = anstream::stdout();
    let (introduction, (title, commands)) = introduction_and_next_steps(look.language);
    let introduction = wrapped(introduction, look.width, 0, 0);
    writeln!(out, "{}\n", look.paint(DIM, &introduction))?;
    let exit = if args.slowly {
        let messages = &demo.messages;
        send_slowly(
            &mut conversation,
            &approvals,
            messages,
            &mut screen,
            &mut signals,
        )
        .await?
    } else {
        let mut messenger =
            Messenger::new(&mut conversation, &approvals, &mut screen, &mut signals);
        messenger.send_all(&demo.messages).await?
    };
    if exit == Exit::Ok {
        writeln!(out, "\n{}", look.paint(BOLD, title))?;
        for command in commands {
            writeln!(out, "  {command}")?;
        }
    }
    Ok(exit)
}

/// Sends one message after the other, and draws each run at the speed of reading.
async fn send_slowly(
    conversation: &mut Conversation,
    approvals: &Approvals,
    messages: &[&str],
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    for message in messages {
        let mut lines: Vec<EventLine> = Vec::new();
        let mut messenger = Messenger::new(conversation, approvals, &mut lines, signals);
        let exit = messenger.send_all(&[message]).await?;
        for line in &lines {
            tokio::select! {
                () = tokio::time::sleep(pause_before(&line.event.kind)) => screen.write(line)?,
                signal = signals.next() => {
                    // The shell's prompt must not follow half a sentence.
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

/// The time to read the text before an event.
fn pause_before(event: &EventKind) -> Duration {
    Duration::from_millis(match event {
        EventKind::RunStarted { .. } => 1500,
        EventKind::Handoff(_) => 1000,
        EventKind::ToolStarted { .. } => 800,
        EventKind::ToolEnded { .. } => 600,
        EventKind::TextDelta { .. } => 70,
        _ => 0,
    })
}

/// The text before the conversation, and the commands to try after it.
fn introduction_and_next_steps(
    language: Language,
) -> (&'static str, (&'static str, [&'static str; 2])) {
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
