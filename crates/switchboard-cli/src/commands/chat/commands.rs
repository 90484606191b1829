//! The commands of a chat.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use unicode_width::UnicodeWidthStr as _;

use super::chat_line::COMMANDS;
use super::{Chat, sent};
use crate::atomic_write;
use crate::commands::graph;
use crate::event_sink::{EventSink as _, JsonLines};
use crate::failure::Failure;
use crate::loaded_team::LoadedTeam;
use crate::screen::style::{self, BOLD};
use crate::screen::wrap::{one_line, padded, shortened, wrapped};
use crate::shell;
use crate::transcript::Transcript;
use crate::translate::translate;

impl Chat {
    /// Runs a command. Breaks if the chat ends.
    pub(super) async fn command(
        &mut self,
        name: &str,
        argument: &str,
    ) -> Result<ControlFlow<()>, Failure> {
        match name {
            "quit" => return Ok(ControlFlow::Break(())),
            "help" => self.help()?,
            "agents" => self.agents()?,
            "graph" => {
                let open = &self.conversation.team().open;
                let graph = open.team().graph_with(open.config().tool_names);
                graph::write_tree(&graph, self.look, &mut self.out)?;
            }
            "history" => self.history().await?,
            "undo" => self.undo().await?,
            "fork" => self.fork(argument).await?,
            "agent" => self.give_to(argument).await?,
            "model" => self.set_model(argument)?,
            "context" => self.set_context(argument)?,
            "sent" => sent::write(
                self.conversation.last_request().as_ref(),
                self.look,
                &mut self.out,
            )?,
            "reset" => match self.conversation.reset().await {
                Ok(()) => {
                    self.events.clear();
                    self.sent.clear();
                    self.was_given = false;
                    self.note_in(
                        "Forgotten; a new conversation begins.",
                        "已清除，开始新的对话。",
                    )?;
                }
                Err(failure) => self.note_failure(&failure)?,
            },
            "save" => self.save(argument)?,
            _ => {}
        }
        self.out.flush()?;
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn unknown_command(
        &mut self,
        name: &str,
        suggestion: Option<&str>,
    ) -> io::Result<()> {
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
        let record = match self.conversation.store().record().await {
            Ok(record) => record,
            Err(failure) => return self.note_failure(&failure),
        };
        let transcript = Transcript::new(&record);
        if transcript.is_empty() {
            self.note_in("Nothing has been said yet.", "还没有对话。")?;
        }
        transcript.write(self.look, &mut self.out)
    }

    async fn undo(&mut self) -> io::Result<()> {
        let given = self.was_given.then(|| self.conversation.agent().to_owned());
        match self.take_back().await {
            Ok(Some(message)) => {
                let message = shortened(&one_line(&message), 60).into_owned();
                self.note_in(
                    &format!("Taken back: {message}"),
                    &format!("已撤回：{message}"),
                )?;
                let agent = one_line(self.conversation.agent()).into_owned();
                match given {
                    Some(given) if given != self.conversation.agent() => self.note_in(
                        &format!("{agent} has the conversation again."),
                        &format!("现在又由 {agent} 回答。"),
                    ),
                    _ => Ok(()),
                }
            }
            Ok(None) => self.note_in("There is nothing to take back.", "没有可以撤回的内容。"),
            Err(failure) => self.note_failure(&failure),
        }
    }

    async fn fork(&mut self, name: &str) -> io::Result<()> {
        if !self.is_stored {
            return self.note_in(
                "This chat is not stored, so it cannot be copied; begin it with --session NAME.",
                "本次对话没有保存，无法复制；请用 --session NAME 开始。",
            );
        }
        if name.is_empty() {
            return self.note_in(
                "say what the copy is called, as in /fork tuesday-2",
                "请写明副本的名称，例如 /fork tuesday-2",
            );
        }
        let before = self.conversation.store().end().await.unwrap_or(0);
        match self.conversation.fork(name).await {
            Ok(()) => {
                // The positions of a copy count from 0.
                let after = self.conversation.store().end().await.unwrap_or(before);
                for sent in &mut self.sent {
                    sent.position = sent.position.saturating_sub(before.saturating_sub(after));
                }
                let name = one_line(name);
                self.note_in(
                    &format!("This is {name} now; the session before stays as it was."),
                    &format!("现在是会话 {name}；之前的会话保持不变。"),
                )
            }
            Err(failure) => self.note_failure(&failure),
        }
    }

    async fn give_to(&mut self, name: &str) -> io::Result<()> {
        if name.is_empty() {
            let agent = self.conversation.agent().to_owned();
            return self.note_in(
                &format!("{agent} has the conversation; /agent NAME gives it to another."),
                &format!("现在由 {agent} 回答；/agent NAME 可以换人。"),
            );
        }
        if self.conversation.waiting().is_some() {
            return self.note_in(
                "Something waits for a decision; /decide it first.",
                "有操作在等待决定；请先 /decide。",
            );
        }
        match self.conversation.give_to(name).await {
            Ok(()) => {
                self.was_given = true;
                let agent = one_line(self.conversation.agent()).into_owned();
                self.note_in(
                    &format!("{agent} has the conversation now."),
                    &format!("现在由 {agent} 回答。"),
                )
            }
            Err(failure) => self.note_failure(&failure),
        }
    }

    fn set_model(&mut self, name: &str) -> io::Result<()> {
        if name.is_empty() {
            self.agents()?;
            return self.note_in(
                "/model NAME gives all agents another model.",
                "/model NAME 可以给所有成员换模型。",
            );
        }
        let mut options = self.team_options.clone();
        options.model = Some(name.to_owned());
        // `--base-url` is that of other models, also of the next one that is chosen.
        match LoadedTeam::load_with_any_server(&self.file, &options, &[]) {
            Ok(team) => {
                self.team_options = options;
                let team = team.with_context_of(self.conversation.team());
                self.conversation.set_team(team);
                let name = one_line(name);
                self.note_in(
                    &format!("All agents have the model {name} now."),
                    &format!("所有成员现在使用模型 {name}。"),
                )
            }
            Err(failure) => self.note_failure(&failure),
        }
    }

    fn set_context(&mut self, argument: &str) -> io::Result<()> {
        let team = self.conversation.team();
        if argument.is_empty() {
            let values = team.open.context().values();
            if values.is_empty() {
                return self.note_in(
                    "The team file has no [context].",
                    "团队文件没有 [context]。",
                );
            }
            for (path, value) in values {
                let text = wrapped(&value.to_string(), self.look.width, path.len() + 3, 4);
                writeln!(self.out, "{} = {text}", self.look.paint(BOLD, &path))?;
            }
            return Ok(());
        }
        let Some((key, value)) = argument.split_once('=') else {
            return self.note_in(
                "write it as KEY=VALUE, as in /context tier=premium",
                "请写成 KEY=VALUE，例如 /context tier=premium",
            );
        };
        match team.with_value(key.trim(), value.trim()) {
            Ok(team) => {
                self.conversation.set_team(team);
                self.set_context("")
            }
            Err(problem) => self.note(&translate(&problem, self.look.language)),
        }
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
        if self.events.is_empty() {
            return self.note_in("There is nothing to save yet.", "还没有可以保存的内容。");
        }
        let mut lines = JsonLines::new(Vec::new(), self.look.language);
        self.events.iter().try_for_each(|line| lines.write(line))?;
        match atomic_write::write(&[(path.clone(), &lines.into_inner())]) {
            Ok(()) => {
                let (name, quoted) = (one_line(file), shell::quoted(&path));
                self.saved.insert(path);
                let count = self.events.len();
                self.note_in(
                    &format!("{count} events are in {name}: switchboard replay {quoted}"),
                    &format!("{name} 中有 {count} 个事件：switchboard replay {quoted}"),
                )
            }
            Err(failure) => self.note_failure(&failure),
        }
    }
}
