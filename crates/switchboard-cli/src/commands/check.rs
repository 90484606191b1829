//! `switchboard check`: reports the problems of a team file.

use std::io::Write;

use switchboard_teamfile::{Problems, Severity, TeamFile};

use crate::args;
use crate::failure::{Exit, Failure};
use crate::screen::style::{GOOD, Language, Look};

pub(super) fn run(args: &args::Check, look: Look, out: &mut impl Write) -> Result<Exit, Failure> {
    let (problems, is_readable) = match TeamFile::read(&args.team) {
        Ok(file) => (file.check(), true),
        Err(problems) => {
            let is_readable = !problems
                .iter()
                .any(|problem| problem.code == "unreadable-file" && problem.line.is_none());
            (problems, is_readable)
        }
    };
    if !is_readable && !args.json {
        return Err(problems.into());
    }
    let threshold = if args.strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let exit = match problems.worst() {
        _ if !is_readable => Exit::Usage,
        Some(worst) if worst >= threshold => Exit::Failed,
        _ => Exit::Ok,
    };
    if args.json {
        for problem in problems.iter() {
            // For machines, in one language.
            let line = serde_json::to_string(problem).map_err(std::io::Error::from)?;
            writeln!(out, "{line}")?;
        }
        return Ok(exit);
    }
    if problems.is_empty() {
        let ok = look.paint(GOOD, "ok");
        let none = look.language.choose("has no problems", "没有问题");
        writeln!(out, "{ok}: {} {none}", args.team.display())?;
        return Ok(exit);
    }
    let text = look.problems(&problems);
    let counts = counts(&problems, look.language);
    writeln!(out, "{}\n\n{counts}", text.trim_end())?;
    Ok(exit)
}

/// Counts problems: `2 errors, 1 warning`.
fn counts(problems: &Problems, language: Language) -> String {
    let kinds = [
        (Severity::Error, "error", "个错误"),
        (Severity::Warning, "warning", "个警告"),
        (Severity::Note, "note", "个提示"),
    ];
    let counts = kinds.into_iter().filter_map(|(severity, word, chinese)| {
        let count = problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count();
        match count {
            0 => None,
            count if language == Language::Zh => Some(format!("{count} {chinese}")),
            1 => Some(format!("1 {word}")),
            count => Some(format!("{count} {word}s")),
        }
    });
    counts.collect::<Vec<_>>().join(", ")
}
