//! Turning a live run into a script.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};

use super::{ScriptedModel, of_agent};
use crate::callback::BoxError;
use crate::model::{Model, ModelEvent, ModelHandle, ModelRequest, ModelResponse};

/// A model that passes everything on to another one and keeps what it was asked and what it
/// answered. Clones share what they keep.
///
/// Answers are kept in the order of the requests, also where several are waited for at a time.
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
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: Vec<ModelRequest>,
    /// The answer to each request.
    answers: Vec<Answer>,
}

/// The answers of a model, to be stored and played again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    answers: Vec<Answer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Response(ModelResponse),
    Error(String),
    /// None came: it is still waited for, or the call was given up.
    Missing,
}

impl Recording {
    /// A model that gives the same answers again. A call that was given up before it was answered
    /// fails, so that the calls after it get their own answers.
    pub fn script(&self) -> ScriptedModel {
        let mut model = ScriptedModel::new();
        for answer in &self.answers {
            model = match answer {
                Answer::Response(response) => model.respond_with(response.clone()),
                Answer::Error(message) => model.fail(message),
                Answer::Missing => model.fail("this call was not answered when it was recorded"),
            };
        }
        model
    }

    /// How many calls were recorded.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

impl Recorder {
    /// A recorder in front of `model`.
    pub fn new(model: impl Into<ModelHandle>) -> Self {
        Self {
            model: model.into(),
            kept: Arc::default(),
        }
    }

    /// The answers so far.
    pub fn recording(&self) -> Recording {
        let answers = self.kept().answers.clone();
        Recording { answers }
    }

    /// What the model was asked, call by call.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.kept().requests.clone()
    }

    /// What the model was asked for this agent, call by call.
    pub fn requests_of(&self, agent: &str) -> Vec<ModelRequest> {
        of_agent(&self.kept().requests, agent)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while the lock is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a request and a place for its answer.
    fn asked(&self, request: &ModelRequest) -> usize {
        let mut kept = self.kept();
        kept.requests.push(request.clone());
        kept.answers.push(Answer::Missing);
        kept.answers.len() - 1
    }

    fn answered(&self, place: usize, answer: Result<&ModelResponse, &BoxError>) {
        self.kept().answers[place] = match answer {
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
        let place = self.asked(&request);
        async move {
            let answer = self.model.respond(request).await;
            self.answered(place, answer.as_ref());
            answer
        }
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let place = self.asked(&request);
        let events = self.model.stream(request);
        events.inspect(move |event| match event {
            Ok(ModelEvent::Completed(response)) => self.answered(place, Ok(response)),
            Ok(_) => {}
            Err(error) => self.answered(place, Err(error)),
        })
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}
