//! The texts of replies, in English and Chinese.

use switchboard_core::model::{HandoffSpec, ToolSpec};

use crate::candidates::{Candidates, agent_description};
use crate::language::Language;
use crate::small_talk::SmallTalk;
use crate::text::identifier_words;

/// The maximum number of lines in a list.
const MAX_LINES: usize = 8;
/// The maximum number of characters of a line.
const MAX_LINE: usize = 100;

/// Returns a reply to small talk.
pub(crate) fn small_talk(talk: SmallTalk, candidates: &Candidates, language: Language) -> String {
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
    let list = capabilities(candidates, language);
    match language {
        _ if list.is_empty() => first.to_owned(),
        Language::English => format!("{first} I can help with:\n{list}"),
        Language::Chinese => format!("{first}我可以帮您处理：\n{list}"),
    }
}

/// Returns a question for more detail, for a message that matches nothing.
pub(crate) fn ask_back(candidates: &Candidates, agent: Option<&str>, language: Language) -> String {
    let list = capabilities(candidates, language);
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

/// Returns an answer that may not be what the user asked for.
pub(crate) fn tentative_answer(text: &str, language: Language) -> String {
    match language {
        Language::English => format!("This may help: {text}"),
        Language::Chinese => format!("也许有帮助：{text}"),
    }
}

/// Returns a question which of some handoffs the user wants.
pub(crate) fn which_handoff<'a>(
    handoffs: impl Iterator<Item = &'a HandoffSpec>,
    language: Language,
) -> String {
    let list = list(handoffs.map(|handoff| handoff_line(handoff, language)));
    match language {
        Language::English => format!("Which of these do you mean?\n{list}"),
        Language::Chinese => format!("请问您指的是哪一项？\n{list}"),
    }
}

/// Returns a question for the missing arguments of a tool.
pub(crate) fn ask_for(missing: &[String], language: Language) -> String {
    match language {
        Language::English => format!(
            "To do that I need: {}. Could you tell me?",
            missing.join(", ")
        ),
        Language::Chinese => format!("我还需要：{}。请告诉我。", missing.join("、")),
    }
}

/// Returns the outputs of tools, one per line.
pub(crate) fn tool_results(outputs: &[String], language: Language) -> String {
    let texts: Vec<&str> = outputs
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    match language {
        _ if !texts.is_empty() => texts.join("\n"),
        Language::English => "Done.".to_owned(),
        Language::Chinese => "已完成。".to_owned(),
    }
}

/// Returns a list of the agent's handoffs, tools and knowledge.
fn capabilities(candidates: &Candidates, language: Language) -> String {
    let handoffs = candidates
        .handoffs
        .iter()
        .map(|handoff| handoff_line(handoff, language));
    let tools = candidates
        .tools
        .iter()
        .map(|tool| tool_line(tool, language));
    let knowledge = candidates
        .knowledge
        .iter()
        .filter(|entry| Language::of(&entry.title) == language)
        .map(|entry| truncate(&entry.title));
    list(handoffs.chain(tools).chain(knowledge))
}

fn list(lines: impl Iterator<Item = String>) -> String {
    lines
        .take(MAX_LINES)
        .map(|line| format!("- {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn handoff_line(handoff: &HandoffSpec, language: Language) -> String {
    let description = first_sentence(agent_description(handoff), language);
    if description.is_empty() {
        handoff.to.to_string()
    } else {
        format!("{}: {description}", handoff.to)
    }
}

fn tool_line(tool: &ToolSpec, language: Language) -> String {
    let description = first_sentence(&tool.description, language);
    if description.is_empty() {
        identifier_words(&tool.name).join(" ")
    } else {
        description
    }
}

/// Returns the first sentence in this language, or the first of all if there is none.
fn first_sentence(text: &str, language: Language) -> String {
    let start: String = text.chars().take(2_000).collect();
    let sentences: Vec<&str> = start
        .split_inclusive(['\n', '。'])
        .flat_map(|line| line.split_inclusive(". "))
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    let in_language = sentences
        .iter()
        .find(|sentence| Language::of(sentence) == language);
    truncate(
        in_language
            .or(sentences.first())
            .copied()
            .unwrap_or_default(),
    )
}

fn truncate(text: &str) -> String {
    let text = text.trim().trim_end_matches(['.', '。']);
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
