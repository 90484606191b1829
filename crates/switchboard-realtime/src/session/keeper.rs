//! Writing a session's conversation to a store.

use std::sync::Arc;

use switchboard_core::Item;
use switchboard_core::session::SessionHandle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::event_queue::EventQueue;
use crate::conversation::to_items;
use crate::event::{RealtimeEvent, SessionProblem};
use crate::items::RealtimeItem;

/// Items to store, and the agent that has the conversation after them.
struct Part {
    items: Vec<Item>,
    agent: Arc<str>,
}

/// Writes to a store, one part after another.
pub(super) struct Keeper {
    parts: mpsc::UnboundedSender<Part>,
    writer: JoinHandle<()>,
    agent: Option<Arc<str>>,
}

impl Keeper {
    pub(super) fn begin(session: SessionHandle, events: EventQueue) -> Self {
        // Its length is that of the conversation's turns since the store last answered.
        let (parts, mut receiver) = mpsc::unbounded_channel::<Part>();
        let writer = tokio::spawn(async move {
            while let Some(part) = receiver.recv().await {
                if let Err(error) = write(&session, part).await {
                    let message = format!("the conversation could not be stored: {error}");
                    events.push(RealtimeEvent::Error(SessionProblem::Session(message)));
                }
            }
        });
        Self {
            parts,
            writer,
            agent: None,
        }
    }

    /// Writes items, and the agent that has the conversation.
    pub(super) fn keep(&mut self, items: &[Arc<RealtimeItem>], agent: Arc<str>) {
        let items: Vec<Item> = items.iter().flat_map(|item| to_items(item)).collect();
        if items.is_empty() && self.agent.as_ref() == Some(&agent) {
            return;
        }
        self.agent = Some(agent.clone());
        // The writer ends only when the keeper does.
        let _ = self.parts.send(Part { items, agent });
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) {
        drop(self.parts);
        // A writer that has panicked has nothing more to write.
        let _ = self.writer.await;
    }
}

async fn write(
    session: &SessionHandle,
    part: Part,
) -> Result<(), switchboard_core::callback::BoxError> {
    if !part.items.is_empty() {
        session.append(&part.items).await?;
    }
    match session.conversation() {
        Some(conversation) => conversation.set_agent(Some(&part.agent)).await,
        None => Ok(()),
    }
}
