//! Models: the trait, requests, responses and their pieces.

mod cache_key;
mod fingerprint;
mod model_event;
mod retry;
mod settings;
mod stored_prompt;
mod usage;

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use cache_key::CacheGroup;
pub(crate) use fingerprint::{Hash as TextHash, text_hash};
pub use model_event::{ModelEvent, ModelRetry, RawEvent};
pub use retry::{
    Backoff, ModelFailure, ModelTimeout, Replay, RetryAdvice, RetryDecision, RetryPolicy,
    RetrySettings,
};
pub use settings::{ModelSettings, Reasoning, ToolChoice};
pub use stored_prompt::Prompt;
pub(crate) use usage::AddedUsage;
pub use usage::{RequestUsage, Usage};

use crate::agent::knowledge::{self, Knowledge};
use crate::callback::{BoxError, BoxFuture, DynError};
use crate::handle::into_handle;
use crate::items::{Item, Items};
use crate::output::OutputType;
use crate::tool::HostedTool;

/// A model that answers conversations.
///
/// Implement [`Model::respond`]; a model that can send its answer piece by piece implements
/// [`Model::stream`] as well.
///
/// ```
/// use switchboard_core::callback::BoxError;
/// use switchboard_core::{Item, Model, ModelRequest, ModelResponse};
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
    /// Answers a request.
    fn respond(
        &self,
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send;

    /// Answers a request in pieces. The last event is [`ModelEvent::Completed`].
    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        stream::once(async move { self.respond(request).await.map(ModelEvent::Completed) })
    }

    /// Advises on sending a failed request again; asked where [`ModelSettings::retry`] is set. A model
    /// that wraps another passes the question on.
    fn retry_advice(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice {
        let _ = request;
        RetryAdvice::of_error(error)
    }

    /// The model's name, for traces.
    fn name(&self) -> &str {
        "model"
    }

    /// Returns `true` if the model accepts tools of this kind. By default it accepts functions
    /// only. A request with others is not sent to it: the run ends with an error of the kind
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration).
    fn accepts_tools(&self, kind: ToolKind) -> bool {
        kind == ToolKind::Function
    }
}

/// The kinds of tools, by what a model must be able to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// A function, which the model calls with JSON. Handoffs are functions.
    Function,
    /// A free-form tool, which the model calls with text; see [`ToolInput::Text`].
    Text,
    /// A tool that the provider runs; see [`HostedTool`].
    Hosted,
}

/// A request to a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The agent that asks; `None` where the request is not an agent's.
    pub agent: Option<Arc<str>>,
    /// The agent's instructions.
    pub instructions: Option<Arc<str>>,
    /// The agent's prompt at the provider. A model that cannot use it answers with an error.
    pub prompt: Option<Arc<Prompt>>,
    /// The conversation so far. Cloning it costs a reference count.
    pub input: Items,
    /// The settings of the call.
    pub settings: Arc<ModelSettings>,
    /// The tools the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// The tools that the provider runs.
    pub hosted_tools: Arc<[HostedTool]>,
    /// The handoffs the model may ask for; to the model they are tools.
    pub handoffs: Arc<[HandoffSpec]>,
    /// The type of the final answer, where it is not plain text.
    pub output: Option<OutputType>,
    /// The agent's knowledge beside its instructions.
    pub knowledge: Arc<[Knowledge]>,
    /// The conversation at the provider, so that `input` holds only new items.
    pub server: Option<ServerState>,
    /// The counter of the run's usage, which also knows the run's conversation.
    pub(crate) added: AddedUsage,
    /// The agent that the one that asks has the conversation from.
    pub(crate) from: Option<Arc<str>>,
    /// The number of times that the run has sent it before.
    pub(crate) earlier_attempts: u32,
}

/// A conversation that the provider keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// The conversation with this identifier.
    Conversation(Arc<str>),
    /// The conversation up to the response with this identifier.
    PreviousResponse(Arc<str>),
}

impl ModelRequest {
    /// Creates a request with only a conversation; set the other fields on it.
    pub fn new(input: impl Into<Items>) -> Self {
        Self {
            agent: None,
            instructions: None,
            prompt: None,
            input: input.into(),
            settings: Arc::default(),
            tools: Arc::default(),
            hosted_tools: Arc::default(),
            handoffs: Arc::default(),
            output: None,
            knowledge: Arc::default(),
            server: None,
            added: AddedUsage::default(),
            from: None,
            earlier_attempts: 0,
        }
    }

    /// The number of failed attempts of this request that the run has made before, by
    /// [`ModelSettings::retry`].
    pub fn earlier_attempts(&self) -> u32 {
        self.earlier_attempts
    }

    /// Counts the usage of a response that is not returned because it was cut off. The usage of a
    /// response that is returned is [`ModelResponse::usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.added.add_request(RequestUsage {
            agent: self.agent.clone(),
            from: self.from.clone(),
            model: None,
            usage,
        });
    }

    /// The instructions, followed by the agent's knowledge.
    pub fn full_instructions(&self) -> Option<Cow<'_, str>> {
        let instructions = self.instructions.as_deref();
        if self.knowledge.is_empty() {
            instructions.map(Cow::Borrowed)
        } else {
            Some(Cow::Owned(knowledge::append_to(
                instructions,
                &self.knowledge,
            )))
        }
    }
}

/// A tool as the model sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: Arc<str>,
    /// The description.
    pub description: Arc<str>,
    /// The JSON schema of its arguments.
    pub parameters: Arc<RawValue>,
    /// Set if the model must keep to the schema.
    pub strict: bool,
    /// The form of its input.
    pub input: ToolInput,
}

impl ToolSpec {
    /// Returns `true` for a free-form tool.
    pub fn takes_text(&self) -> bool {
        matches!(self.input, ToolInput::Text { .. })
    }
}

/// The form of a tool's input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolInput {
    /// JSON, by the schema of the arguments.
    Json,
    /// Text; see [`ToolBuilder::run_text`](crate::tool::ToolBuilder::run_text).
    Text {
        /// The format that the text must have, as the provider describes it.
        format: Option<Arc<Value>>,
    },
}

/// A handoff as the model sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandoffSpec {
    /// The name of the tool that stands for the handoff.
    pub tool_name: Arc<str>,
    /// The description of that tool.
    pub tool_description: Arc<str>,
    /// The JSON schema of the payload.
    pub input_json_schema: Arc<RawValue>,
    /// Set if the model must keep to the schema.
    pub strict: bool,
    /// The agent that would get the conversation.
    pub to: Arc<str>,
    /// The payload's schema as it was given. In its strict form, which models over HTTP get, every
    /// field is required; this one says which may be left out.
    pub described_schema: Arc<RawValue>,
    /// The knowledge of the agents that may get the conversation, by which a model without a language
    /// model's understanding can tell what they are for. Models over HTTP do not get it.
    pub knowledge: Arc<[Knowledge]>,
}

/// A response of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelResponse {
    /// The items of the response.
    pub output: Vec<Item>,
    /// The usage of the response.
    #[serde(default)]
    pub usage: Usage,
    /// The usage as the provider sent it, where [`ModelSettings::preserve_raw_usage`] asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_usage: Option<Box<Value>>,
    /// The provider's identifier of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Arc<str>>,
    /// The provider's identifier of the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
}

impl ModelResponse {
    /// Creates a response of these items.
    pub fn new(output: impl IntoIterator<Item = Item>) -> Self {
        Self {
            output: output.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns `true` if no message of the response has text.
    pub(crate) fn is_without_text(&self) -> bool {
        let texts = self.output.iter().filter_map(Item::text);
        texts.into_iter().all(|text| text.is_empty())
    }

    /// Sets the usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// A handle to a model; clones share it.
#[derive(Clone)]
pub struct ModelHandle {
    model: Arc<dyn DynModel>,
    /// The model's name, once a span has asked for it.
    name: Arc<OnceLock<Arc<str>>>,
    /// The settings of agents that have none.
    defaults: Arc<ModelSettings>,
}

impl ModelHandle {
    /// Creates a handle.
    pub fn new(model: impl Model) -> Self {
        Self::from_arc(Arc::new(model))
    }

    fn from_arc(model: Arc<impl Model>) -> Self {
        Self {
            model,
            name: Arc::default(),
            defaults: Arc::default(),
        }
    }

    /// Sets the model's default settings. Agents without settings of their own use them; an agent's
    /// ([`Agent::model_settings`](crate::Agent::model_settings)) replace them as a whole, and a run's
    /// override them field by field.
    ///
    /// ```
    /// use switchboard_core::model::ModelHandle;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, ModelSettings, Runner};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let script = ScriptedModel::new().say("Hi.");
    /// let model = ModelHandle::new(script.clone())
    ///     .default_settings(ModelSettings { verbosity: Some("low".into()), ..Default::default() });
    /// let agent: Agent = Agent::new("Helper").model(model);
    /// Runner::new(&agent).run("Hello").await?;
    /// assert_eq!(script.requests()[0].settings.verbosity.as_deref(), Some("low"));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    #[must_use]
    pub fn default_settings(mut self, settings: ModelSettings) -> Self {
        self.defaults = Arc::new(settings);
        self
    }

    /// The settings of agents that have none.
    pub(crate) fn defaults(&self) -> &Arc<ModelSettings> {
        &self.defaults
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        self.model.name_dyn()
    }

    /// The model's name, shared by all spans.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        let name = self.name();
        match self.name.get_or_init(|| name.into()) {
            noted if **noted == *name => noted.clone(),
            _ => name.into(),
        }
    }

    /// See [`Model::accepts_tools`]; for models that wrap other models.
    pub fn accepts_tools(&self, kind: ToolKind) -> bool {
        self.model.accepts_tools_dyn(kind)
    }

    /// See [`Model::respond`]; for models that wrap other models.
    pub fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        self.model.respond_dyn(request)
    }

    /// See [`Model::stream`]; for models that wrap other models.
    pub fn stream(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>> {
        self.model.stream_dyn(request)
    }

    /// See [`Model::retry_advice`]; for models that wrap other models.
    pub fn retry_advice(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice {
        self.model.retry_advice_dyn(error, request)
    }
}

impl<M: Model> From<M> for ModelHandle {
    fn from(model: M) -> Self {
        Self::new(model)
    }
}

into_handle! { impl[] ModelHandle, made of [M: Model] M }

impl_debug!(ModelHandle, |handle| handle.name());

/// [`Model`] as a trait object.
trait DynModel: Send + Sync {
    fn respond_dyn(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>>;
    fn stream_dyn(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>>;
    fn retry_advice_dyn(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice;
    fn name_dyn(&self) -> &str;
    fn accepts_tools_dyn(&self, kind: ToolKind) -> bool;
}

impl<M: Model> DynModel for M {
    fn respond_dyn(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        Box::pin(self.respond(request))
    }

    fn stream_dyn(&self, request: ModelRequest) -> BoxStream<'_, Result<ModelEvent, BoxError>> {
        self.stream(request).boxed()
    }

    fn retry_advice_dyn(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice {
        self.retry_advice(error, request)
    }

    fn name_dyn(&self) -> &str {
        self.name()
    }

    fn accepts_tools_dyn(&self, kind: ToolKind) -> bool {
        self.accepts_tools(kind)
    }
}
