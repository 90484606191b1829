//! `switchboard graph`: draws a team.

use std::io::Write;

use switchboard_teamfile::TeamFile;

use crate::args::{self, GraphFormat};
use crate::failure::{Exit, Failure};

pub(super) fn run(args: &args::Graph, out: &mut impl Write) -> Result<Exit, Failure> {
    // The team is not opened: a drawing needs neither its models nor its secrets.
    let file = TeamFile::read(&args.team)?;
    let graph = file.team().graph();
    let drawn = match args.format {
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Dot => graph.to_dot(),
    };
    out.write_all(drawn.as_bytes())?;
    out.flush()?;
    Ok(Exit::Ok)
}
