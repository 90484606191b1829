//! `switchboard graph`: a team as a drawing.

use std::io::Write;

use crate::args::{self, GraphFormat};
use crate::failure::{Exit, Failure};
use crate::open;

pub(super) fn run(args: &args::Graph, out: &mut impl Write) -> Result<Exit, Failure> {
    let desk = open::to_look_at(&args.team)?;
    let drawn = match args.format {
        GraphFormat::Mermaid => desk.graph.to_mermaid(),
        GraphFormat::Dot => desk.graph.to_dot(),
    };
    out.write_all(drawn.as_bytes())?;
    out.flush()?;
    Ok(Exit::Ok)
}
