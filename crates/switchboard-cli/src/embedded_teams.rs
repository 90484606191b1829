//! The teams that are embedded in the program.

use crate::screen::style::Language;

/// The names and texts of files, the team file first.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// Embeds files of a folder of `teams`.
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

/// The words of the caller in `switchboard talk --offline`. Speech is recognised in English only.
pub(crate) fn spoken_demo() -> Vec<&'static str> {
    include_str!("teams/en/talk.txt").lines().collect()
}

/// A conversation to play.
pub(crate) struct Demo {
    /// The team.
    pub(crate) team: Files,
    /// The customer's messages.
    pub(crate) messages: Vec<&'static str>,
}

/// The conversation of `switchboard demo`, with the team that `init` writes.
pub(crate) fn demo(language: Language) -> Demo {
    let text = language.choose(
        include_str!("teams/en/demo.txt"),
        include_str!("teams/zh/demo.txt"),
    );
    Demo {
        team: support(language),
        messages: text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect(),
    }
}
