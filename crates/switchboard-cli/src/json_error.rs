//! Errors of JSON in plain words.

/// The library's names of what it expected, and plain ones.
const EXPECTED: [(&str, &str); 17] = [
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
];

/// Describes an error without the names of Rust's types.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    for (name, plain) in EXPECTED {
        text = text.replace(&format!("expected {name}"), &format!("expected {plain}"));
    }
    text = text.replace("invalid type: map", "invalid type: object");
    // `expected struct Head`, `expected internally tagged enum Event`
    for name in ["struct ", "enum ", "variant identifier"] {
        let Some(start) = text.find("expected ") else {
            break;
        };
        let rest = &text[start..];
        let Some(at) = rest.find(name) else {
            continue;
        };
        let end = rest[at + name.len()..]
            .find(" at line")
            .map_or(rest.len(), |end| at + name.len() + end);
        text.replace_range(start..start + end, "expected an object");
        break;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn errors_name_no_types_of_rust() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only its form matters")]
        struct Inner {
            count: u32,
        }
        let error = |json: &str| describe(&serde_json::from_str::<Inner>(json).unwrap_err());
        assert_eq!(
            error(r#"{"count":"x"}"#),
            "invalid type: string \"x\", expected a whole number from 0 on at line 1 column 12"
        );
        assert_eq!(
            error("7"),
            "invalid type: integer `7`, expected an object at line 1 column 1"
        );
    }
}
