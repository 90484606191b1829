//! Errors of JSON in plain words.

use serde_json::error::Category;

/// The library's names of what it expected, and plain ones.
const EXPECTED: [(&str, &str); 18] = [
    ("a borrowed string", "a text"),
    ("a map", "an object"),
    ("a sequence", "a list"),
    ("a string", "a text"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("i128", "a whole number"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("isize", "a whole number"),
    ("u128", "a whole number from 0 on"),
    ("u16", "a whole number from 0 on"),
    ("u32", "a whole number from 0 on"),
    ("u64", "a whole number from 0 on"),
    ("u8", "a whole number from 0 on"),
    ("unit", "null"),
    ("usize", "a whole number from 0 on"),
    ("variant identifier", "a text"),
];

/// Describes an error without the names of Rust's types. What it quotes of the JSON stays as it is.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if error.classify() != Category::Data {
        return text;
    }
    // What was found comes first, and may have any words.
    let Some((found, rest)) = text.rsplit_once("expected ") else {
        return text;
    };
    let (expected, place) = rest.split_at(rest.rfind(" at line ").unwrap_or(rest.len()));
    // `struct Head`, `internally tagged enum Event`, `struct Head with 3 elements`
    let is_type = ["struct ", "enum "]
        .iter()
        .any(|name| expected.contains(name));
    let known = EXPECTED.iter().find(|(name, _)| *name == expected);
    let expected = match known {
        Some((_, plain)) => plain,
        None if is_type => "an object",
        None => expected,
    };
    let found = match found {
        "invalid type: map, " => "invalid type: object, ",
        "invalid type: sequence, " => "invalid type: list, ",
        // A list can stand for an object, if it is as long.
        found if is_type && found.starts_with("invalid length ") => "invalid type: list, ",
        found => found,
    };
    format!("{found}expected {expected}{place}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn errors_name_no_types_of_rust() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its form matters")]
        struct Inner {
            count: u32,
        }
        let error = |json: &str| describe(&serde_json::from_str::<Inner>(json).unwrap_err());
        for (json, expected) in [
            (
                r#"{"count":"x"}"#,
                "invalid type: string \"x\", expected a whole number from 0 on at line 1 column 12",
            ),
            (
                "7",
                "invalid type: integer `7`, expected an object at line 1 column 1",
            ),
            (
                "[]",
                "invalid type: list, expected an object at line 1 column 2",
            ),
            (
                r#"{"count":{}}"#,
                "invalid type: object, expected a whole number from 0 on at line 1 column 9",
            ),
            (
                r#"{"count":"expected a map, expected struct X"}"#,
                "invalid type: string \"expected a map, expected struct X\", expected a whole number from 0 on \
                 at line 1 column 44",
            ),
            (
                r#"{"count":[1]}"#,
                "invalid type: list, expected a whole number from 0 on at line 1 column 9",
            ),
            ("{", "EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(error(json), expected, "{json}");
        }
    }
}
