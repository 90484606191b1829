//! Opening team files as the command line asks.

use switchboard_teamfile::TeamFile;

use crate::args;
use crate::conversation::Desk;
use crate::failure::Failure;

/// The team of the command line.
pub(crate) fn team(args: &args::Team) -> Result<Desk, Failure> {
    desk(&TeamFile::read(&args.team)?, args, &[])
}

/// A team file that was read, opened as the command line asks, with more of the context set.
pub(crate) fn desk(
    file: &TeamFile,
    args: &args::Team,
    context: &[(String, String)],
) -> Result<Desk, Failure> {
    let mut opening = file.opening();
    if let Some(model) = &args.model {
        opening = opening.model(model);
    }
    if let Some(url) = &args.base_url {
        opening = opening.base_url(url);
    }
    for (key, value) in args.context.iter().chain(context) {
        opening = opening.context(key, value).map_err(|problem| {
            Failure::usage(
                format!("the context cannot have {key}={value}: {problem}"),
                "keys and their types are those of [context] in the team file",
            )
        })?;
    }
    let mut desk = Desk::of(file.path(), &opening.open()?);
    if let Some(turns) = args.max_turns {
        desk.config.max_turns = Some(turns.get());
    }
    Ok(desk)
}
