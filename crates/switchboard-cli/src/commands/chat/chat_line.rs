//! Parses the lines of a chat: messages and commands.

use switchboard_teamfile::closest;

use crate::screen::style::Language;

/// A line of a chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatLine<'a> {
    /// An empty line.
    Empty,
    /// A message to the team.
    Message(&'a str),
    /// A command and its argument.
    Command(&'static Command, &'a str),
    /// A command that does not exist.
    Unknown {
        /// The name as typed.
        name: &'a str,
        /// The command that was probably meant.
        suggestion: Option<&'static str>,
    },
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Its name.
    pub(super) name: &'static str,
    /// Its syntax.
    pub(super) usage: &'static str,
    about: &'static str,
    about_zh: &'static str,
}

impl Command {
    /// Returns `true` if words may follow its name.
    pub(super) fn takes_argument(&self) -> bool {
        self.usage != self.name
    }

    /// Its description.
    pub(super) fn about(&self, language: Language) -> &'static str {
        language.choose(self.about, self.about_zh)
    }
}

/// All commands.
pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "agents",
        usage: "agents",
        about: "who is in the team, and who has the conversation (*)",
        about_zh: "团队成员，以及现在由谁回答（*）",
    },
    Command {
        name: "history",
        usage: "history",
        about: "what was said so far",
        about_zh: "到目前为止的对话",
    },
    Command {
        name: "retry",
        usage: "retry",
        about: "take the last message back and send it again",
        about_zh: "撤回上一条消息并重新发送",
    },
    Command {
        name: "undo",
        usage: "undo",
        about: "take the last message back, with everything that followed",
        about_zh: "撤回上一条消息及其后的一切",
    },
    Command {
        name: "fork",
        usage: "fork NAME",
        about: "go on with a copy of the session",
        about_zh: "复制会话，并在副本中继续",
    },
    Command {
        name: "agent",
        usage: "agent NAME",
        about: "give the conversation to another agent",
        about_zh: "把对话交给另一位成员",
    },
    Command {
        name: "model",
        usage: "model NAME",
        about: "give all agents another model",
        about_zh: "给所有成员换一个模型",
    },
    Command {
        name: "context",
        usage: "context K=V",
        about: "set a value of the context; without K=V, show them",
        about_zh: "设置 context 的值；不写 K=V 则显示",
    },
    Command {
        name: "sent",
        usage: "sent",
        about: "what the model was last sent",
        about_zh: "最近一次发给模型的内容",
    },
    Command {
        name: "decide",
        usage: "decide",
        about: "decide the calls that wait for approval",
        about_zh: "决定等待批准的操作",
    },
    Command {
        name: "graph",
        usage: "graph",
        about: "a drawing of the team",
        about_zh: "团队结构图",
    },
    Command {
        name: "save",
        usage: "save FILE",
        about: "write what happened to a file that `switchboard replay` shows again",
        about_zh: "把经过写入文件，用 `switchboard replay` 可以重放",
    },
    Command {
        name: "reset",
        usage: "reset",
        about: "forget the conversation and begin with the first agent",
        about_zh: "清除对话，从第一位成员重新开始",
    },
    Command {
        name: "help",
        usage: "help",
        about: "this list",
        about_zh: "本列表",
    },
    Command {
        name: "quit",
        usage: "quit",
        about: "leave; Ctrl-D does as well",
        about_zh: "退出，与 Ctrl-D 相同",
    },
];

impl<'a> From<&'a str> for ChatLine<'a> {
    fn from(line: &'a str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Empty;
        }
        let Some(command) = line.strip_prefix('/') else {
            return Self::Message(line);
        };
        if command.starts_with('/') {
            return Self::Message(command);
        }
        let (name, argument) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        let full_name = match name {
            "exit" | "q" => "quit",
            "?" => "help",
            name => name,
        };
        match COMMANDS.iter().find(|command| command.name == full_name) {
            Some(command) => Self::Command(command, argument.trim()),
            None => Self::Unknown {
                name,
                suggestion: closest(name, COMMANDS.iter().map(|command| command.name)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_unless_it_begins_with_a_slash() {
        assert_eq!(
            ChatLine::from("  My bill is wrong "),
            ChatLine::Message("My bill is wrong")
        );
        assert_eq!(
            ChatLine::from("//etc/hosts is broken"),
            ChatLine::Message("/etc/hosts is broken")
        );
        assert_eq!(ChatLine::from("   "), ChatLine::Empty);
    }

    #[test]
    fn the_rest_of_the_line_is_the_argument() {
        let ChatLine::Command(command, argument) = ChatLine::from("/save my chat.jsonl ") else {
            panic!("not a command");
        };
        assert_eq!((command.name, argument), ("save", "my chat.jsonl"));
    }

    #[test]
    fn a_misspelt_command_gets_a_suggestion() {
        let (name, suggestion) = ("histroy", Some("history"));
        assert_eq!(
            ChatLine::from("/histroy"),
            ChatLine::Unknown { name, suggestion }
        );
        let (name, suggestion) = ("xyz", None);
        assert_eq!(
            ChatLine::from("/xyz 1"),
            ChatLine::Unknown { name, suggestion }
        );
    }
}
