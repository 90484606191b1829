//! The arguments of `switchboard sessions`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::parsers::at_least_one;

/// `switchboard sessions`.
#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,

    /// The store of sessions: sqlite:PATH, postgres://... or redis://...
    ///
    /// Without it, the data folder.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Use the store that this team file names
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "store")]
    pub(crate) team: Option<PathBuf>,
}

/// The commands on sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the last used first
    List {
        /// The largest number of sessions
        #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
        limit: Option<NonZeroUsize>,

        /// Print one session a line as JSON, for machines
        #[arg(short, long)]
        json: bool,
    },

    /// Show who said what, and the handoffs
    Show {
        /// The session
        name: String,

        /// Show the latest entries only
        #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
        limit: Option<NonZeroUsize>,

        /// Print one entry a line as JSON, for machines
        #[arg(short, long)]
        json: bool,
    },

    /// Write everything that is stored of a session to a file
    Export {
        /// The session
        name: String,

        /// The file; without it, standard output
        file: Option<PathBuf>,

        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },

    /// Store an exported session
    Import {
        /// The file; - is standard input
        file: PathBuf,

        /// The name of the new session; without it, the one that it had
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },

    /// Delete sessions, with what is stored of their durable runs that have ended
    Delete {
        /// The sessions
        #[arg(required = true)]
        names: Vec<String>,
    },

    /// Find words in all sessions
    Search {
        /// The words, in any case of letters
        text: String,

        /// The largest number of results
        #[arg(short = 'n', long, value_name = "N", default_value = "50", value_parser = at_least_one::<NonZeroUsize>)]
        limit: NonZeroUsize,

        /// Print one result a line as JSON, for machines
        #[arg(short, long)]
        json: bool,
    },

    /// Copy a session to a new one that goes on by itself
    Fork {
        /// The session
        name: String,

        /// The name of the copy
        new: String,

        /// Leave out the entry at this position of `show --json`, and all after it
        #[arg(long, value_name = "POSITION")]
        before: Option<u64>,
    },
}
