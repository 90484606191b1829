//! How the terminal is: its width, whether it shows colours, the language of the reader.

use std::io::{self, IsTerminal as _};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// When to use colours.
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
    /// Makes this the choice of the whole program.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// The language of what the program itself says around a conversation, and of the embedded teams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// How text has to look to be read well where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// The terminal's width in columns; `None` where there is no terminal, and lines are not wrapped.
    pub(crate) width: Option<usize>,
    /// Whether there are colours.
    pub(crate) colours: Colours,
    /// The language of the labels.
    pub(crate) language: Language,
}

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Look {
    /// How standard output has to look.
    pub(crate) fn of_stdout(language: Language) -> Self {
        let stdout = io::stdout();
        let choice = AutoStream::choice(&stdout);
        Self {
            width: width(stdout.is_terminal()),
            colours: Colours::from(choice),
            language,
        }
    }

    /// How standard error has to look.
    pub(crate) fn of_stderr(language: Language) -> Self {
        let stderr = io::stderr();
        let choice = AutoStream::choice(&stderr);
        Self {
            width: width(stderr.is_terminal()),
            colours: Colours::from(choice),
            language,
        }
    }

    /// The text in this style, where there are colours.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        match self.colours {
            Colours::On if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

impl From<anstream::ColorChoice> for Colours {
    fn from(choice: anstream::ColorChoice) -> Self {
        match choice {
            anstream::ColorChoice::Never => Self::Off,
            _ => Self::On,
        }
    }
}

/// The terminal's width; `COLUMNS` sets it where there is no terminal.
fn width(is_terminal: bool) -> Option<usize> {
    let measured = is_terminal.then(terminal_size::terminal_size).flatten();
    if let Some((terminal_size::Width(columns), _)) = measured.filter(|(width, _)| width.0 > 0) {
        return Some(usize::from(columns));
    }
    let set = std::env::var("COLUMNS").ok()?.parse().ok();
    set.filter(|columns| *columns > 0)
        .or(is_terminal.then_some(80))
}

/// Whether something may move on standard error while the user waits.
pub(crate) fn can_animate() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// What is less important.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is more important.
pub(crate) const BOLD: Style = Style::new().bold();
/// What went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What to look at.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// The user.
pub(crate) const USER: Style = Style::new().bold();

/// The style of an agent's name, by its place in the team.
pub(crate) fn of_agent(place: usize) -> Style {
    const COLOURS: [AnsiColor; 6] = [
        AnsiColor::Cyan,
        AnsiColor::Magenta,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::BrightCyan,
    ];
    COLOURS[place % COLOURS.len()].on_default().bold()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_where_there_are_colours() {
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
