//! Turning a live run into a script.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};

use super::ScriptedModel;
use crate::callback::BoxError;
use crate::model::{Model, ModelEvent, ModelHandle, ModelRequest, ModelResponse};

/// A model that passes everything on to another one and keeps its answers. Clones share what they
/// keep.
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
    kept: Arc<Mutex<Recording>>,
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
}

impl Recording {
    /// A model that gives the same answers again.
    pub fn script(&self) -> ScriptedModel {
        let mut model = ScriptedModel::new();
        for answer in &self.answers {
            model = match answer {
                Answer::Response(response) => model.respond_with(response.clone()),
                Answer::Error(message) => model.fail(message),
            };
        }
        model
    }

    /// How many answers there are.
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

    /// What was kept so far.
    pub fn recording(&self) -> Recording {
        self.kept().clone()
    }

    fn kept(&self) -> MutexGuard<'_, Recording> {
        // Nothing panics while the lock is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, answer: Result<&ModelResponse, &BoxError>) {
        self.kept().answers.push(match answer {
            Ok(response) => Answer::Response(response.clone()),
            Err(error) => Answer::Error(error.to_string()),
        });
    }
}

impl Model for Recorder {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let answer = self.model.respond(request).await;
        self.keep(answer.as_ref());
        answer
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        self.model.stream(request).inspect(|event| match event {
            Ok(ModelEvent::Completed(response)) => self.keep(Ok(response)),
            Ok(_) => {}
            Err(error) => self.keep(Err(error)),
        })
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}
