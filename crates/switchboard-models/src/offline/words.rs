//! What the offline model says, in the user's language.

use switchboard_core::{HandoffSpec, Knowledge, ToolSpec};

use super::board::{Board, about_colleague};
use super::fields::words_of;
use super::small_talk::SmallTalk;
use super::text::Language;

/// The most things listed, and the most letters of each.
const MOST_LISTED: usize = 8;
const LONGEST_LINE: usize = 100;

/// What stands under every answer in words, so that nobody takes it for a language model's.
pub(super) const fn note(language: Language) -> &'static str {
    match language {
        Language::English => "(offline model)",
        Language::Chinese => "（离线模型）",
    }
}

/// An answer to small talk.
pub(super) fn small_talk(talk: SmallTalk, board: &Board, language: Language) -> String {
    let first = match (talk, language) {
        (SmallTalk::Greeting, Language::English) => "Hello!",
        (SmallTalk::Greeting, Language::Chinese) => "您好！",
        (SmallTalk::Thanks, Language::English) => return "You're welcome.".to_owned(),
        (SmallTalk::Thanks, Language::Chinese) => return "不客气。".to_owned(),
        (SmallTalk::WhoAreYou, Language::English) => {
            "I'm a program, not a person, and not a language model either: I compare words and pass \
             you on, use a tool, or give you a prepared answer."
        }
        (SmallTalk::WhoAreYou, Language::Chinese) => {
            "我是一个程序，不是真人，也不是大语言模型：我按词语的相关程度转接、调用工具，或给出准备好的答案。"
        }
    };
    match listed(board, language) {
        list if list.is_empty() => first.to_owned(),
        list => match language {
            Language::English => format!("{first} I can help with:\n{list}"),
            Language::Chinese => format!("{first}我可以帮您处理：\n{list}"),
        },
    }
}

/// A question back, where nothing fits.
pub(super) fn ask_back(board: &Board, agent: Option<&str>, language: Language) -> String {
    let list = listed(board, language);
    match (language, list.is_empty(), agent) {
        (Language::English, false, _) => {
            format!("I'm not sure what you need. I can help with:\n{list}\nWhat is it about?")
        }
        (Language::Chinese, false, _) => {
            format!("我不太确定您需要什么。我可以帮您处理：\n{list}\n请问是哪一方面的问题？")
        }
        (Language::English, true, Some(agent)) => format!(
            "This is {agent}. I have no prepared answer to that. Could you tell me more, or put it differently?"
        ),
        (Language::Chinese, true, Some(agent)) => {
            format!(
                "这里是 {agent}。这个问题我没有准备好的答案，能说得更详细一些，或者换个说法吗？"
            )
        }
        (Language::English, true, None) => {
            "I have no prepared answer to that. Could you tell me more, or put it differently?"
                .to_owned()
        }
        (Language::Chinese, true, None) => {
            "这个问题我没有准备好的答案，能说得更详细一些，或者换个说法吗？".to_owned()
        }
    }
}

/// An answer that may not be what was asked for.
pub(super) fn perhaps(text: &str, language: Language) -> String {
    match language {
        Language::English => format!("This may help: {text}"),
        Language::Chinese => format!("也许有帮助：{text}"),
    }
}

/// A question which of two colleagues is meant.
pub(super) fn which(one: &HandoffSpec, other: &HandoffSpec, language: Language) -> String {
    let (one, other) = (colleague(one, language), colleague(other, language));
    match language {
        Language::English => format!("Which of these is it about?\n- {one}\n- {other}"),
        Language::Chinese => format!("请问是哪一方面的问题？\n- {one}\n- {other}"),
    }
}

/// A question for what a tool needs.
pub(super) fn ask_for(missing: &[String], language: Language) -> String {
    match language {
        Language::English => format!(
            "To do that I need: {}. Could you tell me?",
            missing.join(", ")
        ),
        Language::Chinese => format!("我还需要：{}。请告诉我。", missing.join("、")),
    }
}

/// What tools answered.
pub(super) fn from_outputs(outputs: &[String], language: Language) -> String {
    let texts = outputs
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty());
    match (texts.collect::<Vec<_>>().join("\n"), language) {
        (text, Language::English) if text.is_empty() => "Done.".to_owned(),
        (text, Language::Chinese) if text.is_empty() => "已完成。".to_owned(),
        (text, _) => text,
    }
}

/// What the agent can do, a line each.
fn listed(board: &Board, language: Language) -> String {
    let colleagues = board
        .handoffs
        .iter()
        .map(|handoff| colleague(handoff, language));
    let tools = board.tools.iter().map(|tool| tool_line(tool, language));
    let known = board
        .knowledge
        .iter()
        .filter(|entry| is_in(entry, language));
    let known = known.map(|entry| shortened(&entry.title));
    let lines = colleagues.chain(tools).chain(known).take(MOST_LISTED);
    lines
        .map(|line| format!("- {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_in(entry: &Knowledge, language: Language) -> bool {
    Language::of(&entry.title) == language
}

fn colleague(handoff: &HandoffSpec, language: Language) -> String {
    match in_language(about_colleague(handoff), language) {
        text if text.is_empty() => handoff.agent_name.to_string(),
        text => format!("{}: {text}", handoff.agent_name),
    }
}

fn tool_line(tool: &ToolSpec, language: Language) -> String {
    match in_language(&tool.description, language) {
        text if text.is_empty() => words_of(&tool.name).join(" "),
        text => text,
    }
}

/// The first sentence in this language, or else the first.
fn in_language(text: &str, language: Language) -> String {
    let start: String = text.chars().take(2_000).collect();
    let sentences = start
        .split_inclusive(['\n', '。'])
        .flat_map(|line| line.split_inclusive(". "));
    let sentences: Vec<&str> = sentences
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    let fitting = sentences
        .iter()
        .find(|sentence| Language::of(sentence) == language);
    shortened(fitting.or(sentences.first()).copied().unwrap_or_default())
}

fn shortened(text: &str) -> String {
    let text = text.trim().trim_end_matches(['.', '。']);
    match text.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
