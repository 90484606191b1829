//! The messages that most of a conversation consists of: items whose parts can be taken as they stand.

use switchboard_core::__private::Fact;
use switchboard_core::{Item, ItemKind};

use crate::wire::lenient::has_halves;
use crate::wire::payload::{fitting, is_full};

const USER: &str = r#"{"role":"user","content":"#;
const ASSISTANT: &str = r#"{"role":"assistant","content":"#;
const END: &str = "}";
const CALLER: &str = r#"{"role":"assistant","content":null"#;

/// What stands before the parts of a call and its output, which are its identifier, its name, its
/// arguments, its identifier again, and the output.
const AROUND: [&str; 5] = [
    r#","tool_calls":[{"id":"#,
    r#","type":"function","function":{"name":"#,
    r#","arguments":"#,
    r#"}}]},{"role":"tool","tool_call_id":"#,
    r#","content":"#,
];

/// The length of all that stands around a call and its output.
const AROUND_LENGTH: usize = {
    let mut length = CALLER.len() + END.len();
    let mut at = 0;
    while at < AROUND.len() {
        length += AROUND[at].len();
        at += 1;
    }
    length
};

/// How many bytes the message takes that an item is, and with a call its output too, which is the next
/// item; and how many items these are, one message each. `None` where there is more to them.
///
/// Nothing may be pending that an item could belong to.
#[inline]
pub(super) fn length(item: &Item, next: Option<&Item>) -> Option<(usize, usize)> {
    if !item.fact(Fact::IsUsual, is_usual) {
        return None;
    }
    match item.kind() {
        ItemKind::FunctionCall => {
            let next = next.filter(|next| is_usual_output(next))?;
            let [id, name, arguments] = item.usual_call_lens();
            let output = next.answer_len(item)?;
            // The messages stand with the comma between them.
            Some((AROUND_LENGTH + 2 * id + name + arguments + output, 2))
        }
        ItemKind::Message if item.is_of_user() => {
            Some((USER.len() + item.only_text_len() + END.len(), 1))
        }
        ItemKind::Message if next.is_none_or(begins_another) => {
            Some((ASSISTANT.len() + item.only_text_len() + END.len(), 1))
        }
        _ => None,
    }
}

/// Writes the messages that items are, and with a call its output too, until the block is full, but at least
/// one; how many items these are. There must be a [`length`] of each.
pub(super) fn write(block: &mut Vec<u8>, items: &[Item], after: Option<&Item>) -> usize {
    let (mut at, mut end) = (0, 0);
    while at < items.len() && (at == 0 || !is_full(block)) {
        if at >= end {
            end = at + fitting(block, &items[at..]);
        }
        if at > 0 {
            block.push(b',');
        }
        at += write_one(block, &items[at], items.get(at + 1).or(after));
    }
    at
}

#[inline]
fn write_one(block: &mut Vec<u8>, item: &Item, next: Option<&Item>) -> usize {
    let mut put = |json: &str| block.extend_from_slice(json.as_bytes());
    if let Some(answered) = Answered::of(item, next) {
        put(CALLER);
        answered.write(block);
        return 2;
    }
    put(if item.is_of_user() { USER } else { ASSISTANT });
    put(item.only_text().unwrap_or_default());
    put(END);
    1
}

/// A call and the output right after it, both written as usual; parts are JSON.
pub(super) struct Answered<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
    output: &'a str,
}

impl<'a> Answered<'a> {
    #[inline]
    pub(super) fn of(call: &'a Item, next: Option<&'a Item>) -> Option<Self> {
        let [id, name, arguments] = call.usual_call()?;
        let [_, output] = next?.usual_output()?;
        Some(Self {
            id,
            name,
            arguments,
            output,
        })
    }

    /// Writes the rest of a message that calls, and the message of what came of it.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // Not in a loop: what is always the same is then written in a few large moves.
        let mut put = |json: &str| out.extend_from_slice(json.as_bytes());
        put(AROUND[0]);
        put(self.id);
        put(AROUND[1]);
        put(self.name);
        put(AROUND[2]);
        put(self.arguments);
        put(AROUND[3]);
        put(self.id);
        put(AROUND[4]);
        put(self.output);
        put(END);
    }
}

/// Whether an item, seen on its own, can be taken as it stands.
fn is_usual(item: &Item) -> bool {
    let has_parts = match item.kind() {
        ItemKind::FunctionCall => item.usual_call().is_some(),
        ItemKind::FunctionCallOutput => item.usual_output().is_some(),
        ItemKind::Message if item.is_of_user() => item
            .content_json()
            .is_some_and(|json| json.starts_with('"')),
        ItemKind::Message => item.is_of_assistant() && item.only_text().is_some(),
        _ => false,
    };
    has_parts && is_sound(item)
}

fn is_usual_output(item: &Item) -> bool {
    item.kind() == ItemKind::FunctionCallOutput && item.fact(Fact::IsUsual, is_usual)
}

/// Whether no half of a character is in an item. Items mostly have none, and say so once.
#[inline]
pub(super) fn is_sound(item: &Item) -> bool {
    item.fact(Fact::IsSound, |item| !has_halves(item.as_json()))
}

/// Whether an item begins another message than the one before it, whoever speaks.
fn begins_another(item: &Item) -> bool {
    item.kind() == ItemKind::Message && !item.is_of_tool()
}
