//! A tool as user interfaces show it.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

/// The tool behind a call, as a user interface shows it; see
/// [`RunItem::tool`](crate::items::RunItem::tool).
///
/// ```
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::tool::ToolOrigin;
/// use switchboard_core::{Agent, Runner, Tool, tool};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let lookup: Tool = tool("lookup")
///     .title("Account lookup")
///     .description("Looks an account up.")
///     .run(|_ctx, (): ()| "open");
/// let agent = Agent::new("Billing").tool(lookup);
/// let model = ScriptedModel::new().call("lookup", "{}").say("It is open.");
/// let result = Runner::new(&agent).model(model).run("Is it open?").await?;
/// let called = result.new_items()[0].tool().unwrap();
/// assert_eq!(called.title.as_deref(), Some("Account lookup"));
/// assert_eq!(called.origin, ToolOrigin::Function);
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// The code behind the tool.
    pub origin: ToolOrigin,
}

/// The code behind a tool.
///
/// Its JSON is the reference's: `{"type": "agent_as_tool", "agent_name": ".."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOrigin {
    /// A function of the application.
    Function,
    /// An agent; see [`Agent::as_tool`](crate::Agent::as_tool).
    #[serde(rename = "agent_as_tool")]
    Agent {
        /// The agent's name.
        #[serde(rename = "agent_name")]
        name: Arc<str>,
    },
    /// A server of the Model Context Protocol.
    Mcp {
        /// The server's name.
        #[serde(rename = "mcp_server_name")]
        server: Arc<str>,
    },
    /// The provider, which ran the tool itself.
    Provider,
}

impl ToolInfo {
    pub(crate) fn new(origin: ToolOrigin, title: Option<Arc<str>>, description: &Arc<str>) -> Self {
        let description = Some(description).filter(|text| !text.is_empty());
        Self {
            title,
            description: description.cloned(),
            origin,
        }
    }

    /// A tool of the provider about which nothing more is known.
    pub(crate) fn of_provider() -> Arc<Self> {
        static INFO: LazyLock<Arc<ToolInfo>> = LazyLock::new(|| {
            let info = ToolInfo::new(ToolOrigin::Provider, None, &Arc::default());
            Arc::new(info)
        });
        INFO.clone()
    }
}
