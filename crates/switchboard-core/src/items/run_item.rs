//! The items that a run adds to a conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Item, ItemKind};
use crate::seq::Seq;
use crate::tool::ToolInfo;

/// A list of run items that shares its storage.
pub type RunItems = Seq<RunItem>;

/// An item that a run made, with the agent that made it and its role in the run.
///
/// Clones count as the same item, so a filter may pass items on.
#[derive(Debug, Clone)]
pub struct RunItem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: RunItemKind,
    agent: Arc<str>,
    item: Item,
    /// The item's number within its run, which changed copies keep; 0 for items made outside a run.
    occurrence: u32,
    /// The data that a tool attached to its output.
    data: Option<Box<Value>>,
    /// The tool that was called.
    tool: Option<Arc<ToolInfo>>,
}

/// The role of an item in the run that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunItemKind {
    /// A message of the model.
    MessageOutput,
    /// A model's request for a handoff.
    HandoffCall,
    /// A handoff that took place.
    HandoffOutput {
        /// The agent that handed the conversation off.
        #[serde(alias = "source")]
        from: Arc<str>,
        /// The agent that received it.
        #[serde(alias = "target")]
        to: Arc<str>,
    },
    /// A tool call, or a tool that the provider ran itself.
    ToolCall,
    /// The output of a tool, or a substitute for it.
    ToolCallOutput {
        /// The tool's return value, before it became text for the model.
        #[serde(with = "crate::json::on_its_own")]
        output: Value,
    },
    /// The model's reasoning.
    Reasoning,
    /// A model's search for tools.
    ToolSearchCall,
    /// The tools that a search found.
    ToolSearchOutput,
    /// The list of an MCP server's tools.
    McpListTools,
    /// A provider's request for approval to call an MCP tool.
    McpApprovalRequest,
    /// The answer to a request for approval.
    McpApprovalResponse,
    /// Earlier conversation, compacted by the provider.
    Compaction,
    /// Input that was added while the run waited for a decision.
    Input,
    /// An item that this version does not know; it is kept unchanged.
    Other,
}

impl RunItemKind {
    /// The kind's name, as in the reference: `message_output_item`, `handoff_call_item`, ...
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::MessageOutput => "message_output_item",
            Self::HandoffCall => "handoff_call_item",
            Self::HandoffOutput { .. } => "handoff_output_item",
            Self::ToolCall => "tool_call_item",
            Self::ToolCallOutput { .. } => "tool_call_output_item",
            Self::Reasoning => "reasoning_item",
            Self::ToolSearchCall => "tool_search_call_item",
            Self::ToolSearchOutput => "tool_search_output_item",
            Self::McpListTools => "mcp_list_tools_item",
            Self::McpApprovalRequest => "mcp_approval_request_item",
            Self::McpApprovalResponse => "mcp_approval_response_item",
            Self::Compaction => "compaction_item",
            Self::Input => "input_item",
            Self::Other => "other_item",
        }
    }

    /// Returns `true` for a tool call.
    pub const fn is_tool_call(&self) -> bool {
        matches!(self, Self::ToolCall)
    }

    /// Returns `true` for the output of a tool call.
    pub const fn is_tool_output(&self) -> bool {
        matches!(self, Self::ToolCallOutput { .. })
    }

    /// Returns `true` for calls, outputs, handoffs, and reasoning.
    pub const fn is_tool_use(&self) -> bool {
        !matches!(self, Self::MessageOutput | Self::Compaction | Self::Other)
    }
}

impl RunItem {
    /// Creates a run item.
    pub fn new(kind: RunItemKind, agent: impl Into<Arc<str>>, item: Item) -> Self {
        Self::made(kind, agent.into(), item, 0)
    }

    pub(crate) fn made(kind: RunItemKind, agent: Arc<str>, item: Item, occurrence: u32) -> Self {
        Self(Arc::new(Inner {
            kind,
            agent,
            item,
            occurrence,
            data: None,
            tool: None,
        }))
    }

    /// Adds the tool that was called to this item, which must not be shared yet.
    pub(crate) fn with_tool(mut self, tool: Option<Arc<ToolInfo>>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.tool = tool;
        }
        self
    }

    /// Attaches data to this item, which must not be shared yet.
    pub(crate) fn with_data(mut self, data: Option<Value>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.data = data.map(Box::new);
        }
        self
    }

    /// The role of the item in the run.
    pub fn kind(&self) -> &RunItemKind {
        &self.0.kind
    }

    /// The name of the agent that made it.
    pub fn agent(&self) -> &str {
        &self.0.agent
    }

    /// The item, as the provider sent it or as it will be sent.
    pub fn item(&self) -> &Item {
        &self.0.item
    }

    /// The tool that was called, for user interfaces. `None` for items that are not tool calls, for
    /// calls of tools that do not exist, and for items made outside a run.
    pub fn tool(&self) -> Option<&ToolInfo> {
        self.0.tool.as_deref()
    }

    pub(crate) fn tool_arc(&self) -> Option<&Arc<ToolInfo>> {
        self.0.tool.as_ref()
    }

    /// The data that a tool attached to its output for the application, which no model gets; see
    /// [`ToolContext::attach`](crate::ToolContext::attach).
    pub fn data(&self) -> Option<&Value> {
        self.0.data.as_deref()
    }

    /// The same run item with other content, for filters that edit items. If the output of a tool
    /// changes, the data that the tool attached is not kept.
    #[must_use]
    pub fn with_item(&self, item: Item) -> Self {
        let mut data = self.data().cloned();
        let kind = match (&self.0.kind, item.field("output")) {
            // A return value that the item no longer shows must not be kept.
            (RunItemKind::ToolCallOutput { .. }, Some(json))
                if self.0.item.field("output") != Some(json) =>
            {
                let output = match item.output() {
                    Some(text) => Value::String(text.into_owned()),
                    None => serde_json::from_str(json).unwrap_or_default(),
                };
                data = None;
                RunItemKind::ToolCallOutput { output }
            }
            (kind, _) => kind.clone(),
        };
        Self::made(kind, self.0.agent.clone(), item, self.0.occurrence)
            .with_data(data)
            .with_tool(self.0.tool.clone())
    }

    /// The item as input for a model.
    pub fn to_input_item(&self) -> Item {
        self.0.item.to_input()
    }

    /// Returns `true` if both are the same item of one run, even if a filter has edited one of them.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// A key that is unique among the living items of one run.
    pub(crate) fn key(&self) -> usize {
        match self.0.occurrence {
            0 => Arc::as_ptr(&self.0) as usize,
            // Odd, and so never an address.
            occurrence => (occurrence as usize) << 1 | 1,
        }
    }

    pub(crate) fn occurrence(&self) -> u32 {
        self.0.occurrence
    }

    pub(crate) fn agent_name(&self) -> &Arc<str> {
        &self.0.agent
    }

    /// The kind of an item sent by a model.
    pub(crate) fn kind_of(item: &Item) -> RunItemKind {
        match item.kind() {
            ItemKind::Message => RunItemKind::MessageOutput,
            ItemKind::Reasoning => RunItemKind::Reasoning,
            ItemKind::ToolSearchCall => RunItemKind::ToolSearchCall,
            ItemKind::ToolSearchOutput => RunItemKind::ToolSearchOutput,
            ItemKind::McpListTools => RunItemKind::McpListTools,
            ItemKind::McpApprovalRequest => RunItemKind::McpApprovalRequest,
            ItemKind::Compaction => RunItemKind::Compaction,
            ItemKind::FunctionCall
            | ItemKind::CustomToolCall
            | ItemKind::FileSearchCall
            | ItemKind::WebSearchCall
            | ItemKind::CodeInterpreterCall
            | ItemKind::ImageGenerationCall
            | ItemKind::McpCall
            | ItemKind::HostedToolCall => RunItemKind::ToolCall,
            _ => RunItemKind::Other,
        }
    }
}

/// Run items are equal if their kind, agent and item are.
impl PartialEq for RunItem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.kind == other.0.kind
                && self.0.agent == other.0.agent
                && self.0.item == other.0.item)
    }
}
