//! The arguments of `switchboard runs` and `switchboard worker`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::options::{Answer, Approve, EngineOptions, OutputOptions, TeamOptions};
use super::parsers::{age, at_least_one};

/// `switchboard runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,

    /// The store of runs: sqlite:PATH, postgres://... or redis://...
    ///
    /// Without it, the data folder.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// The subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs, the last changed first
    List {
        /// The largest number of runs
        #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
        limit: Option<NonZeroUsize>,

        /// Print one run a line as JSON, for machines
        #[arg(short, long)]
        json: bool,
    },

    /// Show the state of a run
    Show {
        /// The run, as `list` names it
        id: String,

        /// Print it as JSON, for machines
        #[arg(short, long)]
        json: bool,
    },

    /// Follow the events of a run that another process has, until it ends or waits
    Attach {
        /// The run, as `list` names it
        id: String,

        /// Begin after the event at this position of `--json`
        #[arg(long, value_name = "POSITION")]
        after: Option<u64>,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Cancel a run. What it has stored of the conversation stays
    Cancel {
        /// The run, as `list` names it
        id: String,
    },

    /// Delete runs that have ended. Their conversations stay
    Delete {
        /// The runs, as `list` names them
        #[arg(required = true)]
        ids: Vec<String>,

        /// Delete them though they have not ended: their messages are not answered any more
        #[arg(long)]
        force: bool,
    },

    /// Delete the runs that have ended and that nothing has changed for a time. Their conversations stay
    Prune {
        /// The time since the last change, as in 12h or 30d
        #[arg(long, value_name = "TIME", value_parser = age)]
        older_than: Duration,

        /// Delete those that have not ended too: their messages are not answered any more
        #[arg(long)]
        force: bool,
    },

    /// Go on with a run here: one that was interrupted, that waits for a decision, or that has stopped
    Resume(Box<ResumeRun>),
}

/// `switchboard runs resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeRun {
    /// The run, as `list` names it
    pub(crate) id: String,

    /// The team file
    pub(crate) team: PathBuf,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    #[command(flatten)]
    pub(crate) approve: Approve,

    #[command(flatten)]
    pub(crate) answer: Answer,

    #[command(flatten)]
    pub(crate) engine: EngineOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// `switchboard worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// The team file
    pub(crate) team: PathBuf,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    /// The store of sessions and runs: sqlite:PATH, postgres://... or redis://...
    ///
    /// Without it, the store that the team file names, or else the data folder.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    #[command(flatten)]
    pub(crate) engine: EngineOptions,

    /// The admin address of the Restate server, with which the worker registers itself
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9070")]
    pub(crate) restate_admin: String,

    /// The address at which the Restate server reaches the worker. Workers of one machine can share it
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(crate) listen: std::net::SocketAddr,
}
