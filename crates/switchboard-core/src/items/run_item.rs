//! What a run adds to a conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Item, ItemKind};
use crate::seq::Seq;

/// A list of run items that shares its storage.
pub type RunItems = Seq<RunItem>;

/// An item a run made, with the agent that made it and what it meant there.
///
/// Clones are the same item: a filter that passes an item on keeps it recognisable.
#[derive(Debug, Clone)]
pub struct RunItem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: RunItemKind,
    agent: Arc<str>,
    item: Item,
    /// Which item of its run this is, kept by changed copies; 0 for items made outside a run.
    occurrence: u32,
}

/// What an item meant to the run that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunItemKind {
    /// The model said something.
    MessageOutput,
    /// The model asked for a handoff.
    HandoffCall,
    /// A handoff took place.
    HandoffOutput {
        /// The agent that had the conversation.
        source: Arc<str>,
        /// The agent that has it now.
        target: Arc<str>,
    },
    /// The model called a tool, or the provider ran one of its own.
    ToolCall,
    /// A tool answered, or a call was answered in its place.
    ToolCallOutput {
        /// What the tool returned, before it was made into text for the model.
        #[serde(with = "crate::json::on_its_own")]
        output: Value,
    },
    /// The model's reasoning.
    Reasoning,
    /// The model looked for tools.
    ToolSearchCall,
    /// Tools were found.
    ToolSearchOutput,
    /// An MCP server's tools were listed.
    McpListTools,
    /// The provider asked whether an MCP tool may be called.
    McpApprovalRequest,
    /// That question was answered.
    McpApprovalResponse,
    /// The provider compacted earlier conversation.
    Compaction,
    /// Something this version does not know; it is carried along.
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
            Self::Other => "other_item",
        }
    }

    /// Whether a tool answered, or a call was answered in its place.
    pub const fn is_tool_output(&self) -> bool {
        matches!(self, Self::ToolCallOutput { .. })
    }

    /// Whether this belongs to the use of tools: calls, outputs, handoffs, and reasoning.
    pub const fn is_tool_use(&self) -> bool {
        !matches!(self, Self::MessageOutput | Self::Compaction | Self::Other)
    }
}

impl RunItem {
    /// A run item.
    pub fn new(kind: RunItemKind, agent: impl Into<Arc<str>>, item: Item) -> Self {
        Self::made(kind, agent.into(), item, 0)
    }

    pub(crate) fn made(kind: RunItemKind, agent: Arc<str>, item: Item, occurrence: u32) -> Self {
        Self(Arc::new(Inner {
            kind,
            agent,
            item,
            occurrence,
        }))
    }

    /// What the item meant to the run.
    pub fn kind(&self) -> &RunItemKind {
        &self.0.kind
    }

    /// The name of the agent that made it.
    pub fn agent(&self) -> &str {
        &self.0.agent
    }

    /// The item itself, as the provider gave it or as it will be sent.
    pub fn item(&self) -> &Item {
        &self.0.item
    }

    /// The same run item with other content, for filters that change what an item says.
    #[must_use]
    pub fn with_item(&self, item: Item) -> Self {
        let kind = match (&self.0.kind, item.output()) {
            // What the tool returned must not outlive what the item says of it.
            (RunItemKind::ToolCallOutput { .. }, Some(text))
                if self.0.item.output().as_deref() != Some(&*text) =>
            {
                let output = Value::String(text.into_owned());
                RunItemKind::ToolCallOutput { output }
            }
            (kind, _) => kind.clone(),
        };
        Self::made(kind, self.0.agent.clone(), item, self.0.occurrence)
    }

    /// The item as input for a model.
    pub fn to_input_item(&self) -> Item {
        self.0.item.to_input()
    }

    /// Whether both are the same item of one run, though a filter may have changed what it says.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What tells run items of one run apart as long as they live.
    pub(crate) fn key(&self) -> usize {
        match self.0.occurrence {
            0 => Arc::as_ptr(&self.0) as usize,
            // Never an address: those are even.
            occurrence => (occurrence as usize) << 1 | 1,
        }
    }

    pub(crate) fn occurrence(&self) -> u32 {
        self.0.occurrence
    }

    pub(crate) fn agent_name(&self) -> &Arc<str> {
        &self.0.agent
    }

    /// What an item that a model sent means, where it is neither a function call nor a message.
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

/// Equal where kind, agent and item are.
impl PartialEq for RunItem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.kind == other.0.kind
                && self.0.agent == other.0.agent
                && self.0.item == other.0.item)
    }
}
