//! The command line.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::screen::style::{Color, Language};

/// Talk to teams of agents described in a file, and watch them hand the conversation over.
///
/// Without a command, a conversation is shown on a model that is part of the program: no key, no
/// network.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, max_term_width = 100, after_help = AFTER, after_long_help = AFTER_LONG)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE count as well
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    /// The language of the demonstration, of the team that `init` writes, and of labels
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "LANGUAGE"
    )]
    pub(crate) lang: Language,
}

const AFTER: &str = "\
Examples:
  switchboard                                    a whole conversation, at once
  switchboard init my-team                       a support team to start from
  switchboard chat my-team/team.toml             talk to it
  switchboard run my-team/team.toml \"My bill is wrong\"";

const AFTER_LONG: &str = "\
Examples:
  switchboard                                    a whole conversation, at once
  switchboard --lang zh                          the same in Chinese
  switchboard init my-team                       a support team to start from
  switchboard chat my-team/team.toml             talk to it
  switchboard run my-team/team.toml \"My bill is wrong\"
  switchboard talk --offline                     the same with voices
  switchboard test my-team/team.toml my-team/cases.toml

Exit codes:
  0    all went well
  1    the work failed: a check, a test, or a run
  2    the command line or a file cannot be used as it is
  3    a guardrail stopped the run
  4    the model could not be reached, or its provider refused
  5    calls wait for a decision, or a person is asked for an answer
  130  interrupted (Ctrl-C)
  143  asked to end (kill)

Files:
  Sessions and the history of lines are in $SWITCHBOARD_DATA; by default in
  ~/.local/share/switchboard ($XDG_DATA_HOME/switchboard), on macOS in
  ~/Library/Application Support/switchboard, on Windows in %APPDATA%\\switchboard.

Encryption:
  With a key in $SWITCHBOARD_STORE_KEY (openssl rand -base64 32), sessions are encrypted.
  $SWITCHBOARD_STORE_OLD_KEYS has the keys of before, with commas between them.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a whole conversation on the offline model
    ///
    /// This is what `switchboard` does without a command.
    #[command(
        after_help = "Examples:\n  switchboard demo\n  switchboard demo --slowly\n  switchboard demo --lang zh\n  switchboard demo --json | jq .type"
    )]
    Demo(Demo),

    /// Write a customer-support team to start from
    #[command(
        after_help = "Examples:\n  switchboard init\n  switchboard init my-team\n  switchboard init my-team --lang zh"
    )]
    Init(Init),

    /// Give a message to a team and show what comes of it
    #[command(after_help = "\
Examples:
  switchboard run team.toml \"My bill is wrong\"
  echo \"My bill is wrong\" | switchboard run team.toml
  switchboard run team.toml --input messages.txt
  switchboard run team.toml \"Hi\" --context tier=premium --context customer.id=42
  switchboard run team.toml \"Hi\" --model chat/llama3.1 --base-url http://localhost:11434/v1
  switchboard run team.toml \"Hi\" --json > run.jsonl && switchboard replay run.jsonl
  switchboard run team.toml \"Pay it back\" --session tuesday --approve rules.toml")]
    Run(Run),

    /// Talk to a team in the terminal
    ///
    /// Ctrl-C stops an answer; at the prompt, twice Ctrl-C or Ctrl-D leaves. `/help` lists what else
    /// can be typed.
    #[command(after_help = "\
Examples:
  switchboard chat team.toml
  switchboard chat team.toml --session tuesday     go on with it another day
  switchboard chat team.toml < lines.txt           without a terminal, a line is a message")]
    Chat(Chat),

    /// Talk to a team with your voice
    ///
    /// What is said is written down, answered by the team, and the answer is spoken. Speech is that of OpenAI, or
    /// with --offline that of programs on this machine: flite, and the Python package pocketsphinx.
    #[command(after_help = "\
Examples:
  switchboard talk --offline                                         a spoken demonstration
  switchboard talk team.toml --in caller.wav --out answer.wav
  switchboard talk team.toml --in caller.wav --transcript --session tuesday
  switchboard talk team.toml --in caller.wav --out answer.wav --voice coral --voice Billing=ash
  switchboard talk team.toml                                         with a microphone, if built for one

For --offline:
  apt-get install flite
  python3 -m venv speech && speech/bin/pip install pocketsphinx
  export SWITCHBOARD_PYTHON=$PWD/speech/bin/python")]
    Talk(Voice),

    /// Decide the calls that wait in a session or answer for a person, and go on with its run
    #[command(after_help = "\
Examples:
  switchboard resume team.toml --session tuesday                      ask for each call
  switchboard resume team.toml --session tuesday --approve none       refuse them all
  switchboard resume team.toml --session tuesday --approve rules.toml
  switchboard resume team.toml --session tuesday --reply \"I am here. What happened?\"
  switchboard resume team.toml --session tuesday --hand-to Billing")]
    Resume(Resume),

    /// Serve teams over HTTP, for clients of OpenAI's protocols and for programs of your own
    ///
    /// Settings come from --config, then from variables such as SWITCHBOARD_SERVE_PORT, then from the command line.
    /// docs/service.md lists them all. SIGTERM ends the server in order; SIGHUP reads the keys again.
    #[command(after_help = "\
Examples:
  switchboard serve team.toml --port 8080
  switchboard serve support.toml sales.toml --store sqlite:conversations.db
  switchboard serve team.toml --host 0.0.0.0 --keys keys.toml --set runs=200
  switchboard serve team.toml --config serve.toml")]
    Serve(Serve),

    /// Make a key for a client of `serve`, and add its hash to a file of keys
    #[command(after_help = "\
Examples:
  switchboard key keys.toml --tenant acme

The key is printed once and stored nowhere. Limits are set in the file; docs/service.md has them.")]
    Key(Key),

    /// Look a team file over
    #[command(after_help = "\
Examples:
  switchboard check team.toml
  switchboard check team.toml --strict             warnings count as well
  switchboard check team.toml --json               a problem a line, for machines")]
    Check(Check),

    /// Draw a team
    #[command(after_help = "\
Examples:
  switchboard graph team.toml                      for Mermaid, which many viewers of Markdown show
  switchboard graph team.toml --format dot | dot -Tsvg > team.svg")]
    Graph(Graph),

    /// Test where messages end up
    #[command(after_help = "\
Examples:
  switchboard test team.toml cases.toml
  switchboard test team.toml cases.toml --model openai/gpt-5.2 --jobs 8

A file of cases:
  [[cases]]
  message = \"My bill is wrong\"
  expect = \"Billing\"                 who has the conversation at the end
  path = [\"Triage\", \"Billing\"]       who had it, in this order
  forbidden = [\"Sales\"]              who must not get it
  payload = { reason = \"bill\" }      what the last handoff must bring, among others
  context = { tier = \"premium\" }     set for this case
  name = \"wrong bill\"                instead of the message

  Instead of `message`, `messages = [\"Hi\", \"My bill is wrong\"]` are said one after the other.")]
    Test(Test),

    /// Show a recorded run again
    #[command(after_help = "\
Examples:
  switchboard run team.toml \"Hi\" --json > run.jsonl
  switchboard replay run.jsonl
  switchboard replay run.jsonl --speed 1           as fast as it was")]
    Replay(Replay),

    /// Print the JSON Schema of team files, for editors
    #[command(after_help = "Examples:\n  switchboard schema > team.schema.json")]
    Schema,

    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  switchboard completions bash > ~/.local/share/bash-completion/completions/switchboard
  switchboard completions zsh > ~/.zfunc/_switchboard
  switchboard completions fish > ~/.config/fish/completions/switchboard.fish")]
    Completions(Completions),
}

/// `switchboard demo`.
#[derive(Debug, Default, Args)]
pub(crate) struct Demo {
    /// Show it at the speed of reading, to watch the handoffs happen
    #[arg(long, conflicts_with = "json")]
    pub(crate) slowly: bool,

    /// Print one event a line as JSON, for machines
    #[arg(long)]
    pub(crate) json: bool,
}

/// `switchboard serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The team files
    #[arg(required = true, value_name = "TEAM")]
    pub(crate) teams: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    /// A file of settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The address to listen on; any but a loopback address needs --keys
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<String>,

    /// The port; 0 is any free one
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,

    /// The file of keys
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<String>,

    /// The store of conversations: sqlite:PATH, postgres://..., redis://... or memory:
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Set any setting; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

/// `switchboard key`.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The file of keys; it is made if it is not there
    pub(crate) file: PathBuf,

    /// The tenant whose conversations the key gives access to
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
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

/// A team file and its options.
#[derive(Debug, Args)]
pub(crate) struct Team {
    /// The team file
    pub(crate) team: PathBuf,

    #[command(flatten)]
    pub(crate) options: TeamOptions,
}

/// The options of a team.
#[derive(Debug, Args)]
pub(crate) struct TeamOptions {
    /// The model of all agents: offline, openai/gpt-5.2, chat/llama3.1, or one of the file's [models]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The server of the model, as in http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Set a value of the context; can be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) context: Vec<(String, String)>,

    /// The largest number of turns of an answer
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) max_turns: Option<NonZeroU32>,
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
    #[arg(long, value_name = "NAME")]
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
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    #[command(flatten)]
    pub(crate) approve: Approve,

    /// Write the spans of the runs to this file, one a line as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
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

/// `switchboard run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) talk: Talk,

    /// The message; without it, standard input is read
    pub(crate) message: Vec<String>,

    /// A file of messages, one a line; .jsonl files hold a JSON string or {"message": ...} a line
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    pub(crate) input: Option<PathBuf>,

    /// Print one event a line as JSON, for machines
    #[arg(long)]
    pub(crate) json: bool,
}

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
        default_value = "gpt-transcribe",
        conflicts_with = "offline"
    )]
    pub(crate) transcription_model: String,

    /// The model that speaks at the provider
    #[arg(
        long,
        value_name = "NAME",
        default_value = "gpt-4o-mini-tts",
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
    #[arg(long)]
    pub(crate) json: bool,
}

/// A voice, of one agent or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentVoice {
    pub(crate) agent: Option<String>,
    pub(crate) voice: String,
}

/// `switchboard resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) team: Team,

    /// The session whose run waits
    #[arg(long, value_name = "NAME")]
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

    /// Print one event a line as JSON, for machines
    #[arg(long)]
    pub(crate) json: bool,
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

/// `switchboard chat`.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) talk: Talk,
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
    #[arg(long)]
    pub(crate) json: bool,
}

/// `switchboard graph`.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The team file
    pub(crate) team: PathBuf,

    /// The language of the drawing
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: GraphFormat,
}

/// The language of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid.
    #[default]
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

    /// The number of cases that run at once
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) jobs: NonZeroUsize,

    /// Print one result a line as JSON, for machines
    #[arg(long)]
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
    #[arg(long)]
    pub(crate) json: bool,
}

/// `switchboard completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write it as KEY=VALUE, as in tier=premium".to_owned()),
    }
}

fn voice(text: &str) -> Result<AgentVoice, String> {
    let (agent, voice) = match text.split_once('=') {
        Some((agent, voice)) => (Some(agent.trim().to_owned()), voice.trim()),
        None => (None, text.trim()),
    };
    if voice.is_empty() || agent.as_deref() == Some("") {
        return Err("write it as NAME, or as AGENT=NAME".to_owned());
    }
    let voice = voice.to_owned();
    Ok(AgentVoice { agent, voice })
}

fn at_least_one<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| "give a number from 1 on".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err("give a number above 0, as in 1 or 2.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_context_value_may_hold_an_equals_sign() {
        let read = key_and_value("query=a=b");
        assert_eq!(read, Ok(("query".to_owned(), "a=b".to_owned())));
        assert!(key_and_value("=b").is_err() && key_and_value("tier").is_err());
    }
}
