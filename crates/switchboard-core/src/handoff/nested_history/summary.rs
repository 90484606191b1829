//! The text form of a conversation inside one message: numbered records between two markers.
//!
//! A record is `role: text` for a message of one line, and the item's JSON for everything else.
//! Parsing follows the reference closely, so that both read each other's summaries in the same way:
//! line breaks, white space and digits are those of Python.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::HistoryMarkers;
use super::python_text::{is_digit, is_line_break, lines, strip, strip_end, strip_start};
use crate::items::{Item, Items, Summary};
use crate::json::{self, Quoted};

pub(super) const PREAMBLE: &str =
    "For context, here is the conversation so far between the user and the previous agent:";
const OLDER_PREAMBLE: &str = "For context, here is the conversation so far:";
const KNOWN_ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];

/// Returns a message that summarises `transcript`.
pub(super) fn write(transcript: &[Item], markers: &HistoryMarkers) -> Item {
    write_after(None, transcript, markers)
}

/// Returns a message that holds the records of the previous summary and then `items`.
///
/// The text is escaped as it is written: escaping it afterwards costs several times as much.
pub(super) fn write_after(
    previous: Option<&PreviousSummary<'_>>,
    items: &[Item],
    markers: &HistoryMarkers,
) -> Item {
    if let Some(previous) = previous
        && items.is_empty()
        && previous.metadata.gaps.is_empty()
    {
        return previous.item.clone();
    }
    let metadata = previous.map(|previous| previous.metadata);
    let mut records = RecordWriter::new(metadata.map_or(0, |metadata| metadata.records));
    let mut place = 0..0;
    let size = estimated_len(items) + metadata.map_or(0, |metadata| metadata.place.len()) + 256;
    let summary = Item::written_message("assistant", size, |text| {
        place.start = text.place();
        match previous {
            Some(previous) => previous.copy_to(text),
            None => {
                text.push(PREAMBLE);
                text.push("\n");
                text.push(&markers.start);
            }
        }
        records.write(text, items);
        if records.count == 0 {
            text.push("\n(no previous turns recorded)");
        }
        place.end = text.place();
        text.push("\n");
        text.push(&markers.end);
    });
    if !records.can_be_copied || records.count == 0 {
        return summary;
    }
    summary.with_summary(Summary {
        between: [markers.start.clone(), markers.end.clone()],
        records: records.count,
        place,
        gaps: records.stripped,
    })
}

/// A summary whose records the next summary can copy instead of parsing them and writing them
/// again, which would give the same text except for white space around messages.
pub(super) struct PreviousSummary<'a> {
    item: &'a Item,
    metadata: &'a Summary,
}

impl<'a> PreviousSummary<'a> {
    /// Returns `None` if the item must be parsed: it was not written here, has other markers, or
    /// has records that would not be written in the same way again.
    pub(super) fn of(item: &'a Item, markers: &HistoryMarkers) -> Option<Self> {
        let metadata = item.summary()?;
        let has_same_markers = metadata.between.each_ref() == [&markers.start, &markers.end];
        has_same_markers.then_some(Self { item, metadata })
    }

    fn copy_to(&self, text: &mut Quoted<'_>) {
        let json = self.item.as_json();
        let Range { mut start, end } = self.metadata.place;
        for gap in &self.metadata.gaps {
            text.push_plain(&json[start..gap.start]);
            start = gap.end;
        }
        text.push_plain(&json[start..end]);
    }
}

/// Returns the conversation as text: only the records of a summary.
pub(crate) fn transcript(items: &Items) -> String {
    let items: Vec<Item> = items.iter().cloned().collect();
    let mut quoted = String::with_capacity(estimated_len(&items));
    Quoted::write(&mut quoted, |text| {
        RecordWriter::new(0).write(text, &items);
    });
    let text = json::unquote(&quoted).unwrap_or_default();
    text.trim_start().to_owned()
}

/// Estimates the length of the records: a tenth more than the items, for escapes.
fn estimated_len(items: &[Item]) -> usize {
    let len: usize = items.iter().map(|item| item.as_json().len() + 8).sum();
    len + len / 10
}

/// Writes numbered records into a summary.
struct RecordWriter {
    count: usize,
    /// Set while parsing each record gives an item that is written in the same way, except for the
    /// stripped white space.
    can_be_copied: bool,
    /// White space around messages, which parsing strips.
    stripped: Vec<Range<usize>>,
}

impl RecordWriter {
    /// `count` is the number of records that the summary has already.
    fn new(count: usize) -> Self {
        Self {
            count,
            can_be_copied: true,
            stripped: Vec::new(),
        }
    }

    fn write(&mut self, text: &mut Quoted<'_>, items: &[Item]) {
        for item in items {
            self.count += 1;
            text.push(&format!("\n{}. ", self.count));
            let item = item.without_internal_fields();
            match (item.role(), one_line_content(&item)) {
                (Some(role), Some(content)) => self.write_message(text, &item, &role, &content),
                _ => self.write_json(text, item.without_provider_data().as_json()),
            }
        }
    }

    fn write_message(&mut self, text: &mut Quoted<'_>, item: &Item, role: &str, content: &str) {
        self.can_be_copied &= KNOWN_ROLES.contains(&role) && !has_line_break(content);
        text.push(role);
        if let Some(name) = item.name().filter(|name| !name.is_empty()) {
            let is_parsed_back = !name.contains(['(', ':']) && strip(&name).len() == name.len();
            self.can_be_copied &= is_parsed_back && !has_line_break(&name);
            text.push(" (");
            text.push(&name);
            text.push(")");
        }
        text.push(": ");
        let (leading, rest) = content.split_at(content.len() - strip_start(content).len());
        let (stripped, trailing) = rest.split_at(strip_end(rest).len());
        self.write_white_space(text, leading);
        text.push(stripped);
        self.write_white_space(text, trailing);
    }

    fn write_white_space(&mut self, text: &mut Quoted<'_>, white_space: &str) {
        if !white_space.is_empty() {
            let start = text.place();
            text.push(white_space);
            self.stripped.push(start..text.place());
        }
    }

    fn write_json(&mut self, text: &mut Quoted<'_>, json: &str) {
        if !may_have_line_break(json) && !json.contains("\\u") {
            text.push(json);
            return;
        }
        let line = on_one_line(json);
        text.push(&line);
        self.can_be_copied &= matches!(line, Cow::Borrowed(line) if !has_line_break(line));
    }
}

/// Returns the content of a message if it is text without `\n` and `\r`.
fn one_line_content(item: &Item) -> Option<Cow<'_, str>> {
    let Some(token) = item.field("content").filter(|token| *token != "null") else {
        return Some(Cow::Borrowed(""));
    };
    match json::unquote(token)? {
        Cow::Owned(text) if text.contains(['\n', '\r']) => None,
        text => Some(text),
    }
}

/// Returns `true` if Python would split the text into lines.
fn has_line_break(text: &str) -> bool {
    may_have_line_break(text) && text.contains(is_line_break)
}

/// Returns `false` if the bytes of the text show that it has no line break.
fn may_have_line_break(text: &str) -> bool {
    // The last two are the first bytes of the line breaks outside ASCII.
    json::any_byte(text.as_bytes(), |byte| {
        (byte < 0x20) | (byte == 0xc2) | (byte == 0xe2)
    })
}

/// Returns JSON on one line. A record with a line break of Python's inside a string is parsed in
/// pieces, and then its exact form matters: it is written as Python writes JSON.
fn on_one_line(json: &str) -> Cow<'_, str> {
    let line_breaks = [
        "\u{85}", "\u{2028}", "\u{2029}", "\\u0085", "\\u2028", "\\u2029",
    ];
    if line_breaks
        .iter()
        .any(|line_break| json.contains(line_break))
        && let Ok(value) = serde_json::from_str::<Value>(json)
    {
        return Cow::Owned(json::as_python_writes(&value, json::quote_into));
    }
    json::on_one_line(json)
}

/// Returns the items of a summary, or `None` if `item` is not a summary with these markers.
pub(super) fn read(item: &Item, markers: &HistoryMarkers) -> Option<Vec<Item>> {
    if item.role()? != "assistant" {
        return None;
    }
    let content = item.field("content");
    let content = json::unquote(content.filter(|content| may_begin_with_preamble(content))?)?;
    let (preamble, rest) = content.split_once('\n')?;
    if preamble != PREAMBLE && preamble != OLDER_PREAMBLE {
        return None;
    }
    // If there is no record, the two markers may share one line break.
    let after_start = rest.strip_prefix(&*markers.start)?;
    let before_end = rest.strip_suffix(&*markers.end)?.strip_suffix('\n')?;
    if !after_start.starts_with('\n') {
        return None;
    }
    let records = before_end
        .get(markers.start.len() + 1..)
        .unwrap_or_default();
    let records = split_records(records).into_iter();
    Some(records.filter_map(|record| parse_record(&record)).collect())
}

/// Returns `false` for most messages that are no summary, without decoding them.
fn may_begin_with_preamble(token: &str) -> bool {
    let shared = &OLDER_PREAMBLE[..OLDER_PREAMBLE.len() - 1];
    let start = token.as_bytes().get(1..=shared.len());
    start.is_some_and(|start| start == shared.as_bytes() || start.contains(&b'\\'))
}

/// Splits text into records. A record continues until a line starts with a number.
fn split_records(text: &str) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let mut last_is_numbered = false;
    for line in lines(text) {
        if strip(line).is_empty() {
            continue;
        }
        let is_numbered = number_len(strip_start(line)).is_some();
        match records.last_mut() {
            Some(last) if last_is_numbered && !is_numbered => {
                last.push('\n');
                last.push_str(strip_end(line));
            }
            _ => {
                records.push(strip(line).to_owned());
                last_is_numbered = is_numbered;
            }
        }
    }
    records
}

#[cfg(test)]
thread_local! {
    pub(super) static RECORDS_PARSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn parse_record(record: &str) -> Option<Item> {
    #[cfg(test)]
    RECORDS_PARSED.set(RECORDS_PARSED.get() + 1);
    let record = strip(record);
    let record = match number_len(record) {
        Some(len) => strip_start(&record[len..]),
        None => record,
    };
    if record.is_empty() {
        return None;
    }
    if let Ok(item) = Item::from_json(record) {
        return Some(item.without_provider_data().without_internal_fields());
    }
    let Some((speaker, content)) = record.split_once(':') else {
        return parse_role_without_content(record);
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

/// Parses a record without a colon. Older summaries write a message without content so.
fn parse_role_without_content(record: &str) -> Option<Item> {
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

/// Splits `user (Ann)` into the role `user` and the name `Ann`.
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

/// Returns the length of a number and its dot, such as `12.`, at the start of a text.
fn number_len(text: &str) -> Option<usize> {
    let dot = text.find('.')?;
    (dot > 0 && text[..dot].chars().all(is_digit)).then_some(dot + 1)
}

#[cfg(test)]
mod tests;
