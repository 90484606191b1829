//! Conversations that a run has left without an answer: it failed, or was stopped, after the outputs of a client's tools
//! were stored. The client sends the outputs again, and the next run goes on from there.

use std::collections::HashSet;

use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversation;
use switchboard_core::items::ItemKind;

use super::{Caller, GivenOutputs, Service};
use crate::error::ServiceError;

/// The number of entries among which the last item is looked for.
const LATEST_ENTRIES: usize = 16;

impl Service {
    /// The messages that are left to be sent, if these outputs are stored and were not answered; `None` otherwise, and
    /// if another process answers them.
    pub(crate) async fn left_unanswered(
        &self,
        caller: &Caller,
        id: &str,
        given: &GivenOutputs,
    ) -> Result<Option<Vec<Item>>, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        let record = conversation.record(None).await.map_err(failed)?;
        let items = record.iter().filter_map(|entry| entry.content.item());
        let items: Vec<&Item> = items.collect();
        let mut missing: HashSet<&str> = given.outputs.iter().map(|(id, _)| &**id).collect();
        let mut first = None;
        for (at, item) in items.iter().enumerate() {
            let is_output = item.kind() == ItemKind::FunctionCallOutput;
            if is_output && item.call_id().is_some_and(|id| missing.remove(&*id)) {
                first = first.or(Some(at));
            }
        }
        let is_unanswered = items.last().is_some_and(|item| is_for_model(item));
        let Some(first) = first.filter(|_| missing.is_empty() && is_unanswered) else {
            return Ok(None);
        };
        if self.resumptions(caller, id).await?.under_way.is_some() {
            return Ok(None);
        }
        let is_stored = |message: &Item| {
            let mut after = items.iter().skip(first);
            after.any(|item| content(item) == content(message))
        };
        let left = given.added.iter().filter(|message| !is_stored(message));
        Ok(Some(left.cloned().collect()))
    }
}

/// Returns `true` if a conversation waits, or ends with something that a model answers.
pub(super) async fn is_unanswered(conversation: &Conversation) -> Result<bool, BoxError> {
    if conversation.waiting_run().await?.is_some() {
        return Ok(true);
    }
    let latest = conversation.record(LATEST_ENTRIES).await?;
    let mut latest = latest.iter().rev();
    let last = latest.find_map(|entry| entry.content.item());
    Ok(last.is_some_and(is_for_model))
}

fn is_for_model(item: &Item) -> bool {
    item.kind() == ItemKind::FunctionCallOutput || item.role().as_deref() == Some("user")
}

/// The role and the content of a message.
fn content(item: &Item) -> Option<(String, Value)> {
    let content = item.to_value()?["content"].take();
    Some((item.role()?.into_owned(), content))
}
