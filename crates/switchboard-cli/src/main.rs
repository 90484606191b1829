//! The program `switchboard`.
//!
//! A [conversation](conversation::Conversation) writes the events of its runs to an
//! [`EventSink`](event_sink::EventSink): the [screen](screen::Screen), or lines of JSON.

mod approvals;
mod args;
mod atomic_write;
mod bounded_read;
mod commands;
mod conversation;
mod conversation_store;
mod data_folder;
mod durable;
mod embedded_teams;
mod event_line;
mod event_sink;
mod failure;
mod input;
mod json_error;
mod library_advice;
mod line_reader;
mod loaded_team;
mod recording;
mod run_error;
mod screen;
mod shell;
mod signals;
mod store_keys;
mod trace_file;
mod transcript;
mod translate;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Cli;
use failure::{Exit, Failure};
use screen::style::{Color, Language, Look};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let language = requested_language(&args, |name| std::env::var(name).ok());
    let cli = match parse_args(args, language) {
        Ok(cli) => cli,
        Err(error) => {
            return ExitCode::from(print_parsed(&error, language).code());
        }
    };
    let look = Look::of_stderr(language);
    let exit = match commands::run(cli, language) {
        Ok(exit) => exit,
        Err(failure) => {
            print_failure(&failure, look);
            failure.exit()
        }
    };
    ExitCode::from(exit.code())
}

/// Prints help, the version or an error of the command line.
fn print_parsed(error: &clap::Error, language: Language) -> Exit {
    let printed = match translate::error_text(error, language) {
        Some(text) => anstream::stderr().write_all(text.as_bytes()),
        None => error.print().and_then(|()| std::io::stdout().flush()),
    };
    match printed {
        // A closed standard error is no reason to fail.
        _ if error.use_stderr() => Exit::Usage,
        Ok(()) => Exit::Ok,
        Err(unwritten) => {
            let failure = Failure::from(unwritten);
            print_failure(&failure, Look::of_stderr(language));
            failure.exit()
        }
    }
}

/// Parses the command line. Colours are chosen first, as help has some as well.
fn parse_args(args: Vec<OsString>, language: Language) -> Result<Cli, clap::Error> {
    let color = requested_colour(&args);
    color.choose();
    let choice = match color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let command = translate::localized(Cli::command(), language);
    let matches = command.color(choice).try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// The value of an option, before the command line is parsed.
fn option_value<'a>(args: &'a [OsString], name: &str) -> Option<&'a str> {
    let mut args = args.iter().filter_map(|arg| arg.to_str());
    args.find_map(|arg| match arg.strip_prefix(name)? {
        "" => Some(None),
        rest => rest.strip_prefix('=').map(Some),
    })
    .and_then(|value| value.or_else(|| args.next()))
}

/// The language of `--lang`, or else of the environment.
fn requested_language(args: &[OsString], var: impl Fn(&str) -> Option<String>) -> Language {
    match option_value(args, "--lang") {
        Some("zh") => return Language::Zh,
        Some(_) => return Language::En,
        None => {}
    }
    // The first that is set counts, as in POSIX.
    let variables = ["LC_ALL", "LC_MESSAGES", "LANG"];
    let locale = variables
        .into_iter()
        .filter_map(var)
        .find(|value| !value.is_empty());
    match locale {
        Some(locale) if locale.starts_with("zh") => Language::Zh,
        _ => Language::En,
    }
}

fn requested_colour(args: &[OsString]) -> Color {
    match option_value(args, "--color") {
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        _ => Color::Auto,
    }
}

/// Prints a failure on standard error.
fn print_failure(failure: &Failure, look: Look) {
    if !matches!(failure, Failure::BrokenPipe) {
        // A closed standard error is no reason to fail.
        let _ = writeln!(anstream::stderr(), "{}", failure.drawn(look));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_of_the_option_or_of_the_environment() {
        let language = |args: &[&str], vars: &[(&str, &str)]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            requested_language(&args, |name| {
                let found = vars.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let chinese = [("LANG", "zh_CN.UTF-8")];
        assert_eq!(language(&["s"], &[]), Language::En);
        assert_eq!(language(&["s"], &chinese), Language::Zh);
        assert_eq!(language(&["s", "--lang", "en"], &chinese), Language::En);
        assert_eq!(language(&["s", "--lang=zh"], &[]), Language::Zh);
        let both = [("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C.UTF-8")];
        assert_eq!(language(&["s"], &both), Language::En);
    }

    #[test]
    fn the_option_for_colours_is_found_before_parsing() {
        let requested = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            requested_colour(&args)
        };
        assert_eq!(
            requested(&["switchboard", "--color", "never", "--help"]),
            Color::Never
        );
        assert_eq!(
            requested(&["switchboard", "run", "--color=always"]),
            Color::Always
        );
        assert_eq!(requested(&["switchboard", "--help"]), Color::Auto);
    }
}
