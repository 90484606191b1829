//! What a streamed run tells, and how it gets from the run to who listens.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::agent::Agent;
use crate::items::{RunItem, RunItemKind};
use crate::model::ModelEvent;

/// Something that happened in a streamed run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StreamEvent<C = ()> {
    /// The model sent a piece of its answer.
    Model(ModelEvent),
    /// The run has a new item.
    Item(RunItemEvent, RunItem),
    /// An agent has got the conversation; the first one at the start of the run.
    AgentUpdated(Agent<C>),
}

/// What a new item means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunItemEvent {
    /// The model said something.
    MessageOutputCreated,
    /// The model asked for a handoff.
    HandoffRequested,
    /// A handoff took place.
    HandoffOccurred,
    /// The model called a tool.
    ToolCalled,
    /// A tool answered.
    ToolOutput,
    /// The model reasoned.
    ReasoningItemCreated,
    /// The model looked for tools.
    ToolSearchCalled,
    /// Tools were found.
    ToolSearchOutputCreated,
    /// The provider asks whether an MCP tool may be called.
    McpApprovalRequested,
    /// That question was answered.
    McpApprovalResponse,
    /// An MCP server's tools were listed.
    McpListTools,
}

impl RunItemEvent {
    /// The event's name in the reference, its spelling of `handoff_occured` included.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessageOutputCreated => "message_output_created",
            Self::HandoffRequested => "handoff_requested",
            Self::HandoffOccurred => "handoff_occured",
            Self::ToolCalled => "tool_called",
            Self::ToolOutput => "tool_output",
            Self::ReasoningItemCreated => "reasoning_item_created",
            Self::ToolSearchCalled => "tool_search_called",
            Self::ToolSearchOutputCreated => "tool_search_output_created",
            Self::McpApprovalRequested => "mcp_approval_requested",
            Self::McpApprovalResponse => "mcp_approval_response",
            Self::McpListTools => "mcp_list_tools",
        }
    }
}

impl<C> StreamEvent<C> {
    /// The event of a new item; some items are bookkeeping and have none.
    pub(super) fn of(item: RunItem) -> Option<Self> {
        let event = match item.kind() {
            RunItemKind::MessageOutput => RunItemEvent::MessageOutputCreated,
            RunItemKind::HandoffCall => RunItemEvent::HandoffRequested,
            RunItemKind::HandoffOutput { .. } => RunItemEvent::HandoffOccurred,
            RunItemKind::ToolCall => RunItemEvent::ToolCalled,
            RunItemKind::ToolCallOutput { .. } => RunItemEvent::ToolOutput,
            RunItemKind::Reasoning => RunItemEvent::ReasoningItemCreated,
            RunItemKind::ToolSearchCall => RunItemEvent::ToolSearchCalled,
            RunItemKind::ToolSearchOutput => RunItemEvent::ToolSearchOutputCreated,
            RunItemKind::McpApprovalRequest => RunItemEvent::McpApprovalRequested,
            RunItemKind::McpApprovalResponse => RunItemEvent::McpApprovalResponse,
            RunItemKind::McpListTools => RunItemEvent::McpListTools,
            RunItemKind::Compaction | RunItemKind::Other => return None,
        };
        Some(Self::Item(event, item))
    }
}

/// The way from the run to who listens: one event at a time, and the run waits until it is taken.
///
/// There is no task and no queue. Who polls the stream polls the run.
pub(super) struct Events<C>(Arc<Shared<C>>);

struct Shared<C> {
    slot: Mutex<Slot<C>>,
    stop: AtomicU8,
    saving: AtomicBool,
}

struct Slot<C> {
    event: Option<StreamEvent<C>>,
    sender: Option<Waker>,
    stopper: Option<Waker>,
}

const GO_ON: u8 = 0;
const AFTER_TURN: u8 = 1;
const NOW: u8 = 2;

impl<C> Events<C> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            slot: Mutex::new(Slot {
                event: None,
                sender: None,
                stopper: None,
            }),
            stop: AtomicU8::new(GO_ON),
            saving: AtomicBool::new(false),
        }))
    }

    fn slot(&self) -> MutexGuard<'_, Slot<C>> {
        // Nothing panics while the lock is held.
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event over and waits until it was taken.
    pub(super) async fn send(&self, event: StreamEvent<C>) {
        let mut waiting = Some(event);
        poll_fn(|cx| {
            let mut slot = self.slot();
            if slot.event.is_none() {
                match waiting.take() {
                    Some(event) => slot.event = Some(event),
                    None => return Poll::Ready(()),
                }
            }
            slot.sender = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes the event that is waiting.
    pub(super) fn take(&self) -> Option<StreamEvent<C>> {
        let (event, sender) = {
            let mut slot = self.slot();
            let event = slot.event.take()?;
            (event, slot.sender.take())
        };
        if let Some(sender) = sender {
            sender.wake();
        }
        Some(event)
    }

    pub(super) fn stop_now(&self) {
        self.0.stop.store(NOW, Ordering::Release);
        let stopper = self.slot().stopper.take();
        if let Some(stopper) = stopper {
            stopper.wake();
        }
    }

    pub(super) fn stop_after_turn(&self) {
        // A stop at once is not taken back.
        let _ =
            self.0
                .stop
                .compare_exchange(GO_ON, AFTER_TURN, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(super) fn stops_after_turn(&self) -> bool {
        self.0.stop.load(Ordering::Acquire) != GO_ON
    }

    /// Holds a stop off while the session is written.
    pub(super) fn saving(&self) -> Saving<C> {
        self.0.saving.store(true, Ordering::Release);
        Saving(self.clone())
    }

    /// Ready once the run must stop at once.
    pub(super) fn poll_stopped(&self, cx: &Context<'_>) -> Poll<()> {
        self.slot().stopper = Some(cx.waker().clone());
        match self.0.stop.load(Ordering::Acquire) {
            NOW if !self.0.saving.load(Ordering::Acquire) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

/// While this lives, a stop waits.
pub(super) struct Saving<C>(Events<C>);

impl<C> Drop for Saving<C> {
    fn drop(&mut self) {
        self.0.0.saving.store(false, Ordering::Release);
        let stopper = self.0.slot().stopper.take();
        if let Some(stopper) = stopper {
            stopper.wake();
        }
    }
}

impl<C> Clone for Events<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Events<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
