//! The arguments of each command.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::options::{Answer, Approve, OutputOptions, Talk, TalkOptions, Team, TeamOptions};
use super::parsers::{AgentVoice, at_least_one, positive, voice};

/// `switchboard demo`.
#[derive(Debug, Default, Args)]
pub(crate) struct Demo {
    /// Show it at the speed of reading, to watch the handoffs happen
    #[arg(long, conflicts_with = "json")]
    pub(crate) slowly: bool,

    /// Print one event a line as JSON, for machines
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The folder to write to; it is made if it is not there
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,

    /// Write over files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

/// `switchboard run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) talk: Talk,

    /// The message; without it, standard input is read
    pub(crate) message: Vec<String>,

    /// A file of messages, one a line; .jsonl files hold a JSON string or {"message": ...} a line
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    pub(crate) input: Option<PathBuf>,

    /// Names the message, with --durable: the same key again is the same message, and answered once
    #[arg(
        long,
        value_name = "KEY",
        requires = "durable",
        conflicts_with = "input"
    )]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// The model that writes down speech at the provider, unless another is named.
pub(crate) const TRANSCRIPTION_MODEL: &str = "gpt-transcribe";

/// The model that speaks at the provider, unless another is named.
pub(crate) const SPEECH_MODEL: &str = "gpt-4o-mini-tts";

/// `switchboard talk`.
#[derive(Debug, Args)]
pub(crate) struct Voice {
    /// The team file; without it, the team of the demonstration
    pub(crate) team: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) team_options: TeamOptions,

    #[command(flatten)]
    pub(crate) options: TalkOptions,

    /// The caller's speech, a WAV file; each pause ends a turn
    #[arg(long = "in", value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Write the spoken answers to this WAV file
    #[arg(long = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Speak and listen with programs on this machine, and answer with the offline model
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print only what was said and who has the conversation
    #[arg(long, conflicts_with = "json")]
    pub(crate) transcript: bool,

    /// The model that writes down speech at the provider
    #[arg(
        long,
        value_name = "NAME",
        default_value = TRANSCRIPTION_MODEL,
        conflicts_with = "offline"
    )]
    pub(crate) transcription_model: String,

    /// The model that speaks at the provider
    #[arg(
        long,
        value_name = "NAME",
        default_value = SPEECH_MODEL,
        conflicts_with = "offline"
    )]
    pub(crate) speech_model: String,

    /// Finish answers, whatever is said: for a loudspeaker beside the microphone
    #[arg(long, conflicts_with = "input")]
    pub(crate) no_interrupt: bool,

    /// The voice of all agents, or AGENT=NAME for one; can be given several times
    #[arg(long, value_name = "NAME", value_parser = voice)]
    pub(crate) voice: Vec<AgentVoice>,

    /// Print one event a line as JSON, for machines
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) team: Team,

    /// The session whose run waits
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: String,

    /// The store of sessions: sqlite:PATH, postgres://... or redis://...
    ///
    /// Without it, the store that the team file names, or else the data folder.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    #[command(flatten)]
    pub(crate) approve: Approve,

    #[command(flatten)]
    pub(crate) answer: Answer,

    /// Write the spans of the run to this file, one a line as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// `switchboard chat`.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) talk: Talk,

    /// Print one event a line as JSON, and read a message a line, as text or as JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The team file
    pub(crate) team: PathBuf,

    /// Let warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print one problem a line as JSON, for machines
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard graph`.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The team file
    pub(crate) team: PathBuf,

    /// The form of the drawing; without it, text for a terminal and Mermaid otherwise
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
}

/// The form of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A tree for terminals.
    Text,
    /// An image.
    Svg,
    /// Mermaid.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// `switchboard test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) team: Team,

    /// The file of cases
    pub(crate) cases: PathBuf,

    #[command(flatten)]
    pub(crate) approve: Approve,

    /// Write the results to this file as well, in the form of JUnit
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) junit: Option<PathBuf>,

    /// Add a case to the file that is made out of this recording, and run none
    ///
    /// A recording is a file of `/save` in a chat, or the output of `--json`.
    #[arg(long, value_name = "RECORDING", conflicts_with = "json")]
    pub(crate) record: Option<PathBuf>,

    /// The number of cases that run at once
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) jobs: NonZeroUsize,

    /// Print one result a line as JSON, for machines
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The output of `--json` or a file of `/save`; - is standard input
    pub(crate) file: PathBuf,

    /// Play it in time: 1 is as fast as it was, 2 is twice as fast
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    pub(crate) speed: Option<f64>,

    /// Print its events as JSON again
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `switchboard completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
