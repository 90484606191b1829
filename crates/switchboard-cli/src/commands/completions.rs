//! `switchboard completions`: prints completions for a shell.

use std::io::Write;

use clap::CommandFactory as _;

use crate::args::{self, Cli};
use crate::failure::{Exit, Failure};

pub(super) fn run(args: &args::Completions, out: &mut impl Write) -> Result<Exit, Failure> {
    // The generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "switchboard", &mut script);
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Ok)
}
