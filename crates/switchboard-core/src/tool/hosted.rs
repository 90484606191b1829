//! Tools that the provider runs.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{ToolBuilder, tool};
use crate::callback::Outcome;
use crate::tool::Tool;

/// A tool that the model's provider runs itself, such as a web search: the entry in the request's
/// list of tools, which is sent as it is.
///
/// The calls are items of the response, and no code of the application runs. Only some models accept
/// such tools (those over the Responses API do, those over Chat Completions do not); with another the
/// run ends with an error of the kind [`ErrorKind::Configuration`](crate::ErrorKind::Configuration)
/// before the model is asked.
///
/// `switchboard_models` has types for the tools of OpenAI. Any other is given by its JSON:
///
/// ```
/// use serde_json::json;
/// use switchboard_core::{Agent, Tool, tool};
///
/// struct App { may_search: bool }
///
/// let search = json!({"type": "web_search", "search_context_size": "low"});
/// let plain: Agent = Agent::new("Researcher").tool(Tool::hosted(search.clone()));
/// let conditional = Agent::<App>::new("Researcher").tool(
///     tool::<App>("search")
///         .title("Web search")
///         .enabled_if(|ctx, _agent| ctx.may_search)
///         .hosted(search),
/// );
/// ```
///
/// The configuration may hold secrets and is not part of `Debug`.
#[derive(Clone, PartialEq)]
pub struct HostedTool {
    name: Arc<str>,
    config: Arc<Value>,
    include: Vec<Arc<str>>,
}

impl HostedTool {
    /// A tool with this configuration, a JSON object with a `type`, which is also the tool's name.
    pub fn new(config: impl Into<Value>) -> Self {
        let config = config.into();
        Self {
            name: config["type"].as_str().unwrap_or_default().into(),
            config: Arc::new(config),
            include: Vec::new(),
        }
    }

    /// Sets the name of the tool, for traces and [`ToolChoice::Named`](crate::model::ToolChoice).
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks for more of the tool's results in the response: an entry of the request's `include`.
    #[must_use]
    pub fn include(mut self, field: impl Into<Arc<str>>) -> Self {
        self.include.push(field.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The `type` of the configuration.
    pub fn kind(&self) -> &str {
        self.config["type"].as_str().unwrap_or_default()
    }

    /// The configuration.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The entries of the request's `include`.
    pub fn included(&self) -> &[Arc<str>] {
        &self.include
    }

    /// Returns `true` if an item of this type is a call of the tool: `web_search_call` is one of
    /// `web_search`, and of `web_search_preview`.
    pub(crate) fn makes(&self, item_type: &str) -> bool {
        let called = item_type.strip_suffix("_call");
        called.is_some_and(|called| !called.is_empty() && self.kind().starts_with(called))
    }

    /// The problem with the configuration.
    fn problem(&self) -> Option<String> {
        let has_type = self.config.is_object() && !self.kind().is_empty();
        (!has_type).then(|| {
            "the configuration of a tool that the provider runs is a JSON object with a \"type\", \
             such as {\"type\": \"web_search\"}"
                .to_owned()
        })
    }
}

impl fmt::Debug for HostedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostedTool({}: {})", self.name, self.kind())
    }
}

impl From<Value> for HostedTool {
    fn from(config: Value) -> Self {
        Self::new(config)
    }
}

impl<C> From<HostedTool> for Tool<C> {
    fn from(hosted: HostedTool) -> Self {
        Self::hosted(hosted)
    }
}

impl<C> Tool<C> {
    /// Makes a tool that the provider runs; see [`HostedTool`]. With
    /// [`ToolBuilder::hosted`] it can have a condition and a title.
    pub fn hosted(tool_config: impl Into<HostedTool>) -> Self {
        let hosted = tool_config.into();
        tool(hosted.name.clone()).hosted(hosted)
    }

    /// The tool as the provider runs it, where it does.
    pub fn as_hosted(&self) -> Option<&HostedTool> {
        self.0.settings.hosted.as_ref()
    }
}

impl<C> ToolBuilder<C> {
    /// Finishes the tool as one that the provider runs; see [`HostedTool`]. Its description is for
    /// user interfaces. Guardrails, timeouts and failure texts do not apply to it.
    pub fn hosted(self, tool_config: impl Into<HostedTool>) -> Tool<C> {
        let hosted = tool_config.into().named(self.0.spec.name.clone());
        let problem = hosted.problem();
        // The application never runs it.
        let invoke = |_ctx| Outcome::Ready(Err("the provider runs this tool".into()));
        self.with(|settings| settings.hosted = Some(hosted)).finish(
            &Value::Null,
            false,
            problem,
            invoke,
        )
    }
}
