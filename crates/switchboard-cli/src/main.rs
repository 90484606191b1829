//! The program `switchboard`.
//!
//! A command makes [events](event::Event) of a conversation and gives them to an
//! [audience](audience::Audience): the [screen](screen::Screen), or a machine that reads JSON.

mod args;
mod atomic_write;
mod audience;
mod commands;
mod conversation;
mod data_folder;
mod event;
mod failure;
mod input;
mod open;
mod run_error;
mod screen;
mod session;
mod shell;
mod signals;
mod teams;
mod trace_file;
mod watch;

#[cfg(test)]
mod test_support;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Cli;
use failure::{Exit, Failure};
use screen::style::{BAD, BOLD, Color, Colours, Look};

fn main() -> ExitCode {
    let cli = match parsed(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, mistakes to standard error. Nobody may be reading.
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
            complain(&failure, look);
            failure.exit()
        }
    };
    ExitCode::from(exit.code())
}

/// The command line. Colours are chosen first, as help has some as well.
fn parsed(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let color = colour_asked_for(&args);
    color.choose();
    let choice = match color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let matches = Cli::command().color(choice).try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

fn colour_asked_for(args: &[OsString]) -> Color {
    let mut args = args.iter().filter_map(|arg| arg.to_str());
    let asked = args.find_map(|arg| match arg {
        "--color" => Some(None),
        arg => arg.strip_prefix("--color=").map(Some),
    });
    let asked = asked.and_then(|given| given.or_else(|| args.next()));
    match asked {
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        _ => Color::Auto,
    }
}

/// Says on standard error why a command could not do its work.
fn complain(failure: &Failure, look: Look) {
    let text = match failure {
        Failure::NobodyReads => return,
        Failure::Problems(problems) => match look.colours {
            Colours::On => format!("{problems:#}"),
            Colours::Off => problems.to_string(),
        },
        Failure::Said { message, help, .. } => {
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
    // Nothing can be done where nobody reads standard error.
    let _ = writeln!(anstream::stderr(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colours_of_help_are_those_that_were_asked_for() {
        let asked = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            colour_asked_for(&args)
        };
        assert_eq!(
            asked(&["switchboard", "--color", "never", "--help"]),
            Color::Never
        );
        assert_eq!(
            asked(&["switchboard", "run", "--color=always"]),
            Color::Always
        );
        assert_eq!(asked(&["switchboard", "--help"]), Color::Auto);
    }
}
