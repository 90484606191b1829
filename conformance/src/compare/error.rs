//! Compares errors: by type, and by the numbers and names in the message.

use serde_json::Value;

use super::difference::{Check, Difference};

/// Compares two errors. Null means that there was none.
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
    check_message(message, &got["message"]).map_err(|difference| difference.in_field("message"))
}

/// Checks that a message contains the numbers and names of the expected one.
fn check_message(expected: &str, got: &Value) -> Check {
    let got_text = got.as_str().unwrap_or_default();
    let missing_number = numbers(expected)
        .into_iter()
        .find(|number| !numbers(got_text).contains(number));
    let missing_name = names(expected)
        .into_iter()
        .find(|name| !got_text.contains(name));
    match missing_number.or(missing_name) {
        Some(missing) => Err(Difference::described(
            format!("a message with {missing:?}"),
            got.to_string(),
        )),
        None => Ok(()),
    }
}

/// The sequences of digits in a message.
fn numbers(message: &str) -> Vec<&str> {
    message
        .split(|character: char| !character.is_ascii_digit())
        .filter(|run| !run.is_empty())
        .collect()
}

/// The names in a message: quoted texts, and capitalised words inside a sentence. Words all in
/// capitals, like `JSON`, are not names.
fn names(message: &str) -> Vec<&str> {
    let mut names = quoted(message);
    let mut starts_sentence = true;
    for word in message.split_whitespace() {
        if !starts_sentence {
            names.extend(word.split(ends_a_name).filter(|part| is_capitalised(part)));
        }
        starts_sentence = word.ends_with(['.', '!', '?']);
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

/// The texts between equal quotes. A quote inside a word, as in `don't`, is an apostrophe.
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
        let in_word = before.is_some_and(char::is_alphanumeric);
        if matches!(character, '\'' | '"' | '`') && !in_word {
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
    fn the_numbers_of_a_message_must_match_but_not_its_words() {
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
    fn the_names_of_a_message_must_match() {
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
    fn names_are_quoted_or_capitalised_inside_a_sentence() {
        let message =
            "Can't hand off to \"L2-Support\" Sales's desk: Été. Either (see Docs) rename `x`";

        assert_eq!(
            names(message),
            ["L2-Support", "x", "L2-Support", "Sales", "Été", "Docs"]
        );
    }
}
