//! The handle that sends to a session.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use switchboard_core::approval::Decision;
use switchboard_core::model::Usage;
use tokio::sync::{mpsc, oneshot};

use super::agents::Agents;
use crate::agent::RealtimeAgent;
use crate::error::RealtimeError;
use crate::history::RealtimeHistory;
use crate::machine::{RealtimeMachine, UserAction};
use crate::model::{RealtimeModelCommand, RealtimeRawCommand, RealtimeUserInput};

/// A handle to a realtime session; clones share it. It can be used from any task, and does not keep the
/// session open.
pub struct RealtimeHandle<C = ()> {
    requests: mpsc::Sender<Request>,
    machine: Arc<Mutex<RealtimeMachine>>,
    agents: Arc<Agents<C>>,
}

/// A request to the driver.
pub(super) struct Request {
    pub(super) action: UserAction,
    pub(super) reply: oneshot::Sender<Result<(), RealtimeError>>,
}

impl<C: Send + Sync + 'static> RealtimeHandle<C> {
    pub(super) const fn new(
        requests: mpsc::Sender<Request>,
        machine: Arc<Mutex<RealtimeMachine>>,
        agents: Arc<Agents<C>>,
    ) -> Self {
        Self {
            requests,
            machine,
            agents,
        }
    }

    /// Sends a message of the user, which the model answers: text, or text and images.
    ///
    /// # Errors
    /// If the session has ended, or the message cannot be sent.
    pub async fn send_message(
        &self,
        message: impl Into<RealtimeUserInput>,
    ) -> Result<(), RealtimeError> {
        self.send(RealtimeModelCommand::UserInput(message.into()))
            .await
    }

    /// Sends audio of the user, in the session's input format. It waits while the connection is busy.
    ///
    /// # Errors
    /// If the session has ended, or the audio cannot be sent.
    pub async fn send_audio(&self, audio: impl Into<Bytes>) -> Result<(), RealtimeError> {
        let audio = audio.into();
        let commit = false;
        self.send(RealtimeModelCommand::Audio { audio, commit })
            .await
    }

    /// Sends the last audio of the user's turn, for sessions without turn detection.
    ///
    /// # Errors
    /// If the session has ended, or the audio cannot be sent.
    pub async fn send_last_audio(&self, audio: impl Into<Bytes>) -> Result<(), RealtimeError> {
        let audio = audio.into();
        let commit = true;
        self.send(RealtimeModelCommand::Audio { audio, commit })
            .await
    }

    /// Sends an event of the provider's protocol.
    ///
    /// # Errors
    /// If the session has ended, or the event cannot be sent.
    pub async fn send_raw(&self, event: RealtimeRawCommand) -> Result<(), RealtimeError> {
        self.send(RealtimeModelCommand::Raw(event)).await
    }

    /// Sends a command to the model.
    ///
    /// # Errors
    /// If the session has ended, or the command cannot be sent.
    pub async fn send(&self, command: RealtimeModelCommand) -> Result<(), RealtimeError> {
        self.ask(UserAction::Send(Box::new(command))).await
    }

    /// Interrupts the model: what it has not said yet is cancelled, and what was not heard is cut.
    ///
    /// # Errors
    /// If the session has ended, or the command cannot be sent.
    pub async fn interrupt(&self) -> Result<(), RealtimeError> {
        self.ask(UserAction::Interrupt).await
    }

    /// Decides on a call that waits for a person
    /// ([`RealtimeEvent::ApprovalRequired`](crate::RealtimeEvent::ApprovalRequired)).
    ///
    /// # Errors
    /// If no call with this identifier waits.
    pub async fn decide(
        &self,
        call_id: impl Into<Arc<str>>,
        decision: Decision,
    ) -> Result<(), RealtimeError> {
        let call_id = call_id.into();
        let asked = self.ask(UserAction::Decide { call_id, decision }).await;
        asked.or_else(ignore_if_closed)
    }

    /// Gives the conversation to another agent, without a handoff of the model.
    ///
    /// # Errors
    /// If the agent's instructions or tools cannot be made, or the server refuses them; the agent stays
    /// then.
    pub async fn update_agent(&self, agent: &RealtimeAgent<C>) -> Result<(), RealtimeError> {
        let agent = self.agents.key(agent);
        self.ask(UserAction::UpdateAgent { agent }).await
    }

    /// Tells the session that the application's context has changed: conditions of tools and handoffs are
    /// evaluated again, and the model is told what it is offered now.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn context_changed(&self) -> Result<(), RealtimeError> {
        self.ask(UserAction::ContextChanged).await
    }

    /// Closes the session: running tools are cancelled, and the events end.
    ///
    /// # Errors
    /// Never for a session that is closed already.
    pub async fn close(&self) -> Result<(), RealtimeError> {
        self.ask(UserAction::Close).await.or_else(ignore_if_closed)
    }

    /// The name of the agent that has the conversation.
    pub fn agent(&self) -> Arc<str> {
        self.machine().agent().clone()
    }

    /// The history as it is now.
    pub fn history(&self) -> RealtimeHistory {
        self.machine().history().clone()
    }

    /// The usage of the model so far.
    pub fn usage(&self) -> Usage {
        *self.machine().usage()
    }

    /// The identifiers of the calls that wait for a person.
    pub fn waiting_calls(&self) -> Vec<Arc<str>> {
        self.machine().waiting_calls().cloned().collect()
    }

    /// Returns `true` if the session was closed, or has failed.
    pub fn is_closed(&self) -> bool {
        self.machine().is_closed() || self.requests.is_closed()
    }

    fn machine(&self) -> MutexGuard<'_, RealtimeMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, action: UserAction) -> Result<(), RealtimeError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(Request { action, reply }).await;
        if sent.is_err() {
            return Err(RealtimeError::not_connected());
        }
        answer
            .await
            .unwrap_or_else(|_| Err(RealtimeError::not_connected()))
    }
}

/// A request that a closed session has nothing to do for.
fn ignore_if_closed(error: RealtimeError) -> Result<(), RealtimeError> {
    if error.is_not_connected() {
        return Ok(());
    }
    Err(error)
}

impl<C> Clone for RealtimeHandle<C> {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
            machine: self.machine.clone(),
            agents: self.agents.clone(),
        }
    }
}

impl<C> fmt::Debug for RealtimeHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeHandle").finish_non_exhaustive()
    }
}
