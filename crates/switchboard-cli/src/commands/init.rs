//! `switchboard init`: writes a team to start from.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use switchboard_teamfile::TeamFile;

use crate::args;
use crate::atomic_write;
use crate::embedded_teams;
use crate::failure::{Exit, Failure};
use crate::screen::style::{BOLD, Look};
use crate::shell::quoted;

pub(super) fn run(args: &args::Init, look: Look, out: &mut impl Write) -> Result<Exit, Failure> {
    // The first line of the team file names it, for editors.
    let schema = format!("{:#}\n", TeamFile::schema());
    let files: Vec<(PathBuf, &[u8])> = embedded_teams::support(look.language)
        .iter()
        .copied()
        .chain([("team.schema.json", &*schema)])
        .map(|(name, text)| (args.dir.join(name), text.as_bytes()))
        .collect();
    let existing: Vec<String> = files
        .iter()
        .filter(|(path, _)| atomic_write::exists(path))
        .map(|(path, _)| path.display().to_string())
        .collect();
    if !existing.is_empty() && !args.force {
        return Err(Failure::usage(
            format!(
                "already there: {}; nothing was written",
                existing.join(", ")
            ),
            "name another folder, as in `switchboard init my-team`, or write over it with --force",
        ));
    }
    fs::create_dir_all(&args.dir).map_err(|error| Failure::unwritable(&args.dir, &error))?;
    atomic_write::write(&files)?;
    for (path, _) in &files {
        let wrote = look.language.choose("wrote", "已写入");
        writeln!(out, "{wrote} {}", path.display())?;
    }
    next_steps(args, look, out)?;
    Ok(Exit::Ok)
}

fn next_steps(args: &args::Init, look: Look, out: &mut impl Write) -> io::Result<()> {
    let (title, message, lang) = look.language.choose(
        ("Next:", "My bill is wrong", ""),
        ("接下来：", "我的账单有问题", " --lang zh"),
    );
    let at = |name: &str| quoted(&args.dir.join(name));
    let (team, cases) = (at("team.toml"), at("cases.toml"));
    writeln!(out, "\n{}", look.paint(BOLD, title))?;
    writeln!(out, "  switchboard run {team} \"{message}\"{lang}")?;
    writeln!(out, "  switchboard chat {team}{lang}")?;
    writeln!(out, "  switchboard test {team} {cases}{lang}")
}
