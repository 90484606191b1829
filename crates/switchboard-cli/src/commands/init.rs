//! `switchboard init`: a team to start from.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use switchboard_teamfile::TeamFile;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::screen::style::{BOLD, Language, Look};
use crate::teams;

pub(super) fn run(args: &args::Init, look: Look, out: &mut impl Write) -> Result<Exit, Failure> {
    // What the team file's first line names: with it editors complete and check the file.
    let schema = format!("{:#}\n", TeamFile::schema());
    let files = teams::support(look.language).iter().copied();
    let files: Vec<(&str, &str)> = files.chain([("team.schema.json", &*schema)]).collect();
    let there: Vec<PathBuf> = files.iter().map(|(name, _)| args.dir.join(name)).collect();
    let in_the_way: Vec<String> = there
        .iter()
        .filter(|path| path.symlink_metadata().is_ok())
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
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| Failure::unwritable(&path, &error)
    };
    fs::create_dir_all(&args.dir).map_err(unwritable(&args.dir))?;
    for (path, (_, text)) in there.iter().zip(&files) {
        fs::write(path, text).map_err(unwritable(path))?;
    }
    for path in &there {
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

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path).display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-\\:".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_a_shell_reads_them() {
        assert_eq!(quoted(Path::new("./team.toml")), "team.toml");
        assert_eq!(quoted(Path::new("my team/a.toml")), "'my team/a.toml'");
        assert_eq!(quoted(Path::new("团队/team.toml")), "团队/team.toml");
    }
}
