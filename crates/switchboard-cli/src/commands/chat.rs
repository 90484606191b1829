//! `switchboard chat`: a conversation in the terminal.

mod chat_line;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anstyle::Style;
use switchboard_core::guardrail::{GuardrailKind, GuardrailOutcome};
use switchboard_core::items::ItemKind;
use switchboard_core::{EventKind, Item};
use switchboard_teamfile::TeamFile;
use unicode_width::UnicodeWidthStr as _;

use super::open_conversation;
use super::run::asked_person;
use crate::approvals::{Approvals, Output};
use crate::args;
use crate::atomic_write;
use crate::conversation::{Conversation, RunOutcome};
use crate::event_line::EventLine;
use crate::event_sink::{EventSink as _, JsonLines};
use crate::failure::{Exit, Failure};
use crate::line_reader::{LineKind, LineReader, Prompt, ReadLine, ResumeSignal};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::{self, BOLD, DIM, Language, Look, NOTICE};
use crate::screen::wrap::{one_line, padded, shortened, wrapped};
use crate::screen::{Screen, UserMessages};
use crate::shell;
use crate::signals::{Signal, Signals};
use chat_line::{COMMANDS, ChatLine};

pub(super) async fn run(args: args::Chat, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.talk.team.team)?;
    let team = LoadedTeam::load(&file, &args.talk.team.options, &[])?;
    let approvals = Approvals::new(&args.talk.options.approve, &file, Output::Screen, look)?;
    let (conversation, trace) = open_conversation(team, &args.talk.options).await?;
    // Its commands show and delete what is stored, before any message.
    conversation.check().await?;
    let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let (reader, user_messages) = if is_interactive {
        let commands = COMMANDS.iter().map(|command| command.name);
        let reader = LineReader::of_messages(commands.collect())?;
        (reader, UserMessages::Typed)
    } else {
        (LineReader::piped(), UserMessages::Drawn)
    };
    let screen = Screen::of_stdout(look, conversation.team().names());
    let mut chat = Chat {
        conversation,
        approvals,
        screen: screen.user_messages(user_messages),
        out: Box::new(anstream::stdout()),
        look,
        events: Vec::new(),
        saved: HashSet::new(),
    };
    let mut signals = Signals::listen()?;
    if is_interactive {
        chat.greet().await?;
    }
    let exit = chat.run(reader, &mut signals).await;
    chat.conversation.close().await;
    if let Some(trace) = trace {
        trace.finish()?;
    }
    exit
}

/// A chat.
struct Chat {
    conversation: Conversation,
    approvals: Approvals,
    screen: Screen,
    /// The output of commands.
    out: Box<dyn Write + Send>,
    look: Look,
    /// The events so far, for `/save`.
    events: Vec<EventLine>,
    /// The files that this chat wrote and may overwrite.
    saved: HashSet<PathBuf>,
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
            let line = match read {
                ReadLine::Line(line) => line,
                ReadLine::End => return Ok(exit),
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
            match ChatLine::from(line.as_str()) {
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
                ChatLine::Command(command, _) if command.name == "decide" => {
                    reader.store(&line);
                    let outcome = self.decide(&mut reader, signals).await?;
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
        let mut sink = (&mut self.screen, &mut self.events);
        let outcome = self.conversation.send(message, &mut sink, signals).await?;
        let outcome = self.settle(outcome, reader, signals).await?;
        let is_storable = self.events[first..].iter().all(|line| {
            !matches!(&line.event.kind, EventKind::Guardrail { on: GuardrailKind::Input, result, .. }
                if result.outcome != GuardrailOutcome::Allowed)
        });
        Ok((outcome, is_storable))
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
        let mut sink = (&mut self.screen, &mut self.events);
        let outcome = self.conversation.show_waiting(&mut sink, signals).await?;
        self.settle(outcome, reader, signals).await
    }

    async fn settle(
        &mut self,
        outcome: RunOutcome,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut sink = (&mut self.screen, &mut self.events);
        let conversation = &mut self.conversation;
        let reader = Some(reader);
        let settled = self
            .approvals
            .settle(outcome, conversation, reader, &mut sink, signals);
        settled.await
    }

    /// Runs a command. Breaks if the chat ends.
    async fn command(&mut self, name: &str, argument: &str) -> Result<ControlFlow<()>, Failure> {
        match name {
            "quit" => return Ok(ControlFlow::Break(())),
            "help" => self.help()?,
            "agents" => self.agents()?,
            "graph" => {
                let open = &self.conversation.team().open;
                let graph = open.team().graph_with(open.config().tool_names);
                write!(self.out, "{}", graph.to_mermaid())?;
            }
            "history" => self.history().await?,
            "reset" => match self.conversation.reset().await {
                Ok(()) => {
                    self.events.clear();
                    self.note_in(
                        "Forgotten; a new conversation begins.",
                        "已清除，开始新的对话。",
                    )?;
                }
                Err(failure) => self.note(&failure.to_string())?,
            },
            "save" => self.save(argument)?,
            _ => {}
        }
        self.out.flush()?;
        Ok(ControlFlow::Continue(()))
    }

    fn unknown_command(&mut self, name: &str, suggestion: Option<&str>) -> io::Result<()> {
        match suggestion {
            Some(suggestion) => self.note_in(
                &format!("there is no command /{name}: did you mean /{suggestion}?"),
                &format!("没有命令 /{name}：您是不是想输入 /{suggestion}？"),
            ),
            None => self.note_in(
                &format!(
                    "there is no command /{name}: /help lists them; a message that begins with / \
                     is written with //"
                ),
                &format!("没有命令 /{name}：/help 查看命令；以 / 开头的消息请写成 //"),
            ),
        }
    }

    fn help(&mut self) -> io::Result<()> {
        for command in COMMANDS {
            let usage = padded(&format!("/{}", command.usage), 14);
            let usage = self.look.paint(BOLD, &usage);
            let about = wrapped(command.about(self.look.language), self.look.width, 14, 14);
            writeln!(self.out, "{usage}{about}")?;
        }
        self.note_in(
            "All else is said to the agent in the prompt; a message that begins with / is \
             written with //. Ctrl-C stops an answer.",
            "其他内容都会说给提示符中的成员；以 / 开头的消息请写成 //。Ctrl-C 停止回答。",
        )
    }

    fn agents(&mut self) -> io::Result<()> {
        let team = self.conversation.team();
        let widest = team.names().map(|name| one_line(name).width()).max();
        let widest = widest.unwrap_or(0).min(24);
        for (position, agent) in team.agents().iter().enumerate() {
            let mark = if agent.name() == self.conversation.agent() {
                "* "
            } else {
                "  "
            };
            let name = padded(&one_line(agent.name()), widest);
            let name = self.look.paint(style::of_agent(position), &name);
            let model = team.open.model_name(agent.name());
            let model = model.map(|model| format!(" [{model}]")).unwrap_or_default();
            let about = format!("{}{model}", agent.description().unwrap_or_default());
            let indent = widest + 4;
            let about = wrapped(about.trim(), self.look.width, indent, indent);
            writeln!(self.out, "{mark}{name}  {about}")?;
        }
        Ok(())
    }

    async fn history(&mut self) -> io::Result<()> {
        let items = match self.conversation.store().items().await {
            Ok(items) => items,
            Err(failure) => return self.note(&failure.to_string()),
        };
        if items.is_empty() {
            self.note_in("Nothing has been said yet.", "还没有对话。")?;
        }
        for item in &items {
            let (author, style, text) = describe_item(item, self.look.language);
            let author = padded(&one_line(&author), 9);
            let text = wrapped(&text, self.look.width, 11, 11);
            writeln!(self.out, "{}  {text}", self.look.paint(style, &author))?;
        }
        Ok(())
    }

    /// Writes the events to a file for `replay`.
    fn save(&mut self, file: &str) -> io::Result<()> {
        if file.is_empty() {
            return self.note_in(
                "say where to, as in /save chat.jsonl",
                "请写明文件名，例如 /save chat.jsonl",
            );
        }
        let path = PathBuf::from(file);
        if atomic_write::exists(&path) && !self.saved.contains(&path) {
            let name = one_line(file);
            return self.note_in(
                &format!("{name} is there already and was left as it is; save under another name"),
                &format!("{name} 已经存在，没有改动；请换一个文件名"),
            );
        }
        let mut lines = JsonLines(Vec::new());
        self.events.iter().try_for_each(|line| lines.write(line))?;
        match atomic_write::write(&[(path.clone(), &lines.0)]) {
            Ok(()) => {
                let (name, quoted) = (one_line(file), shell::quoted(&path));
                self.saved.insert(path);
                let count = self.events.len();
                self.note_in(
                    &format!("{count} events are in {name}: switchboard replay {quoted}"),
                    &format!("{name} 中有 {count} 个事件：switchboard replay {quoted}"),
                )
            }
            Err(failure) => self.note(&failure.to_string()),
        }
    }

    /// Prints a note in the reader's language.
    fn note_in(&mut self, en: &str, zh: &str) -> io::Result<()> {
        self.note(self.look.language.choose(en, zh))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let text = wrapped(text, self.look.width, 0, 0);
        writeln!(self.out, "{}", self.look.paint(DIM, &text))
    }
}

/// The author of an item, the style of its name, and the item's text.
fn describe_item(item: &Item, language: Language) -> (String, Style, String) {
    let text = || item.text().unwrap_or_default().trim().to_owned();
    match (item.role().as_deref(), item.kind()) {
        (Some("user"), _) => (language.user().to_owned(), BOLD, text()),
        (Some(role), _) => (role.to_owned(), style::of_agent(0), text()),
        (None, ItemKind::FunctionCall | ItemKind::CustomToolCall) => {
            let name = item.name().unwrap_or_default();
            let arguments = item.arguments().unwrap_or_default();
            ("call".to_owned(), DIM, format!("{name} {arguments}"))
        }
        (None, kind) if kind.is_output() => {
            let output = item.output_text().unwrap_or_default();
            ("output".to_owned(), DIM, output.into_owned())
        }
        (None, _) => {
            let kind = item.type_name().unwrap_or_default().into_owned();
            (kind, NOTICE, text())
        }
    }
}
