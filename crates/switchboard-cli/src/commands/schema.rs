//! `switchboard schema`: prints the JSON Schema of team files.

use std::io::{self, Write};

use switchboard_teamfile::TeamFile;

use crate::failure::{Exit, Failure};

pub(super) fn run(out: &mut impl Write) -> Result<Exit, Failure> {
    let schema = serde_json::to_string_pretty(TeamFile::schema()).map_err(io::Error::from)?;
    writeln!(out, "{schema}")?;
    out.flush()?;
    Ok(Exit::Ok)
}
