//! A streamed answer: sending the request, retrying it, and reading the events of either protocol.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use futures_core::future::BoxFuture;
use switchboard_core::callback::BoxError;
use switchboard_core::items::ItemKind;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Item, ModelRequest, ModelResponse};
use tokio::time::{Sleep, sleep};

use super::PLACEHOLDER_ID;
use super::client::{Call, Events, Opened, ResponseHeaders};
use super::error::ModelError;
use super::lenient::value;
use super::sse::Event;
use super::{Protocol, error_body, report};

/// The longest wait for an answer's usage once the answer is complete.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Turns the events of a protocol into [`ModelEvent`]s.
pub(super) trait EventReader: Unpin + Send {
    /// Reads the data of one event and appends the resulting events to `ready`. Returns the answer
    /// if the event completes it.
    fn read(
        &mut self,
        data: Arc<str>,
        headers: &ResponseHeaders,
        ready: &mut VecDeque<ModelEvent>,
    ) -> Result<Option<ModelResponse>, ModelError>;

    /// Builds the answer at the end of the stream. `is_done` is set if the server sent `[DONE]`.
    fn finish(
        &mut self,
        is_done: bool,
        headers: &ResponseHeaders,
    ) -> Result<ModelResponse, ModelError>;

    /// Returns `true` if the answer is complete and only its usage can follow.
    fn is_complete(&self) -> bool {
        false
    }
}

/// The stream of one answer. After an error nothing follows.
///
/// Polled by hand: events are read without a future of their own.
pub(super) struct AnswerStream<P: Protocol> {
    model: P,
    request: ModelRequest,
    reader: P::Reader,
    ready: VecDeque<ModelEvent>,
    attempt: u32,
    state: State,
}

enum State {
    Start,
    Sending(Arc<Call>, BoxFuture<'static, Result<Opened, ModelError>>),
    /// Waits before the request is sent again.
    Waiting(Arc<Call>, Pin<Box<Sleep>>),
    /// Reads events; the timer runs once the answer is complete.
    Reading(Box<Events>, Option<Pin<Box<Sleep>>>),
    Finished,
}

impl<P: Protocol> AnswerStream<P> {
    pub(super) fn new(model: &P, request: ModelRequest) -> Self {
        Self {
            model: model.clone(),
            request,
            reader: model.reader(),
            ready: VecDeque::new(),
            attempt: 1,
            state: State::Start,
        }
    }

    fn send(&mut self, call: Arc<Call>) {
        let (model, sent) = (self.model.clone(), call.clone());
        let opened = async move { model.client().open(&model, &sent).await };
        self.state = State::Sending(call, Box::pin(opened));
    }

    /// Moves on to the next state or fills `ready`.
    fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        match &mut self.state {
            State::Start => {
                let call = self.model.call(&self.request, true)?;
                self.send(Arc::new(call));
            }
            State::Sending(call, opened) => match ready!(opened.as_mut().poll(context)) {
                Ok(Opened::Events(events)) => self.state = State::Reading(events, None),
                Ok(Opened::Whole(answer)) => {
                    self.ready = whole_answer_events(answer);
                    self.state = State::Finished;
                }
                Err(error) => {
                    let client = self.model.client();
                    let retry = client.plan_retry(error, call, self.attempt)?;
                    self.attempt = retry.attempt;
                    self.state = State::Waiting(call.clone(), Box::pin(sleep(retry.delay)));
                    self.ready.push_back(ModelEvent::Retry(retry));
                }
            },
            State::Waiting(call, delay) => {
                ready!(delay.as_mut().poll(context));
                let call = call.clone();
                self.send(call);
            }
            State::Reading(..) => {
                let event = ready!(self.poll_event(context))?;
                self.read(event)?;
            }
            State::Finished => {}
        }
        Poll::Ready(Ok(()))
    }

    /// The next event; `None` at the end of the stream. Once the answer is complete, the stream is
    /// read for [`USAGE_TIMEOUT`] at most and its errors are ignored.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Event>, ModelError>> {
        let State::Reading(events, timer) = &mut self.state else {
            return Poll::Ready(Ok(None));
        };
        // Cancel safe: bytes that have come are kept in `events`.
        let next = pin!(events.next()).poll(context);
        if !self.reader.is_complete() {
            return next;
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(USAGE_TIMEOUT)));
        match next {
            Poll::Ready(next) => Poll::Ready(Ok(next.unwrap_or_default())),
            Poll::Pending => timer.as_mut().poll(context).map(|()| Ok(None)),
        }
    }

    fn read(&mut self, event: Option<Event>) -> Result<(), ModelError> {
        let State::Reading(events, _) = &self.state else {
            return Ok(());
        };
        let headers = &events.headers;
        let read = match event {
            Some(Event::Data(data)) if data.starts_with("[DONE]") => {
                self.reader.finish(true, headers).map(Some)
            }
            Some(Event::Data(data)) => self.reader.read(data, headers, &mut self.ready),
            Some(Event::Error(error)) => {
                let error = value(&error).unwrap_or_else(|| (&*error).into());
                Err(error_body::failure(&error))
            }
            None => self.reader.finish(false, headers).map(Some),
        };
        if let Some(answer) = read.map_err(|error| error.with_headers(headers))? {
            self.ready.push_back(ModelEvent::Completed(answer));
            if let State::Reading(events, _) = std::mem::replace(&mut self.state, State::Finished) {
                events.drain();
            }
        }
        Ok(())
    }
}

impl<P: Protocol> Stream for AnswerStream<P> {
    type Item = Result<ModelEvent, BoxError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if matches!(this.state, State::Finished) {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(this.poll_progress(context)) {
                this.state = State::Finished;
                this.ready.clear();
                return Poll::Ready(Some(Err(report(&this.model, &this.request, error))));
            }
        }
    }
}

/// The events of an answer from a server that does not stream: one delta for each item.
fn whole_answer_events(answer: ModelResponse) -> VecDeque<ModelEvent> {
    let mut events = VecDeque::new();
    let mut calls = 0;
    for item in &answer.output {
        let id = item
            .id()
            .filter(|id| !id.is_empty() && id != PLACEHOLDER_ID);
        let named = |name: &str| -> Arc<str> { id.as_deref().unwrap_or(name).into() };
        events.extend(match item.kind() {
            ItemKind::Message if item.role().as_deref() == Some("assistant") => item
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
