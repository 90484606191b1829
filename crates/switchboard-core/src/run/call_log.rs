//! The calls of a run, so that no call runs twice and no call id is used for two calls.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::small_map::SmallMap;
use super::turn::Turn;
use crate::error::{Error, excerpt, model_error};
use crate::items::{Item, ItemKind, RunItems};

/// The calls of a run, by the identity of their items.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<KnownCall>", into = "Vec<KnownCall>")]
pub(crate) struct CallLog(SmallMap<u64, KnownCall, 1>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnownCall {
    item: Item,
    role: CallRole,
}

impl From<Vec<KnownCall>> for CallLog {
    fn from(calls: Vec<KnownCall>) -> Self {
        let mut log = Self::default();
        for call in calls {
            log.0.insert(call.item.identity(), call);
        }
        log
    }
}

impl From<CallLog> for Vec<KnownCall> {
    /// Sorted, so that the same run is always stored as the same text.
    fn from(log: CallLog) -> Self {
        let mut calls: Self = log.0.iter().map(|(_, call)| call.clone()).collect();
        calls.sort_unstable_by_key(|call| call.item.identity());
        calls
    }
}

/// The role of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallRole {
    /// A tool that ran.
    Tool,
    /// The handoff that was taken.
    Handoff,
    /// A handoff that was ignored because another one was taken.
    IgnoredHandoff,
}

impl CallRole {
    fn is_handoff(self) -> bool {
        self != Self::Tool
    }
}

impl CallLog {
    /// Adds the calls of a turn.
    pub(crate) fn add(&mut self, turn: &Turn) {
        for (item, role) in turn.calls() {
            self.0.insert(item.identity(), KnownCall::new(item, role));
        }
    }

    /// Removes calls from the turn that were answered before, and returns `true` if there were any.
    /// `shown` are the items that models see, `recorded` those of the run.
    pub(crate) fn drop_repeated(
        &self,
        turn: &mut Turn,
        shown: &RunItems,
        recorded: &RunItems,
    ) -> Result<bool, Error> {
        let mut repeated: FxHashSet<usize> = FxHashSet::default();
        let has_several = turn.calls().nth(1).is_some();
        let mut in_response: FxHashMap<u64, KnownCall> = FxHashMap::default();
        for (item, role) in turn.calls() {
            if item.call_id().is_none_or(|id| id.is_empty()) {
                return Err(model_error(format!(
                    "the model called \"{}\" without a call id, so the call cannot be answered",
                    excerpt(&item.name().unwrap_or_default())
                )));
            }
            let identity = item.identity();
            let before = in_response.get(&identity);
            if let Some(known) = before.or_else(|| self.0.get(&identity)) {
                known.expect_same(item, role)?;
                if before.is_some() || known.was_answered(shown, recorded)? {
                    repeated.insert(item.address());
                }
            }
            if has_several {
                let call = || KnownCall::new(item, role);
                in_response.entry(identity).or_insert_with(call);
            }
        }
        if repeated.is_empty() {
            return Ok(false);
        }
        turn.remove_calls(&repeated);
        Ok(true)
    }

    /// Returns `true` if a rejected response also uses a call id for two calls.
    pub(crate) fn has_conflict(&self, output: &[Item], is_handoff: impl Fn(&Item) -> bool) -> bool {
        let mut before: FxHashMap<u64, &Item> = FxHashMap::default();
        let is_call = |kind| matches!(kind, ItemKind::FunctionCall | ItemKind::CustomToolCall);
        let mut calls = output.iter().filter(|item| is_call(item.kind()));
        calls.any(|item| {
            let known = self.0.get(&item.identity());
            let before = before.insert(item.identity(), item);
            known.is_some_and(|known| !known.is_same(item, is_handoff(item)))
                || before.is_some_and(|other| {
                    is_handoff(other) != is_handoff(item) || !same_call(other, item)
                })
        })
    }
}

impl KnownCall {
    fn new(item: &Item, role: CallRole) -> Self {
        let item = item.clone();
        Self { item, role }
    }

    fn is_same(&self, item: &Item, is_handoff: bool) -> bool {
        self.role.is_handoff() == is_handoff && same_call(&self.item, item)
    }

    fn expect_same(&self, item: &Item, role: CallRole) -> Result<(), Error> {
        if self.is_same(item, role.is_handoff()) {
            return Ok(());
        }
        let id = item.call_id().unwrap_or_default();
        let message = format!("the model used the call id \"{id}\" for two different calls");
        Err(model_error(message))
    }

    /// Returns `true` if a repeated call was answered and can be dropped. A handoff that was ignored
    /// may be asked for again; one that took place must not take place twice.
    fn was_answered(&self, shown: &RunItems, recorded: &RunItems) -> Result<bool, Error> {
        let output = self.item.output_identity();
        let is_in = |items: &RunItems| items.iter().any(|made| made.item().identity() == output);
        match self.role {
            CallRole::Tool => Ok(true),
            CallRole::IgnoredHandoff => Ok(is_in(shown)),
            CallRole::Handoff if is_in(shown) || is_in(recorded) => Ok(true),
            CallRole::Handoff => Err(model_error(format!(
                "the model repeated the call \"{}\" of a handoff that took place and whose output a \
                 filter has taken out; it is not taken twice",
                excerpt(&self.item.call_id().unwrap_or_default())
            ))),
        }
    }
}

/// Returns `true` if two calls have the same id, name and arguments, compared as JSON.
fn same_call(a: &Item, b: &Item) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let (sent, sent_again) = (a.arguments(), b.arguments());
    let same_arguments = sent == sent_again
        || matches!((&sent, &sent_again), (Some(a), Some(b))
            if value(a).is_some_and(|a| Some(a) == value(b)));
    a.call_id() == b.call_id() && a.name() == b.name() && same_arguments
}
