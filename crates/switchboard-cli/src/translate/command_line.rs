//! The help and the errors of the command line in the reader's language.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::translate;
use crate::screen::style::Language;

/// The layout of help in Chinese.
const TEMPLATE: &str = "{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// The end of the program's short help.
const AFTER_HELP: &str = "\
示例：
  switchboard                                    马上演示一段完整的对话
  switchboard init my-team                       生成一个客服团队作为起点
  switchboard chat my-team/team.toml             与它对话
  switchboard run my-team/team.toml \"我的账单有问题\"";

/// The end of the program's help.
const AFTER_LONG_HELP: &str = "\
示例：
  switchboard                                    马上演示一段完整的对话
  switchboard --lang zh                          用中文演示
  switchboard init my-team                       生成一个客服团队作为起点
  switchboard chat my-team/team.toml             与它对话
  switchboard run my-team/team.toml \"我的账单有问题\"
  switchboard talk --offline                     用语音演示
  switchboard test my-team/team.toml my-team/cases.toml

退出码：
  0    一切正常
  1    检查、测试、运行或 worker 失败
  2    命令行或文件无法使用
  3    护栏中止了运行
  4    无法连接模型，或服务商拒绝
  5    有操作等待决定，或有人被请求回答
  124  运行超过了 --timeout 的时间
  130  被中断（Ctrl-C）
  143  被要求结束（kill）

文件：
  会话和输入历史保存在 $SWITCHBOARD_DATA；默认为
  ~/.local/share/switchboard（$XDG_DATA_HOME/switchboard），macOS 上为
  ~/Library/Application Support/switchboard，Windows 上为 %APPDATA%\\switchboard。

加密：
  设置密钥 $SWITCHBOARD_STORE_KEY（openssl rand -base64 32）后，会话会加密保存。
  $SWITCHBOARD_STORE_OLD_KEYS 中是以前的密钥，以逗号分隔。";

/// Translates the help of a command and of the commands below it.
pub(crate) fn localized(mut command: Command, language: Language) -> Command {
    if language == Language::En {
        return command;
    }
    // The library adds flags and a command `help` of its own.
    command.build();
    localized_built(command, language)
}

fn localized_built(mut command: Command, language: Language) -> Command {
    let usage = localized_usage(&command.render_usage().to_string());
    let mut command = command
        .override_usage(usage)
        .help_template(TEMPLATE)
        .subcommand_help_heading("命令")
        .mut_args(|arg| localized_arg(arg, language))
        .mut_subcommands(|command| localized_built(command, language));
    if let Some(about) = command.get_about() {
        let about = translated(&about.to_string(), language);
        command = command.about(about);
    }
    if let Some(about) = command.get_long_about() {
        let about = translated_paragraphs(&about.to_string(), language);
        command = command.long_about(about);
    }
    // Of the commands, only the program itself has one.
    if command.get_after_long_help().is_some() {
        return command
            .after_help(AFTER_HELP)
            .after_long_help(AFTER_LONG_HELP);
    }
    if let Some(after) = command.get_after_help() {
        let after = after.to_string();
        let lines = after.lines().map(|line| translated_example(line, language));
        let after: Vec<String> = lines.collect();
        command = command.after_help(after.join("\n"));
    }
    command
}

/// Translates the names in a usage that are no arguments, and leaves out its heading.
fn localized_usage(usage: &str) -> String {
    let usage = usage.trim_start_matches("Usage:").trim_start();
    let names = [
        ("[OPTIONS]", "[选项]"),
        ("[COMMAND]", "[命令]"),
        ("<COMMAND>", "<命令>"),
    ];
    names
        .iter()
        .fold(usage.to_owned(), |usage, (name, chinese)| {
            usage.replace(name, chinese)
        })
}

/// Translates a heading or a sentence of the examples, or the remark after an example.
fn translated_example(line: &str, language: Language) -> String {
    let text = line.trim_start();
    let (indent, example) = line.split_at(line.len() - text.len());
    match example.rsplit_once("  ") {
        Some((example, remark)) => format!("{indent}{example}  {}", translate(remark, language)),
        None => format!("{indent}{}", translate(example, language)),
    }
}

fn localized_arg(arg: Arg, language: Language) -> Arg {
    let heading = if arg.is_positional() {
        "参数"
    } else {
        "选项"
    };
    let help = arg.get_help().map(ToString::to_string);
    let long_help = arg.get_long_help().map(ToString::to_string);
    let help = help.map_or_else(String::new, |help| translated(&help, language));
    let long_help = long_help.map_or_else(
        || help.clone(),
        |help| translated_paragraphs(&help, language),
    );
    let values = Values::of(&arg, language);
    let arg = arg.help_heading(heading);
    if values.is_empty() {
        return arg.help(help).long_help(long_help);
    }
    arg.hide_possible_values(true)
        .hide_default_value(true)
        .help(values.after(&help))
        .long_help(values.below(&long_help))
}

/// The values that an argument can have, and the one that it has by default. The library would name them in English.
struct Values {
    /// The values with their descriptions.
    possible: Vec<(String, Option<String>)>,
    default: Option<String>,
}

impl Values {
    fn of(arg: &Arg, language: Language) -> Self {
        if !arg.get_action().takes_values() {
            return Self {
                possible: Vec::new(),
                default: None,
            };
        }
        let possible = if arg.is_hide_possible_values_set() {
            Vec::new()
        } else {
            arg.get_possible_values()
        };
        let possible = possible.iter().filter(|value| !value.is_hide_set());
        let possible = possible.map(|value| {
            let help = value.get_help().map(ToString::to_string);
            let help = help.map(|help| translated(&help, language));
            (value.get_name().to_owned(), help)
        });
        let defaults = arg.get_default_values().iter();
        let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
        let defaults = defaults.collect::<Vec<_>>().join("、");
        let is_shown = !arg.is_hide_default_value_set() && !defaults.is_empty();
        Self {
            possible: possible.collect(),
            default: is_shown.then_some(defaults),
        }
    }

    fn is_empty(&self) -> bool {
        self.possible.is_empty() && self.default.is_none()
    }

    fn default(&self) -> Option<String> {
        let value = self.default.as_ref()?;
        Some(format!("[默认：{value}]"))
    }

    /// The help in one line, with the values after it.
    fn after(&self, help: &str) -> String {
        let names: Vec<&str> = self.possible.iter().map(|(name, _)| &**name).collect();
        let possible = (!names.is_empty()).then(|| format!("[可选值：{}]", names.join("、")));
        let parts = [Some(help.to_owned()), self.default(), possible];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The help with a line for each value below it.
    fn below(&self, help: &str) -> String {
        if self.possible.iter().all(|(_, help)| help.is_none()) {
            let values = self.after("");
            return format!("{help}\n\n{values}").trim().to_owned();
        }
        let values = self.possible.iter().map(|(name, help)| match help {
            Some(help) => format!("- {name}：{help}"),
            None => format!("- {name}"),
        });
        let values = values.collect::<Vec<_>>().join("\n");
        let values = format!("可选值：\n{values}");
        let parts = [Some(help.to_owned()), Some(values), self.default()];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

fn translated(text: &str, language: Language) -> String {
    translate(text.trim(), language).into_owned()
}

/// Translates each paragraph. The source breaks lines within them.
fn translated_paragraphs(text: &str, language: Language) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        let paragraph = words.join(" ");
        // The first sentence has no full stop where it is the summary.
        let known = translated(&paragraph, language);
        if known == paragraph {
            translated(paragraph.trim_end_matches('.'), language)
        } else {
            known
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The text of an error of the command line; `None` if it is told as it is.
pub(crate) fn error_text(error: &clap::Error, language: Language) -> Option<String> {
    if language == Language::En {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join("、")),
        Some(ContextValue::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let arg = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    let message = match error.kind() {
        ErrorKind::UnknownArgument => format!("没有参数 {arg}"),
        ErrorKind::InvalidSubcommand => {
            let command = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("没有命令 {command}")
        }
        ErrorKind::MissingRequiredArgument => format!("缺少参数：{arg}"),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        ErrorKind::InvalidValue if value.is_empty() => format!("{arg} 缺少值"),
        ErrorKind::InvalidValue => format!("{arg} 不能是 {value}"),
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            let reason = source
                .map(|reason| format!("：{}", translate(&reason, language)))
                .unwrap_or_default();
            format!("{arg} 不能是 {value}{reason}")
        }
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg).unwrap_or_default();
            format!("{arg} 不能与 {other} 同时使用")
        }
        ErrorKind::TooManyValues => format!("{arg} 的值太多"),
        _ => return None,
    };
    let suggestion = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let suggestion = suggestion.into_iter().find_map(text);
    let valid = text(ContextKind::ValidValue);
    let mut out = format!("错误：{message}\n");
    if let Some(suggestion) = suggestion {
        out.push_str(&format!("\n  提示：您是不是想写 {suggestion}？\n"));
    } else if let Some(valid) = valid.filter(|valid| !valid.is_empty()) {
        out.push_str(&format!("\n  提示：可以是 {valid}\n"));
    }
    out.push_str("\n更多信息请用 '--help'。\n");
    Some(out)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    /// All English texts of the help, with the command that has them.
    fn untranslated(command: &Command, out: &mut Vec<String>) {
        let mut check = |text: Option<String>| {
            for paragraph in text.unwrap_or_default().split("\n\n") {
                let words: Vec<&str> = paragraph.split_whitespace().collect();
                let words = words.join(" ");
                let same = translated_paragraphs(&words, Language::Zh) == words;
                if same && !words.is_empty() && words != "Mermaid" && words != "Graphviz" {
                    out.push(format!("{}: {words}", command.get_name()));
                }
            }
        };
        check(command.get_about().map(ToString::to_string));
        check(command.get_long_about().map(ToString::to_string));
        for arg in command.get_arguments() {
            check(arg.get_help().map(ToString::to_string));
            check(arg.get_long_help().map(ToString::to_string));
            for value in arg.get_possible_values() {
                check(value.get_help().map(ToString::to_string));
            }
        }
        for command in command.get_subcommands() {
            untranslated(command, out);
        }
    }

    #[test]
    fn all_help_is_translated() {
        let mut missing = Vec::new();
        let mut command = Cli::command();
        command.build();
        untranslated(&command, &mut missing);
        missing.sort();
        missing.dedup();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn the_translated_command_line_is_valid() {
        localized(Cli::command(), Language::Zh).debug_assert();
    }
}
