//! The program `switchboard`.
//!
//! A [conversation](conversation::Conversation) writes the events of its runs to an
//! [`EventSink`](event_sink::EventSink): the [screen](screen::Screen), or lines of JSON.

mod approvals;
mod args;
mod atomic_write;
mod commands;
mod conversation;
mod conversation_store;
mod data_folder;
mod embedded_teams;
mod event_line;
mod event_sink;
mod failure;
mod input;
mod line_reader;
mod loaded_team;
mod run_error;
mod screen;
mod shell;
mod signals;
mod store_keys;
mod trace_file;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Cli;
use failure::{Exit, Failure};
use screen::style::{BAD, BOLD, Color, Colours, Look};

fn main() -> ExitCode {
    let cli = match parse_args(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed output is not an error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                Exit::Usage.code()
            } else {
                Exit::Ok.code()
            });
        }
    };
    let look = Look::of_stderr(cli.lang);
    let exit = match commands::run(cli) {
        Ok(exit) => exit,
        Err(failure) => {
            print_failure(&failure, look);
            failure.exit()
        }
    };
    ExitCode::from(exit.code())
}

/// Parses the command line. Colours are chosen first, as help has some as well.
fn parse_args(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let color = requested_colour(&args);
    color.choose();
    let choice = match color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let matches = Cli::command().color(choice).try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

fn requested_colour(args: &[OsString]) -> Color {
    let mut args = args.iter().filter_map(|arg| arg.to_str());
    let value = args
        .find_map(|arg| match arg {
            "--color" => Some(None),
            arg => arg.strip_prefix("--color=").map(Some),
        })
        .and_then(|value| value.or_else(|| args.next()));
    match value {
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        _ => Color::Auto,
    }
}

/// Prints a failure on standard error.
fn print_failure(failure: &Failure, look: Look) {
    let text = match failure {
        Failure::BrokenPipe => return,
        Failure::Problems(problems) => match look.colours {
            Colours::On => format!("{problems:#}"),
            Colours::Off => problems.to_string(),
        },
        Failure::Message { message, help, .. } => {
            let error = look.paint(BAD, "error:");
            let message = screen::wrap::wrapped(message, look.width, 7, 7);
            let help = help.as_ref().map(|help| {
                let label = look.paint(BOLD, "help:");
                let help = screen::wrap::wrapped(help, look.width, 8, 8);
                format!("\n  {label} {help}")
            });
            format!("{error} {message}{}", help.unwrap_or_default())
        }
    };
    // A closed standard error is no reason to fail.
    let _ = writeln!(anstream::stderr(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

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
