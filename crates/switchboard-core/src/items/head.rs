//! The few fields of an item that the engine looks at, found once and kept as positions.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher as _;
use std::ops::Range;

use rustc_hash::FxHasher;
use serde::Deserializer as _;
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::item::content;
use super::item_cache::Notes;
use super::kind::ItemKind;
use crate::json;
use crate::scan::Scanner;

/// A field's place in the item's text; empty where the field is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    start: u32,
    end: u32,
}

impl Place {
    pub(super) fn of(part: &str, whole: &str) -> Self {
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        Self::at(start..start + part.len())
    }

    pub(super) fn at(range: Range<usize>) -> Self {
        // An item past 4 GiB has no view; its text is carried along all the same.
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) => Self { start, end },
            _ => Self::default(),
        }
    }

    pub(super) fn between((start, end): (u32, u32)) -> Self {
        Self { start, end }
    }

    pub(super) fn ends(self) -> (u32, u32) {
        (self.start, self.end)
    }

    pub(super) fn is_absent(self) -> bool {
        self.start == self.end
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    #[inline]
    pub(super) fn is_string(self, whole: &str) -> bool {
        whole.as_bytes().get(self.range().start) == Some(&b'"')
    }

    /// The JSON of a string that is not empty.
    #[inline]
    pub(super) fn text(self, whole: &str) -> Option<&str> {
        let is_more = self.end - self.start > r#""""#.len() as u32;
        if is_more && self.is_string(whole) {
            self.token(whole)
        } else {
            None
        }
    }

    /// What is between the quotes of a string; `None` where it is none.
    #[inline]
    pub(super) fn inside(self, whole: &str) -> Option<&str> {
        let Range { start, end } = self.range();
        if self.is_string(whole) {
            whole.get(start + 1..end.checked_sub(1)?)
        } else {
            None
        }
    }

    /// The field's JSON, `None` where it is absent.
    #[inline]
    pub(super) fn token(self, whole: &str) -> Option<&str> {
        if self.is_absent() {
            return None;
        }
        whole.get(self.range())
    }
}

/// Where the fields are, and what follows from them.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub(super) kind: Option<ItemKind>,
    pub(super) type_name: Place,
    pub(super) role: Place,
    pub(super) id: Place,
    pub(super) call_id: Place,
    pub(super) name: Place,
    pub(super) arguments: Place,
    pub(super) output: Place,
    pub(super) content: Place,
    /// Fields that are for the record and not for a model.
    pub(super) has_internal_fields: bool,
    pub(super) has_provider_data: bool,
    pub(super) has_status: bool,
    pub(super) has_null_status: bool,
    /// Whether the type, the role, the identifiers and the name are written as they are meant.
    pub(super) is_plain: bool,
    pub(super) speaker: Speaker,
    /// Hash of what makes two items the same occurrence; 0 for items without an identity.
    pub(super) identity: u64,
    /// For a call: the identity its output will have; 0 otherwise.
    pub(super) output_identity: u64,
}

/// An item that was read where it stood.
pub(super) struct Scanned<'a> {
    pub(super) raw: &'a str,
    pub(super) head: Head,
    pub(super) notes: Notes,
}

/// Who speaks, as far as it matters to all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Tool,
    /// Somebody else, or nobody.
    #[default]
    Other,
}

/// Fields the engine keeps for itself, never shown to a model.
pub(super) const INTERNAL_FIELDS: [&str; 3] = [
    "_agents_tool_description",
    "_agents_tool_title",
    "created_by",
];

/// An identifier that stands for "the provider gave none".
const PLACEHOLDER_ID: &str = "__fake_id__";

impl Head {
    /// Reads the head of an item. `Err` where `raw` is not one JSON object.
    pub(super) fn parse(raw: &str) -> Result<Self, serde_json::Error> {
        let mut head = Self::read(raw)?;
        head.find_identity(raw);
        Ok(head)
    }

    /// Reads an item in the midst of other JSON; on the way it notes where all that a message says
    /// stands. `None` where it is not written as usual.
    pub(super) fn scan<'a>(scanner: &mut Scanner<'a>) -> Option<Scanned<'a>> {
        let mut head = Self::new();
        let mut only_text = None;
        scanner.peek()?;
        let start = scanner.place();
        scanner.object(|scanner, name| {
            let field = Field::named(name);
            let first = scanner.peek()?;
            let from = scanner.place();
            match field {
                Field::Content if first == b'[' => only_text = Some(content::scan(scanner)?),
                // Of a field that is there twice the last counts.
                Field::Content => {
                    only_text = None;
                    scanner.ignore()?;
                }
                field if field.is_name() => match first {
                    b'"' => head.is_plain &= scanner.string()?,
                    _ => head.is_plain &= is_plain(scanner.skip()?),
                },
                _ => scanner.ignore()?,
            }
            let place = Place::at(from - start..scanner.place() - start);
            head.set(field, place, first);
            Some(())
        })?;
        let raw = scanner.since(start)?;
        head.find_identity(raw);
        let notes = Notes::default();
        if let Some(text) = only_text {
            let place = |text: Range<usize>| Place::at(text.start - start..text.end - start);
            let place = text.map(place).filter(|place| !place.is_absent());
            notes.only_text(|| place.map(Place::ends));
        }
        Some(Scanned { raw, head, notes })
    }

    /// One without a field so far.
    pub(super) fn new() -> Self {
        Self {
            is_plain: true,
            ..Self::default()
        }
    }

    fn read(raw: &str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(raw);
        let read = deserializer
            .deserialize_map(HeadVisitor { raw })
            .and_then(|head| deserializer.end().map(|()| head));
        match read {
            Ok(head) => Ok(head),
            // A key that is no valid text (a lone surrogate) leaves the item without a view.
            Err(error) => {
                let whole: &RawValue = serde_json::from_str(raw)?;
                match whole.get().starts_with('{') {
                    true => Ok(Self::new()),
                    false => Err(error),
                }
            }
        }
    }

    /// Notes a field that is no null, and whether it is written as it is meant.
    #[inline]
    pub(super) fn note(&mut self, field: Field, place: Place, is_plain: bool) {
        self.is_plain &= is_plain || !field.is_name();
        self.set(field, place, b'"');
    }

    /// Sets where a field stands, whose JSON has this first byte.
    #[inline]
    fn set(&mut self, field: Field, place: Place, first: u8) {
        match field {
            Field::Type => self.type_name = place,
            Field::Role => self.role = place,
            Field::Id => self.id = place,
            Field::CallId => self.call_id = place,
            Field::Name => self.name = place,
            Field::Arguments => self.arguments = place,
            Field::Output => self.output = place,
            Field::Content => self.content = place,
            Field::Status => {
                self.has_status = true;
                self.has_null_status = first == b'n';
            }
            Field::ProviderData => self.has_provider_data = true,
            Field::Internal => self.has_internal_fields = true,
            Field::Other => {}
        }
    }

    /// Finds what follows from the fields.
    pub(super) fn find_identity(&mut self, raw: &str) {
        let kind = self.kind(raw);
        self.kind = Some(kind);
        self.speaker = match self.name_at(self.role, raw).as_deref() {
            Some("user") => Speaker::User,
            Some("assistant") => Speaker::Assistant,
            Some("tool") => Speaker::Tool,
            _ => Speaker::Other,
        };
        if !self.role.is_absent() && self.role.token(raw) != Some("null")
            || kind == ItemKind::Message
        {
            return;
        }
        let call_id = self.name_at(self.call_id, raw);
        if let Some(call_id) = &call_id {
            if let Some(output_kind) = kind.output_kind() {
                self.output_identity = identity("call_id", output_kind.as_str(), call_id);
            }
            if kind.output_kind().is_some() || kind.is_output() {
                self.identity = identity("call_id", kind.as_str(), call_id);
                return;
            }
        }
        let type_name = self.name_at(self.type_name, raw).unwrap_or_default();
        let id = self.name_at(self.id, raw);
        self.identity = match (id, call_id) {
            (Some(id), _) if id != PLACEHOLDER_ID => identity("id", &type_name, &id),
            (_, Some(call_id)) => identity("call_id", &type_name, &call_id),
            _ if kind == ItemKind::McpApprovalResponse => field(raw, "approval_request_id")
                .and_then(|token| json::unquote(token).map(|id| identity("approval", "", &id)))
                .unwrap_or_default(),
            _ => 0,
        };
    }

    fn kind(&self, raw: &str) -> ItemKind {
        match self.name_at(self.type_name, raw) {
            Some(name) => ItemKind::from_type(&name),
            None if self.role.is_absent() => ItemKind::Unknown,
            None => ItemKind::Message,
        }
    }

    /// The type, the role, an identifier or the name.
    #[inline]
    pub(super) fn name_at<'a>(&self, place: Place, raw: &'a str) -> Option<Cow<'a, str>> {
        if self.is_plain {
            place.inside(raw).map(Cow::Borrowed)
        } else {
            place.token(raw).and_then(json::unquote)
        }
    }
}

/// Whether a name is written as it is meant.
pub(super) fn is_plain(token: &str) -> bool {
    !token.contains('\\')
}

fn identity(by: &str, kind: &str, id: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(by.as_bytes());
    hasher.write_u8(0);
    hasher.write(kind.as_bytes());
    hasher.write_u8(0);
    hasher.write(id.as_bytes());
    hasher.finish().max(1)
}

struct HeadVisitor<'a> {
    raw: &'a str,
}

impl<'de> Visitor<'de> for HeadVisitor<'de> {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let mut head = Head::new();
        while let Some(field) = map.next_key::<Field>()? {
            let token = map.next_value::<&'de RawValue>()?.get();
            if field.is_name() {
                head.is_plain &= is_plain(token);
            }
            let first = token.as_bytes().first().copied().unwrap_or_default();
            head.set(field, Place::of(token, self.raw), first);
        }
        Ok(head)
    }
}

/// The fields that are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Type,
    Role,
    Id,
    CallId,
    Name,
    Arguments,
    Output,
    Content,
    Status,
    ProviderData,
    Internal,
    Other,
}

impl Field {
    #[inline]
    pub(super) fn named(name: &[u8]) -> Self {
        match name {
            b"type" => Self::Type,
            b"role" => Self::Role,
            b"id" => Self::Id,
            b"call_id" => Self::CallId,
            b"name" => Self::Name,
            b"arguments" => Self::Arguments,
            b"output" => Self::Output,
            b"content" => Self::Content,
            b"status" => Self::Status,
            b"provider_data" => Self::ProviderData,
            name if is_internal(name) => Self::Internal,
            _ => Self::Other,
        }
    }

    /// Whether it says what something is or is called, and so is asked for again and again.
    #[inline]
    pub(super) fn is_name(self) -> bool {
        matches!(
            self,
            Self::Type | Self::Role | Self::Id | Self::CallId | Self::Name
        )
    }
}

fn is_internal(name: &[u8]) -> bool {
    let mut fields = INTERNAL_FIELDS.iter();
    fields.any(|field| field.as_bytes() == name)
}

impl<'de> de::Deserialize<'de> for Field {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;
        impl Visitor<'_> for FieldVisitor {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
                Ok(Field::named(name.as_bytes()))
            }
        }
        deserializer.deserialize_identifier(FieldVisitor)
    }
}

/// The JSON of one top-level field of an object, the last one where it is repeated.
pub(super) fn field<'a>(raw: &'a str, name: &str) -> Option<&'a str> {
    let mut found = None;
    for (key, token) in fields(raw)? {
        if key == name {
            found = Some(token);
        }
    }
    found
}

/// All top-level fields of an object in order; `None` where a key is not valid text.
pub(super) fn fields(raw: &str) -> Option<Vec<(String, &str)>> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some((key, token)) = map.next_entry::<String, &'de RawValue>()? {
                fields.push((key, token.get()));
            }
            Ok(fields)
        }
    }
    serde_json::Deserializer::from_str(raw)
        .deserialize_map(Fields)
        .ok()
}
