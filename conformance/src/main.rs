//! `conformance DIR` runs the corpus in a folder and says which cases fail.

use std::path::PathBuf;
use std::process::ExitCode;

use conformance::corpus::{self, Plan, Protocol};

const USAGE: &str = "usage: conformance DIR [CASE] [--wire responses|chat]

Runs the corpus in DIR (laid out as cases/FORMAT.md says), or only the cases whose name contains
CASE. With --wire, a scenario's model is a client of a provider that answers from the script, and
that refuses what the API would refuse. Prints a line for each case that fails, with the first
difference, and closes with `N passed, M failed`. Exits with 1 where a case failed, with 2 where the
corpus cannot be read.";

/// What the program was asked to do.
struct Asked {
    folder: PathBuf,
    only: Option<String>,
    wire: Option<Protocol>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["-h"] || arguments == ["--help"] {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(asked) = read(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let plan = Plan {
        only: asked.only.as_deref(),
        wire: asked.wire,
    };
    match corpus::run(&asked.folder, plan, &mut |failure| println!("{failure}")) {
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

/// `None` where the arguments make no sense.
fn read(mut arguments: Vec<String>) -> Option<Asked> {
    let mut wire = None;
    if let Some(at) = arguments.iter().position(|argument| argument == "--wire") {
        wire = Some(match arguments.get(at + 1)?.as_str() {
            "responses" => Protocol::Responses,
            "chat" => Protocol::Chat,
            _ => return None,
        });
        arguments.drain(at..at + 2);
    }
    let mut words = arguments.into_iter();
    let (folder, only) = (words.next()?, words.next());
    let is_over = words.next().is_none();
    (is_over && !folder.starts_with('-')).then(|| Asked {
        folder: folder.into(),
        only,
        wire,
    })
}
