//! The names of events about new items.

use serde::{Deserialize, Serialize};

use crate::items::RunItemKind;

/// The reference's names for new items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemEvent {
    /// The model sent a message.
    MessageOutputCreated,
    /// The model asked for a handoff.
    HandoffRequested,
    /// A handoff took place.
    #[serde(rename = "handoff_occured")]
    HandoffOccurred,
    /// The model called a tool.
    ToolCalled,
    /// A call was answered.
    ToolOutput,
    /// The model reasoned.
    ReasoningItemCreated,
    /// The model searched for tools.
    ToolSearchCalled,
    /// Tools were found.
    ToolSearchOutputCreated,
    /// The provider asks for approval of an MCP tool call.
    McpApprovalRequested,
    /// The approval was answered.
    McpApprovalResponse,
    /// The tools of an MCP server were listed.
    McpListTools,
}

impl ItemEvent {
    /// The name in the reference, which spells `handoff_occured` so.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessageOutputCreated => "message_output_created",
            Self::HandoffRequested => "handoff_requested",
            Self::HandoffOccurred => "handoff_occured",
            Self::ToolCalled => "tool_called",
            Self::ToolOutput => "tool_output",
            Self::ReasoningItemCreated => "reasoning_item_created",
            Self::ToolSearchCalled => "tool_search_called",
            Self::ToolSearchOutputCreated => "tool_search_output_created",
            Self::McpApprovalRequested => "mcp_approval_requested",
            Self::McpApprovalResponse => "mcp_approval_response",
            Self::McpListTools => "mcp_list_tools",
        }
    }

    /// The event of an item; `None` for kinds that have none.
    pub(super) fn of(kind: &RunItemKind) -> Option<Self> {
        Some(match kind {
            RunItemKind::MessageOutput => Self::MessageOutputCreated,
            RunItemKind::HandoffCall => Self::HandoffRequested,
            RunItemKind::HandoffOutput { .. } => Self::HandoffOccurred,
            RunItemKind::ToolCall => Self::ToolCalled,
            RunItemKind::ToolCallOutput { .. } => Self::ToolOutput,
            RunItemKind::Reasoning => Self::ReasoningItemCreated,
            RunItemKind::ToolSearchCall => Self::ToolSearchCalled,
            RunItemKind::ToolSearchOutput => Self::ToolSearchOutputCreated,
            RunItemKind::McpApprovalRequest => Self::McpApprovalRequested,
            RunItemKind::McpApprovalResponse => Self::McpApprovalResponse,
            RunItemKind::McpListTools => Self::McpListTools,
            RunItemKind::Compaction | RunItemKind::Input | RunItemKind::Other => return None,
        })
    }
}
