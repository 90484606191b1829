//! How a run failed: the kind of error, and of its message the numbers and names.

use serde_json::Value;

use super::difference::{Check, Difference};

/// Compares two errors, of which either may be null: no error.
pub(super) fn error(expected: &Value, got: &Value) -> Check {
    if expected.is_null() && got.is_null() {
        return Ok(());
    }
    if expected.is_null() || got.is_null() {
        return Err(Difference::of_values(expected, got));
    }
    if expected["type"] != got["type"] {
        return Err(Difference::of_values(&expected["type"], &got["type"]).in_field("type"));
    }
    let Some(message) = expected["message"].as_str() else {
        return Ok(());
    };
    message_says(message, &got["message"]).map_err(|difference| difference.in_field("message"))
}

/// Checks that a message has the numbers and the names of the expected one.
fn message_says(expected: &str, got: &Value) -> Check {
    let got_text = got.as_str().unwrap_or_default();
    let missing_number = numbers(expected)
        .into_iter()
        .find(|number| !numbers(got_text).contains(number));
    let missing_name = names(expected)
        .into_iter()
        .find(|name| !got_text.contains(name));
    match missing_number.or(missing_name) {
        Some(missing) => Err(Difference::in_words(
            format!("a message with {missing:?}"),
            got.to_string(),
        )),
        None => Ok(()),
    }
}

/// Every unbroken run of digits.
fn numbers(message: &str) -> Vec<&str> {
    message
        .split(|character: char| !character.is_ascii_digit())
        .filter(|run| !run.is_empty())
        .collect()
}

/// Whatever looks like a name: what is in quotes, and words with a capital that do not open a
/// sentence. Words all in capitals, like `JSON`, are words.
fn names(message: &str) -> Vec<&str> {
    let mut names = quoted(message);
    let mut opens_a_sentence = true;
    for word in message.split_whitespace() {
        if !opens_a_sentence {
            names.extend(word.split(ends_a_name).filter(|part| is_capitalised(part)));
        }
        opens_a_sentence = word.ends_with(['.', '!', '?']);
    }
    names
}

fn ends_a_name(character: char) -> bool {
    !character.is_alphanumeric() && !matches!(character, '-' | '_')
}

fn is_capitalised(word: &str) -> bool {
    let all_capitals = word.chars().nth(1).is_some() && !word.contains(char::is_lowercase);
    word.starts_with(char::is_uppercase) && !all_capitals
}

/// The texts between two equal quotes. A quote inside a word, as in `don't`, is an apostrophe.
fn quoted(message: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut rest = message;
    while let Some((start, quote)) = opening_quote(rest) {
        let after = &rest[start + quote.len_utf8()..];
        let Some(end) = after.find(quote) else {
            rest = after;
            continue;
        };
        texts.push(&after[..end]);
        rest = &after[end + quote.len_utf8()..];
    }
    texts.retain(|text| !text.is_empty());
    texts
}

/// The first quote that does not directly follow a letter or digit.
fn opening_quote(text: &str) -> Option<(usize, char)> {
    let mut before = None;
    for (index, character) in text.char_indices() {
        let in_a_word = before.is_some_and(char::is_alphanumeric);
        if matches!(character, '\'' | '"' | '`') && !in_a_word {
            return Some((index, character));
        }
        before = Some(character);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path_of(expected: Value, got: Value) -> Option<String> {
        error(&expected, &got)
            .err()
            .map(|difference| difference.path)
    }

    fn user_error(message: &str) -> Value {
        json!({"type": "UserError", "message": message})
    }

    #[test]
    fn an_error_on_one_side_only_differs() {
        let failed = json!({"type": "RuntimeError"});

        assert_eq!(path_of(failed.clone(), Value::Null).as_deref(), Some(""));
        assert_eq!(path_of(Value::Null, failed).as_deref(), Some(""));
        assert_eq!(path_of(Value::Null, Value::Null), None);
    }

    #[test]
    fn another_type_differs() {
        let path = path_of(
            json!({"type": "UserError"}),
            json!({"type": "RuntimeError"}),
        );

        assert_eq!(path.as_deref(), Some("type"));
    }

    #[test]
    fn a_message_is_compared_only_where_one_is_expected() {
        let got = json!({"type": "RuntimeError", "message": "anything"});

        assert_eq!(path_of(json!({"type": "RuntimeError"}), got), None);
    }

    #[test]
    fn of_a_message_the_numbers_count_and_not_the_words() {
        let expected = || json!({"type": "MaxTurnsExceeded", "message": "Max turns (3) exceeded"});
        let got = |message: &str| json!({"type": "MaxTurnsExceeded", "message": message});

        assert_eq!(
            path_of(expected(), got("no more than 3 turns are allowed")),
            None
        );
        for wrong in ["13 turns", "Max turns exceeded"] {
            assert_eq!(path_of(expected(), got(wrong)).as_deref(), Some("message"));
        }
        assert_eq!(
            path_of(expected(), json!({"type": "MaxTurnsExceeded"})).as_deref(),
            Some("message")
        );
    }

    #[test]
    fn of_a_message_the_names_count() {
        let expected =
            || user_error("Tool 'look up' of agent Billing isn't valid JSON. It won't do");

        assert_eq!(
            path_of(expected(), user_error("agent Billing: look up is refused")),
            None
        );
        for wrong in ["agent Billing", "agent billing: look up"] {
            assert_eq!(
                path_of(expected(), user_error(wrong)).as_deref(),
                Some("message")
            );
        }
    }

    #[test]
    fn names_are_what_is_quoted_or_capitalised_inside_a_sentence() {
        let message =
            "Can't hand off to \"L2-Support\" Sales's desk: Été. Either (see Docs) rename `x`";

        assert_eq!(
            names(message),
            ["L2-Support", "x", "L2-Support", "Sales", "Été", "Docs"]
        );
    }
}
