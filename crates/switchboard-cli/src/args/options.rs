//! Options that several commands have.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::parsers::{at_least_one, duration, key_and_value};

/// A team file and its options.
#[derive(Debug, Args)]
pub(crate) struct Team {
    /// The team file
    pub(crate) team: PathBuf,

    #[command(flatten)]
    pub(crate) options: TeamOptions,
}

/// The options of a team.
#[derive(Debug, Clone, Args)]
pub(crate) struct TeamOptions {
    /// The model of all agents: offline, openai/gpt-5.2, chat/llama3.1, or one of the file's [models]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The server of the model, as in http://localhost:11434/v1
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) base_url: Option<String>,

    /// Set a value of the context; can be given several times
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) context: Vec<(String, String)>,

    /// The largest number of turns of an answer
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) max_turns: Option<NonZeroU32>,

    /// The longest time of an answer in seconds, or as in 90s and 2m
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// A team and the options of a conversation with it.
#[derive(Debug, Args)]
pub(crate) struct Talk {
    #[command(flatten)]
    pub(crate) team: Team,

    #[command(flatten)]
    pub(crate) options: TalkOptions,
}

/// The options of a conversation.
#[derive(Debug, Args)]
pub(crate) struct TalkOptions {
    /// Keep the conversation under this name, and go on with it
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// The store of sessions: sqlite:PATH, postgres://... or redis://...
    ///
    /// Without it, the store that the team file names, or else the data folder.
    #[arg(long, value_name = "URL", requires = "session")]
    pub(crate) store: Option<String>,

    /// Go on with a session of another team, or of an agent that is gone
    #[arg(long, requires = "session")]
    pub(crate) force: bool,

    /// Begin with this agent
    #[arg(short, long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    #[command(flatten)]
    pub(crate) approve: Approve,

    /// Write the spans of the runs to this file, one a line as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "durable")]
    pub(crate) trace: Option<PathBuf>,

    /// Let answers survive the end of the program: `switchboard runs` and `switchboard worker` go on with them
    #[arg(long, requires = "session")]
    pub(crate) durable: bool,

    #[command(flatten)]
    pub(crate) engine: EngineOptions,
}

/// The engine of durable runs.
#[derive(Debug, Args)]
pub(crate) struct EngineOptions {
    /// The engine that carries durable runs through the ends of processes
    #[arg(long, value_enum, default_value_t, value_name = "ENGINE")]
    pub(crate) engine: EngineName,

    /// The time after which another process may take durable runs of one that is gone, as in 15s
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    pub(crate) lease: Duration,

    /// The ingress of the Restate server
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) restate: String,

    /// The PostgreSQL database of DBOS. Without it, the one of the store
    #[cfg(feature = "dbos")]
    #[arg(long, value_name = "URL")]
    pub(crate) dbos: Option<String>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            engine: EngineName::default(),
            lease: Duration::from_secs(15),
            #[cfg(feature = "restate")]
            restate: String::new(),
            #[cfg(feature = "dbos")]
            dbos: None,
        }
    }
}

/// The engines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Journals in the store of the sessions; no server
    #[default]
    Embedded,
    /// A Restate server; see --restate
    #[cfg(feature = "restate")]
    Restate,
    /// DBOS, in the PostgreSQL database of the store, or that of --dbos
    #[cfg(feature = "dbos")]
    Dbos,
}

/// The decisions on calls that wait for approval.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Decide calls that need approval: ask, all, none, or a file of rules
    ///
    /// Without it, a terminal is asked, and otherwise such calls wait: with --session until `switchboard
    /// resume`. `all` approves them, `none` rejects them.
    #[arg(long, value_name = "HOW")]
    pub(crate) approve: Option<ApproveBy>,
}

/// A way to decide calls that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApproveBy {
    /// A person is asked.
    Ask,
    /// All calls are approved.
    All,
    /// All calls are rejected.
    None,
    /// The rules of this file decide.
    File(PathBuf),
}

impl FromStr for ApproveBy {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "ask" => Self::Ask,
            "all" => Self::All,
            "none" => Self::None,
            path => Self::File(path.into()),
        })
    }
}

/// The answer of a person that a run waits for.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// Say this to the user, as the person that the run waits for
    #[arg(long, value_name = "TEXT")]
    pub(crate) reply: Option<String>,

    /// Hand the conversation to this agent: at once, or after the reply
    #[arg(long, value_name = "NAME", conflicts_with = "hand_back")]
    pub(crate) hand_to: Option<String>,

    /// Hand the conversation back to the agent that it came from: at once, or after the reply
    #[arg(long)]
    pub(crate) hand_back: bool,

    /// Tell the next agent this, and not the user
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,

    /// The payload or the result that the handoff asks for
    #[arg(long, value_name = "JSON")]
    pub(crate) payload: Option<String>,
}

/// The form of the output.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print one event a line as JSON, for machines
    #[arg(short, long)]
    pub(crate) json: bool,

    /// Print the answer alone
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}
