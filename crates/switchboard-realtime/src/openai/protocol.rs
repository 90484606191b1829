//! The protocol without I/O: commands in, frames out; frames in, events out.

mod audio;
mod conversation;
mod interruption;
mod raw_event;
mod required_fields;
mod responses;
mod server_event;
mod server_events;
mod server_item;
mod session_config;
mod session_updates;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::audio::ReceivedAudio;
use self::conversation::Conversation;
use self::responses::{Request, ResponseQueue};
pub(crate) use self::session_config::DEFAULT_MODEL;
use self::session_updates::{LostUpdates, SessionUpdates};
use crate::items::{RealtimeItem, RealtimeItemStatus, RealtimeToolCallItem};
use crate::model::{
    PlaybackTracker, RealtimeInputPart, RealtimeModelCommand, RealtimeModelConfig,
    RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent, RealtimeModelPolicy,
    RealtimeModelSettings, RealtimeResponseStatus, RealtimeToolOutput, RealtimeTracing,
    RealtimeTurnEnd, RealtimeUserInput, Switch,
};

/// The state of one realtime session with OpenAI's protocol. It does no I/O: a driver sends the frames that it
/// returns, and passes it those that arrive, with the time since any fixed moment.
///
/// Its stored form lacks the tools and handoffs of the settings and the playback tracker.
///
/// ```
/// use std::time::Duration;
/// use switchboard_realtime::model::{RealtimeModelCommand, RealtimeModelConfig};
/// use switchboard_realtime::openai::RealtimeProtocol;
///
/// let mut protocol = RealtimeProtocol::new(RealtimeModelConfig::default());
/// let opened = protocol.open()?;
/// assert!(opened.frames[0].contains("session.update"));
///
/// let said = protocol.command(RealtimeModelCommand::say("Hello"), Duration::ZERO)?;
/// assert!(said.frames[0].contains("conversation.item.create"));
/// assert!(said.frames[1].contains("response.create"));
/// # Ok::<(), switchboard_realtime::model::RealtimeModelError>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RealtimeProtocol {
    settings: RealtimeModelSettings,
    /// The model that sessions name when their settings do not.
    model: Arc<str>,
    tracing: Option<RealtimeTracing>,
    policy: RealtimeModelPolicy,
    raw_events: bool,
    joins_call: bool,
    #[serde(skip)]
    playback: Option<PlaybackTracker>,
    connected: bool,
    /// Set once the server has sent anything on this connection.
    has_heard: bool,
    responses: ResponseQueue,
    latest_response: Option<Arc<str>>,
    audio: ReceivedAudio,
    /// The message whose audio came last.
    current_item: Option<Arc<str>>,
    /// Set if the server cancels the response itself when the user speaks.
    server_interrupts: bool,
    updates: SessionUpdates,
    lost_updates: LostUpdates,
    conversation: Conversation,
    /// Items that the server will report because they were replayed.
    replayed: VecDeque<Arc<str>>,
    /// The calls that were passed on, the latest last.
    calls: VecDeque<Arc<str>>,
    /// The length of the user's audio that was dropped while there was no connection, in bytes.
    dropped_audio: u64,
}

/// The outcome of a step of the protocol.
#[derive(Debug, Clone, Default)]
pub struct ProtocolOutput {
    /// The frames to send, in order.
    pub frames: Vec<String>,
    /// The events to tell, in order.
    pub events: Vec<RealtimeModelEvent>,
}

impl ProtocolOutput {
    fn event(&mut self, event: RealtimeModelEvent) {
        self.events.push(event);
    }

    fn frame(&mut self, fields: &Map<String, Value>) {
        self.frames.push(Value::Object(fields.clone()).to_string());
    }

    fn json(&mut self, frame: &Value) {
        self.frames.push(frame.to_string());
    }
}

impl RealtimeProtocol {
    /// The number of items of the conversation that are kept for a new connection.
    const KEPT_ITEMS: usize = 1_000;
    /// The number of calls that are known again.
    const KEPT_CALLS: usize = 4_096;
    /// The audio of one frame. The server takes at most 15 MiB of base64.
    const AUDIO_CHUNK: usize = 1 << 20;

    /// Creates the state of a session.
    pub fn new(config: RealtimeModelConfig) -> Self {
        Self::with_model(config, DEFAULT_MODEL, false)
    }

    pub(crate) fn with_model(config: RealtimeModelConfig, model: &str, joins_call: bool) -> Self {
        let model = config
            .settings
            .model_name
            .clone()
            .unwrap_or_else(|| model.into());
        let tracing = match &config.settings.tracing {
            None => Some(RealtimeTracing::Auto),
            Some(Switch::Off) => None,
            Some(Switch::On(tracing)) => Some(tracing.clone()),
        };
        Self {
            conversation: Conversation::new(&config.history, Self::KEPT_ITEMS),
            model,
            tracing,
            policy: config.policy,
            raw_events: config.raw_events,
            joins_call,
            playback: config.playback,
            settings: config.settings,
            connected: false,
            has_heard: false,
            responses: ResponseQueue::default(),
            latest_response: None,
            audio: ReceivedAudio::default(),
            current_item: None,
            server_interrupts: false,
            updates: SessionUpdates::default(),
            lost_updates: LostUpdates::default(),
            replayed: VecDeque::new(),
            calls: VecDeque::new(),
            dropped_audio: 0,
        }
    }

    /// Opens the session on a new connection: its settings, and the conversation so far.
    pub fn open(&mut self) -> Result<ProtocolOutput, RealtimeModelError> {
        let mut out = ProtocolOutput::default();
        self.connected = true;
        self.has_heard = false;
        self.open_session(&mut out)?;
        if !self.joins_call {
            let (items, ids) = self.conversation.replay();
            for item in items {
                out.json(&json!({"type": "conversation.item.create", "item": item}));
            }
            self.replayed = ids.into();
        }
        self.request_responses(&mut out);
        Ok(out)
    }

    /// Notes that the connection is lost. Commands go on changing the state, and [`open`](Self::open) sends
    /// what has come of it.
    pub fn disconnected(&mut self) -> ProtocolOutput {
        let mut out = ProtocolOutput::default();
        self.connected = false;
        self.updates.disconnected(&mut self.lost_updates);
        // A response to a call that is still running follows when its output is there.
        let resume = !self.conversation.has_open_calls();
        if let Some(response) = self.responses.disconnected(resume) {
            out.event(RealtimeModelEvent::TurnEnded(RealtimeTurnEnd {
                response_id: response.id,
                status: RealtimeResponseStatus::Incomplete,
                details: Some(Box::new(
                    json!({"type": "incomplete", "reason": "connection_lost"}),
                )),
            }));
        }
        self.audio.clear();
        self.current_item = None;
        self.server_interrupts = false;
        self.replayed.clear();
        if let Some(playback) = &self.playback {
            playback.interrupted();
        }
        out
    }

    /// Carries out a command.
    pub fn command(
        &mut self,
        command: RealtimeModelCommand,
        now: Duration,
    ) -> Result<ProtocolOutput, RealtimeModelError> {
        let mut out = ProtocolOutput::default();
        match command {
            RealtimeModelCommand::UserInput(input) => self.user_input(&input, &mut out),
            RealtimeModelCommand::UserInputAfter { input, response_id } => {
                let is_latest = self.latest_response.as_ref() == Some(&response_id);
                if is_latest && !self.responses.is_awaited() {
                    self.user_input(&input, &mut out);
                }
            }
            RealtimeModelCommand::Audio { audio, commit } => {
                self.add_audio(&audio, &mut out);
                if commit {
                    out.json(&json!({"type": "input_audio_buffer.commit"}));
                }
            }
            RealtimeModelCommand::CommitAudio => {
                out.json(&json!({"type": "input_audio_buffer.commit"}));
            }
            RealtimeModelCommand::ClearAudio => {
                out.json(&json!({"type": "input_audio_buffer.clear"}));
            }
            RealtimeModelCommand::ToolOutput(output) => self.tool_output(output, &mut out),
            RealtimeModelCommand::CreateResponse(request) => {
                let request = match request.instructions {
                    None => Request::Plain,
                    Some(instructions) => {
                        let mut fields = Map::new();
                        let response = json!({"instructions": instructions});
                        fields.insert("response".to_owned(), response);
                        Request::Own(fields)
                    }
                };
                self.responses.request(request);
            }
            RealtimeModelCommand::Interrupt(interrupt) => {
                self.interrupt(interrupt, now, &mut out)?
            }
            RealtimeModelCommand::UpdateSession {
                settings,
                update_id,
            } => {
                self.update_session(*settings, update_id, &mut out)?;
            }
            RealtimeModelCommand::Raw(command) => match raw_event::checked(command) {
                Ok(fields) => self.send_raw(fields, &mut out)?,
                Err(error) if self.policy.report_invalid_raw_commands => return Err(error),
                Err(error) => tracing::error!(%error, "a raw command was dropped"),
            },
        }
        self.request_responses(&mut out);
        if !self.connected {
            out.frames.clear();
        }
        Ok(out)
    }

    /// The name of the model.
    pub fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// Returns `true` if the server owes an answer: it has been asked for a response, or it has sent nothing at
    /// all yet.
    pub fn awaits_answer(&self) -> bool {
        self.connected && (self.responses.is_unanswered() || !self.has_heard)
    }

    /// The length of the user's audio that was dropped while there was no connection, in milliseconds. It is
    /// counted anew from then on.
    pub(crate) fn take_dropped_audio_ms(&mut self) -> u64 {
        let format = self.settings.input_audio_format.unwrap_or_default();
        format.length_ms(std::mem::take(&mut self.dropped_audio)) as u64
    }

    fn user_input(&mut self, input: &RealtimeUserInput, out: &mut ProtocolOutput) {
        self.conversation.add_input(input);
        let content = match input {
            RealtimeUserInput::Text(text) => vec![json!({"type": "input_text", "text": text})],
            RealtimeUserInput::Message(parts) => {
                let is_sent = |part: &&RealtimeInputPart| !matches!(part, RealtimeInputPart::Image { image_url, .. } if image_url.is_empty());
                parts
                    .iter()
                    .filter(is_sent)
                    .map(|part| json!(part))
                    .collect()
            }
        };
        let item = json!({"type": "message", "role": "user", "content": content});
        out.json(&json!({"type": "conversation.item.create", "item": item}));
        self.responses.request(Request::Plain);
    }

    fn add_audio(&mut self, audio: &[u8], out: &mut ProtocolOutput) {
        if !self.connected {
            self.dropped_audio = self.dropped_audio.saturating_add(audio.len() as u64);
            return;
        }
        let mut chunks = audio.chunks(Self::AUDIO_CHUNK);
        let first = chunks.next().unwrap_or_default();
        for chunk in std::iter::once(first).chain(chunks) {
            let mut frame = String::with_capacity(chunk.len() / 3 * 4 + 64);
            frame.push_str(r#"{"type":"input_audio_buffer.append","audio":""#);
            STANDARD.encode_string(chunk, &mut frame);
            frame.push_str("\"}");
            out.frames.push(frame);
        }
    }

    fn tool_output(&mut self, output: RealtimeToolOutput, out: &mut ProtocolOutput) {
        let call = output.tool_call;
        self.conversation.answer(&call.call_id, &output.output);
        let item = json!({
            "type": "function_call_output", "call_id": call.call_id, "output": output.output,
        });
        out.json(&json!({"type": "conversation.item.create", "item": item}));
        out.event(RealtimeModelEvent::ItemUpdated(RealtimeItem::ToolCall(
            RealtimeToolCallItem {
                item_id: call.id.unwrap_or_default(),
                previous_item_id: call.previous_item_id,
                call_id: Some(call.call_id),
                status: RealtimeItemStatus::Completed,
                arguments: call.arguments,
                name: call.name,
                output: Some(output.output),
            },
        )));
        if output.start_response {
            self.responses.request(Request::Plain);
        }
    }

    fn update_session(
        &mut self,
        settings: RealtimeModelSettings,
        update_id: Option<Arc<str>>,
        out: &mut ProtocolOutput,
    ) -> Result<(), RealtimeModelError> {
        let session = self.session_config(&settings)?;
        let instructions = settings.instructions.clone();
        let before = Box::new(std::mem::replace(&mut self.settings, settings));
        if !self.connected {
            self.lost_updates.add(update_id, before);
            return Ok(());
        }
        let event_id = self.updates.sent(update_id, instructions, Some(before));
        out.json(&session_update(&event_id, session));
        Ok(())
    }

    /// Sends all settings, with those of the updates that were lost.
    fn open_session(&mut self, out: &mut ProtocolOutput) -> Result<(), RealtimeModelError> {
        let session = self.session_config(&self.settings)?;
        let lost = std::mem::take(&mut self.lost_updates);
        let instructions = self.settings.instructions.clone();
        let event_id = self.updates.opened(lost, instructions);
        out.json(&session_update(&event_id, session));
        Ok(())
    }

    fn session_config(
        &self,
        settings: &RealtimeModelSettings,
    ) -> Result<Map<String, Value>, RealtimeModelError> {
        let model = settings.model_name.as_ref().unwrap_or(&self.model);
        session_config::session_config(settings, model, self.joins_call)
    }

    fn send_raw(
        &mut self,
        mut fields: Map<String, Value>,
        out: &mut ProtocolOutput,
    ) -> Result<(), RealtimeModelError> {
        if !self.connected {
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::NotConnected,
                "a raw command cannot be sent while the connection is being made again: wait for \
                 `Reconnected`",
            ));
        }
        match fields.get("type").and_then(Value::as_str) {
            Some("response.create") => {
                fields.remove("type");
                self.responses.request(Request::Own(fields));
            }
            Some("session.update") => {
                let instructions = fields["session"]["instructions"].as_str().map(Into::into);
                let own_id = fields
                    .get("event_id")
                    .and_then(Value::as_str)
                    .map(Into::into);
                self.updates.sent(own_id, instructions, None);
                out.frame(&fields);
            }
            _ => out.frame(&fields),
        }
        Ok(())
    }

    /// Sends the next request for a response, if its turn has come.
    fn request_responses(&mut self, out: &mut ProtocolOutput) {
        if self.connected
            && let Some(fields) = self.responses.next_frame()
        {
            out.frame(&fields);
        }
    }
}

/// The frame that sets the session.
fn session_update(event_id: &str, session: Map<String, Value>) -> Value {
    let session = Value::Object(session);
    json!({"type": "session.update", "event_id": event_id, "session": session})
}
