//! Rows as heads and entries, and text as PostgreSQL can store it.

use std::borrow::Cow;
use std::sync::Arc;

use sqlx::Row;
use sqlx::postgres::PgRow;
use switchboard_core::conversation::{Entry, EntryContent, Head, Revision, from_millis};

use crate::error::{Place, StoreError, StoreErrorKind};

/// The text with U+0000, which PostgreSQL cannot store, as `\0`.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) {
        text.replace('\\', "\\\\").replace('\0', "\\0").into()
    } else {
        text.into()
    }
}

/// The text of [`escaped`].
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('0') => plain.push('\0'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (character, false) => plain.push(character),
        }
    }
    plain.into()
}

/// The text that [`EntryContent::searchable_text`] is compared by: in lower case, so that the rules are
/// those of Unicode and not those of the server's locale.
pub(super) fn searched(text: &str) -> String {
    text.to_lowercase().replace('\0', "\u{fffd}")
}

/// A pattern of `LIKE` for text that contains `text`.
pub(super) fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in searched(text).chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

pub(super) fn position(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

/// A position as it is stored; those that are too large for it come after all others.
pub(super) fn stored_position(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn text(row: &PgRow, column: &str) -> Result<Option<Arc<str>>, sqlx::Error> {
    let text: Option<&str> = row.try_get(column)?;
    Ok(text.map(|text| unescaped(text).into()))
}

pub(super) fn revision(row: &PgRow) -> Result<Revision, sqlx::Error> {
    let (epoch, next) = (row.try_get("epoch")?, row.try_get("next")?);
    Ok(Revision::new(position(epoch), position(next)))
}

pub(super) fn head(row: &PgRow) -> Result<Head, sqlx::Error> {
    let id = text(row, "id")?.unwrap_or_default();
    let mut head = Head::new(id, revision(row)?, from_millis(row.try_get("created")?));
    head.first = position(row.try_get("first")?);
    head.state = row.try_get::<Option<i64>, _>("state")?.map(position);
    head.agent = text(row, "agent")?;
    head.details = row.try_get::<Option<&str>, _>("details")?.map(Arc::from);
    head.changed = from_millis(row.try_get("changed")?);
    head.expires = row.try_get::<Option<i64>, _>("expires")?.map(from_millis);
    Ok(head)
}

/// The name of the conversation of a search's row.
pub(super) fn conversation(row: &PgRow) -> Result<Arc<str>, sqlx::Error> {
    Ok(text(row, "id")?.unwrap_or_default())
}

pub(super) fn entry(row: &PgRow, id: &str, place: &Place) -> Result<Entry, StoreError> {
    let convert = |error| super::error::convert(error, place).in_conversation(id);
    let at = position(row.try_get("position").map_err(convert)?);
    let number = |column: &str| {
        let number: i64 = row.try_get(column).map_err(convert)?;
        Ok(u32::try_from(number).unwrap_or_default())
    };
    let kind: &str = row.try_get("kind").map_err(convert)?;
    let content: &str = row.try_get("content").map_err(convert)?;
    let content = EntryContent::from_stored(kind, content).map_err(|error| {
        StoreError::new(StoreErrorKind::Entry, place.clone(), error.to_string())
            .in_conversation(id)
            .at_position(at)
    })?;
    let run = text(row, "run").map_err(convert)?.unwrap_or_default();
    let time = from_millis(row.try_get("time").map_err(convert)?);
    Ok(Entry::new(content)
        .at(at)
        .made_in(run, number("turn")?, number("number")?)
        .made_by(text(row, "agent").map_err(convert)?)
        .committed_at(time))
}
