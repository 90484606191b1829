//! What answers: the model, what it is asked and what it says.

mod settings;
mod usage;

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use settings::{ModelSettings, Reasoning, ToolChoice};
pub use usage::Usage;

use crate::callback::{BoxError, BoxFuture};
use crate::context::AddedUsage;
use crate::items::{Item, Items};
use crate::knowledge::{self, Knowledge};
use crate::output::OutputType;

/// Something that answers a conversation.
///
/// Implement [`Model::respond`]; a model that can send its answer piece by piece implements
/// [`Model::stream`] as well.
///
/// ```
/// use switchboard_core::{BoxError, Item, Model, ModelRequest, ModelResponse};
///
/// struct Parrot;
///
/// impl Model for Parrot {
///     async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
///         let last = request.input.last().and_then(|item| item.text()).unwrap_or_default();
///         Ok(ModelResponse::new([Item::output_message("msg_1", &last)]))
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers a request as a whole.
    fn respond(
        &self,
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send;

    /// Answers a request piece by piece. The last event is [`ModelEvent::Completed`].
    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        stream::once(async move { self.respond(request).await.map(ModelEvent::Completed) })
    }

    /// The model's name, for traces.
    fn name(&self) -> &str {
        "model"
    }
}

/// What a model is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The agent the model answers for; `None` where the request is not an agent's.
    pub agent: Option<Arc<str>>,
    /// The agent's instructions.
    pub instructions: Option<Arc<str>>,
    /// The conversation so far. Keeping it costs a reference, not a copy.
    pub input: Items,
    /// How to answer.
    pub settings: Arc<ModelSettings>,
    /// The tools the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// The handoffs the model may ask for; to the model they are tools as well.
    pub handoffs: Arc<[HandoffSpec]>,
    /// The form of a final answer, where it is not plain text.
    pub output: Option<OutputType>,
    /// What the agent knows beside its instructions.
    pub knowledge: Arc<[Knowledge]>,
    /// Where the provider keeps the conversation, so that `input` holds only what is new.
    pub server: Option<ServerState>,
    /// Where the run counts what was used.
    pub(crate) added: AddedUsage,
}

/// Where a provider keeps a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// In the conversation of this identifier.
    Conversation(Arc<str>),
    /// Behind the response of this identifier.
    PreviousResponse(Arc<str>),
}

impl ModelRequest {
    /// A request that is only a conversation; the other fields can be set on it.
    pub fn new(input: impl Into<Items>) -> Self {
        Self {
            agent: None,
            instructions: None,
            input: input.into(),
            settings: Arc::default(),
            tools: Arc::default(),
            handoffs: Arc::default(),
            output: None,
            knowledge: Arc::default(),
            server: None,
            added: AddedUsage::default(),
        }
    }

    /// Counts as part of the run what an answer has used that does not come: one that was cut, or
    /// broke off. What an answer has used that does come is [`ModelResponse::usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.added.add(usage);
    }

    /// The instructions, with what the agent knows behind them.
    pub fn full_instructions(&self) -> Option<Cow<'_, str>> {
        let instructions = self.instructions.as_deref();
        if self.knowledge.is_empty() {
            instructions.map(Cow::Borrowed)
        } else {
            Some(Cow::Owned(knowledge::after(instructions, &self.knowledge)))
        }
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: Arc<str>,
    /// What it is for.
    pub description: Arc<str>,
    /// The JSON schema of its arguments.
    pub parameters: Arc<RawValue>,
    /// Whether the model must keep to the schema.
    pub strict: bool,
}

/// A handoff as a model sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandoffSpec {
    /// The name of the tool that stands for the handoff.
    pub tool_name: Arc<str>,
    /// When to use it.
    pub tool_description: Arc<str>,
    /// The JSON schema of the payload.
    pub input_json_schema: Arc<RawValue>,
    /// Whether the model must keep to the schema.
    pub strict: bool,
    /// The agent the conversation would go to.
    pub agent_name: Arc<str>,
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelResponse {
    /// The items of the answer.
    pub output: Vec<Item>,
    /// What the answer cost.
    #[serde(default)]
    pub usage: Usage,
    /// The provider's identifier of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Arc<str>>,
    /// The provider's identifier of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
}

impl ModelResponse {
    /// An answer of these items.
    pub fn new(output: impl IntoIterator<Item = Item>) -> Self {
        Self {
            output: output.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The same answer with its cost.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of a message's text.
    TextDelta {
        /// The item that grows, by its identifier or by a name of its own within the answer.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning, as far as the provider shows it.
    ReasoningDelta {
        /// The item that grows.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// More of the arguments of a tool call or a handoff.
    ArgumentsDelta {
        /// The item that grows.
        item: Arc<str>,
        /// The identifier of the call; empty where the provider has not given it yet.
        call_id: Arc<str>,
        /// The name of the tool that is called.
        tool: Arc<str>,
        /// The piece.
        text: String,
    },
    /// A request failed, and is sent again.
    Retry(ModelRetry),
    /// An event of the provider's protocol, as it came.
    Raw(RawEvent),
    /// The whole answer; nothing follows.
    Completed(ModelResponse),
}

impl ModelEvent {
    /// A piece of the text of the item that goes by this name.
    pub fn text_delta(item: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::TextDelta {
            item: item.into(),
            text: text.into(),
        }
    }
}

/// A request that failed and is sent again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelRetry {
    /// The number of the attempt that comes next; the first retry is attempt 2.
    pub attempt: u32,
    /// How long the model waits before it.
    pub delay: Duration,
    /// Why the attempt before it failed.
    pub reason: String,
}

impl ModelRetry {
    /// A retry.
    pub fn new(attempt: u32, delay: Duration, reason: impl Into<String>) -> Self {
        Self {
            attempt,
            delay,
            reason: reason.into(),
        }
    }
}

/// An event of a provider's protocol, as it came.
#[derive(Clone)]
pub struct RawEvent(Arc<str>);

impl RawEvent {
    /// An event from its JSON.
    ///
    /// # Errors
    /// Where `json` is not JSON.
    pub fn from_json(json: String) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(&json)?;
        Ok(Self(raw.get().into()))
    }

    /// An event from JSON that was read already: it is not looked at again, which spares a tenth of
    /// what a streamed run costs.
    #[doc(hidden)]
    pub fn from_read(json: Arc<str>) -> Self {
        Self(json)
    }

    /// The event's JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl PartialEq for RawEvent {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl fmt::Debug for RawEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

/// A model behind a cheap handle.
///
/// Anything that is a [`Model`] converts into it, also in an [`Arc`].
#[derive(Clone)]
pub struct ModelHandle(Arc<dyn DynModel>);

impl ModelHandle {
    /// A handle of `model`.
    pub fn new(model: impl Model) -> Self {
        Self::from(Arc::new(model))
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        self.0.name_dyn()
    }

    /// The model's name, to be kept: made once, not for every span.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        let name = self.name();
        match self.0.noted_name().get_or_init(|| name.into()) {
            noted if **noted == *name => noted.clone(),
            _ => name.into(),
        }
    }

    /// Answers a request as a whole; for models made of other models.
    pub fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        self.0.respond_dyn(request)
    }

    /// Answers a request piece by piece; for models made of other models.
    pub fn stream(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>> {
        self.0.stream_dyn(request)
    }
}

impl<M: Model> From<M> for ModelHandle {
    fn from(model: M) -> Self {
        Self::new(model)
    }
}

impl<M: Model> From<Arc<M>> for ModelHandle {
    fn from(model: Arc<M>) -> Self {
        let name = OnceLock::new();
        Self(Arc::new(Named { model, name }))
    }
}

impl From<&Self> for ModelHandle {
    fn from(handle: &Self) -> Self {
        handle.clone()
    }
}

impl fmt::Debug for ModelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelHandle({})", self.name())
    }
}

/// [`Model`] behind a pointer.
trait DynModel: Send + Sync {
    fn respond_dyn(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>>;
    fn stream_dyn(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>>;
    fn name_dyn(&self) -> &str;
    fn noted_name(&self) -> &OnceLock<Arc<str>>;
}

/// A model, and its name for traces.
struct Named<M> {
    model: Arc<M>,
    name: OnceLock<Arc<str>>,
}

impl<M: Model> DynModel for Named<M> {
    fn respond_dyn(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        Box::pin(self.model.respond(request))
    }

    fn stream_dyn(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>> {
        self.model.stream(request).boxed()
    }

    fn name_dyn(&self) -> &str {
        self.model.name()
    }

    fn noted_name(&self) -> &OnceLock<Arc<str>> {
        &self.name
    }
}
