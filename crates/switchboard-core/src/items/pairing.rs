//! Which items of a conversation belong together: a call and its output, reasoning and the item it
//! led to. Providers refuse the one without the other.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::{Item, ItemKind};
use crate::json;

/// For each item, by its place: what it needs beside it.
pub(crate) struct Pairing(Vec<Tie>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tie {
    /// Stands for itself.
    Free,
    /// A call or an output; the other half is there.
    Half(usize),
    /// Reasoning, and the item it led to.
    LedTo(usize),
    /// Half of something whose other half is nowhere.
    Alone,
}

/// What a call and its output share: the kind of the output, and the identifier where there is one.
type Knot<'a> = (ItemKind, Option<Cow<'a, str>>);

impl Pairing {
    /// A call belongs to the first output of its kind and identifier that comes after it. A call
    /// repeated before it is answered, and a second answer, belong to nothing.
    pub(crate) fn of(items: &[&Item]) -> Self {
        let mut ties = vec![Tie::Free; items.len()];
        let mut open: HashMap<Knot<'_>, VecDeque<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(knot) = asked(item) {
                // A request for approval may wait for its answer; other calls may not.
                if item.kind() != ItemKind::McpApprovalRequest {
                    ties[at] = Tie::Alone;
                }
                let is_named = knot.1.is_some();
                let waiting = open.entry(knot).or_default();
                if waiting.is_empty() || !is_named {
                    waiting.push_back(at);
                }
            } else if let Some(knot) = answered(item) {
                let call = open.get_mut(&knot).and_then(VecDeque::pop_front);
                ties[at] = call.map_or(Tie::Alone, Tie::Half);
                if let Some(call) = call {
                    ties[call] = Tie::Half(at);
                }
            }
        }
        let mut next = Tie::Alone;
        for (at, item) in items.iter().enumerate().rev() {
            if item.kind() == ItemKind::Reasoning {
                ties[at] = next;
            } else {
                next = if is_of_model(item) {
                    Tie::LedTo(at)
                } else {
                    Tie::Alone
                };
            }
        }
        Self(ties)
    }

    /// Whether the call or output at this place lacks its other half.
    pub(crate) fn is_half(&self, at: usize) -> bool {
        self.0[at] == Tie::Alone
    }

    /// Nothing belongs together.
    pub(crate) fn none(len: usize) -> Self {
        Self(vec![Tie::Free; len])
    }

    /// Lets fall what cannot stand without something that falls.
    pub(crate) fn drop_orphans(&self, kept: &mut [bool]) {
        for (at, tie) in self.0.iter().enumerate() {
            match tie {
                Tie::Half(other) => kept[at] &= kept[*other],
                Tie::Alone => kept[at] = false,
                Tie::Free | Tie::LedTo(_) => {}
            }
        }
        for (at, tie) in self.0.iter().enumerate() {
            if let Tie::LedTo(next) = tie {
                kept[at] &= kept[*next];
            }
        }
    }

    /// An earlier place for a cut, with the reasoning that led to what comes after it.
    pub(crate) fn before_reasoning(&self, mut cut: usize) -> usize {
        while cut > 0 && matches!(self.0[cut - 1], Tie::LedTo(_)) {
            cut -= 1;
        }
        cut
    }

    /// A later place for a cut, without an item whose reasoning comes before it.
    pub(crate) fn after_reasoned(&self, cut: usize) -> usize {
        match cut.checked_sub(1).map(|before| self.0[before]) {
            Some(Tie::LedTo(next)) => next + 1,
            _ => cut,
        }
    }

    /// An earlier place for a cut, one that separates nothing that belongs together.
    pub(crate) fn before_all(&self, mut cut: usize) -> usize {
        let mut at = self.0.len();
        while at > cut {
            at -= 1;
            if let Tie::Half(other) = self.0[at] {
                cut = cut.min(other);
            }
            if at == cut {
                cut = self.before_reasoning(cut);
            }
        }
        cut
    }
}

fn asked(item: &Item) -> Option<Knot<'_>> {
    match (item.kind(), item.kind().output_kind()) {
        (_, Some(output)) => Some((output, item.call_id())),
        (ItemKind::McpApprovalRequest, None) => Some((ItemKind::McpApprovalResponse, item.id())),
        _ => None,
    }
}

fn answered(item: &Item) -> Option<Knot<'_>> {
    match item.kind() {
        kind @ ItemKind::McpApprovalResponse => {
            let request = item.field("approval_request_id");
            Some((kind, request.and_then(json::unquote)))
        }
        kind if kind.is_output() => Some((kind, item.call_id())),
        _ => None,
    }
}

/// Whether a model made the item, so that reasoning can have led to it.
fn is_of_model(item: &Item) -> bool {
    answered(item).is_none() && item.role().is_none_or(|role| role == "assistant")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items from words: `c1` a call, `o1` its output, `r` reasoning, `u` and `a` messages, `?1` a
    /// request for approval and `!1` its answer, `s` a search for tools and `f` what it found.
    fn kept(words: &str) -> String {
        let items: Vec<Item> = words.split(' ').map(item).collect();
        let items: Vec<&Item> = items.iter().collect();
        let mut kept = vec![true; items.len()];
        Pairing::of(&items).drop_orphans(&mut kept);
        let words = words.split(' ').zip(kept).filter(|(_, kept)| *kept);
        words.map(|(word, _)| word).collect::<Vec<_>>().join(" ")
    }

    fn item(word: &str) -> Item {
        let id = &word[1..];
        let json = match &word[..1] {
            "c" => return Item::function_call(id, "f", "{}"),
            "o" => return Item::function_call_output(id, ""),
            "u" => return Item::user(id),
            "a" => return Item::assistant(id),
            "r" => r#"{"type":"reasoning","summary":[]}"#.to_owned(),
            "?" => format!(r#"{{"type":"mcp_approval_request","id":"{id}"}}"#),
            "!" => format!(r#"{{"type":"mcp_approval_response","approval_request_id":"{id}"}}"#),
            "s" => r#"{"type":"tool_search_call","call_id":null}"#.to_owned(),
            "f" => r#"{"type":"tool_search_output","call_id":null}"#.to_owned(),
            "h" => format!(r#"{{"type":"shell_call","call_id":"{id}"}}"#),
            other => panic!("{other} stands for nothing"),
        };
        Item::from_json(json).unwrap()
    }

    #[test]
    fn a_call_belongs_to_the_first_output_after_it() {
        for (words, expected) in [
            ("u c1 u o1", "u c1 u o1"),
            ("c1 u", "u"),
            ("o1 c1", ""),
            ("o1 c1 o1", "c1 o1"),
            ("c1 o1 u o1", "c1 o1 u"),
            ("c1 c1 o1", "c1 o1"),
            ("c1 c1 o1 o1", "c1 o1"),
            ("c1 o1 c1 o1", "c1 o1 c1 o1"),
            ("c1 c2 o2 o1", "c1 c2 o2 o1"),
            ("h1 o1", ""),
            ("s s f f f", "s s f f"),
            ("?1 !1 !1 ?2 !3", "?1 !1 ?2"),
        ] {
            assert_eq!(kept(words), expected, "of {words}");
        }
    }

    #[test]
    fn reasoning_belongs_to_what_it_led_to() {
        for (words, expected) in [
            ("r r a", "r r a"),
            ("r c1 o1", "r c1 o1"),
            ("r c1 r a", "r a"),
            ("r u", "u"),
            ("a r", "a"),
        ] {
            assert_eq!(kept(words), expected, "of {words}");
        }
    }
}
