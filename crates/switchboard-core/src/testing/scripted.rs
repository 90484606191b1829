//! A model that answers from a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use futures_util::stream;

use super::requests_of;
use crate::callback::BoxError;
use crate::items::{Item, ItemKind};
use crate::lock::lock;
use crate::model::{Model, ModelEvent, ModelRequest, ModelResponse, Usage};

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
pub struct ScriptedModel(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    /// The expectations of the answer that is added next.
    expectations: Vec<Expectation>,
    requests: Vec<ModelRequest>,
    messages: usize,
    calls: usize,
}

#[derive(Debug)]
struct Answer {
    expectations: Vec<Expectation>,
    response: Result<ModelResponse, String>,
}

/// A condition on a request.
struct Expectation {
    what: String,
    holds: Box<dyn Fn(&ModelRequest) -> bool + Send>,
}

impl_debug!(Expectation, |expectation| expectation.what);

impl ScriptedModel {
    /// Creates a model with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer with these items.
    #[must_use]
    pub fn reply(self, items: impl IntoIterator<Item = Item>) -> Self {
        self.respond_with(ModelResponse::new(items).usage(Usage {
            requests: 1,
            ..Usage::default()
        }))
    }

    /// Adds this response.
    #[must_use]
    pub fn respond_with(self, response: ModelResponse) -> Self {
        self.add(Ok(response))
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
    #[must_use]
    pub fn expect(
        self,
        what: impl Into<String>,
        holds: impl Fn(&ModelRequest) -> bool + Send + 'static,
    ) -> Self {
        lock(&self.0).expectations.push(Expectation {
            what: what.into(),
            holds: Box::new(holds),
        });
        self
    }

    fn add(self, response: Result<ModelResponse, String>) -> Self {
        let mut script = lock(&self.0);
        let expectations = std::mem::take(&mut script.expectations);
        script.answers.push_back(Answer {
            expectations,
            response,
        });
        drop(script);
        self
    }

    /// Adds an answer with a message.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        let id = {
            let mut script = lock(&self.0);
            script.messages += 1;
            format!("msg_{}", script.messages)
        };
        self.reply([Item::output_message(&id, text)])
    }

    /// Adds an answer that calls this tool or handoff.
    #[must_use]
    pub fn call(self, name: &str, arguments: &str) -> Self {
        self.calls([(name, arguments)])
    }

    /// Adds an answer that calls these tools or handoffs.
    #[must_use]
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
    #[must_use]
    pub fn fail(self, message: &str) -> Self {
        self.add(Err(message.to_owned()))
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

    fn answer(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (call, answer) = {
            let mut script = lock(&self.0);
            script.requests.push(request.clone());
            (script.requests.len(), script.answers.pop_front())
        };
        let Some(answer) = answer else {
            return Err(format!("the script has no answer for call {call} of the model").into());
        };
        for expectation in &answer.expectations {
            if !(expectation.holds)(&request) {
                return Err(format!("call {call}: the request must {}", expectation.what).into());
            }
        }
        Ok(answer.response?)
    }
}

impl Model for ScriptedModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.answer(request)
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let mut events = Vec::new();
        let answer = self.answer(request);
        let items = answer.iter().flat_map(|response| &response.output);
        for item in items.filter(|item| item.kind() == ItemKind::Message) {
            let id: Arc<str> = item.id().unwrap_or_default().into();
            for word in item.text().unwrap_or_default().split_inclusive(' ') {
                events.push(Ok(ModelEvent::text_delta(id.clone(), word)));
            }
        }
        events.push(answer.map(ModelEvent::Completed));
        stream::iter(events)
    }

    fn name(&self) -> &str {
        "scripted"
    }
}
