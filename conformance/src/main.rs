//! `conformance DIR` runs the corpus in a folder and prints the cases that fail.

use std::path::PathBuf;
use std::process::ExitCode;

use conformance::corpus::{self, Options, Protocol, RunAs};

const USAGE: &str = "usage: conformance DIR [CASE] [--wire responses|chat] [--durable]

Runs the corpus in DIR (laid out as cases/FORMAT.md says), or only the cases whose name contains
CASE. With --wire, a scenario's model is an HTTP client of a fake provider that replies from the
script and rejects requests that the API would reject. With --durable, scenarios are durable runs, and
their results are made again from their journals. Prints a line for each case that fails, with
the first difference, and ends with `N passed, M failed`. Exits with 1 if a case failed, with 2 if
the corpus cannot be read.";

/// The parsed command line.
struct Arguments {
    folder: PathBuf,
    only: Option<String>,
    wire: Option<Protocol>,
    run_as: RunAs,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["-h"] || arguments == ["--help"] {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(arguments) = parse(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let options = Options {
        only: arguments.only.as_deref(),
        wire: arguments.wire,
        run_as: arguments.run_as,
    };
    match corpus::run(&arguments.folder, options, &mut |failure| {
        println!("{failure}")
    }) {
        Ok(tally) => {
            for skip in &tally.skips {
                println!("skipped: {skip}");
            }
            println!("{tally}");
            ExitCode::from(u8::from(tally.failed > 0))
        }
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Parses the command line. Returns `None` if it is invalid.
fn parse(mut arguments: Vec<String>) -> Option<Arguments> {
    let mut wire = None;
    if let Some(at) = arguments.iter().position(|argument| argument == "--wire") {
        wire = Some(match arguments.get(at + 1)?.as_str() {
            "responses" => Protocol::Responses,
            "chat" => Protocol::Chat,
            _ => return None,
        });
        arguments.drain(at..at + 2);
    }
    let mut run_as = RunAs::Usual;
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument == "--durable")
    {
        run_as = RunAs::Durable;
        arguments.remove(at);
    }
    let mut arguments = arguments.into_iter();
    let folder = arguments.next().filter(|folder| !folder.starts_with('-'))?;
    let only = arguments.next();
    arguments.next().is_none().then(|| Arguments {
        folder: folder.into(),
        only,
        wire,
        run_as,
    })
}
