//! Tools for testing applications without a provider: a realtime model that follows a script, and with the
//! feature `voice` speech to text and text to speech.

#[cfg(feature = "voice")]
mod scripted_speech;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

#[cfg(feature = "voice")]
pub use scripted_speech::{ScriptedSpeechToText, ScriptedTextToSpeech, speech};

use crate::items::{
    RealtimeContent, RealtimeItemStatus, RealtimeMessageItem, RealtimeRole, RealtimeToolCallItem,
};
use crate::model::{
    AudioPart, RealtimeConnection, RealtimeModel, RealtimeModelAudio, RealtimeModelCommand,
    RealtimeModelConfig, RealtimeModelDelta, RealtimeModelError, RealtimeModelErrorKind,
    RealtimeModelEvent, RealtimeResponseStatus, RealtimeServerError, RealtimeToolCall,
    RealtimeTransport, RealtimeTurnEnd, ReportedError,
};

/// A realtime model that follows a script: each turn of the script is one response, made when one is
/// asked for. Clones share the script.
///
/// It behaves as a server does: it takes session updates, makes one response at a time, adds what was
/// said to the conversation, and records every command. [`emit`](Self::emit) sends any other event.
///
/// ```
/// use switchboard_realtime::testing::ScriptedRealtimeModel;
/// use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Good morning!"));
/// let agent: RealtimeAgent = RealtimeAgent::new("Greeter");
/// let mut session = RealtimeRunner::new(&agent).model(model.clone()).connect().await?;
/// session.send_message("Hello").await?;
/// while let Some(event) = session.next().await {
///     if let RealtimeEvent::AgentEnd { .. } = event? {
///         break;
///     }
/// }
/// let said: Vec<_> = session.history().messages().map(|(_, text)| text).collect();
/// assert_eq!(said, ["Hello", "Good morning!"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedRealtimeModel(Arc<Mutex<Server>>);

/// The state of the scripted server.
#[derive(Debug, Default)]
struct Server {
    script: VecDeque<ScriptedTurn>,
    events: Option<mpsc::UnboundedSender<RealtimeModelEvent>>,
    configs: Vec<RealtimeModelConfig>,
    sent: Vec<RealtimeModelCommand>,
    updates: Updates,
    refusals: u32,
    connect_error: Option<RealtimeModelError>,
    /// The response that is being made, if it was left open.
    open_response: Option<Arc<str>>,
    /// Set if a response was asked for while one was being made.
    is_asked: bool,
    items: u32,
    responses: u32,
    is_closed: bool,
}

/// The answer of the scripted server to session updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Updates {
    #[default]
    Taken,
    Refused,
    Ignored,
}

/// One response of the script.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ScriptedTurn {
    parts: Vec<Part>,
    is_left_open: bool,
    status: RealtimeResponseStatus,
}

#[derive(Debug, Clone)]
enum Part {
    Say(String),
    Call {
        name: Arc<str>,
        call_id: Option<Arc<str>>,
        arguments: Arc<str>,
    },
}

impl ScriptedTurn {
    /// Says something aloud: audio and its transcript.
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Say(text.into()));
        self
    }

    /// Calls a tool or a handoff.
    pub fn call(mut self, name: &str, arguments: &str) -> Self {
        self.parts.push(Part::Call {
            name: name.into(),
            call_id: None,
            arguments: arguments.into(),
        });
        self
    }

    /// Calls a tool or a handoff, under an identifier.
    pub fn call_as(mut self, call_id: &str, name: &str, arguments: &str) -> Self {
        self.parts.push(Part::Call {
            name: name.into(),
            call_id: Some(call_id.into()),
            arguments: arguments.into(),
        });
        self
    }

    /// Leaves the response open, until [`ScriptedRealtimeModel::end_response`] or an interruption.
    pub fn leave_open(mut self) -> Self {
        self.is_left_open = true;
        self
    }

    /// Ends the response with another status.
    pub fn status(mut self, status: RealtimeResponseStatus) -> Self {
        self.status = status;
        self
    }
}

impl ScriptedRealtimeModel {
    /// Creates a model that makes no response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a response to the script.
    #[must_use]
    pub fn turn(self, write: impl FnOnce(ScriptedTurn) -> ScriptedTurn) -> Self {
        self.lock().script.push_back(write(ScriptedTurn::default()));
        self
    }

    /// Refuses session updates from now on.
    pub fn refuse_updates(&self) {
        self.lock().updates = Updates::Refused;
    }

    /// Does not answer session updates from now on.
    pub fn ignore_updates(&self) {
        self.lock().updates = Updates::Ignored;
    }

    /// Refuses the next command.
    pub fn refuse_next_command(&self) {
        self.lock().refusals += 1;
    }

    /// Lets the next connection fail.
    pub fn refuse_connection(&self, message: &str) {
        let error = RealtimeModelError::new(RealtimeModelErrorKind::Transport, message);
        self.lock().connect_error = Some(error);
    }

    /// Sends an event to the session.
    pub fn emit(&self, event: RealtimeModelEvent) {
        self.lock().emit(event);
    }

    /// Ends the response that was left open.
    pub fn end_response(&self) {
        self.lock().end_response(RealtimeResponseStatus::Completed);
    }

    /// The commands that the session has sent.
    pub fn sent(&self) -> Vec<RealtimeModelCommand> {
        self.lock().sent.clone()
    }

    /// The configurations of the connections that were made.
    pub fn configs(&self) -> Vec<RealtimeModelConfig> {
        self.lock().configs.clone()
    }

    /// The number of responses that were made.
    pub fn responses(&self) -> u32 {
        self.lock().responses
    }

    /// Returns `true` if the session has closed the connection.
    pub fn is_closed(&self) -> bool {
        let server = self.lock();
        server.is_closed
            || server
                .events
                .as_ref()
                .is_some_and(|events| events.is_closed())
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    fn emit(&self, event: RealtimeModelEvent) {
        if let Some(events) = &self.events {
            // A session that has gone gets nothing.
            let _ = events.send(event);
        }
    }

    fn item_id(&mut self) -> Arc<str> {
        self.items += 1;
        format!("item_{}", self.items).into()
    }

    /// Makes the next response, or lets it wait for the one that is being made.
    fn respond(&mut self) {
        if self.open_response.is_some() {
            self.is_asked = true;
            return;
        }
        let Some(turn) = self.script.pop_front() else {
            return;
        };
        self.responses += 1;
        let response_id: Arc<str> = format!("resp_{}", self.responses).into();
        self.open_response = Some(response_id.clone());
        self.emit(RealtimeModelEvent::TurnStarted {
            response_id: Some(response_id.clone()),
        });
        for part in turn.parts {
            match part {
                Part::Say(text) => self.say(&response_id, &text),
                Part::Call {
                    name,
                    call_id,
                    arguments,
                } => self.call(&response_id, name, call_id, arguments),
            }
        }
        if !turn.is_left_open {
            self.end_response(turn.status);
        }
    }

    fn say(&mut self, response_id: &Arc<str>, text: &str) {
        let item_id = self.item_id();
        let part = AudioPart::new(item_id.clone(), 0);
        self.emit(RealtimeModelEvent::TranscriptDelta(RealtimeModelDelta {
            item_id: item_id.clone(),
            delta: text.to_owned(),
            response_id: response_id.clone(),
        }));
        self.emit(RealtimeModelEvent::Audio(RealtimeModelAudio {
            data: Bytes::from(vec![0; 480]),
            response_id: response_id.clone(),
            part: part.clone(),
        }));
        self.emit(RealtimeModelEvent::AudioDone(part));
        let content = RealtimeContent::Audio {
            audio: None,
            transcript: Some(text.to_owned()),
        };
        let mut message = RealtimeMessageItem::new(item_id, RealtimeRole::Assistant, [content]);
        message.status = Some(RealtimeItemStatus::Completed);
        self.emit(RealtimeModelEvent::ItemUpdated(message.into()));
    }

    fn call(
        &mut self,
        response_id: &Arc<str>,
        name: Arc<str>,
        call_id: Option<Arc<str>>,
        arguments: Arc<str>,
    ) {
        let item_id = self.item_id();
        let call_id = call_id.unwrap_or_else(|| format!("call_{}", self.items).into());
        let mut call = RealtimeToolCall::new(name.clone(), call_id.clone(), arguments.clone());
        call.id = Some(item_id.clone());
        call.response_id = Some(response_id.clone());
        let item = RealtimeToolCallItem {
            item_id,
            previous_item_id: None,
            call_id: Some(call_id),
            status: RealtimeItemStatus::InProgress,
            arguments,
            name,
            output: None,
        };
        self.emit(RealtimeModelEvent::ItemUpdated(item.into()));
        self.emit(RealtimeModelEvent::ToolCall(call));
    }

    fn end_response(&mut self, status: RealtimeResponseStatus) {
        let Some(response_id) = self.open_response.take() else {
            return;
        };
        let mut end = RealtimeTurnEnd::completed(response_id);
        end.status = status;
        self.emit(RealtimeModelEvent::TurnEnded(end));
        if std::mem::take(&mut self.is_asked) {
            self.respond();
        }
    }

    fn take(&mut self, command: RealtimeModelCommand) -> Result<(), RealtimeModelError> {
        if self.is_closed {
            let message = "the connection is closed";
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::NotConnected,
                message,
            ));
        }
        if self.refusals > 0 {
            self.refusals -= 1;
            let message = "the script refuses this command";
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Transport,
                message,
            ));
        }
        self.sent.push(command.clone());
        match command {
            RealtimeModelCommand::UserInput(input)
            | RealtimeModelCommand::UserInputAfter { input, .. } => {
                let item_id = self.item_id();
                let content = input.into_content();
                let message = RealtimeMessageItem::new(item_id, RealtimeRole::User, content);
                self.emit(RealtimeModelEvent::ItemUpdated(message.into()));
                self.respond();
            }
            RealtimeModelCommand::Audio { commit: true, .. }
            | RealtimeModelCommand::CommitAudio
            | RealtimeModelCommand::CreateResponse(_) => self.respond(),
            RealtimeModelCommand::ToolOutput(output) => {
                let call = output.tool_call;
                let item = RealtimeToolCallItem {
                    item_id: call.id.unwrap_or_else(|| call.call_id.clone()),
                    previous_item_id: None,
                    call_id: Some(call.call_id),
                    status: RealtimeItemStatus::Completed,
                    arguments: call.arguments,
                    name: call.name,
                    output: Some(output.output),
                };
                self.emit(RealtimeModelEvent::ItemUpdated(item.into()));
                if output.start_response {
                    self.respond();
                }
            }
            RealtimeModelCommand::Interrupt(interrupt) if !interrupt.playback_only => {
                self.end_response(RealtimeResponseStatus::Cancelled);
            }
            RealtimeModelCommand::UpdateSession { update_id, .. } => match self.updates {
                Updates::Taken => self.emit(RealtimeModelEvent::SessionUpdated { update_id }),
                Updates::Refused => self.refuse_update(update_id),
                Updates::Ignored => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn refuse_update(&self, update_id: Option<Arc<str>>) {
        let error = RealtimeServerError::Reported(ReportedError {
            message: "the script refuses session updates".to_owned(),
            ..ReportedError::default()
        });
        self.emit(RealtimeModelEvent::Error(error.clone()));
        self.emit(RealtimeModelEvent::SessionUpdateRefused { update_id, error });
    }
}

impl RealtimeModel for ScriptedRealtimeModel {
    async fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> Result<RealtimeConnection, RealtimeModelError> {
        let (events, receiver) = mpsc::unbounded_channel();
        let mut server = self.lock();
        // The identifiers of new items differ from those of the history.
        let known = u32::try_from(config.history.len()).unwrap_or(u32::MAX);
        server.items = server.items.saturating_add(known);
        server.configs.push(config);
        if let Some(error) = server.connect_error.take() {
            return Err(error);
        }
        server.events = Some(events);
        server.is_closed = false;
        let events = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((event, receiver))
        });
        Ok(RealtimeConnection::new(self.clone(), events))
    }

    fn name(&self) -> &str {
        "scripted"
    }
}

impl RealtimeTransport for ScriptedRealtimeModel {
    async fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> Result<Vec<RealtimeModelEvent>, RealtimeModelError> {
        self.lock().take(command)?;
        Ok(Vec::new())
    }

    async fn close(&self) -> Result<(), RealtimeModelError> {
        self.lock().is_closed = true;
        Ok(())
    }
}
