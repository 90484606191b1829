//! `switchboard graph`: draws a team.

mod tree;

use std::io::{self, IsTerminal as _, Write};

use switchboard_teamfile::TeamFile;

use crate::args::{self, GraphFormat};
use crate::failure::{Exit, Failure};
use crate::screen::style::Look;

pub(super) use tree::write as write_tree;

pub(super) fn run(
    args: &args::Graph,
    look: Look,
    out: &mut (impl Write + ?Sized),
) -> Result<Exit, Failure> {
    // The team is not opened: a drawing needs neither its models nor its secrets.
    let file = TeamFile::read(&args.team)?;
    let graph = file.team().graph();
    let format = args.format.unwrap_or_else(|| {
        if io::stdout().is_terminal() {
            GraphFormat::Text
        } else {
            GraphFormat::Mermaid
        }
    });
    let drawn = match format {
        GraphFormat::Text => {
            write_tree(&graph, look, out)?;
            String::new()
        }
        GraphFormat::Svg => graph.to_svg(),
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Dot => graph.to_dot(),
    };
    out.write_all(drawn.as_bytes())?;
    out.flush()?;
    Ok(Exit::Ok)
}
