//! Detection of small talk.

use crate::text::{Token, tokenize};

/// A kind of small talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SmallTalk {
    Greeting,
    Thanks,
    /// A question about who or what is answering.
    WhoAreYou,
}

impl SmallTalk {
    /// Returns the kind of small talk that a message is, if it is nothing else.
    pub(crate) fn detect(message: &str) -> Option<Self> {
        if message.chars().count() > 60 {
            return None;
        }
        let text = token_string(message);
        if WHO_ARE_YOU
            .iter()
            .any(|question| text.contains(&token_string(question)))
        {
            return Some(Self::WhoAreYou);
        }
        if consists_of(&text, GREETINGS) {
            return Some(Self::Greeting);
        }
        consists_of(&text, THANKS).then_some(Self::Thanks)
    }
}

/// Returns `true` if `text` has at least one of `phrases`, and nothing else but fillers.
fn consists_of(text: &str, phrases: &[&str]) -> bool {
    let without = |text: String, phrases: &[&str]| {
        phrases.iter().fold(text, |text, phrase| {
            text.replace(&token_string(phrase), " ")
        })
    };
    let rest = without(text.to_owned(), phrases);
    rest != text && without(rest, FILLERS).trim().is_empty()
}

/// Joins the tokens of a text, with a space on both sides of each word, so that phrases can be found
/// as substrings.
fn token_string(text: &str) -> String {
    tokenize(text)
        .iter()
        .map(|token| match token {
            Token::Word(word) => format!(" {word} "),
            Token::Han(c) => c.to_string(),
            Token::Break => " ".to_owned(),
        })
        .collect()
}

// A longer phrase comes before a shorter one that it contains.
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
const WHO_ARE_YOU: &[&str] = &[
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
    fn a_message_with_a_topic_is_not_small_talk() {
        assert_eq!(
            SmallTalk::detect("Good morning!"),
            Some(SmallTalk::Greeting)
        );
        assert_eq!(SmallTalk::detect("你好，在吗？"), Some(SmallTalk::Greeting));
        assert_eq!(SmallTalk::detect("ok thanks"), Some(SmallTalk::Thanks));
        assert_eq!(SmallTalk::detect("谢谢！"), Some(SmallTalk::Thanks));
        assert_eq!(
            SmallTalk::detect("Are you a robot?"),
            Some(SmallTalk::WhoAreYou)
        );
        assert_eq!(SmallTalk::detect("Hello, where is my parcel?"), None);
        assert_eq!(SmallTalk::detect("high bill"), None);
        assert_eq!(SmallTalk::detect(""), None);
    }
}
