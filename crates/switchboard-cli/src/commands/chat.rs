//! `switchboard chat`: a conversation in the terminal.

mod chat_line;
mod commands;
mod sent;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_core::EventKind;
use switchboard_core::guardrail::{GuardrailKind, GuardrailOutcome};
use switchboard_sessions::Access;
use switchboard_teamfile::TeamFile;

use super::open_conversation;
use super::run::asked_person;
use crate::approvals::{Approvals, Output};
use crate::args;
use crate::conversation::{Conversation, RunOutcome};
use crate::event_line::EventLine;
use crate::event_sink::{EventSink, JsonLines};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::line_reader::{LineKind, LineReader, Prompt, ReadLine, ResumeSignal};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::{self, BOLD, DIM, Look};
use crate::screen::wrap::{one_line, shortened, wrapped};
use crate::screen::{Screen, UserMessages};
use crate::signals::{Signal, Signals};
use crate::trace_file;
use chat_line::{COMMANDS, ChatLine};

pub(super) async fn run(args: args::Chat, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.talk.team.team)?;
    let team = LoadedTeam::load(&file, &args.talk.team.options, &[])?;
    let asks = Output::new(args.json);
    let approvals = Approvals::new(&args.talk.options.approve, &file, asks, look)?;
    let (conversation, trace) = open_conversation(team, &args.talk.options, Access::Create).await?;
    // Its commands show and delete what is stored, before any message.
    conversation.check().await?;
    let is_interactive = !args.json && io::stdin().is_terminal() && io::stdout().is_terminal();
    let (reader, user_messages) = if is_interactive {
        let commands = COMMANDS.iter().map(|command| command.name);
        let reader = LineReader::of_messages(commands.collect())?;
        (reader, UserMessages::Typed)
    } else {
        (LineReader::piped(), UserMessages::Drawn)
    };
    let (sink, out): (Box<dyn EventSink>, Box<dyn Write + Send>) = if args.json {
        // Events alone are on standard output.
        (
            Box::new(JsonLines::new(io::stdout(), look.language)),
            Box::new(anstream::stderr()),
        )
    } else {
        let screen = Screen::of_stdout(look, conversation.team().names());
        let screen = screen.user_messages(user_messages);
        (Box::new(screen), Box::new(anstream::stdout()))
    };
    let mut chat = Chat {
        conversation,
        approvals,
        sink,
        out,
        look,
        input: if args.json {
            InputForm::Json
        } else {
            InputForm::Text
        },
        file,
        is_stored: args.talk.options.session.is_some(),
        team_options: args.talk.team.options,
        events: Vec::new(),
        sent: Vec::new(),
        was_given: false,
        saved: HashSet::new(),
    };
    let mut signals = Signals::listen()?;
    if is_interactive {
        chat.greet().await?;
    }
    let exit = chat.run(reader, &mut signals).await;
    chat.conversation.close().await;
    trace_file::finish(trace, exit)
}

/// A chat.
struct Chat {
    conversation: Conversation,
    approvals: Approvals,
    /// The destination of events.
    sink: Box<dyn EventSink>,
    /// The output of commands.
    out: Box<dyn Write + Send>,
    look: Look,
    input: InputForm,
    file: TeamFile,
    /// The options of the command line, with the model that was chosen since.
    team_options: args::TeamOptions,
    /// Set if the conversation has a session.
    is_stored: bool,
    /// The events so far, for `/save`.
    events: Vec<EventLine>,
    /// The messages of this chat that were not taken back.
    sent: Vec<SentMessage>,
    /// Set if `/agent` has given the conversation away since the last message.
    was_given: bool,
    /// The files that this chat wrote and may overwrite.
    saved: HashSet<PathBuf>,
}

/// A message of this chat.
struct SentMessage {
    /// The index of its first event.
    first_event: usize,
    /// The position in the record where it began.
    position: u64,
    /// The message, if it was not stored: it was refused, or could not be answered.
    unstored: Option<String>,
}

/// The form of the lines that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputForm {
    Text,
    /// Lines may be JSON: a string, or an object with a `message`.
    Json,
}

impl Chat {
    async fn greet(&mut self) -> Result<(), Failure> {
        let items = self.conversation.store().items().await?.len();
        let (name, agent) = (&self.conversation.team().name, self.conversation.agent());
        let (en, zh) = match items {
            0 => (
                format!("{name}: {agent} will answer. /help lists commands, Ctrl-D leaves."),
                format!("{name}：由 {agent} 回答。/help 查看命令，Ctrl-D 退出。"),
            ),
            items => (
                format!(
                    "{name}: going on with {agent}, {items} items so far. /history shows them, \
                     /reset forgets them, Ctrl-D leaves."
                ),
                format!(
                    "{name}：继续与 {agent} 的对话，已有 {items} 条。/history 查看，/reset 清除，Ctrl-D 退出。"
                ),
            ),
        };
        self.note_in(&en, &zh)?;
        Ok(())
    }

    /// Processes lines until there are no more.
    async fn run(
        &mut self,
        mut reader: LineReader,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        let mut was_interrupted = false;
        let mut line_number = 0_u64;
        let mut resume = ResumeSignal::listen()?;
        if self.conversation.load_waiting().await? {
            let outcome = self.decide(&mut reader, signals).await?;
            if let ControlFlow::Break(exit) = self.after_run(outcome, &reader, &mut exit)? {
                return Ok(exit);
            }
        }
        loop {
            let read = tokio::select! {
                read = reader.next(self.prompt()) => read,
                () = resume.next() => {
                    reader.resume();
                    continue;
                }
                signal = signals.next() => match signal {
                    Signal::Interrupt if reader.is_interactive() => ReadLine::Interrupted,
                    signal => return Ok(signal.exit()),
                },
            };
            line_number += 1;
            let line = match read {
                ReadLine::Line(line) => line,
                ReadLine::End => return Ok(exit),
                ReadLine::Failed(error)
                    if self.input == InputForm::Json
                        && error.kind() == io::ErrorKind::InvalidData =>
                {
                    self.write_input_error(line_number, "is not text in UTF-8")?;
                    exit = exit.or(Exit::Usage);
                    continue;
                }
                ReadLine::Failed(error) => {
                    return Err(Failure::unreadable(Path::new("standard input"), &error));
                }
                ReadLine::Interrupted if was_interrupted => return Ok(exit),
                ReadLine::Interrupted => {
                    was_interrupted = true;
                    self.note_in(
                        "Ctrl-C again leaves, as does Ctrl-D.",
                        "再按一次 Ctrl-C 或按 Ctrl-D 退出。",
                    )?;
                    continue;
                }
            };
            was_interrupted = false;
            // The terminal may have been resized.
            self.look = Look::of_stdout(self.look.language);
            let json = match self.input {
                InputForm::Json => input::json_message(&line),
                InputForm::Text => None,
            };
            let parsed = match &json {
                Some(Ok(message)) => ChatLine::Message(message),
                Some(Err(problem)) => {
                    self.write_input_error(line_number, problem)?;
                    exit = exit.or(Exit::Usage);
                    continue;
                }
                None => ChatLine::from(line.as_str()),
            };
            match parsed {
                ChatLine::Empty => {}
                ChatLine::Message(message) => {
                    let sent = self.send(message, &mut reader, signals).await?;
                    let (outcome, is_storable) = sent;
                    if is_storable {
                        reader.store(&line);
                    }
                    if let ControlFlow::Break(exit) = self.after_run(outcome, &reader, &mut exit)? {
                        return Ok(exit);
                    }
                }
                ChatLine::Command(command, argument)
                    if !argument.is_empty() && !command.takes_argument() =>
                {
                    reader.store(&line);
                    self.refuse_argument(command.name)?;
                }
                ChatLine::Command(command, _) if command.name == "decide" => {
                    reader.store(&line);
                    let outcome = self.decide(&mut reader, signals).await?;
                    if let ControlFlow::Break(exit) = self.after_run(outcome, &reader, &mut exit)? {
                        return Ok(exit);
                    }
                }
                ChatLine::Command(command, _) if command.name == "retry" => {
                    reader.store(&line);
                    let outcome = self.retry(&mut reader, signals).await?;
                    if let ControlFlow::Break(exit) = self.after_run(outcome, &reader, &mut exit)? {
                        return Ok(exit);
                    }
                }
                ChatLine::Command(command, argument) => {
                    reader.store(&line);
                    if self.command(command.name, argument).await?.is_break() {
                        return Ok(exit);
                    }
                }
                ChatLine::Unknown { name, suggestion } => {
                    reader.store(&line);
                    self.unknown_command(name, suggestion)?;
                }
            }
        }
    }

    /// Acts on the outcome of a run. Breaks with the exit code if the chat ends.
    fn after_run(
        &mut self,
        outcome: RunOutcome,
        reader: &LineReader,
        first_failure: &mut Exit,
    ) -> io::Result<ControlFlow<Exit>> {
        if outcome == RunOutcome::Waiting
            && let Some(person) = asked_person(&self.conversation)
        {
            self.note_in(
                &format!("{person} is waited for. /decide answers as {person}; a message waits with the others."),
                &format!("正在等待 {person}。/decide 以 {person} 的身份回答；发出的消息会一起等待。"),
            )?;
        } else if outcome == RunOutcome::Waiting {
            self.note_in(
                "It waits on. /decide asks again; a message instead tells the model that it was not \
                 done.",
                "继续等待。/decide 可再次决定；直接发消息则告诉模型该操作没有执行。",
            )?;
        }
        if reader.is_interactive() {
            writeln!(self.out)?;
        }
        // For a pipe, the first failure is the exit code.
        let mut fail = |exit: Exit| {
            if !reader.is_interactive() && *first_failure == Exit::Ok {
                *first_failure = exit;
            }
        };
        match outcome {
            RunOutcome::Finished => {}
            RunOutcome::Waiting => fail(Exit::Waiting),
            RunOutcome::TimedOut => fail(Exit::TimedOut),
            RunOutcome::Failed(failed) => fail(failed),
            RunOutcome::Stopped(Signal::Interrupt) if reader.is_interactive() => {}
            RunOutcome::Stopped(signal) => return Ok(ControlFlow::Break(signal.exit())),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn prompt(&self) -> Prompt {
        let agent = self.conversation.agent();
        let mut names = self.conversation.team().names();
        let position = names.position(|name| name == agent).unwrap_or(0);
        let agent = shortened(&one_line(agent), 24).into_owned();
        let styled_agent = self.look.paint(style::of_agent(position), &agent);
        let you = self.look.language.user();
        let styled_you = self.look.paint(BOLD, you);
        Prompt {
            kind: LineKind::Message,
            raw: format!("{you} → {agent}> "),
            styled: format!("{styled_you} → {styled_agent}> "),
        }
    }

    /// Sends a message. Returns the outcome, and `true` if no guardrail has refused or changed the
    /// message: its words may be stored.
    async fn send(
        &mut self,
        message: &str,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<(RunOutcome, bool), Failure> {
        let first = self.events.len();
        // A store that cannot be read has stored nothing.
        let end = self.conversation.store().end().await.unwrap_or(u64::MAX);
        self.sent.push(SentMessage {
            first_event: first,
            position: end,
            unstored: Some(message.to_owned()),
        });
        self.was_given = false;
        let mut sink = (&mut self.sink, &mut self.events);
        let outcome = self.conversation.send(message, &mut sink, signals).await?;
        let outcome = self.settle(outcome, reader, signals).await?;
        let is_stored =
            !matches!(outcome, RunOutcome::Failed(_)) || self.is_message_stored(end).await;
        if let Some(sent) = self.sent.last_mut().filter(|_| is_stored) {
            sent.unstored = None;
        }
        let is_storable = self.events[first..].iter().all(|line| {
            !matches!(&line.event.kind, EventKind::Guardrail { on: GuardrailKind::Input, result, .. }
                if result.outcome != GuardrailOutcome::Allowed)
        });
        Ok((outcome, is_storable))
    }

    /// Returns `true` if a message of the user is stored at `first` or after it.
    async fn is_message_stored(&self, first: u64) -> bool {
        // A store that cannot be read has stored nothing.
        let record = self.conversation.store().record().await.unwrap_or_default();
        record.iter().any(|entry| {
            let item = entry.content.item();
            entry.position >= first
                && item.is_some_and(|item| item.role().as_deref() == Some("user"))
        })
    }

    /// Takes the last message back and sends it again: to the agent that it was sent to, or to the one that got the
    /// conversation by `/agent` since.
    async fn retry(
        &mut self,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let given = self.was_given.then(|| self.conversation.agent().to_owned());
        let message = match self.take_back().await {
            Ok(Some(message)) if !message.is_empty() => message,
            Ok(_) => {
                self.note_in("There is nothing to send again.", "没有可以重发的消息。")?;
                return Ok(RunOutcome::Finished);
            }
            Err(failure) => {
                self.note_failure(&failure)?;
                return Ok(RunOutcome::Finished);
            }
        };
        if let Some(agent) = given.filter(|agent| agent != self.conversation.agent())
            && let Err(failure) = self.conversation.give_to(&agent).await
        {
            self.note_failure(&failure)?;
            return Ok(RunOutcome::Finished);
        }
        let shown = shortened(&one_line(&message), 60).into_owned();
        self.note_in(&format!("Again: {shown}"), &format!("重发：{shown}"))?;
        Ok(self.send(&message, reader, signals).await?.0)
    }

    /// Takes the last message back, with everything that followed. Returns `None` if there is none.
    async fn take_back(&mut self) -> Result<Option<String>, Failure> {
        let unstored = self.sent.last().and_then(|sent| {
            let message = sent.unstored.clone()?;
            Some((message, sent.position))
        });
        let agent = self.conversation.agent().to_owned();
        let message = match unstored {
            Some((message, position)) => {
                self.conversation.undo_unstored(position).await?;
                Some(message)
            }
            None => self.conversation.undo().await?,
        };
        if message.is_some() {
            self.was_given &= self.conversation.agent() == agent;
            // The events of the message are not among those that `/save` writes.
            if let Some(sent) = self.sent.pop() {
                self.events.truncate(sent.first_event);
            }
        }
        Ok(message)
    }

    /// Writes that a line of the input cannot be read.
    fn write_input_error(&mut self, line: u64, problem: &str) -> Result<(), Failure> {
        let event = json!({
            "type": "input_error",
            "agent": self.conversation.agent(),
            "turn": 0,
            "line": line,
            "message": format!("the line {problem}"),
        });
        let event = serde_json::from_str(&event.to_string()).map_err(io::Error::from)?;
        self.conversation.write(event, &mut self.sink)?;
        let help = "write a JSON string, or an object with a message";
        Ok(self.sink.write_help(help)?)
    }

    fn refuse_argument(&mut self, name: &str) -> io::Result<()> {
        self.note_in(
            &format!(
                "/{name} takes nothing after it; a message that begins with / is written with //"
            ),
            &format!("/{name} 后面不能有其他内容；以 / 开头的消息请写成 //"),
        )
    }

    /// Shows the calls that wait, and decides them.
    async fn decide(
        &mut self,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        // A run that could not go on waits in its session only.
        if self.conversation.waiting().is_none() && !self.conversation.load_waiting().await? {
            self.note_in("Nothing waits for a decision.", "没有等待决定的操作。")?;
            return Ok(RunOutcome::Finished);
        }
        let mut sink = (&mut self.sink, &mut self.events);
        let outcome = self.conversation.show_waiting(&mut sink, signals).await?;
        self.settle(outcome, reader, signals).await
    }

    async fn settle(
        &mut self,
        outcome: RunOutcome,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut sink = (&mut self.sink, &mut self.events);
        let conversation = &mut self.conversation;
        let reader = Some(reader);
        let settled = self
            .approvals
            .settle(outcome, conversation, reader, &mut sink, signals);
        settled.await
    }

    /// Prints a note in the reader's language.
    fn note_in(&mut self, en: &str, zh: &str) -> io::Result<()> {
        self.note(self.look.language.choose(en, zh))
    }

    fn note_failure(&mut self, failure: &Failure) -> io::Result<()> {
        writeln!(self.out, "{}", failure.drawn(self.look))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let text = wrapped(text, self.look.width, 0, 0);
        writeln!(self.out, "{}", self.look.paint(DIM, &text))
    }
}
