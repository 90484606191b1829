//! The command line.

mod commands;
mod options;
mod parsers;
mod runs;
mod serve;
mod sessions;

use clap::{Parser, Subcommand};

use crate::screen::style::{Color, Language};

pub(crate) use commands::{
    Chat, Check, Completions, Demo, Graph, GraphFormat, Init, Replay, Resume, Run, SPEECH_MODEL,
    TRANSCRIPTION_MODEL, Test, Voice,
};
pub(crate) use options::{
    Answer, Approve, ApproveBy, EngineName, EngineOptions, OutputOptions, TalkOptions, TeamOptions,
};
pub(crate) use parsers::{AgentVoice, voice};
pub(crate) use runs::{ResumeRun, Runs, RunsCommand, Worker};
pub(crate) use serve::{Key, Serve, Studio};
pub(crate) use sessions::{Sessions, SessionsCommand};

/// Talk to teams of agents described in a file, and watch them hand the conversation over.
///
/// Without a command, a conversation is shown on a model that is part of the program: no key, no
/// network.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, max_term_width = 100, after_help = AFTER, after_long_help = AFTER_LONG)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The use of colours; NO_COLOR and CLICOLOR_FORCE count as well
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    /// The language of help, errors, labels and of the team that `init` writes; that of LANG if it is not
    /// given
    #[arg(long, global = true, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
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
  1    the work failed: a check, a test, a run, or a worker
  2    the command line or a file cannot be used as it is
  3    a guardrail stopped the run
  4    the model could not be reached, or its provider refused
  5    calls wait for a decision, or a person is asked for an answer
  124  the run took longer than --timeout
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
    /// Speech is written down, answered by the team, and the answer is spoken. It is that of OpenAI, or
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

    /// List, show, copy, move and delete stored conversations
    #[command(after_help = "\
Examples:
  switchboard sessions list
  switchboard sessions show tuesday                the transcript, with the handoffs
  switchboard sessions show tuesday --json         an entry a line, for machines
  switchboard sessions search \"invoice\"
  switchboard sessions fork tuesday tuesday-2      a copy that goes on by itself
  switchboard sessions export tuesday > tuesday.json
  switchboard sessions import tuesday.json --as restored --store postgres://localhost/chats
  switchboard sessions delete tuesday wednesday")]
    Sessions(Sessions),

    /// List, show, follow, cancel, delete and resume durable runs
    #[command(after_help = "\
Examples:
  switchboard run team.toml \"Pay it back\" --session tuesday --durable
  switchboard runs list
  switchboard runs show tuesday/1f3a
  switchboard runs attach tuesday/1f3a
  switchboard runs resume tuesday/1f3a team.toml --approve all
  switchboard runs cancel tuesday/1f3a")]
    Runs(Runs),

    /// Go on with durable runs whose process is gone
    ///
    /// SIGTERM lets steps in progress end; other workers go on with the runs.
    #[command(after_help = "\
Examples:
  switchboard worker team.toml
  switchboard worker team.toml --store postgres://localhost/chats --lease 5s")]
    Worker(Worker),

    /// Serve teams over HTTP, for clients of OpenAI's protocols and for programs of your own
    ///
    /// Settings come from --config, then from variables such as SWITCHBOARD_SERVE_PORT, then from the command line.
    /// docs/service.md lists them all. SIGTERM ends the server in order; SIGHUP reads the keys and the teams again.
    #[command(after_help = "\
Examples:
  switchboard serve team.toml --port 8080
  switchboard serve support.toml sales.toml --store sqlite:conversations.db
  switchboard serve team.toml --host 0.0.0.0 --keys keys.toml --set runs=200
  switchboard serve team.toml --config serve.toml")]
    Serve(Serve),

    /// Talk to a team in the browser, and see what happens in it and why
    ///
    /// Without a team file, the team of `switchboard demo` is there. A team whose models cannot be used here answers with
    /// the offline model. The page is part of the program; nothing leaves this machine but what models and tools are sent.
    #[command(after_help = "\
Examples:
  switchboard studio                               the team of the demo
  switchboard studio team.toml
  switchboard studio team.toml --port 7000 --no-open
  switchboard studio team.toml --read-only         the file cannot be changed in the page")]
    Studio(Studio),

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
  switchboard graph team.toml                      in the terminal
  switchboard graph team.toml -f svg > team.svg    an image
  switchboard graph team.toml -f mermaid           for viewers of Markdown")]
    Graph(Graph),

    /// Test where messages end up, and what comes of them
    #[command(after_help = "\
Examples:
  switchboard test team.toml cases.toml
  switchboard test team.toml cases.toml --model openai/gpt-5.2 --jobs 8
  switchboard test team.toml cases.toml --junit results.xml
  switchboard test team.toml cases.toml --record chat.jsonl      a case out of a recorded chat

A file of cases:
  [[cases]]
  message = \"My bill is wrong\"
  expect = \"Billing\"                 who has the conversation at the end
  path = [\"Triage\", \"Billing\"]       who had it, in this order
  forbidden = [\"Sales\"]              who must not get it
  payload = { reason = \"bill\" }      what the last handoff must bring, among others
  says = [\"reversed\"]               words of the answers; never_says: words they must not have
  tools = [\"find_invoice\"]          tools that run, or { tool = \"...\", arguments = {...} }
  guardrail = \"no_secrets\"          a guardrail that fires
  turns = 2                          how many turns; max_turns: at most
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }
}
