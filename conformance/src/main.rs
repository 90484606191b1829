//! `conformance DIR` runs the corpus in a folder and says which cases fail.

use std::path::PathBuf;
use std::process::ExitCode;

use conformance::corpus;

const USAGE: &str = "usage: conformance DIR [CASE]

Runs the corpus in DIR (laid out as cases/FORMAT.md says), or only the cases whose name contains
CASE. Prints a line for each case that fails, with the first difference, and closes with
`N passed, M failed`. Exits with 1 where a case failed, with 2 where the corpus cannot be read.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, only) = match arguments.as_slice() {
        [help] if help == "-h" || help == "--help" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [folder] if !folder.starts_with('-') => (PathBuf::from(folder), None),
        [folder, only] if !folder.starts_with('-') => (PathBuf::from(folder), Some(only.as_str())),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match corpus::run(&folder, only, &mut |failure| println!("{failure}")) {
        Ok(tally) => {
            if let Some(reason) = &tally.skip_reason {
                println!("skipped: {reason}");
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
