//! Items that belong together: a call and its output, reasoning and the item it led to. Providers
//! reject one without the other.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::{Item, ItemKind};
use crate::json;

/// The relation of each item of a list, by index, to the item it belongs to.
pub(crate) struct Pairing(Vec<Relation>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Relation {
    /// Belongs to no other item.
    Independent,
    /// A call or an output, and the index of its counterpart.
    PairedWith(usize),
    /// Reasoning, and the index of the item it led to.
    LedTo(usize),
    /// A call, an output or reasoning whose counterpart is missing.
    Orphaned,
}

/// The kind of the output and the identifier, by which a call and its output are matched.
type PairKey<'a> = (ItemKind, Option<Cow<'a, str>>);

impl Pairing {
    /// Pairs each call with the first output after it of the same kind and identifier. A call that is
    /// repeated before its output, and a second output, are orphaned.
    pub(crate) fn of(items: &[&Item]) -> Self {
        let mut relations = vec![Relation::Independent; items.len()];
        let mut open: HashMap<PairKey<'_>, VecDeque<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(key) = call_key(item) {
                // A request for approval may still be waiting for its answer.
                if item.kind() != ItemKind::McpApprovalRequest {
                    relations[at] = Relation::Orphaned;
                }
                let is_named = key.1.is_some();
                let waiting = open.entry(key).or_default();
                if waiting.is_empty() || !is_named {
                    waiting.push_back(at);
                }
            } else if let Some(key) = output_key(item) {
                let call = open.get_mut(&key).and_then(VecDeque::pop_front);
                relations[at] = call.map_or(Relation::Orphaned, Relation::PairedWith);
                if let Some(call) = call {
                    relations[call] = Relation::PairedWith(at);
                }
            }
        }
        let mut next = Relation::Orphaned;
        for (at, item) in items.iter().enumerate().rev() {
            if item.kind() == ItemKind::Reasoning {
                relations[at] = next;
            } else {
                next = if is_from_model(item) {
                    Relation::LedTo(at)
                } else {
                    Relation::Orphaned
                };
            }
        }
        Self(relations)
    }

    /// A list of `len` independent items.
    pub(crate) fn none(len: usize) -> Self {
        Self(vec![Relation::Independent; len])
    }

    /// Returns `true` if the item's counterpart is missing.
    pub(crate) fn is_orphaned(&self, at: usize) -> bool {
        self.0[at] == Relation::Orphaned
    }

    /// Unsets the flags of items whose counterpart is missing or not kept.
    pub(crate) fn drop_orphans(&self, kept: &mut [bool]) {
        for (at, relation) in self.0.iter().enumerate() {
            match relation {
                Relation::PairedWith(other) => kept[at] &= kept[*other],
                Relation::Orphaned => kept[at] = false,
                Relation::Independent | Relation::LedTo(_) => {}
            }
        }
        for (at, relation) in self.0.iter().enumerate() {
            if let Relation::LedTo(next) = relation {
                kept[at] &= kept[*next];
            }
        }
    }

    /// For each item, `true` if it has its counterpart.
    pub(crate) fn paired(&self) -> Vec<bool> {
        let mut paired = vec![true; self.0.len()];
        self.drop_orphans(&mut paired);
        paired
    }

    /// Moves a cut before the reasoning that led to the item after it.
    pub(crate) fn before_reasoning(&self, mut cut: usize) -> usize {
        while cut > 0 && matches!(self.0[cut - 1], Relation::LedTo(_)) {
            cut -= 1;
        }
        cut
    }

    /// Moves a cut behind the item whose reasoning comes before it.
    pub(crate) fn after_reasoned(&self, cut: usize) -> usize {
        match cut.checked_sub(1).map(|before| self.0[before]) {
            Some(Relation::LedTo(next)) => next + 1,
            _ => cut,
        }
    }

    /// Moves a cut to the left until it separates no items that belong together.
    pub(crate) fn before_all(&self, mut cut: usize) -> usize {
        let mut at = self.0.len();
        while at > cut {
            at -= 1;
            if let Relation::PairedWith(other) = self.0[at] {
                cut = cut.min(other);
            }
            if at == cut {
                cut = self.before_reasoning(cut);
            }
        }
        cut
    }
}

fn call_key(item: &Item) -> Option<PairKey<'_>> {
    match (item.kind(), item.kind().output_kind()) {
        (_, Some(output)) => Some((output, item.call_id())),
        (ItemKind::McpApprovalRequest, None) => Some((ItemKind::McpApprovalResponse, item.id())),
        _ => None,
    }
}

fn output_key(item: &Item) -> Option<PairKey<'_>> {
    match item.kind() {
        kind @ ItemKind::McpApprovalResponse => {
            let request = item.field("approval_request_id");
            Some((kind, request.and_then(json::unquote)))
        }
        kind if kind.is_output() => Some((kind, item.call_id())),
        _ => None,
    }
}

/// Returns `true` if a model made the item, so that reasoning can have led to it.
fn is_from_model(item: &Item) -> bool {
    output_key(item).is_none() && item.role().is_none_or(|role| role == "assistant")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is not orphaned. The words stand for items: `c1` a call, `o1` its output, `r` reasoning, `u` and `a` messages, `?1` a
    /// request for approval and `!1` its answer, `s` a search for tools and `f` its output.
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
