//! Talk that is not about any topic.

use super::text::{Token, tokens};

/// Small talk that is not about any topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmallTalk {
    Greeting,
    Thanks,
    /// The user asks who answers.
    WhoAreYou,
}

impl SmallTalk {
    /// The small talk that a message is, where it is nothing else.
    pub(super) fn of(message: &str) -> Option<Self> {
        if message.chars().count() > 60 {
            return None;
        }
        let text = spaced(message);
        if WHO.iter().any(|question| text.contains(&spaced(question))) {
            return Some(Self::WhoAreYou);
        }
        match (is_only(&text, GREETINGS), is_only(&text, THANKS)) {
            (true, _) => Some(Self::Greeting),
            (_, true) => Some(Self::Thanks),
            _ => None,
        }
    }
}

/// Whether a text is made of these phrases and fillers, and of one of the phrases at least.
fn is_only(text: &str, phrases: &[&str]) -> bool {
    let without = |text: String, phrases: &[&str]| {
        phrases
            .iter()
            .fold(text, |text, phrase| text.replace(&spaced(phrase), " "))
    };
    let rest = without(text.to_owned(), phrases);
    rest != text && without(rest, FILLERS).trim().is_empty()
}

/// A text in stems and characters, each word with a space on either side.
fn spaced(text: &str) -> String {
    let written = |token: &Token| match token {
        Token::Word(word) => format!(" {word} "),
        Token::Han(c) => c.to_string(),
        Token::Break => " ".to_owned(),
    };
    tokens(text).iter().map(written).collect()
}

/// The longer phrases first.
const GREETINGS: &[&str] = &[
    "good morning",
    "good afternoon",
    "good evening",
    "good day",
    "how are you",
    "hello",
    "hi",
    "hey",
    "greetings",
    "howdy",
    "早上好",
    "上午好",
    "中午好",
    "下午好",
    "晚上好",
    "大家好",
    "你好",
    "您好",
    "哈喽",
    "哈啰",
    "嗨",
    "在吗",
    "在么",
    "早安",
];
const THANKS: &[&str] = &[
    "thank you",
    "thanks",
    "thx",
    "cheers",
    "bye",
    "goodbye",
    "good night",
    "see you",
    "谢谢",
    "多谢",
    "感谢",
    "再见",
    "拜拜",
    "晚安",
];
const FILLERS: &[&str] = &[
    "very much",
    "so much",
    "a lot",
    "there",
    "everyone",
    "team",
    "ok",
    "okay",
    "great",
    "perfect",
    "好的",
    "你",
    "您",
    "了",
    "啦",
    "哦",
    "呀",
    "啊",
    "早",
];
const WHO: &[&str] = &[
    "are you a robot",
    "are you a bot",
    "are you human",
    "are you a human",
    "are you a real",
    "are you an ai",
    "who are you",
    "what are you",
    "你是机器人",
    "你是谁",
    "你是人",
    "你是真人",
    "您是谁",
    "是不是机器人",
    "是机器人",
    "是真人",
    "是不是真人",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_only_that() {
        assert_eq!(SmallTalk::of("Good morning!"), Some(SmallTalk::Greeting));
        assert_eq!(SmallTalk::of("你好，在吗？"), Some(SmallTalk::Greeting));
        assert_eq!(SmallTalk::of("ok thanks"), Some(SmallTalk::Thanks));
        assert_eq!(SmallTalk::of("谢谢！"), Some(SmallTalk::Thanks));
        assert_eq!(
            SmallTalk::of("Are you a robot?"),
            Some(SmallTalk::WhoAreYou)
        );
        assert_eq!(SmallTalk::of("Hello, where is my parcel?"), None);
        assert_eq!(SmallTalk::of("high bill"), None);
        assert_eq!(SmallTalk::of(""), None);
    }
}
