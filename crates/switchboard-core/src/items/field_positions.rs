//! The fields of an item that the engine reads often, kept as positions in its JSON.

use std::borrow::Cow;
use std::hash::Hasher as _;
use std::ops::Range;

use rustc_hash::FxHasher;

use super::item::text_parts;
use super::item_kind::ItemKind;
use crate::json;

/// A range of bytes in an item's JSON; empty if the field is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    const ABSENT: Self = Self { start: 0, end: 0 };

    /// The span of `token`, which must be a part of `json`.
    fn of(token: &str, json: &str) -> Self {
        let start = token.as_ptr() as usize - json.as_ptr() as usize;
        Self::from(start..start + token.len())
    }

    /// The JSON of the field, `None` if it is absent.
    #[inline]
    pub(super) fn token(self, json: &str) -> Option<&str> {
        if self == Self::ABSENT {
            return None;
        }
        json.get(self.start as usize..self.end as usize)
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        // A field past 4 GiB counts as absent; its JSON is kept all the same.
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) => Self { start, end },
            _ => Self::ABSENT,
        }
    }
}

macro_rules! fields {
    ($($field:ident = $name:literal,)*) => {
        /// A field that the engine reads, as its index in [`NAMES`].
        #[derive(Clone, Copy)]
        pub(super) enum Field {
            $($field,)*
        }

        /// The names of the fields.
        const NAMES: [&str; Field::CreatedBy as usize + 1] = [$($name,)*];

        /// The index of a name in [`NAMES`]. A match, so that a constant name costs nothing.
        #[inline]
        fn index_of(name: &str) -> Option<usize> {
            match name {
                $($name => Some(Field::$field as usize),)*
                _ => None,
            }
        }
    };
}

fields! {
    Type = "type",
    Role = "role",
    Id = "id",
    CallId = "call_id",
    Name = "name",
    Arguments = "arguments",
    Output = "output",
    Content = "content",
    Status = "status",
    ProviderData = "provider_data",
    ToolDescription = "_agents_tool_description",
    ToolTitle = "_agents_tool_title",
    CreatedBy = "created_by",
}

/// The number of kept positions, and of those that are read most often.
const FIELDS: usize = Field::ProviderData as usize + 1;
const SHORT_FIELDS: usize = Field::Name as usize + 1;

/// Fields the engine keeps for itself, never shown to a model.
pub(super) const INTERNAL_FIELDS: [&str; 3] = [NAMES[FIELDS], NAMES[FIELDS + 1], NAMES[FIELDS + 2]];

/// The `id` of items whose provider gave none.
const PLACEHOLDER_ID: &str = "__fake_id__";

/// The positions of an item's fields, and what is derived from them.
#[derive(Debug, Clone)]
pub(super) struct ItemFields {
    pub(super) kind: ItemKind,
    spans: [Span; FIELDS],
    /// Set if the type, the role, an identifier or the name holds an escape.
    has_escapes: bool,
    /// The string that is a message's whole text; see [`super::Item::text_json`].
    pub(super) only_text: Span,
    pub(super) has_internal_fields: bool,
    /// A hash that is equal for repetitions of the same item; 0 for items without an identity.
    pub(super) identity: u64,
    /// For a call: the identity of its output; 0 otherwise.
    pub(super) output_identity: u64,
}

impl ItemFields {
    /// The fields of an item that has none.
    pub(super) const NONE: Self = Self {
        kind: ItemKind::Unknown,
        spans: [Span::ABSENT; FIELDS],
        has_escapes: false,
        only_text: Span::ABSENT,
        has_internal_fields: false,
        identity: 0,
        output_identity: 0,
    };

    /// Reads the fields of an item. An error if `json` is not one JSON object.
    pub(super) fn read(json: &str) -> serde_json::Result<Self> {
        let mut fields = Self::NONE;
        for (index, token) in json::select_fields(json, &NAMES)?.into_iter().enumerate() {
            if let Some(token) = token {
                fields.set(index, Span::of(token, json), token);
            }
        }
        let only_text = fields
            .token(Field::Content, json)
            .and_then(text_parts::only_text);
        fields.only_text = only_text.map_or(Span::ABSENT, |text| Span::of(text, json));
        fields.derive(json);
        Ok(fields)
    }

    /// Sets the position of a field.
    pub(super) fn set_named(&mut self, name: &str, span: Span, token: &str) {
        if let Some(index) = index_of(name) {
            self.set(index, span, token);
        }
    }

    fn set(&mut self, index: usize, span: Span, token: &str) {
        match self.spans.get_mut(index) {
            Some(known) => *known = span,
            None => self.has_internal_fields = true,
        }
        self.has_escapes |= index < SHORT_FIELDS && token.contains('\\');
    }

    /// The JSON of a field. `None` if it is absent.
    pub(super) fn token<'a>(&self, field: Field, json: &'a str) -> Option<&'a str> {
        self.spans[field as usize].token(json)
    }

    /// The JSON of a field by its name. `None` if it is absent.
    #[inline]
    pub(super) fn token_named<'a>(&self, name: &str, json: &'a str) -> Option<&'a str> {
        match index_of(name) {
            Some(index) if index < FIELDS => self.spans[index].token(json),
            _ => field(json, name),
        }
    }

    /// The text of a field. `None` if it is not a string.
    pub(super) fn text<'a>(&self, field: Field, json: &'a str) -> Option<Cow<'a, str>> {
        let token = self.token(field, json)?;
        if self.has_escapes || field as usize >= SHORT_FIELDS {
            return json::unquote(token);
        }
        token
            .strip_prefix('"')?
            .strip_suffix('"')
            .map(Cow::Borrowed)
    }

    /// Derives the kind and the identities from the fields.
    pub(super) fn derive(&mut self, json: &str) {
        let type_name = self.text(Field::Type, json);
        let role = self.token(Field::Role, json);
        self.kind = match &type_name {
            Some(name) => ItemKind::from_type(name),
            None if role.is_none() => ItemKind::Unknown,
            None => ItemKind::Message,
        };
        let kind = self.kind;
        if role.is_some_and(|role| role != "null") || kind == ItemKind::Message {
            return;
        }
        let call_id = self.text(Field::CallId, json);
        if let Some(call_id) = &call_id {
            if let Some(output_kind) = kind.output_kind() {
                self.output_identity = identity("call_id", output_kind.as_str(), call_id);
            }
            if kind.output_kind().is_some() || kind.is_output() {
                self.identity = identity("call_id", kind.as_str(), call_id);
                return;
            }
        }
        let type_name = type_name.unwrap_or_default();
        self.identity = match (self.text(Field::Id, json), call_id) {
            (Some(id), _) if id != PLACEHOLDER_ID => identity("id", &type_name, &id),
            (_, Some(call_id)) => identity("call_id", &type_name, &call_id),
            _ if kind == ItemKind::McpApprovalResponse => field(json, "approval_request_id")
                .and_then(json::unquote)
                .map_or(0, |id| identity("approval", "", &id)),
            _ => 0,
        };
    }
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

/// The JSON of one field of an object.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let [field] = json::select_fields(json, &[name]).ok()?;
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_index() {
        for (index, name) in NAMES.iter().enumerate() {
            assert_eq!(index_of(name), Some(index));
        }
        assert_eq!(index_of("other"), None);
        assert_eq!(NAMES[Field::Content as usize], "content");
    }
}
