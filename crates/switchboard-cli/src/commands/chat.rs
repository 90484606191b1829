//! `switchboard chat`: a conversation in the terminal.

mod lines;
mod terminal_mode;
mod typed;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use switchboard_core::{Item, ItemKind};

use super::conversation;
use crate::args;
use crate::atomic_write;
use crate::audience::{Audience as _, JsonLines};
use crate::conversation::{Answered, Conversation};
use crate::event::Line;
use crate::failure::{Exit, Failure};
use crate::open;
use crate::screen::style::{self, BOLD, DIM, Language, Look, NOTICE};
use crate::screen::wrap::{one_line, padded, shortened, wrapped};
use crate::screen::{Screen, UserWords};
use crate::shell;
use crate::signals::{Signal, Signals};
use lines::{Lines, Prompt, Read};
use terminal_mode::Resumed;
use typed::{COMMANDS, Typed};
use unicode_width::UnicodeWidthStr as _;

pub(super) async fn run(args: args::Chat, look: Look) -> Result<Exit, Failure> {
    let desk = open::team(&args.talk.team)?;
    let (conversation, trace) = conversation(desk, &args.talk).await?;
    let is_watched = io::stdin().is_terminal() && io::stdout().is_terminal();
    let (lines, user) = if is_watched {
        (Lines::edited()?, UserWords::Typed)
    } else {
        (Lines::piped(), UserWords::Shown)
    };
    let mut chat = Chat {
        conversation,
        screen: Screen::of_stdout(look).user_words(user),
        out: Box::new(anstream::stdout()),
        look,
        recorded: Vec::new(),
        saved: HashSet::new(),
    };
    let mut signals = Signals::listen()?;
    if is_watched {
        chat.greet().await?;
    }
    let exit = chat.talk(lines, &mut signals).await;
    chat.conversation.end().await;
    if let Some(trace) = trace {
        trace.finish()?;
    }
    exit
}

/// A chat under way.
struct Chat {
    conversation: Conversation,
    screen: Screen,
    /// Where answers to what starts with a slash go.
    out: Box<dyn Write + Send>,
    look: Look,
    /// What happened, for `/save`.
    recorded: Vec<Line>,
    /// Files that this chat wrote, and may write over.
    saved: HashSet<PathBuf>,
}

/// Whether a chat goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

impl Chat {
    async fn greet(&mut self) -> Result<(), Failure> {
        let items = self.conversation.kept().items().await?.len();
        let (name, agent) = (&self.conversation.desk().name, self.conversation.agent());
        let text = match (self.look.language, items) {
            (Language::En, 0) => {
                format!("{name}: {agent} will answer. /help lists commands, Ctrl-D leaves.")
            }
            (Language::En, items) => format!(
                "{name}: going on with {agent}, {items} items so far. /history shows them, /reset \
                 forgets them, Ctrl-D leaves."
            ),
            (Language::Zh, 0) => format!("{name}：由 {agent} 回答。/help 查看命令，Ctrl-D 退出。"),
            (Language::Zh, items) => format!(
                "{name}：继续与 {agent} 的对话，已有 {items} 条。/history 查看，/reset 清除，Ctrl-D 退出。"
            ),
        };
        let text = wrapped(&text, self.look.width, 0, 0);
        writeln!(self.out, "{}", self.look.paint(DIM, &text))?;
        Ok(())
    }

    /// Answers line after line, until there is none.
    async fn talk(&mut self, mut lines: Lines, signals: &mut Signals) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        let mut wants_to_leave = false;
        let mut resumed = Resumed::listen()?;
        loop {
            let read = tokio::select! {
                read = lines.next(self.prompt()) => read,
                () = resumed.next() => {
                    lines.resume();
                    continue;
                }
                signal = signals.next() => match signal {
                    Signal::Interrupt if lines.are_edited() => Read::Interrupted,
                    signal => return Ok(signal.exit()),
                },
            };
            let line = match read {
                Read::Line(line) => line,
                Read::End => return Ok(exit),
                Read::Failed(error) => {
                    return Err(Failure::unreadable(Path::new("standard input"), &error));
                }
                Read::Interrupted if wants_to_leave => return Ok(exit),
                Read::Interrupted => {
                    wants_to_leave = true;
                    self.note(match self.look.language {
                        Language::En => "Ctrl-C again leaves, as does Ctrl-D.",
                        Language::Zh => "再按一次 Ctrl-C 或按 Ctrl-D 退出。",
                    })?;
                    continue;
                }
            };
            wants_to_leave = false;
            self.look_again();
            match Typed::from(line.as_str()) {
                Typed::Nothing => {}
                Typed::Message(message) => {
                    let answered = self.say(message, signals).await?;
                    if lines.are_edited() {
                        // The next prompt stands apart from the answer.
                        writeln!(self.out)?;
                    }
                    match answered {
                        Answered::Finished => {}
                        // Who talks sees it; who pipes lines in looks at the exit code.
                        Answered::Failed(failed) if !lines.are_edited() && exit == Exit::Ok => {
                            exit = failed;
                        }
                        Answered::Failed(_) => {}
                        Answered::Stopped(Signal::Interrupt) if lines.are_edited() => {}
                        Answered::Stopped(signal) => return Ok(signal.exit()),
                    }
                }
                Typed::Command(command, rest) => {
                    if self.obey(command.name, rest).await? == Next::Leave {
                        return Ok(exit);
                    }
                }
                Typed::Unknown { written, meant } => {
                    self.unknown(written, meant)?;
                }
            }
        }
    }

    fn prompt(&self) -> Prompt {
        let agent = self.conversation.agent();
        let place = self
            .conversation
            .desk()
            .names()
            .iter()
            .position(|name| name == agent);
        let agent = shortened(&one_line(agent), 24).into_owned();
        let agent_shown = self.look.paint(style::of_agent(place.unwrap_or(0)), &agent);
        let you = self.look.language.user();
        let you_shown = self.look.paint(BOLD, you);
        Prompt {
            raw: format!("{you} → {agent}> "),
            styled: format!("{you_shown} → {agent_shown}> "),
        }
    }

    async fn say(&mut self, message: &str, signals: &mut Signals) -> Result<Answered, Failure> {
        let mut both = (&mut self.screen, &mut self.recorded);
        self.conversation.say(message, &mut both, signals).await
    }

    /// The terminal may have been resized since the last line.
    fn look_again(&mut self) {
        self.look = Look::of_stdout(self.look.language);
    }

    async fn obey(&mut self, command: &str, rest: &str) -> Result<Next, Failure> {
        match command {
            "quit" => return Ok(Next::Leave),
            "help" => self.help()?,
            "agents" => self.agents()?,
            "graph" => {
                let graph = &self.conversation.desk().graph;
                write!(self.out, "{}", graph.to_mermaid())?;
            }
            "history" => self.history().await?,
            "reset" => match self.conversation.reset().await {
                Ok(()) => {
                    self.recorded.clear();
                    self.note(match self.look.language {
                        Language::En => "Forgotten; a new conversation begins.",
                        Language::Zh => "已清除，开始新的对话。",
                    })?;
                }
                Err(failure) => self.note(&failure.to_string())?,
            },
            "save" => self.save(rest)?,
            _ => {}
        }
        self.out.flush()?;
        Ok(Next::GoOn)
    }

    fn unknown(&mut self, written: &str, meant: Option<&str>) -> io::Result<()> {
        self.note(&match (self.look.language, meant) {
            (Language::En, Some(meant)) => {
                format!("there is no command /{written}: did you mean /{meant}?")
            }
            (Language::En, None) => format!(
                "there is no command /{written}: /help lists them; a message that begins with / is \
                 written with //"
            ),
            (Language::Zh, Some(meant)) => {
                format!("没有命令 /{written}：您是不是想输入 /{meant}？")
            }
            (Language::Zh, None) => {
                format!("没有命令 /{written}：/help 查看命令；以 / 开头的消息请写成 //")
            }
        })
    }

    fn help(&mut self) -> io::Result<()> {
        for command in COMMANDS {
            let usage = padded(&format!("/{}", command.usage), 14);
            let usage = self.look.paint(BOLD, &usage);
            let about = wrapped(command.about(self.look.language), self.look.width, 14, 14);
            writeln!(self.out, "{usage}{about}")?;
        }
        self.note(match self.look.language {
            Language::En => {
                "All else is said to the agent in the prompt; a message that begins with / is \
                 written with //. Ctrl-C stops an answer."
            }
            Language::Zh => {
                "其他内容都会说给提示符中的成员；以 / 开头的消息请写成 //。Ctrl-C 停止回答。"
            }
        })
    }

    fn agents(&mut self) -> io::Result<()> {
        let desk = self.conversation.desk();
        let names = desk.names();
        let widest = names.iter().map(|name| one_line(name).width()).max();
        let widest = widest.unwrap_or(0).min(24);
        for (place, agent) in desk.agents.iter().enumerate() {
            let mark = if agent.name() == self.conversation.agent() {
                "* "
            } else {
                "  "
            };
            let name = padded(&one_line(agent.name()), widest);
            let name = self.look.paint(style::of_agent(place), &name);
            let model = desk.models.get(agent.name());
            let model = model.map(|model| format!(" [{model}]")).unwrap_or_default();
            let about = format!("{}{model}", agent.description().unwrap_or_default());
            let indent = widest + 4;
            let about = wrapped(about.trim(), self.look.width, indent, indent);
            writeln!(self.out, "{mark}{name}  {about}")?;
        }
        Ok(())
    }

    async fn history(&mut self) -> io::Result<()> {
        let items = match self.conversation.kept().items().await {
            Ok(items) => items,
            Err(failure) => return self.note(&failure.to_string()),
        };
        if items.is_empty() {
            self.note(match self.look.language {
                Language::En => "Nothing has been said yet.",
                Language::Zh => "还没有对话。",
            })?;
        }
        for item in &items {
            let (who, style, text) = shown(item, self.look.language);
            let who = padded(&one_line(&who), 9);
            let text = wrapped(&text, self.look.width, 11, 11);
            writeln!(self.out, "{}  {text}", self.look.paint(style, &who))?;
        }
        Ok(())
    }

    /// Writes the conversation as `replay` reads it.
    fn save(&mut self, file: &str) -> io::Result<()> {
        if file.is_empty() {
            return self.note(match self.look.language {
                Language::En => "say where to, as in /save chat.jsonl",
                Language::Zh => "请写明文件名，例如 /save chat.jsonl",
            });
        }
        let path = PathBuf::from(file);
        if atomic_write::is_there(&path) && !self.saved.contains(&path) {
            let name = one_line(file);
            return self.note(&match self.look.language {
                Language::En => format!(
                    "{name} is there already and was left as it is; save under another name"
                ),
                Language::Zh => format!("{name} 已经存在，没有改动；请换一个文件名"),
            });
        }
        let mut lines = JsonLines(Vec::new());
        self.recorded.iter().try_for_each(|line| lines.told(line))?;
        match atomic_write::write(&[(path.clone(), &lines.0)]) {
            Ok(()) => {
                let (name, quoted) = (one_line(file), shell::quoted(&path));
                self.saved.insert(path);
                let count = self.recorded.len();
                self.note(&match self.look.language {
                    Language::En => {
                        format!("{count} events are in {name}: switchboard replay {quoted}")
                    }
                    Language::Zh => {
                        format!("{name} 中有 {count} 个事件：switchboard replay {quoted}")
                    }
                })
            }
            Err(failure) => self.note(&failure.to_string()),
        }
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let text = wrapped(text, self.look.width, 0, 0);
        writeln!(self.out, "{}", self.look.paint(DIM, &text))
    }
}

/// An item of a conversation: whose it is, and what it says.
fn shown(item: &Item, language: Language) -> (String, Style, String) {
    let text = || item.text().unwrap_or_default().trim().to_owned();
    match (item.role().as_deref(), item.kind()) {
        (Some("user"), _) => (language.user().to_owned(), BOLD, text()),
        (Some(role), _) => (role.to_owned(), style::of_agent(0), text()),
        (None, ItemKind::FunctionCall) => {
            let name = item.name().unwrap_or_default();
            let arguments = item.arguments().unwrap_or_default();
            ("call".to_owned(), DIM, format!("{name} {arguments}"))
        }
        (None, kind) if kind.is_output() => {
            let output = item.output().unwrap_or_default();
            ("output".to_owned(), DIM, output.into_owned())
        }
        (None, _) => {
            let kind = item.type_name().unwrap_or_default().into_owned();
            (kind, NOTICE, text())
        }
    }
}
