//! A model that answers from a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::Stream;
use futures_util::stream;

use super::of_agent;
use crate::callback::BoxError;
use crate::items::{Item, ItemKind};
use crate::model::{Model, ModelEvent, ModelRequest, ModelResponse, Usage};

/// A model that answers from a script, one entry a call, and keeps every request.
///
/// Clones share the script and the requests. When the script is over, it fails.
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
    /// What must hold for the request that gets the next answer of the script.
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

/// Something a request must be.
struct Expectation {
    what: String,
    holds: Box<dyn Fn(&ModelRequest) -> bool + Send>,
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expectation({})", self.what)
    }
}

impl ScriptedModel {
    /// A model with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Then answers with these items.
    #[must_use]
    pub fn reply(self, items: impl IntoIterator<Item = Item>) -> Self {
        self.respond_with(ModelResponse::new(items).usage(Usage {
            requests: 1,
            ..Usage::default()
        }))
    }

    /// Then answers with this response.
    #[must_use]
    pub fn respond_with(self, response: ModelResponse) -> Self {
        self.then(Ok(response))
    }

    /// What must hold for the request that gets the next answer: where it does not, the model fails
    /// and says so. `what` completes the sentence "the request must ...".
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    ///
    /// let model = ScriptedModel::new()
    ///     .expect("offer a way to billing", |request| {
    ///         request.handoffs.iter().any(|h| &*h.agent_name == "Billing")
    ///     })
    ///     .call("transfer_to_billing", "{}");
    /// ```
    #[must_use]
    pub fn expect(
        self,
        what: impl Into<String>,
        holds: impl Fn(&ModelRequest) -> bool + Send + 'static,
    ) -> Self {
        self.script().expectations.push(Expectation {
            what: what.into(),
            holds: Box::new(holds),
        });
        self
    }

    fn then(self, response: Result<ModelResponse, String>) -> Self {
        {
            let mut script = self.script();
            let expectations = std::mem::take(&mut script.expectations);
            script.answers.push_back(Answer {
                expectations,
                response,
            });
        }
        self
    }

    /// Then says this.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        let id = {
            let mut script = self.script();
            script.messages += 1;
            format!("msg_{}", script.messages)
        };
        self.reply([Item::output_message(&id, text)])
    }

    /// Then calls this tool, or this handoff.
    #[must_use]
    pub fn call(self, name: &str, arguments: &str) -> Self {
        self.calls([(name, arguments)])
    }

    /// Then calls these tools or handoffs in one answer.
    #[must_use]
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let items: Vec<Item> = {
            let mut script = self.script();
            let items = calls.into_iter().map(|(name, arguments)| {
                script.calls += 1;
                Item::function_call(&format!("call_{}", script.calls), name, arguments)
            });
            items.collect()
        };
        self.reply(items)
    }

    /// Then fails.
    #[must_use]
    pub fn fail(self, message: &str) -> Self {
        self.then(Err(message.to_owned()))
    }

    /// What the model was asked, call by call.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.script().requests.clone()
    }

    /// What the model was asked for this agent, call by call.
    pub fn requests_of(&self, agent: &str) -> Vec<ModelRequest> {
        of_agent(&self.script().requests, agent)
    }

    /// How many answers of the script are left.
    pub fn left(&self) -> usize {
        self.script().answers.len()
    }

    fn next(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (call, answer) = {
            let mut script = self.script();
            script.requests.push(request.clone());
            (script.requests.len(), script.answers.pop_front())
        };
        let Some(answer) = answer else {
            return Err(format!("the script is over: this was call {call} of the model").into());
        };
        let mut expectations = answer.expectations.iter();
        match expectations.find(|expected| !(expected.holds)(&request)) {
            Some(expected) => {
                Err(format!("call {call}: the request must {}", expected.what).into())
            }
            None => answer.response.map_err(Into::into),
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.next(request)
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let events = match self.next(request) {
            Err(error) => vec![Err(error)],
            Ok(response) => {
                let mut events = Vec::new();
                for message in response
                    .output
                    .iter()
                    .filter(|item| item.kind() == ItemKind::Message)
                {
                    let id: Arc<str> = message.id().unwrap_or_default().into();
                    for word in words(&message.text().unwrap_or_default()) {
                        events.push(Ok(ModelEvent::text_delta(id.clone(), word)));
                    }
                }
                events.push(Ok(ModelEvent::Completed(response)));
                events
            }
        };
        stream::iter(events)
    }

    fn name(&self) -> &str {
        "scripted"
    }
}

/// A text in pieces, as a streaming model would send it.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}
