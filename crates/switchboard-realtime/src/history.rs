//! The local history of a realtime session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::items::{
    RealtimeContent, RealtimeItem, RealtimeItemStatus, RealtimeMessageItem, RealtimeRole,
};

/// The items of a realtime conversation, in order. Clones share them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RealtimeHistory(Arc<Vec<Arc<RealtimeItem>>>);

impl RealtimeHistory {
    /// The items.
    pub fn items(&self) -> &[Arc<RealtimeItem>] {
        &self.0
    }

    /// The item with this identifier.
    pub fn get(&self, item_id: &str) -> Option<&Arc<RealtimeItem>> {
        self.0.iter().find(|item| **item.item_id() == *item_id)
    }

    /// The texts and transcripts of the messages, each with its author, in order.
    pub fn messages(&self) -> impl Iterator<Item = (RealtimeRole, String)> {
        let messages = self.0.iter().filter_map(|item| item.as_message());
        messages.map(|message| (message.role, message.text()))
    }

    fn position(&self, item_id: &str) -> Option<usize> {
        self.0.iter().position(|item| **item.item_id() == *item_id)
    }

    fn items_mut(&mut self) -> &mut Vec<Arc<RealtimeItem>> {
        Arc::make_mut(&mut self.0)
    }

    /// Adds an item, or updates the one with its identifier. An update keeps transcripts, texts and
    /// images that it lacks; `spoken` is the transcript as far as it was heard. Returns the new item,
    /// unless it was known.
    pub(crate) fn update(
        &mut self,
        item: RealtimeItem,
        spoken: Option<&str>,
    ) -> Option<Arc<RealtimeItem>> {
        match self.position(item.item_id()) {
            Some(at) => {
                self.update_at(at, item, spoken);
                None
            }
            None => Some(self.insert(item)),
        }
    }

    fn update_at(&mut self, at: usize, item: RealtimeItem, spoken: Option<&str>) {
        let old = self.0[at].clone();
        let merged = match (item, &*old) {
            (RealtimeItem::Message(new), _) if new.content.is_empty() => return,
            (RealtimeItem::Message(new), RealtimeItem::Message(old)) => {
                merge(keep_transcripts(new, old, spoken), old).into()
            }
            (item, _) => item,
        };
        self.items_mut()[at] = Arc::new(merged);
    }

    fn insert(&mut self, item: RealtimeItem) -> Arc<RealtimeItem> {
        let previous = item.previous_item_id();
        let previous = previous.and_then(|previous| self.position(previous));
        let at = previous.map_or(self.0.len(), |at| at + 1);
        let item = Arc::new(item);
        self.items_mut().insert(at, item.clone());
        item
    }

    /// Sets the transcript of the agent's audio as far as it was spoken.
    pub(crate) fn set_spoken(&mut self, item_id: &Arc<str>, transcript: &str) {
        let part = RealtimeContent::Audio {
            audio: None,
            transcript: Some(transcript.to_owned()),
        };
        let message = RealtimeMessageItem::new(item_id.clone(), RealtimeRole::Assistant, [part]);
        self.update(message.into(), None);
    }

    /// Sets the transcript of the user's audio. Returns the new item, if the message was not known.
    pub(crate) fn set_heard(
        &mut self,
        item_id: &Arc<str>,
        transcript: String,
    ) -> Option<Arc<RealtimeItem>> {
        let mut is_known = false;
        for item in self.items_mut() {
            let RealtimeItem::Message(message) = &**item else {
                continue;
            };
            if message.item_id != *item_id || message.role != RealtimeRole::User {
                continue;
            }
            is_known = true;
            let mut message = message.clone();
            for part in &mut message.content {
                if let RealtimeContent::InputAudio {
                    transcript: known, ..
                } = part
                {
                    *known = Some(transcript.clone());
                }
            }
            message.status = Some(RealtimeItemStatus::Completed);
            *item = Arc::new(message.into());
        }
        if is_known {
            return None;
        }
        let text = Some(transcript);
        let part = RealtimeContent::InputText { text };
        let message = RealtimeMessageItem::new(item_id.clone(), RealtimeRole::User, [part]);
        let item = Arc::new(RealtimeItem::Message(message));
        self.items_mut().push(item.clone());
        Some(item)
    }

    pub(crate) fn delete(&mut self, item_id: &str) {
        self.items_mut().retain(|item| **item.item_id() != *item_id);
    }

    /// Returns `true` if the text of a known message is shorter than in its new form.
    pub(crate) fn is_shorter(&self, new: &RealtimeItem) -> bool {
        let known = self.get(new.item_id()).and_then(|item| item.as_message());
        let new = new.as_message();
        known
            .zip(new)
            .is_some_and(|(known, new)| known.text().len() < new.text().len())
    }

    /// Cuts the transcript of a message to the share of its audio that was heard, at the end of a word.
    /// Returns `false` if there is nothing to cut.
    pub(crate) fn truncate(&mut self, item_id: &str, content_index: usize, share: f64) -> bool {
        let Some(at) = self.position(item_id) else {
            return false;
        };
        let RealtimeItem::Message(message) = &*self.0[at] else {
            return false;
        };
        let mut message = message.clone();
        message.status = Some(RealtimeItemStatus::Incomplete);
        if let Some(RealtimeContent::Audio { transcript, .. }) =
            message.content.get_mut(content_index)
            && let Some(text) = transcript
        {
            *text = heard_part(text, share).to_owned();
        }
        self.items_mut()[at] = Arc::new(message.into());
        true
    }
}

/// The part of a text that takes this share of the time, up to the end of a word.
fn heard_part(text: &str, share: f64) -> &str {
    let total = text.chars().count();
    // A share is at most 1 and texts are short, so nothing is lost.
    let chars = (total as f64 * share.clamp(0.0, 1.0)).round() as usize;
    if chars >= total {
        return text;
    }
    let end = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    let cut = &text[..end];
    if text[end..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace) {
        Some(space) => cut[..space].trim_end(),
        None => "",
    }
}

/// Fills in transcripts that the new form of a message lacks.
fn keep_transcripts(
    mut new: RealtimeMessageItem,
    old: &RealtimeMessageItem,
    spoken: Option<&str>,
) -> RealtimeMessageItem {
    let is_assistant = new.role == RealtimeRole::Assistant;
    for (at, part) in new.content.iter_mut().enumerate() {
        let (RealtimeContent::Audio { transcript, .. }
        | RealtimeContent::InputAudio { transcript, .. }) = part
        else {
            continue;
        };
        if transcript.as_ref().is_some_and(|text| !text.is_empty()) {
            continue;
        }
        let known = match old.content.get(at) {
            Some(
                RealtimeContent::Audio { transcript, .. }
                | RealtimeContent::InputAudio { transcript, .. },
            ) => transcript.as_deref(),
            _ => None,
        };
        let known = known.filter(|text| !text.is_empty());
        let known = known.or(spoken.filter(|text| is_assistant && !text.is_empty()));
        if let Some(known) = known {
            *transcript = Some(known.to_owned());
        }
    }
    new
}

/// The new form of a message, with the parts of the old one that it left empty.
fn merge(mut new: RealtimeMessageItem, old: &RealtimeMessageItem) -> RealtimeMessageItem {
    if new.role != old.role {
        return new;
    }
    if new.role == RealtimeRole::User {
        let missing: Vec<RealtimeContent> = missing_images(&new, old).cloned().collect();
        new.content.splice(0..0, missing);
    }
    for (part, old) in new.content.iter_mut().zip(&old.content) {
        let is_kept = match (&*part, old) {
            (
                RealtimeContent::Audio {
                    transcript: None, ..
                },
                _,
            ) => true,
            (RealtimeContent::Text { text: None }, RealtimeContent::Text { text: Some(_) }) => true,
            (
                RealtimeContent::InputText { text },
                RealtimeContent::InputText { text: Some(old) },
            ) => {
                let is_empty = text.as_ref().is_none_or(String::is_empty);
                match new.role {
                    RealtimeRole::User => is_empty && !old.is_empty(),
                    _ => text.is_none(),
                }
            }
            _ => false,
        };
        if is_kept {
            *part = old.clone();
        } else if let (
            RealtimeContent::InputAudio { transcript, .. },
            RealtimeContent::InputAudio {
                transcript: Some(known),
                ..
            },
        ) = (part, old)
        {
            transcript.get_or_insert_with(|| known.clone());
        }
    }
    new
}

/// The images of the old form of a message that the new one lacks.
fn missing_images<'a>(
    new: &'a RealtimeMessageItem,
    old: &'a RealtimeMessageItem,
) -> impl Iterator<Item = &'a RealtimeContent> {
    let url = |part: &'a RealtimeContent| match part {
        RealtimeContent::InputImage { image_url, .. } => {
            image_url.as_deref().filter(|url| !url.is_empty())
        }
        _ => None,
    };
    old.content.iter().filter(move |part| {
        url(part).is_some_and(|known| !new.content.iter().any(|part| url(part) == Some(known)))
    })
}

impl FromIterator<RealtimeItem> for RealtimeHistory {
    fn from_iter<I: IntoIterator<Item = RealtimeItem>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().map(Arc::new).collect()))
    }
}
