use super::*;
use proptest::collection;
use proptest::prelude::*;
use serde_json::{Value, json};

fn skipped(json: &str) -> bool {
    let mut scanner = Scanner::new(json);
    scanner.skip().is_some() && scanner.is_at_end()
}

#[test]
fn what_is_usual_is_read_and_the_rest_is_left() {
    let read = |json: &str| {
        let (mut text, mut count, mut raw, mut list) = (None, None, None, Vec::new());
        object(json, |scanner, key| match key {
            b"text" => keep(
                &mut text,
                scanner.text().map(|text| text.map(Cow::into_owned)),
            ),
            b"count" => keep(&mut count, scanner.count()),
            b"raw" => keep(&mut raw, scanner.raw().map(|raw| raw.map(str::to_owned))),
            b"list" => scanner.list(|scanner| scanner.skip().map(|raw| list.push(raw.len()))),
            _ => scanner.ignore(),
        })?;
        Some((text, count, raw, list))
    };
    let told = read(
        r#" {"text":"a\u00e9","count":7,"raw":{"a" : [1]},"list":[1,"x"],"x":{"y":[-1.5e+3,true]}} "#,
    );
    let expected = (
        Some("aé".to_owned()),
        Some(7),
        Some(r#"{"a" : [1]}"#.to_owned()),
        vec![1, 3],
    );
    assert_eq!(told, Some(expected));
    assert_eq!(
        read(r#"{"text":null,"count":null,"list":[]}"#),
        Some((None, None, None, vec![]))
    );
    assert_eq!(read("{}"), Some((None, None, None, vec![])));
    for odd in [
        r#"{"text":"a","text":"b"}"#,
        r#"{"text":1}"#,
        r#"{"text":"\ud800"}"#,
        r#"{"count":1.5}"#,
        r#"{"count":"1"}"#,
        r#"{"list":{}}"#,
        r#"{"te\u0078t":"a"}"#,
        r#"["a"]"#,
        r#"{"text":"a"} x"#,
        r#"{"text":"a",}"#,
        r#"{"x":01}"#,
        r#"{"x":1.}"#,
        "{\"x\":\"\n\"}",
        "{\"x\":\"                              \n\"}",
        "{",
        "",
    ] {
        assert_eq!(read(odd), None, "{odd}");
    }
}

#[test]
fn what_is_nested_deeper_than_usual_is_left() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(skipped(&nested(50)));
    assert!(!skipped(&nested(100_000)));
}

/// Whether a reader that knows some fields takes it.
fn read(json: &str) -> bool {
    let (mut text, mut count, mut raw, mut list) = (None, None, None, None);
    let read = object(json, |scanner, name| match name {
        b"a" => keep(&mut text, scanner.text()),
        b"aa" => keep(&mut count, scanner.count()),
        b"b" => keep(&mut raw, scanner.raw()),
        b"bb" => fill(&mut list, scanner, |list: &mut Vec<_>, scanner| {
            scanner.list(|scanner| scanner.skip().map(|json| list.push(json)))
        }),
        b"c" => detail(scanner, b"a", &mut None),
        b"cc" => scanner.null(),
        _ => scanner.ignore(),
    });
    read.is_some()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<String>().prop_map(|value| json!(value)),
        "[a-z\"\\\\\n ]{20,60}".prop_map(|value| json!(value)),
        "[a-zé]{0,120}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::btree_map("[a-c\"]{0,2}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn a_string_ends_where_it_ends_byte_by_byte(bytes in collection::vec(any::<u8>(), 0..60)) {
        let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        for at in 0..=bytes.len() {
            let text = &bytes[at..];
            let end = text.iter().position(is_end);
            prop_assert_eq!(behind_plain(text), end.map(|end| &text[end..]));
            match short_end(&[b"\"", text].concat()) {
                Some((short, [b'"', next])) => {
                    prop_assert_eq!(Some(short - 1), end);
                    prop_assert_eq!(next, text[short]);
                }
                Some((short, [byte, _])) => {
                    prop_assert!(end.is_none_or(|end| end >= short - 1));
                    prop_assert!(is_end(&byte) || !byte.is_ascii());
                }
                None => prop_assert!(text.len() <= 24 || end.is_none_or(|end| end >= 24)),
            }
        }
    }

    #[test]
    fn json_is_read(value in any_json()) {
        prop_assert!(skipped(&value.to_string()));
        prop_assert!(skipped(&serde_json::to_string_pretty(&value).unwrap()));
    }

    #[test]
    fn what_is_read_is_json(text in "[\\[\\]{}:,\"\\\\ut01-9.eE+ \n-]{0,16}|(\"[ -\"a\\\\nu\\x01]{0,40}\")") {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert!(!skipped(&text) || is_json, "{}", text);
        prop_assert!(!read(&text) || is_json, "{}", text);
    }

    #[test]
    fn fields_are_what_they_are_to_serde_json(
        value in collection::btree_map("[a-z]{0,40}", any_json(), 0..6),
    ) {
        let told = json!(value);
        for json in [told.to_string(), serde_json::to_string_pretty(&told).unwrap()] {
            let mut read = serde_json::Map::new();
            let whole = object(&json, |scanner, name| {
                let value = match scanner.peek()? {
                    b'"' => json!(scanner.text()?),
                    b'1'..=b'9' => match scanner.count() {
                        Some(count) => json!(count),
                        None => return None,
                    },
                    _ => serde_json::from_str(scanner.skip()?).unwrap(),
                };
                read.insert(String::from_utf8_lossy(name).into_owned(), value);
                Some(())
            });
            // A number need not be a count.
            prop_assert!(whole.is_some() || value.values().any(Value::is_f64));
            if whole.is_some() {
                prop_assert_eq!(&Value::from(read), &told);
            }
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_json_or_not_read(value in any_json(), at in 0usize..200, by in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = by;
        for text in [std::str::from_utf8(&bytes), std::str::from_utf8(&bytes[..at])].into_iter().flatten() {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            prop_assert!(!skipped(text) || is_json, "{}", text);
            prop_assert!(!read(text) || is_json, "{}", text);
        }
    }
}
