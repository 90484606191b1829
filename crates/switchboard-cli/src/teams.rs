//! The teams that are part of the program.

use crate::screen::style::Language;

/// A file that `init` writes.
pub(crate) struct File {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is in it.
    pub(crate) text: &'static str,
}

/// The customer-support team that `init` writes, with its tests.
pub(crate) fn support(language: Language) -> [File; 2] {
    let (team, cases) = match language {
        Language::En => (
            include_str!("teams/support.toml"),
            include_str!("teams/cases.toml"),
        ),
        Language::Zh => (
            include_str!("teams/support.zh.toml"),
            include_str!("teams/cases.zh.toml"),
        ),
    };
    [
        File {
            name: "team.toml",
            text: team,
        },
        File {
            name: "cases.toml",
            text: cases,
        },
    ]
}

/// A conversation to show.
pub(crate) struct Demo {
    /// The team's file.
    pub(crate) team: &'static str,
    /// What the customer says.
    pub(crate) lines: Vec<&'static str>,
}

/// The conversation that the program shows by itself: the team that `init` writes, and a line of a
/// customer's each.
pub(crate) fn demo(language: Language) -> Demo {
    let [team, _] = support(language);
    let lines = match language {
        Language::En => include_str!("teams/demo.txt"),
        Language::Zh => include_str!("teams/demo.zh.txt"),
    };
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    Demo {
        team: team.text,
        lines: lines.collect(),
    }
}
