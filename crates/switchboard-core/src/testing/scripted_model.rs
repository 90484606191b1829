//! A model that answers from a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use futures_timer::Delay;
use futures_util::stream::{self, StreamExt as _};

use super::requests_of;
use crate::callback::BoxError;
use crate::items::{Item, ItemKind};
use crate::lock::lock;
use crate::model::{Model, ModelEvent, ModelRequest, ModelResponse, ToolKind, Usage};

/// A model that answers from a script, one answer per call, and keeps every request.
///
/// Clones share the script and the requests. A call after the last answer fails.
///
/// ```
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Item, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let model = ScriptedModel::new().say("Hello!");
/// let agent: Agent = Agent::new("Greeter").instructions("Greet.").model(model.clone());
/// Runner::new(&agent).run("Hi").await?;
/// assert_eq!(model.requests()[0].instructions.as_deref(), Some("Greet."));
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ScriptedModel(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    /// The conditions of the answer that is added next, and the pause before it.
    next: Conditions,
    requests: Vec<ModelRequest>,
    messages: usize,
    calls: usize,
}

struct Answer {
    conditions: Conditions,
    reply: Box<Reply>,
}

/// The conditions under which an answer is given.
#[derive(Debug, Default)]
struct Conditions {
    expectations: Vec<Expectation>,
    /// The fingerprint of the only request that gets the answer.
    fingerprint: Option<String>,
    delay: Option<Duration>,
}

/// Makes the events of an answer.
type Reply = dyn FnOnce(&ModelRequest) -> Result<Vec<ModelEvent>, BoxError> + Send;

/// A condition on a request.
struct Expectation {
    what: String,
    holds: Box<dyn Fn(&ModelRequest) -> bool + Send>,
}

impl_debug!(Expectation, |expectation| expectation.what);

impl_debug!(Answer, |answer| format_args!("{:?}", answer.conditions));

impl ScriptedModel {
    /// Creates a model with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer with these items.
    pub fn reply(self, items: impl IntoIterator<Item = Item>) -> Self {
        self.respond_with(ModelResponse::new(items).usage(Usage {
            requests: 1,
            ..Usage::default()
        }))
    }

    /// Adds this response.
    pub fn respond_with(self, response: ModelResponse) -> Self {
        self.add(move |_request| Ok(in_words(response)))
    }

    /// Adds an answer that a function makes of the request.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Item, ModelResponse};
    ///
    /// let model = ScriptedModel::new().respond_by(|request| {
    ///     let count = request.input.len().to_string();
    ///     Ok(ModelResponse::new([Item::output_message("msg_1", &count)]))
    /// });
    /// ```
    pub fn respond_by(
        self,
        respond: impl FnOnce(&ModelRequest) -> Result<ModelResponse, BoxError> + Send + 'static,
    ) -> Self {
        self.add(move |request| Ok(in_words(respond(request)?)))
    }

    /// Adds an answer of exactly these events to a streamed call. A plain call gets the response of
    /// the [`ModelEvent::Completed`] among them.
    pub fn stream_events(self, events: impl IntoIterator<Item = ModelEvent>) -> Self {
        let events = events.into_iter().collect();
        self.add(move |_request| Ok(events))
    }

    /// Sets a pause before the next answer.
    pub fn delay(self, delay: Duration) -> Self {
        lock(&self.0).next.delay = Some(delay);
        self
    }

    /// Gives the next answer only to the request with this fingerprint.
    pub(super) fn only_for(self, fingerprint: &str) -> Self {
        lock(&self.0).next.fingerprint = Some(fingerprint.to_owned());
        self
    }

    /// Adds a condition on the request that gets the next answer. If it does not hold, the call
    /// fails. `what` completes the sentence "the request must ...".
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    ///
    /// let model = ScriptedModel::new()
    ///     .expect("offer a way to billing", |request| {
    ///         request.handoffs.iter().any(|h| &*h.to == "Billing")
    ///     })
    ///     .call("transfer_to_billing", "{}");
    /// ```
    pub fn expect(
        self,
        what: impl Into<String>,
        holds: impl Fn(&ModelRequest) -> bool + Send + 'static,
    ) -> Self {
        lock(&self.0).next.expectations.push(Expectation {
            what: what.into(),
            holds: Box::new(holds),
        });
        self
    }

    fn add(
        self,
        reply: impl FnOnce(&ModelRequest) -> Result<Vec<ModelEvent>, BoxError> + Send + 'static,
    ) -> Self {
        let mut script = lock(&self.0);
        let conditions = std::mem::take(&mut script.next);
        let reply = Box::new(reply);
        script.answers.push_back(Answer { conditions, reply });
        drop(script);
        self
    }

    /// Adds an answer with a message.
    pub fn say(self, text: &str) -> Self {
        let id = {
            let mut script = lock(&self.0);
            script.messages += 1;
            format!("msg_{}", script.messages)
        };
        self.reply([Item::output_message(&id, text)])
    }

    /// Adds an answer that calls this tool or handoff.
    pub fn call(self, name: &str, arguments: &str) -> Self {
        self.calls([(name, arguments)])
    }

    /// Adds an answer that calls these tools or handoffs.
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut items = Vec::new();
        for (name, arguments) in calls {
            let mut script = lock(&self.0);
            script.calls += 1;
            let id = format!("call_{}", script.calls);
            items.push(Item::function_call(&id, name, arguments));
        }
        self.reply(items)
    }

    /// Adds a failure.
    pub fn fail(self, message: &str) -> Self {
        let message = message.to_owned();
        self.add(move |_request| Err(message.into()))
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.0).requests.clone()
    }

    /// Returns the requests so far that were made for this agent.
    pub fn requests_of(&self, agent: &str) -> Vec<ModelRequest> {
        requests_of(&lock(&self.0).requests, agent)
    }

    /// Returns the number of answers that are left.
    pub fn left(&self) -> usize {
        lock(&self.0).answers.len()
    }

    /// Takes the answer to a request out of the script.
    fn take_answer(&self, request: &ModelRequest) -> Result<Answer, BoxError> {
        let mut script = lock(&self.0);
        script.requests.push(request.clone());
        let call = script.requests.len();
        let is_for = |answer: &Answer| match &answer.conditions.fingerprint {
            None => true,
            Some(fingerprint) => *fingerprint == request.fingerprint(),
        };
        let Some(at) = script.answers.iter().position(is_for) else {
            return Err(if script.answers.is_empty() {
                format!("the script has no answer for call {call} of the model")
            } else {
                format!("call {call}: the request is not one of those that were recorded")
            }
            .into());
        };
        let answer = script.answers.remove(at);
        drop(script);
        let answer = answer.ok_or("the answer is gone")?;
        for expectation in &answer.conditions.expectations {
            if !(expectation.holds)(request) {
                return Err(format!("call {call}: the request must {}", expectation.what).into());
            }
        }
        Ok(answer)
    }

    /// The events of the answer to a request, after the pause before it.
    async fn answer(&self, request: ModelRequest) -> Result<Vec<ModelEvent>, BoxError> {
        let answer = self.take_answer(&request)?;
        if let Some(delay) = answer.conditions.delay {
            Delay::new(delay).await;
        }
        (answer.reply)(&request)
    }
}

impl Model for ScriptedModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let events = self.answer(request).await?;
        let response = events.into_iter().find_map(|event| match event {
            ModelEvent::Completed(response) => Some(response),
            _ => None,
        });
        response.ok_or_else(|| "the events of the script hold no complete response".into())
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        stream::once(self.answer(request)).flat_map(|answer| {
            stream::iter(match answer {
                Ok(events) => events.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        })
    }

    fn name(&self) -> &str {
        "scripted"
    }

    /// It accepts all: the script says what the provider did with them.
    fn accepts_tools(&self, _kind: ToolKind) -> bool {
        true
    }
}

/// The events of a response whose messages are streamed word by word.
fn in_words(response: ModelResponse) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for item in &response.output {
        if item.kind() != ItemKind::Message {
            continue;
        }
        let id: Arc<str> = item.id().unwrap_or_default().into();
        for word in item.text().unwrap_or_default().split_inclusive(' ') {
            events.push(ModelEvent::text_delta(id.clone(), word));
        }
    }
    events.push(ModelEvent::Completed(response));
    events
}
