//! The calls of a run, so that none runs twice and no call id stands for two.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::small_map::SmallMap;
use super::turn::Turn;
use crate::error::{Error, ErrorKind};
use crate::items::{Item, ItemKind};

/// The calls a run has seen, by the identity of their items.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(SmallMap<u64, KnownCall, 1>);

#[derive(Debug, Clone)]
pub(super) struct KnownCall {
    pub(super) item: Item,
    pub(super) role: Role,
}

/// What a call was to the run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// A tool that ran.
    Tool,
    /// The handoff that was taken.
    Handoff,
    /// A handoff that was ignored because another one was taken.
    IgnoredHandoff,
}

/// Where a run has an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Among what models are shown.
    Shown,
    /// In the record of the run.
    Recorded,
}

impl Role {
    fn is_handoff(self) -> bool {
        self != Self::Tool
    }
}

impl Calls {
    pub(super) fn insert(&mut self, call: KnownCall) {
        self.0.insert(call.item.identity(), call);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownCall> {
        self.0.iter().map(|(_, call)| call)
    }

    /// Notes the calls of a turn that was admitted.
    pub(super) fn note(&mut self, turn: &Turn) {
        for (item, role) in turn.calls() {
            let item = item.clone();
            self.insert(KnownCall { item, role });
        }
    }

    /// Leaves calls out of the turn that were answered before. Returns whether there were any.
    /// `answer_is` tells where the output of an identity still is.
    pub(super) fn admit(
        &self,
        turn: &mut Turn,
        answer_is: impl Fn(u64, Where) -> bool,
    ) -> Result<bool, Error> {
        let mut repeated: FxHashSet<usize> = FxHashSet::default();
        let are_several = turn.calls().nth(1).is_some();
        let mut in_response: FxHashMap<u64, (&Item, Role)> = FxHashMap::default();
        for (item, role) in turn.calls() {
            if item.call_id().is_none_or(|id| id.is_empty()) {
                return Err(Error::new(
                    ErrorKind::ModelBehavior,
                    format!(
                        "the model called \"{}\" without a call id, so the call cannot be answered",
                        item.name().unwrap_or_default()
                    ),
                ));
            }
            let identity = item.identity();
            let is_repeated = match (in_response.get(&identity), self.0.get(&identity)) {
                (Some((other, other_role)), _) => {
                    expect_same(other, *other_role, item, role)?;
                    true
                }
                (None, None) => false,
                (None, Some(known)) => {
                    expect_same(&known.item, known.role, item, role)?;
                    known.was_answered(&answer_is)?
                }
            };
            if are_several {
                in_response.entry(identity).or_insert((item, role));
            }
            if is_repeated {
                repeated.insert(item.address());
            }
        }
        let is_any = !repeated.is_empty();
        if is_any {
            turn.leave_out(&repeated);
        }
        Ok(is_any)
    }

    /// Whether a response that cannot be taken also uses a call id for two calls.
    pub(super) fn conflict(&self, output: &[Item], is_handoff: impl Fn(&Item) -> bool) -> bool {
        let mut before: FxHashMap<u64, &Item> = FxHashMap::default();
        let mut calls = output
            .iter()
            .filter(|item| item.kind() == ItemKind::FunctionCall);
        calls.any(|item| {
            let known = self.0.get(&item.identity());
            let known = known.map(|known| (&known.item, known.role.is_handoff()));
            let before = before.insert(item.identity(), item);
            let before = before.map(|other| (other, is_handoff(other)));
            let mut others = known.into_iter().chain(before);
            others.any(|(other, was_handoff)| {
                was_handoff != is_handoff(item) || !same_call(other, item)
            })
        })
    }
}

impl KnownCall {
    /// Whether a call that comes again was answered and can be left out. A handoff that was
    /// ignored may be asked for again; one that took place must not take place twice.
    fn was_answered(&self, answer_is: impl Fn(u64, Where) -> bool) -> Result<bool, Error> {
        let output = self.item.output_identity();
        let is_shown = || answer_is(output, Where::Shown);
        match self.role {
            Role::Tool => Ok(true),
            Role::IgnoredHandoff => Ok(is_shown()),
            Role::Handoff if is_shown() || answer_is(output, Where::Recorded) => Ok(true),
            Role::Handoff => Err(Error::new(
                ErrorKind::ModelBehavior,
                format!(
                    "the model repeated the call \"{}\" of a handoff that took place and whose output \
                     a filter has taken out; it is not taken twice",
                    self.item.call_id().unwrap_or_default()
                ),
            )),
        }
    }
}

fn expect_same(known: &Item, known_role: Role, item: &Item, role: Role) -> Result<(), Error> {
    if known_role.is_handoff() == role.is_handoff() && same_call(known, item) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::ModelBehavior,
        format!(
            "the model used the call id \"{}\" for two different calls",
            item.call_id().unwrap_or_default()
        ),
    ))
}

/// Whether two calls ask for the same thing, whatever the form of their arguments.
fn same_call(a: &Item, b: &Item) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let (sent, sent_again) = (a.arguments(), b.arguments());
    let same_arguments = sent == sent_again
        || matches!((&sent, &sent_again), (Some(a), Some(b))
            if value(a).is_some_and(|a| Some(a) == value(b)));
    a.call_id() == b.call_id() && a.name() == b.name() && same_arguments
}
