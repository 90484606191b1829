//! The text form of a conversation inside one message: numbered records between two markers.
//!
//! A record is `role: text` for a message of one line, and the item's JSON for everything else.
//! Reading it back follows the reference closely, so that summaries written by either are read
//! the same by both: lines end where Python says they end, and digits are what Python calls so.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::history::HistoryMarkers;
use crate::items::{Item, Items};
use crate::json::{self, Quoted};

const PREAMBLE: &str =
    "For context, here is the conversation so far between the user and the previous agent:";
const OLDER_PREAMBLE: &str = "For context, here is the conversation so far:";
const KNOWN_ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];

/// The message that holds `transcript`.
///
/// Its text is escaped record by record as it is written: a history of 1,000 items costs about what
/// one serialisation of it does, where writing the text and quoting it afterwards cost six.
pub(super) fn write(transcript: &[Item], markers: &HistoryMarkers) -> Item {
    Item::written_message("assistant", size_of(transcript) + 256, |text| {
        text.push(PREAMBLE);
        text.push("\n");
        text.push(&markers.start);
        if transcript.is_empty() {
            text.push("\n(no previous turns recorded)");
        }
        write_records(text, transcript);
        text.push("\n");
        text.push(&markers.end);
    })
}

/// The records alone.
pub(super) fn transcript(items: &Items) -> String {
    let items: Vec<Item> = items.iter().cloned().collect();
    let mut quoted = String::with_capacity(size_of(&items));
    Quoted::write(&mut quoted, |text| write_records(text, &items));
    let text = json::unquote(&quoted).unwrap_or_default();
    text.trim_start().to_owned()
}

/// About how long the records get: a tenth more than the items, for what is escaped once more.
fn size_of(items: &[Item]) -> usize {
    let size: usize = items.iter().map(|item| item.as_json().len() + 8).sum();
    size + size / 10
}

fn write_records(text: &mut Quoted<'_>, items: &[Item]) {
    let mut start = String::new();
    for (index, item) in items.iter().enumerate() {
        start.clear();
        // Writing to a String cannot fail.
        let _ = write!(start, "\n{}. ", index + 1);
        text.push(&start);
        write_record(text, item);
    }
}

fn write_record(text: &mut Quoted<'_>, item: &Item) {
    let item = &match item.has_internal_fields() {
        true => Cow::Owned(item.without_internal_fields()),
        false => Cow::Borrowed(item),
    };
    if let Some(role) = item.role()
        && let Some(content) = Content::of(item)
    {
        text.push(&role);
        if let Some(name) = item.name().filter(|name| !name.is_empty()) {
            text.push(" (");
            text.push(&name);
            text.push(")");
        }
        text.push(": ");
        match content {
            Content::Plain(content) => text.push_plain(content),
            Content::Escaped(content) => text.push(&content),
        }
        return;
    }
    let item = item.without_provider_data();
    text.push(&one_line(item.as_json()));
}

/// What a message of one line says.
enum Content<'a> {
    /// The inside of a literal without escapes, which is copied as it is.
    Plain(&'a str),
    Escaped(Cow<'a, str>),
}

impl<'a> Content<'a> {
    fn of(item: &'a Item) -> Option<Self> {
        let token = match item.field("content") {
            None | Some("null") => return Some(Self::Plain("")),
            Some(token) => token,
        };
        match json::unquote(token)? {
            // A literal holds no line break but an escaped one.
            Cow::Borrowed(plain) => Some(Self::Plain(plain)),
            Cow::Owned(text) => (!text.contains(['\n', '\r'])).then(|| Self::Escaped(text.into())),
        }
    }
}

/// JSON on one line. Where a string holds what ends a line for Python, the record will be read
/// back in pieces, and then its exact form shows: it is written as Python writes JSON.
fn one_line(raw: &str) -> Cow<'_, str> {
    if !may_end_lines(raw) {
        return Cow::Borrowed(raw);
    }
    let ends_lines = [
        "\u{85}", "\u{2028}", "\u{2029}", "\\u0085", "\\u2028", "\\u2029",
    ];
    if ends_lines.iter().any(|end| raw.contains(end))
        && let Ok(value) = serde_json::from_str::<Value>(raw)
    {
        return Cow::Owned(json::as_python_writes(&value));
    }
    json::on_one_line(raw)
}

/// Whether a record needs a closer look, which is eight passes over it.
fn may_end_lines(raw: &str) -> bool {
    // The last two begin what ends lines outside ASCII.
    let is_odd = |byte| (byte == b'\n') | (byte == b'\r') | (byte == 0xc2) | (byte == 0xe2);
    json::any_byte(raw.as_bytes(), is_odd) || raw.contains("\\u")
}

/// The items in `item` where it is such a message.
pub(super) fn read(item: &Item, markers: &HistoryMarkers) -> Option<Vec<Item>> {
    if item.role()? != "assistant" {
        return None;
    }
    let content = item.field("content")?;
    if !may_begin_with_preamble(content) {
        return None;
    }
    let content = json::unquote(content)?;
    let (preamble, wrapped) = content.split_once('\n')?;
    if preamble != PREAMBLE && preamble != OLDER_PREAMBLE {
        return None;
    }
    // Both markers carry a line break; they may share it where there is no record between them.
    let rest = wrapped.strip_prefix(&*markers.start)?;
    if !rest.starts_with('\n') || !wrapped.ends_with(&*markers.end) {
        return None;
    }
    let body_end = wrapped.len() - markers.end.len();
    if !wrapped[..body_end].ends_with('\n') {
        return None;
    }
    let body_start = markers.start.len() + 1;
    let body = wrapped.get(body_start..body_end - 1).unwrap_or_default();
    Some(
        records(body)
            .iter()
            .filter_map(|record| parse(record))
            .collect(),
    )
}

/// Whether a literal may be such a message. Most messages are done with after this, and need not be
/// unquoted.
fn may_begin_with_preamble(literal: &str) -> bool {
    let shared = &OLDER_PREAMBLE[..OLDER_PREAMBLE.len() - 1];
    let start = literal.as_bytes().get(1..=shared.len());
    start.is_some_and(|start| start == shared.as_bytes() || start.contains(&b'\\'))
}

/// Splits a body into records: a record goes on until a line starts with the next number.
fn records(body: &str) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let mut current_is_numbered = false;
    for line in lines(body) {
        if strip(line).is_empty() {
            continue;
        }
        let is_numbered = number_end(strip_start(line)).is_some();
        match records.last_mut() {
            Some(current) if current_is_numbered && !is_numbered => {
                current.push('\n');
                current.push_str(strip_end(line));
            }
            _ => {
                records.push(strip(line).to_owned());
                current_is_numbered = is_numbered;
            }
        }
    }
    records
}

fn parse(record: &str) -> Option<Item> {
    let record = strip(record);
    let record = match number_end(record) {
        Some(end) => strip_start(&record[end..]),
        None => record,
    };
    if record.is_empty() {
        return None;
    }
    if let Ok(item) = Item::from_json(record) {
        return Some(item.without_provider_data().without_internal_fields());
    }
    let Some((speaker, content)) = record.split_once(':') else {
        return parse_bare_role(record);
    };
    let speaker = strip(speaker);
    if speaker.is_empty() {
        return None;
    }
    let (role, name) = role_and_name(speaker);
    let content = strip(content);
    if !content.is_empty()
        && !KNOWN_ROLES.contains(&role)
        && let Ok(item) = Item::from_json(content)
    {
        let item = item.without_provider_data().with_field("type", role);
        return Some(item.without_internal_fields());
    }
    Some(message(role, name, content))
}

/// A record that is only a role was once how an empty turn was written.
fn parse_bare_role(record: &str) -> Option<Item> {
    let role_alone = match record.strip_suffix(')').and_then(|text| text.rfind('(')) {
        Some(open) => strip(&record[..open]),
        None => record,
    };
    if !KNOWN_ROLES.contains(&role_alone) {
        return None;
    }
    let (role, name) = role_and_name(record);
    Some(message(role, name, ""))
}

fn message(role: &str, name: Option<&str>, content: &str) -> Item {
    match name {
        Some(name) => Item::named_message(role, name, content),
        None => Item::message(role, content),
    }
}

/// `user (Ann)` is the role `user` with the name `Ann`.
fn role_and_name(speaker: &str) -> (&str, Option<&str>) {
    if let Some(open) = speaker.strip_suffix(')').and_then(|text| text.rfind('(')) {
        let name = strip(&speaker[open + 1..speaker.len() - 1]);
        let role = strip(&speaker[..open]);
        if !name.is_empty() {
            return (if role.is_empty() { "developer" } else { role }, Some(name));
        }
    }
    (speaker, None)
}

/// Where the text after `12.` begins, if the text starts so.
fn number_end(text: &str) -> Option<usize> {
    let dot = text.find('.')?;
    (dot > 0 && text[..dot].chars().all(is_digit)).then_some(dot + 1)
}

/// Lines as Python's `str.splitlines` sees them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(is_line_break) else {
            rest = None;
            return Some(text);
        };
        let line_break = text[at..].chars().next().map_or(1, char::len_utf8);
        let width = if text[at..].starts_with("\r\n") {
            2
        } else {
            line_break
        };
        rest = Some(&text[at + width..]).filter(|text| !text.is_empty());
        Some(&text[..at])
    })
}

fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// White space as Python's `str.strip` sees it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let code = u32::from(c);
    let after = DIGITS.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= DIGITS[after - 1].1
}

/// The code points Python's `str.isdigit` accepts (decimal digits, superscripts, circled digits).
#[rustfmt::skip]
const DIGITS: [(u32, u32); 81] = [
    (0x30, 0x39), (0xb2, 0xb3), (0xb9, 0xb9), (0x660, 0x669),
    (0x6f0, 0x6f9), (0x7c0, 0x7c9), (0x966, 0x96f), (0x9e6, 0x9ef),
    (0xa66, 0xa6f), (0xae6, 0xaef), (0xb66, 0xb6f), (0xbe6, 0xbef),
    (0xc66, 0xc6f), (0xce6, 0xcef), (0xd66, 0xd6f), (0xde6, 0xdef),
    (0xe50, 0xe59), (0xed0, 0xed9), (0xf20, 0xf29), (0x1040, 0x1049),
    (0x1090, 0x1099), (0x1369, 0x1371), (0x17e0, 0x17e9), (0x1810, 0x1819),
    (0x1946, 0x194f), (0x19d0, 0x19da), (0x1a80, 0x1a89), (0x1a90, 0x1a99),
    (0x1b50, 0x1b59), (0x1bb0, 0x1bb9), (0x1c40, 0x1c49), (0x1c50, 0x1c59),
    (0x2070, 0x2070), (0x2074, 0x2079), (0x2080, 0x2089), (0x2460, 0x2468),
    (0x2474, 0x247c), (0x2488, 0x2490), (0x24ea, 0x24ea), (0x24f5, 0x24fd),
    (0x24ff, 0x24ff), (0x2776, 0x277e), (0x2780, 0x2788), (0x278a, 0x2792),
    (0xa620, 0xa629), (0xa8d0, 0xa8d9), (0xa900, 0xa909), (0xa9d0, 0xa9d9),
    (0xa9f0, 0xa9f9), (0xaa50, 0xaa59), (0xabf0, 0xabf9), (0xff10, 0xff19),
    (0x104a0, 0x104a9), (0x10a40, 0x10a43), (0x10d30, 0x10d39), (0x10e60, 0x10e68),
    (0x11052, 0x1105a), (0x11066, 0x1106f), (0x110f0, 0x110f9), (0x11136, 0x1113f),
    (0x111d0, 0x111d9), (0x112f0, 0x112f9), (0x11450, 0x11459), (0x114d0, 0x114d9),
    (0x11650, 0x11659), (0x116c0, 0x116c9), (0x11730, 0x11739), (0x118e0, 0x118e9),
    (0x11950, 0x11959), (0x11c50, 0x11c59), (0x11d50, 0x11d59), (0x11da0, 0x11da9),
    (0x16a60, 0x16a69), (0x16ac0, 0x16ac9), (0x16b50, 0x16b59), (0x1d7ce, 0x1d7ff),
    (0x1e140, 0x1e149), (0x1e2f0, 0x1e2f9), (0x1e950, 0x1e959), (0x1f100, 0x1f10a),
    (0x1fbf0, 0x1fbf9),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn markers() -> HistoryMarkers {
        HistoryMarkers::default()
    }

    fn round_trip(items: &[Item]) -> Vec<Item> {
        read(&write(items, &markers()), &markers()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let items = [
            Item::user("Hello"),
            Item::user("line one\nline two"),
            Item::function_call("c", "lookup", r#"{"a": 1}"#),
            Item::function_call_output("c", "账单"),
            Item::from_json(r#"{"role":"user","content":"hi","name":"Ann"}"#).unwrap(),
            Item::from_json("{\n  \"type\": \"x\",\n  \"y\": \"a b\"\n}").unwrap(),
        ];
        let back = round_trip(&items);
        let values = |items: &[Item]| {
            items
                .iter()
                .map(|i| i.to_value().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&back), values(&items));
    }

    /// A summary put together as text and quoted afterwards.
    fn written_slowly(items: &[Item]) -> Item {
        let mut text = format!("{PREAMBLE}\n{}", markers().start);
        for (index, item) in items.iter().enumerate() {
            let _ = write!(text, "\n{}. ", index + 1);
            let item = item.without_internal_fields();
            let content = match item.field("content") {
                None | Some("null") => Some("".into()),
                Some(token) => json::unquote(token),
            };
            match (
                item.role(),
                content.filter(|said| !said.contains(['\n', '\r'])),
            ) {
                (Some(role), Some(content)) => {
                    let name = item.name().filter(|name| !name.is_empty());
                    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
                    let _ = write!(text, "{role}{name}: {content}");
                }
                _ => {
                    let item = item.without_provider_data();
                    let raw = item.as_json();
                    let ends = ["\u{85}", "\u{2028}", "\\u0085", "\\u2028"];
                    text.push_str(&match ends.iter().any(|end| raw.contains(end)) {
                        true => json::as_python_writes(&item.to_value().unwrap()),
                        false => json::on_one_line(raw).into_owned(),
                    });
                }
            }
        }
        Item::assistant(format!("{text}\n{}", markers().end))
    }

    proptest! {
        #[test]
        fn escaping_along_the_way_changes_nothing(
            said in prop::collection::vec(
                "([ -~]{0,30}|[\n\r\t\"\\\\\u{1}\u{85}\u{2028}é账“]){0,4}", 1..6,
            ),
            forms in prop::collection::vec(0..8_usize, 6),
        ) {
            let items: Vec<Item> = said.iter().zip(forms).map(|(said, form)| {
                let quoted = serde_json::to_string(said).unwrap();
                match form {
                    0 => Item::user(said),
                    1 => Item::named_message("user", said, said),
                    2 => Item::function_call("c", "f", said),
                    3 => Item::output_message("m", said),
                    4 => Item::from_json(format!("{{\n \"type\": \"x\",\r\n \"y\": {quoted}}}")).unwrap(),
                    5 => Item::from_json(format!(r#"{{"type":"x","created_by":1,"provider_data":{quoted}}}"#)).unwrap(),
                    6 => Item::from_json(format!(r#"{{"role":"user","content":"\u2028\/{}"}}"#, &quoted[1..quoted.len() - 1])).unwrap(),
                    _ => Item::from_json(format!(r#"{{"type":"x","y":"\u2028\u00e9","z":{quoted}}}"#)).unwrap(),
                }
            }).collect();
            let written = write(&items, &markers());
            let slowly = written_slowly(&items);
            prop_assert_eq!(written.as_json(), slowly.as_json());
            prop_assert_eq!(written.text(), slowly.text());
        }
    }

    #[test]
    fn an_empty_conversation_is_said_to_be_empty() {
        let message = write(&[], &markers());
        assert!(
            message
                .text()
                .unwrap()
                .contains("(no previous turns recorded)")
        );
        assert_eq!(read(&message, &markers()).unwrap(), []);
    }

    #[test]
    fn lines_end_where_python_ends_them() {
        let split = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(split("a\r\nb\u{2028}c\n\nd\n"), ["a", "b", "c", "", "d"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn digits_are_what_python_calls_digits() {
        for c in ['0', '٣', '²', '①', '𝟗'] {
            assert!(is_digit(c), "{c}");
        }
        for c in ['½', '五', 'Ⅷ', 'a'] {
            assert!(!is_digit(c), "{c}");
        }
    }

    #[test]
    fn a_message_that_only_looks_like_a_summary_is_none() {
        for text in [
            "Hello",
            "For context, here is the conversation so far:\nno markers",
            "For context, here is the conversation so far:\n<CONVERSATION HISTORY></CONVERSATION HISTORY>",
        ] {
            assert_eq!(read(&Item::assistant(text), &markers()), None, "{text}");
        }
        assert_eq!(read(&Item::user("x"), &markers()), None);
    }
}
