//! What a line means that was typed into a chat.

use crate::screen::style::Language;
use switchboard_teamfile::closest;

/// A line that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// An empty line.
    Nothing,
    /// Something to say to the team.
    Message(&'a str),
    /// A command, and what stands behind it.
    Command(&'static Command, &'a str),
    /// A command that there is not.
    Unknown {
        /// What was written.
        written: &'a str,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Its name.
    pub(super) name: &'static str,
    /// How it is written.
    pub(super) usage: &'static str,
    about: &'static str,
    about_zh: &'static str,
}

impl Command {
    /// What it does.
    pub(super) const fn about(&self, language: Language) -> &'static str {
        match language {
            Language::En => self.about,
            Language::Zh => self.about_zh,
        }
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
        name: "graph",
        usage: "graph",
        about: "the team as a drawing for Mermaid",
        about_zh: "团队结构图（Mermaid）",
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

impl<'a> From<&'a str> for Typed<'a> {
    fn from(line: &'a str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        let Some(command) = line.strip_prefix('/') else {
            return Self::Message(line);
        };
        if command.starts_with('/') {
            return Self::Message(command);
        }
        let (written, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        let name = match written {
            "exit" | "q" => "quit",
            "?" => "help",
            written => written,
        };
        match COMMANDS.iter().find(|command| command.name == name) {
            Some(command) => Self::Command(command, rest.trim()),
            None => Self::Unknown {
                written,
                meant: closest(written, COMMANDS.iter().map(|command| command.name)),
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
            Typed::from("  My bill is wrong "),
            Typed::Message("My bill is wrong")
        );
        assert_eq!(
            Typed::from("//etc/hosts is broken"),
            Typed::Message("/etc/hosts is broken")
        );
        assert_eq!(Typed::from("   "), Typed::Nothing);
    }

    #[test]
    fn a_command_has_the_rest_of_the_line() {
        let Typed::Command(command, rest) = Typed::from("/save my chat.jsonl ") else {
            panic!("not a command");
        };
        assert_eq!((command.name, rest), ("save", "my chat.jsonl"));
    }

    #[test]
    fn a_misspelt_command_gets_a_suggestion() {
        let meant = Some("history");
        let written = "histroy";
        assert_eq!(Typed::from("/histroy"), Typed::Unknown { written, meant });
        let (written, meant) = ("xyz", None);
        assert_eq!(Typed::from("/xyz 1"), Typed::Unknown { written, meant });
    }
}
