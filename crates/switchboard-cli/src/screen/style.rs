//! The width, the colours and the language of the output.

use std::io;

use anstream::AutoStream;
use anstream::stream::RawStream;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use switchboard_teamfile::Problems;

use crate::translate::translate;

/// The use of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that shows them, unless NO_COLOR says otherwise; or where CLICOLOR_FORCE asks.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Sets the choice for the whole program.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// The language of labels and of the embedded teams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Language {
    /// Returns the value for this language.
    pub(crate) fn choose<T>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }
}

/// The properties of an output that text is formatted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// The width in columns; `None` if lines are not wrapped.
    pub(crate) width: Option<usize>,
    /// The use of colours.
    pub(crate) colours: Colours,
    /// The language of the labels.
    pub(crate) language: Language,
}

/// The use of colours, decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// Text is coloured.
    On,
    /// Text is not coloured.
    Off,
}

impl Look {
    /// The look of standard output.
    pub(crate) fn of_stdout(language: Language) -> Self {
        Self::of(&io::stdout(), language)
    }

    /// The look of standard error.
    pub(crate) fn of_stderr(language: Language) -> Self {
        Self::of(&io::stderr(), language)
    }

    fn of(stream: &impl RawStream, language: Language) -> Self {
        Self {
            width: width(stream.is_terminal()),
            colours: match AutoStream::choice(stream) {
                anstream::ColorChoice::Never => Colours::Off,
                _ => Colours::On,
            },
            language,
        }
    }

    /// Formats the problems of a file.
    pub(crate) fn problems(&self, problems: &Problems) -> String {
        let problems = problems.translated(|text| translate(text, self.language).into_owned());
        match self.colours {
            Colours::On => format!("{problems:#}"),
            Colours::Off => problems.to_string(),
        }
    }

    /// Returns the text in this style, if colours are on.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        match self.colours {
            Colours::On if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

/// The terminal's width, or else the variable `COLUMNS`.
fn width(is_terminal: bool) -> Option<usize> {
    let measured = is_terminal.then(terminal_size::terminal_size).flatten();
    if let Some((terminal_size::Width(columns), _)) = measured.filter(|(width, _)| width.0 > 0) {
        return Some(usize::from(columns));
    }
    let set = std::env::var("COLUMNS").ok()?.parse().ok();
    set.filter(|columns| *columns > 0)
        .or(is_terminal.then_some(80))
}

/// For less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// For emphasis.
pub(crate) const BOLD: Style = Style::new().bold();
/// For errors.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// For success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// For warnings.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// For the name of the user.
pub(crate) const USER: Style = Style::new().bold();

/// The style of an agent's name, by its position in the team.
pub(crate) fn of_agent(position: usize) -> Style {
    const COLOURS: [AnsiColor; 6] = [
        AnsiColor::Cyan,
        AnsiColor::Magenta,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::BrightCyan,
    ];
    COLOURS[position % COLOURS.len()].on_default().bold()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_if_colours_are_on() {
        let look = |colours| Look {
            width: None,
            colours,
            language: Language::En,
        };
        assert_eq!(look(Colours::Off).paint(BAD, "no"), "no");
        assert_eq!(
            look(Colours::On).paint(BOLD, "yes"),
            "\u{1b}[1myes\u{1b}[0m"
        );
    }
}
