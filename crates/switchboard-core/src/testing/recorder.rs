//! A model that records a live run, to be replayed as a script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};

use super::{ScriptedModel, requests_of};
use crate::callback::{BoxError, DynError};
use crate::handle::IntoHandle;
use crate::lock::lock;
use crate::model::{
    Model, ModelEvent, ModelHandle, ModelRequest, ModelResponse, RetryAdvice, ToolKind,
};

/// A model that forwards every request to another one and records requests and answers. Clones share
/// the recording.
///
/// Answers are recorded in the order of their requests, even if several requests run at the same
/// time.
///
/// ```
/// use switchboard_core::testing::{Recorder, Recording, ScriptedModel};
/// use switchboard_core::{Agent, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let live = ScriptedModel::new().say("Hello!"); // or a provider
/// let recorder = Recorder::new(live);
/// let agent: Agent = Agent::new("Greeter");
/// Runner::new(&agent).model(recorder.clone()).run("Hi").await?;
///
/// assert_eq!(recorder.requests_of("Greeter").len(), 1);
/// let json = serde_json::to_string(&recorder.recording()).unwrap();
/// let recording: Recording = serde_json::from_str(&json).unwrap();
/// let again = Runner::new(&agent).model(recording.script()).run("Hi").await?;
/// assert_eq!(again.final_text(), "Hello!");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    model: ModelHandle,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<ModelRequest>,
    /// The answer to each request.
    answers: Vec<Answer>,
}

/// The answers of a model, to be stored and replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    answers: Vec<Answer>,
    /// The fingerprint of the request of each answer.
    #[serde(default)]
    fingerprints: Vec<String>,
}

/// The time after which a call fails that was cancelled when it was recorded, unless it is cancelled
/// again.
const CANCELLED_CALL_FAILS_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Response(ModelResponse),
    Error(String),
    /// There is no answer: the call is still pending, or was cancelled.
    Missing,
}

impl Recording {
    /// Returns a model that gives each request the answer that was recorded for it, in any order. A
    /// request that was not recorded, because it has changed since, fails. A call that was cancelled
    /// before it was answered waits to be cancelled again.
    pub fn script(&self) -> ScriptedModel {
        let mut fingerprints = self.fingerprints.iter();
        let model = ScriptedModel::new();
        self.answers.iter().fold(model, |model, answer| {
            let model = match fingerprints.next() {
                Some(fingerprint) => model.only_for(fingerprint),
                None => model,
            };
            with_answer(model, answer)
        })
    }

    /// Returns a model that gives the same answers in their order, whatever the requests are.
    pub fn script_for_any_request(&self) -> ScriptedModel {
        self.answers.iter().fold(ScriptedModel::new(), with_answer)
    }

    /// Returns the number of recorded calls.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Returns `true` if no call was recorded.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

fn with_answer(model: ScriptedModel, answer: &Answer) -> ScriptedModel {
    match answer {
        Answer::Response(response) => model.respond_with(response.clone()),
        Answer::Error(message) => model.fail(message),
        Answer::Missing => model
            .delay(CANCELLED_CALL_FAILS_AFTER)
            .fail("this call was not answered when it was recorded"),
    }
}

impl Recorder {
    /// Creates a recorder that forwards requests to `model`.
    pub fn new<M>(model: impl IntoHandle<ModelHandle, M>) -> Self {
        Self {
            model: model.into_handle(),
            log: Arc::default(),
        }
    }

    /// Returns the answers so far.
    pub fn recording(&self) -> Recording {
        let log = lock(&self.log);
        let requests = log.requests.iter();
        Recording {
            answers: log.answers.clone(),
            fingerprints: requests.map(ModelRequest::fingerprint).collect(),
        }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.log).requests.clone()
    }

    /// Returns the requests so far that were made for this agent.
    pub fn requests_of(&self, agent: &str) -> Vec<ModelRequest> {
        requests_of(&lock(&self.log).requests, agent)
    }

    /// Records a request. Returns its index.
    fn record_request(&self, request: &ModelRequest) -> usize {
        let mut log = lock(&self.log);
        log.requests.push(request.clone());
        log.answers.push(Answer::Missing);
        log.answers.len() - 1
    }

    fn record_answer(&self, index: usize, answer: Result<&ModelResponse, &BoxError>) {
        lock(&self.log).answers[index] = match answer {
            Ok(response) => Answer::Response(response.clone()),
            Err(error) => Answer::Error(error.to_string()),
        };
    }
}

impl Model for Recorder {
    fn respond(
        &self,
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send {
        let index = self.record_request(&request);
        async move {
            let answer = self.model.respond(request).await;
            self.record_answer(index, answer.as_ref());
            answer
        }
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let index = self.record_request(&request);
        self.model
            .stream(request)
            .inspect(move |event| match event {
                Ok(ModelEvent::Completed(response)) => self.record_answer(index, Ok(response)),
                Ok(_) => {}
                Err(error) => self.record_answer(index, Err(error)),
            })
    }

    fn retry_advice(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice {
        self.model.retry_advice(error, request)
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn accepts_tools(&self, kind: ToolKind) -> bool {
        self.model.accepts_tools(kind)
    }
}
