//! The settings of a model call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::retry::{RetrySettings, seconds};

/// The settings of a model call. All are optional; `None` is the provider's default.
///
/// ```
/// use switchboard_core::model::ToolChoice;
/// use switchboard_core::ModelSettings;
///
/// let agent = ModelSettings { temperature: Some(0.2), tool_choice: Some(ToolChoice::Required), ..Default::default() };
/// let run = ModelSettings { temperature: Some(0.9), ..Default::default() };
/// let merged = agent.overridden_by(&run);
/// assert_eq!(merged.temperature, Some(0.9));
/// assert_eq!(merged.tool_choice, Some(ToolChoice::Required));
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelSettings {
    /// Randomness of sampling.
    pub temperature: Option<f64>,
    /// Share of the probability mass to sample from.
    pub top_p: Option<f64>,
    /// Penalty for repeating tokens by how often they occurred.
    pub frequency_penalty: Option<f64>,
    /// Penalty for repeating tokens at all.
    pub presence_penalty: Option<f64>,
    /// The tool that the model must call, if any.
    pub tool_choice: Option<ToolChoice>,
    /// Allows several tool calls in one response.
    pub parallel_tool_calls: Option<bool>,
    /// The provider's strategy for a conversation that is too long.
    pub truncation: Option<Arc<str>>,
    /// The limit of output tokens.
    pub max_tokens: Option<u64>,
    /// The reasoning effort.
    pub reasoning: Option<Reasoning>,
    /// The verbosity of the answer.
    pub verbosity: Option<Arc<str>>,
    /// Lets the provider store the response.
    pub store: Option<bool>,
    /// The key of the provider's prompt cache, sent to any server. Where it is not set, OpenAI itself is
    /// sent one that the requests of a conversation share
    /// ([`ModelRequest::prompt_cache_key`](super::ModelRequest::prompt_cache_key)); a null of this name
    /// in `extra_body` switches that off.
    pub prompt_cache_key: Option<Arc<str>>,
    /// The number of alternatives to report per token.
    pub top_logprobs: Option<u8>,
    /// Metadata that the provider stores with the request.
    pub metadata: BTreeMap<String, String>,
    /// Further fields of the request body.
    pub extra_body: BTreeMap<String, Value>,
    /// Further headers of the request. Their values may be secrets and are not part of `Debug`.
    pub extra_headers: BTreeMap<String, String>,
    /// Keeps the usage as the provider sent it, with fields that [`Usage`](super::Usage) has no place
    /// for, as [`ModelResponse::raw_usage`](super::ModelResponse::raw_usage).
    pub preserve_raw_usage: Option<bool>,
    /// The retries of a request that fails. The run makes them, for any model; where they are not set,
    /// the model makes its own.
    pub retry: Option<RetrySettings>,
    /// The time for one attempt of a model call, streamed or not; then it is cancelled, and
    /// [`ModelTimeout`](super::ModelTimeout) is the error. It holds for any model. Retries that the
    /// model makes on its own are part of the attempt.
    #[serde(with = "seconds")]
    pub timeout: Option<Duration>,
}

impl ModelSettings {
    /// These settings without those that the model is not shown.
    pub(super) fn shown_to_model(&self) -> Self {
        Self {
            prompt_cache_key: None,
            preserve_raw_usage: None,
            retry: None,
            timeout: None,
            ..self.clone()
        }
    }

    /// Returns these settings, overridden by those that `other` sets; maps are merged.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        Self {
            temperature: other.temperature.or(self.temperature),
            top_p: other.top_p.or(self.top_p),
            frequency_penalty: other.frequency_penalty.or(self.frequency_penalty),
            presence_penalty: other.presence_penalty.or(self.presence_penalty),
            tool_choice: first_set(&other.tool_choice, &self.tool_choice),
            parallel_tool_calls: other.parallel_tool_calls.or(self.parallel_tool_calls),
            truncation: first_set(&other.truncation, &self.truncation),
            max_tokens: other.max_tokens.or(self.max_tokens),
            reasoning: match (&self.reasoning, &other.reasoning) {
                (Some(mine), Some(theirs)) => Some(mine.overridden_by(theirs)),
                (mine, theirs) => first_set(theirs, mine),
            },
            verbosity: first_set(&other.verbosity, &self.verbosity),
            store: other.store.or(self.store),
            prompt_cache_key: first_set(&other.prompt_cache_key, &self.prompt_cache_key),
            top_logprobs: other.top_logprobs.or(self.top_logprobs),
            metadata: merged(&self.metadata, &other.metadata),
            extra_body: merged(&self.extra_body, &other.extra_body),
            extra_headers: merged(&self.extra_headers, &other.extra_headers),
            preserve_raw_usage: other.preserve_raw_usage.or(self.preserve_raw_usage),
            retry: match (&self.retry, &other.retry) {
                (Some(mine), Some(theirs)) => Some(mine.overridden_by(theirs)),
                (mine, theirs) => first_set(theirs, mine),
            },
            timeout: other.timeout.or(self.timeout),
        }
    }
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.extra_headers.keys().collect();
        let mut debug = f.debug_struct("ModelSettings");
        debug
            .field("temperature", &self.temperature)
            .field("top_p", &self.top_p)
            .field("frequency_penalty", &self.frequency_penalty)
            .field("presence_penalty", &self.presence_penalty)
            .field("tool_choice", &self.tool_choice)
            .field("parallel_tool_calls", &self.parallel_tool_calls)
            .field("truncation", &self.truncation)
            .field("max_tokens", &self.max_tokens)
            .field("reasoning", &self.reasoning)
            .field("verbosity", &self.verbosity)
            .field("store", &self.store)
            .field("top_logprobs", &self.top_logprobs)
            .field("metadata", &self.metadata)
            .field("extra_body", &self.extra_body)
            .field("extra_headers", &headers);
        if let Some(key) = &self.prompt_cache_key {
            debug.field("prompt_cache_key", key);
        }
        if let Some(preserve) = &self.preserve_raw_usage {
            debug.field("preserve_raw_usage", preserve);
        }
        if let Some(retry) = &self.retry {
            debug.field("retry", retry);
        }
        if let Some(timeout) = &self.timeout {
            debug.field("timeout", timeout);
        }
        debug.finish()
    }
}

pub(super) fn first_set<T: Clone>(first: &Option<T>, second: &Option<T>) -> Option<T> {
    first.as_ref().or(second.as_ref()).cloned()
}

fn merged<V: Clone>(
    ours: &BTreeMap<String, V>,
    theirs: &BTreeMap<String, V>,
) -> BTreeMap<String, V> {
    let mut all = ours.clone();
    all.extend(theirs.iter().map(|(k, v)| (k.clone(), v.clone())));
    all
}

/// The tool that a model must call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// It must call some tool.
    Required,
    /// It must call none.
    None,
    /// It must call this tool.
    Named(Arc<str>),
}

/// The reasoning of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reasoning {
    /// The effort: `minimal`, `low`, `medium`, `high`, or another value of the provider.
    pub effort: Option<Arc<str>>,
    /// The kind of summary: `auto`, `concise`, `detailed`.
    pub summary: Option<Arc<str>>,
}

impl Reasoning {
    fn overridden_by(&self, other: &Self) -> Self {
        Self {
            effort: first_set(&other.effort, &self.effort),
            summary: first_set(&other.summary, &self.summary),
        }
    }
}
