//! A streamed answer: sending the request, retrying it, and reading the events of either protocol.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use switchboard_core::callback::BoxError;
use switchboard_core::items::ItemKind;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Item, ModelRequest, ModelResponse};
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::client::{Call, Events, Opened};
use super::lenient_json::value;
use super::model_error::ModelError;
use super::sse::Event;
use super::{Protocol, has_role, own_id, server_errors};

/// The longest wait for an answer's usage once the answer is complete. Then errors are ignored.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Turns the events of a protocol into [`ModelEvent`]s.
pub(super) trait EventReader: Send {
    /// Reads the data of one event and appends the resulting events to `ready`. Returns the answer
    /// if the event completes it.
    fn read(
        &mut self,
        data: Arc<str>,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError>;

    /// Builds the answer at the end of the stream. `is_done` is set if the server sent `[DONE]`.
    fn finish(&mut self, is_done: bool) -> Result<ModelResponse, ModelError>;

    /// Returns `true` if the answer is complete and only its usage can follow.
    fn is_complete(&self) -> bool {
        false
    }

    /// Reads an event, or the end of the stream. Returns the answer if that completes it.
    fn read_event(
        &mut self,
        event: Option<Event>,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError> {
        match event {
            Some(Event::Data(data)) if data.starts_with("[DONE]") => self.finish(true).map(Some),
            Some(Event::Data(data)) => self.read(data, ready),
            Some(Event::Error(error)) => Err(server_errors::from_data(&error)),
            None => self.finish(false).map(Some),
        }
    }
}

/// The stream of one answer. After an error nothing follows.
pub(super) fn answer_stream<P: Protocol>(
    model: &P,
    request: ModelRequest,
) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send + use<P> {
    let state = AnswerStream {
        reader: model.reader(request.settings.preserve_raw_usage == Some(true)),
        model: model.clone(),
        request,
        ready: VecDeque::new(),
        attempt: 1,
        state: State::Start,
    };
    // Boxed, since it is moved for each event.
    stream::unfold(Box::new(state), |mut state| async move {
        let event = state.next().await?;
        Some((event, state))
    })
}

struct AnswerStream<P: Protocol> {
    model: P,
    request: ModelRequest,
    reader: P::Reader,
    ready: VecDeque<ModelEvent>,
    attempt: u32,
    state: State,
}

enum State {
    Start,
    /// Sends the request, after a delay if it is sent again.
    Sending(Call, Option<Pin<Box<Sleep>>>),
    /// Reads events, until a point in time once the answer is complete.
    Reading(Box<Events>, Option<Instant>),
    Finished,
}

impl<P: Protocol> AnswerStream<P> {
    async fn next(&mut self) -> Option<Result<ModelEvent, BoxError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.state, State::Finished) {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.state = State::Finished;
                self.ready.clear();
                return Some(Err(self.model.client().report(
                    error,
                    &self.request,
                    self.model.url(),
                )));
            }
        }
    }

    /// Moves on to the next state or fills `ready`.
    async fn advance(&mut self) -> Result<(), ModelError> {
        match &mut self.state {
            State::Start => {
                let call = Call::new(&self.model, &self.request, true)?;
                self.state = State::Sending(call, None);
            }
            State::Sending(call, delay) => {
                if let Some(delay) = delay {
                    delay.await;
                }
                let client = self.model.client();
                match Box::pin(client.open(&self.model, call)).await {
                    Ok(Opened::Events(events)) => self.state = State::Reading(events, None),
                    Ok(Opened::Whole(answer)) => {
                        self.ready = whole_answer_events(answer);
                        self.state = State::Finished;
                    }
                    Err(error) => {
                        let retry = client.plan_retry(error, call, self.attempt)?;
                        self.attempt = retry.attempt;
                        *delay = Some(Box::pin(sleep(retry.delay)));
                        self.ready.push_back(ModelEvent::Retry(retry));
                    }
                }
            }
            State::Reading(events, end) => {
                let event = if self.reader.is_complete() {
                    let end = *end.get_or_insert_with(|| Instant::now() + USAGE_TIMEOUT);
                    let event = timeout_at(end, events.next()).await;
                    Ok(event.ok().and_then(Result::ok).flatten())
                } else {
                    events.next().await
                };
                let read = event.and_then(|event| self.reader.read_event(event, &mut self.ready));
                let body = &events.body;
                if let Some(answer) = read.map_err(|error| error.with_headers(body.headers()))? {
                    let answer = ModelEvent::Completed(body.identify(answer));
                    self.ready.push_back(answer);
                    let state = mem::replace(&mut self.state, State::Finished);
                    if let State::Reading(events, _) = state {
                        events.drain();
                    }
                }
            }
            State::Finished => {}
        }
        Ok(())
    }
}

/// The events of an answer from a server that does not stream: one delta for each item.
fn whole_answer_events(answer: ModelResponse) -> VecDeque<ModelEvent> {
    let mut events = VecDeque::new();
    let mut calls = 0;
    for item in &answer.output {
        let id = own_id(item);
        let named = |name: &str| -> Arc<str> { id.as_deref().unwrap_or(name).into() };
        events.extend(match item.kind() {
            ItemKind::Message if has_role(item, "assistant") => item
                .text()
                .filter(|text| !text.is_empty())
                .map(|text| ModelEvent::text_delta(named("message"), text)),
            ItemKind::Reasoning => reasoning_text(item).map(|text| ModelEvent::ReasoningDelta {
                item: named("reasoning"),
                text,
            }),
            ItemKind::FunctionCall => {
                let name = format!("call_{calls}");
                calls += 1;
                let arguments = item.arguments().filter(|arguments| !arguments.is_empty());
                arguments.map(|arguments| ModelEvent::ArgumentsDelta {
                    item: named(&name),
                    call_id: item.call_id().unwrap_or_default().into(),
                    tool: item.name().unwrap_or_default().into(),
                    text: arguments.into_owned(),
                })
            }
            _ => None,
        });
    }
    events.push_back(ModelEvent::Completed(answer));
    events
}

/// The summary and the text of a reasoning item.
fn reasoning_text(item: &Item) -> Option<String> {
    let fields = value(item.as_json())?;
    let parts = ["summary", "content"]
        .iter()
        .filter_map(|field| fields[*field].as_array())
        .flatten();
    let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
    (!text.is_empty()).then_some(text)
}
