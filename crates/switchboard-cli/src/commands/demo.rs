//! `switchboard demo`, and `switchboard` alone: a whole conversation on the offline model.

use std::io::{self, Write as _};

use switchboard_teamfile::TeamFile;

use super::run::say_all;
use crate::args;
use crate::audience::JsonLines;
use crate::conversation::{Conversation, Desk};
use crate::failure::{Exit, Failure};
use crate::kept::Kept;
use crate::screen::Screen;
use crate::screen::style::{BOLD, DIM, Language, Look};
use crate::screen::wrap::wrapped;
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
    let exit = say_all(&mut conversation, lines, &mut screen, &mut signals).await?;
    if exit == Exit::Ok {
        writeln!(out, "\n{}", look.paint(BOLD, after.0))?;
        for line in after.1 {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(exit)
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
