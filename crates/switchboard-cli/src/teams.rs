//! The teams that are part of the program.

use crate::screen::style::Language;

/// Files by name, the team file first.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// The files of a folder within `teams`.
macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("teams/", $folder, "/", $name)))),*]
    };
}

/// The customer-support team that `init` writes: the team file, the files it names, and its tests.
pub(crate) fn support(language: Language) -> Files {
    match language {
        Language::En => files!("en": "team.toml", "billing.md", "technical.md", "sales.md",
            "escalation.json", "invoices.toml", "regions.toml", "cases.toml"),
        Language::Zh => files!("zh": "team.toml", "billing.md", "technical.md", "sales.md",
            "escalation.json", "invoices.toml", "regions.toml", "cases.toml"),
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
        Language::En => include_str!("teams/en/demo.txt"),
        Language::Zh => include_str!("teams/zh/demo.txt"),
    };
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    Demo {
        team: support(language),
        lines: lines.collect(),
    }
}
