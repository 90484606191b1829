//! Programs of tools that are not on this machine.

use std::path::Path;

use crate::diagnostics::{Problem, Severity};
use crate::document::{Node, steps};
use crate::resolve::ResolvedTeam;
use crate::tools::Action;

/// Returns a warning for each tool whose program cannot be found: by its name in `PATH`, or by its path
/// in the folder of the team file.
pub(crate) fn warnings(
    team: &ResolvedTeam,
    root: &Node,
    folder: &Path,
) -> Vec<(Problem, std::ops::Range<usize>)> {
    let mut warnings = Vec::new();
    for (name, tool) in &team.tools {
        let Action::Command(command) = &tool.action else {
            continue;
        };
        let program = command.program.as_str();
        if exists(program, folder) {
            continue;
        }
        let (message, help) = if program.contains(['/', '\\']) {
            (
                format!("there is no program {program:?} in the folder of the team file"),
                "paths of programs are relative to the team file",
            )
        } else {
            (
                format!("the program {program:?} is not on the PATH"),
                "install it, or give its path; without it the tool fails",
            )
        };
        let problem = Problem::without_file("no-program", message);
        let path = steps!["tools", name, "command", "run", 0];
        let problem = problem.severity(Severity::Warning).help(help);
        warnings.push((problem, root.span_of(path)));
    }
    warnings
}

fn exists(program: &str, folder: &Path) -> bool {
    if program.contains(['/', '\\']) {
        return folder.join(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        is_program(&folder.join(program))
            || cfg!(windows) && is_program(&folder.join(format!("{program}.exe")))
    })
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = path.metadata();
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
