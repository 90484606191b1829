//! `switchboard init`: a team to start from.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use switchboard_teamfile::TeamFile;

use crate::args;
use crate::atomic_write;
use crate::failure::{Exit, Failure};
use crate::screen::style::{BOLD, Language, Look};
use crate::shell::quoted;
use crate::teams;

pub(super) fn run(args: &args::Init, look: Look, out: &mut impl Write) -> Result<Exit, Failure> {
    // What the team file's first line names: with it editors complete and check the file.
    let schema = format!("{:#}\n", TeamFile::schema());
    let files = teams::support(look.language).iter().copied();
    let files: Vec<(&str, &str)> = files.chain([("team.schema.json", &*schema)]).collect();
    let there: Vec<PathBuf> = files.iter().map(|(name, _)| args.dir.join(name)).collect();
    let in_the_way: Vec<String> = there
        .iter()
        .filter(|path| atomic_write::is_there(path))
        .map(|path| path.display().to_string())
        .collect();
    if !in_the_way.is_empty() && !args.force {
        return Err(Failure::usage(
            format!(
                "already there: {}; nothing was written",
                in_the_way.join(", ")
            ),
            "name another folder, as in `switchboard init my-team`, or write over it with --force",
        ));
    }
    fs::create_dir_all(&args.dir).map_err(|error| Failure::unwritable(&args.dir, &error))?;
    let texts = files.iter().map(|(_, text)| text.as_bytes());
    let written: Vec<(PathBuf, &[u8])> = there.into_iter().zip(texts).collect();
    atomic_write::write(&written)?;
    for (path, _) in &written {
        let wrote = match look.language {
            Language::En => "wrote",
            Language::Zh => "已写入",
        };
        writeln!(out, "{wrote} {}", path.display())?;
    }
    next_steps(args, look, out)?;
    Ok(Exit::Ok)
}

fn next_steps(args: &args::Init, look: Look, out: &mut impl Write) -> io::Result<()> {
    let (title, message, lang) = match look.language {
        Language::En => ("Next:", "My bill is wrong", ""),
        Language::Zh => ("接下来：", "我的账单有问题", " --lang zh"),
    };
    let at = |name: &str| quoted(&args.dir.join(name));
    let (team, cases) = (at("team.toml"), at("cases.toml"));
    writeln!(out, "\n{}", look.paint(BOLD, title))?;
    writeln!(out, "  switchboard run {team} \"{message}\"{lang}")?;
    writeln!(out, "  switchboard chat {team}{lang}")?;
    writeln!(out, "  switchboard test {team} {cases}{lang}")
}
