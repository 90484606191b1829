//! `switchboard check`: reports the problems of a team file.

use std::io::Write;

use switchboard_teamfile::{Problems, Severity, TeamFile};

use crate::args;
use crate::failure::{Exit, Failure};
use crate::screen::style::{Colours, GOOD, Look};

pub(super) fn run(args: &args::Check, look: Look, out: &mut impl Write) -> Result<Exit, Failure> {
    let problems = match TeamFile::read(&args.team) {
        Ok(file) => file.check(),
        Err(problems) => problems,
    };
    let threshold = if args.strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let exit = match problems.worst() {
        Some(worst) if worst >= threshold => Exit::Failed,
        _ => Exit::Ok,
    };
    if args.json {
        for problem in problems.iter() {
            let line = serde_json::to_string(problem).map_err(std::io::Error::from)?;
            writeln!(out, "{line}")?;
        }
        return Ok(exit);
    }
    if problems.is_empty() {
        let ok = look.paint(GOOD, "ok");
        writeln!(out, "{ok}: {} has no problems", args.team.display())?;
        return Ok(exit);
    }
    let text = match look.colours {
        Colours::On => format!("{problems:#}"),
        Colours::Off => problems.to_string(),
    };
    writeln!(out, "{}\n\n{}", text.trim_end(), counts(&problems))?;
    Ok(exit)
}

/// Counts problems: `2 errors, 1 warning`.
fn counts(problems: &Problems) -> String {
    let kinds = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let counts = kinds.into_iter().filter_map(|(severity, word)| {
        let count = problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count();
        match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            count => Some(format!("{count} {word}s")),
        }
    });
    counts.collect::<Vec<_>>().join(", ")
}
