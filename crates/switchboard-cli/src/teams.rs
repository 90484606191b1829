//! The teams that are part of the program.

use crate::screen::style::Language;

/// Files by name, the team file first.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// The customer-support team that `init` writes: the team file, the files it names, and its tests.
pub(crate) fn support(language: Language) -> Files {
    match language {
        Language::En => &[
            ("team.toml", include_str!("teams/support.toml")),
            ("cases.toml", include_str!("teams/cases.toml")),
        ],
        Language::Zh => &[
            ("team.toml", include_str!("teams/support.zh.toml")),
            ("cases.toml", include_str!("teams/cases.zh.toml")),
        ],
    }
}

/// A conversation to show.
pub(crate) struct Demo {
    /// The team.
    pub(crate) team: Files,
    /// What the customer says.
    pub(crate) lines: Vec<&'static str>,
}

/// The conversation that the program shows by itself, with the team that `init` writes.
pub(crate) fn demo(language: Language) -> Demo {
    let lines = match language {
        Language::En => include_str!("teams/demo.txt"),
        Language::Zh => include_str!("teams/demo.zh.txt"),
    };
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    Demo {
        team: support(language),
        lines: lines.collect(),
    }
}
