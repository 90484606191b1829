//! The text form of a conversation inside one message: numbered records between two markers.
//!
//! A record is `role: text` for a message of one line, and the item's JSON for everything else.
//! Reading it back follows the reference closely, so that summaries written by either are read
//! the same by both: lines end where Python says they end, and digits are what Python calls so.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::history::HistoryMarkers;
use super::python::{is_digit, is_line_break, lines, strip, strip_end, strip_start};
use crate::items::{Item, Items, Summary};
use crate::json::{self, Quoted};

pub(super) const PREAMBLE: &str =
    "For context, here is the conversation so far between the user and the previous agent:";
const OLDER_PREAMBLE: &str = "For context, here is the conversation so far:";
const KNOWN_ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];

/// The message that holds `transcript`.
///
/// Its text is escaped record by record as it is written: a history of 1,000 items costs about what
/// one serialisation of it does, where writing the text and quoting it afterwards cost six.
pub(super) fn write(transcript: &[Item], markers: &HistoryMarkers) -> Item {
    write_on(None, transcript, markers)
}

/// The message that holds the records of `begun` and then `items`.
pub(super) fn write_on(begun: Option<&Begun>, items: &[Item], markers: &HistoryMarkers) -> Item {
    if let Some(begun) = begun.filter(|begun| items.is_empty() && begun.known.gaps.is_empty()) {
        return begun.summary.clone();
    }
    let size = begun.map_or(256, |begun| begun.known.place.len() + 256);
    let before = begun.map_or(0, |begun| begun.known.records);
    let mut records = Records::after(before);
    let mut place = 0..0;
    let summary = Item::written_message("assistant", size_of(items) + size, |text| {
        place.start = text.place();
        match begun {
            Some(begun) => begun.copy(text),
            None => {
                text.push(PREAMBLE);
                text.push("\n");
                text.push(&markers.start);
            }
        }
        if before + items.len() == 0 {
            text.push("\n(no previous turns recorded)");
        }
        records.write(text, items);
        place.end = text.place();
        text.push("\n");
        text.push(&markers.end);
    });
    if !records.can_be_copied || records.written == 0 {
        return summary;
    }
    summary.with_summary(Summary {
        between: [markers.start.clone(), markers.end.clone()],
        records: records.written,
        place,
        gaps: records.gaps,
    })
}

/// A summary that the next one begins with. What is read from its records would be written the same
/// way again, but for white space at their ends; so they are copied as they stand, escaped.
///
/// With 1,000 items of 500 bytes in it, a further handoff costs 0.5 million instructions and not 26.
pub(super) struct Begun<'a> {
    summary: &'a Item,
    known: &'a Summary,
}

impl<'a> Begun<'a> {
    /// `None` where it must be read: it came from elsewhere, has other markers, or records that are
    /// not written the same way twice.
    pub(super) fn with(summary: &'a Item, markers: &HistoryMarkers) -> Option<Self> {
        let known = summary.summary()?;
        let is_between_them = known.between.each_ref() == [&markers.start, &markers.end];
        is_between_them.then_some(Self { summary, known })
    }

    fn copy(&self, text: &mut Quoted<'_>) {
        let raw = self.summary.as_json();
        let Range { mut start, end } = self.known.place;
        for gap in &self.known.gaps {
            text.push_plain(&raw[start..gap.start]);
            start = gap.end;
        }
        text.push_plain(&raw[start..end]);
    }
}

/// The records alone.
pub(super) fn transcript(items: &Items) -> String {
    let items: Vec<Item> = items.iter().cloned().collect();
    let mut quoted = String::with_capacity(size_of(&items));
    Quoted::write(&mut quoted, |text| {
        Records::after(0).write(text, &items);
    });
    let text = json::unquote(&quoted).unwrap_or_default();
    text.trim_start().to_owned()
}

/// About how long the records get: a tenth more than the items, for what is escaped once more.
fn size_of(items: &[Item]) -> usize {
    let size: usize = items.iter().map(|item| item.as_json().len() + 8).sum();
    size + size / 10
}

/// Records on their way into a summary.
struct Records {
    written: usize,
    left: usize,
    /// Whether reading each would give an item that is written the same way, but for the gaps.
    can_be_copied: bool,
    /// White space at the ends of messages, which is lost in reading.
    gaps: Vec<Range<usize>>,
}

impl Records {
    fn after(written: usize) -> Self {
        Self {
            written,
            left: 0,
            can_be_copied: true,
            gaps: Vec::new(),
        }
    }

    fn write(&mut self, text: &mut Quoted<'_>, items: &[Item]) {
        let mut start = String::new();
        self.left = items.len();
        for item in items {
            self.written += 1;
            start.clear();
            // Writing to a String cannot fail.
            let _ = write!(start, "\n{}. ", self.written);
            text.push(&start);
            self.write_one(text, item);
            self.left -= 1;
        }
    }

    fn write_one(&mut self, text: &mut Quoted<'_>, item: &Item) {
        let item = &if item.has_internal_fields() {
            Cow::Owned(item.without_internal_fields())
        } else {
            Cow::Borrowed(item)
        };
        if let Some(role) = item.role()
            && let Some(content) = Content::of(item)
        {
            self.can_be_copied &= KNOWN_ROLES.contains(&&*role);
            text.push(&role);
            if let Some(name) = item.name().filter(|name| !name.is_empty()) {
                let is_read_back = !name.contains(['(', ':']) && strip(&name).len() == name.len();
                self.can_be_copied &= is_read_back && !ends_line(&name);
                text.push(" (");
                text.push(&name);
                text.push(")");
            }
            text.push(": ");
            match &content {
                Content::Plain(content) => self.write_said(text, content, Quoted::push_plain),
                Content::Escaped(content) => self.write_said(text, content, Quoted::push),
            }
            return;
        }
        let item = item.without_provider_data();
        let raw = item.as_json();
        if !may_end_lines(raw) {
            text.push(raw);
            return;
        }
        let line = one_line(raw);
        text.push(&line);
        self.can_be_copied &= matches!(line, Cow::Borrowed(line) if !ends_line(line));
    }

    fn write_said<'a>(
        &mut self,
        text: &mut Quoted<'a>,
        said: &str,
        push: impl Fn(&mut Quoted<'a>, &str),
    ) {
        self.can_be_copied &= !ends_line(said);
        let (before, rest) = said.split_at(said.len() - strip_start(said).len());
        let (kept, after) = rest.split_at(strip_end(rest).len());
        for (part, is_kept) in [(before, false), (kept, true), (after, false)] {
            let start = text.place();
            push(text, part);
            if !is_kept && !part.is_empty() {
                if self.gaps.is_empty() {
                    // Who leaves white space behind does so often: one allocation for all.
                    self.gaps.reserve_exact(self.left);
                }
                self.gaps.push(start..text.place());
            }
        }
    }
}

/// Whether a text holds what ends a line for Python.
fn ends_line(text: &str) -> bool {
    // The last two begin what ends lines outside ASCII.
    let may_end_line = |byte: u8| (byte < 0x20) | (byte == 0xc2) | (byte == 0xe2);
    json::any_byte(text.as_bytes(), may_end_line) && text.contains(is_line_break)
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
    #[cfg(test)]
    super::history::tests::READ.set(super::history::tests::READ.get() + 1);
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

#[cfg(test)]
mod tests;
