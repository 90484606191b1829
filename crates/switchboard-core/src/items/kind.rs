//! What an item says it is.

macro_rules! item_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What an item is, by its `type` field.
        ///
        /// Providers add types over time: an item of a type that is not listed is
        /// [`ItemKind::Unknown`] and is carried along untouched like any other.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ItemKind {
            $($(#[$doc])* $kind,)*
            /// A type this version does not know, or no type and no role.
            Unknown,
        }

        impl ItemKind {
            /// The kind a `type` field names.
            pub fn from_type(name: &str) -> Self {
                match name {
                    $($name => Self::$kind,)*
                    _ => Self::Unknown,
                }
            }

            /// The `type` field of this kind; empty for [`ItemKind::Unknown`].
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                    Self::Unknown => "",
                }
            }
        }
    };
}

item_kinds! {
    /// A message: it has a role and content.
    Message = "message",
    /// The model calls a function tool, or a handoff.
    FunctionCall = "function_call",
    /// What a function tool answered, or that a handoff took place.
    FunctionCallOutput = "function_call_output",
    /// The model's reasoning.
    Reasoning = "reasoning",
    /// A search in files, run by the provider.
    FileSearchCall = "file_search_call",
    /// A search in the web, run by the provider.
    WebSearchCall = "web_search_call",
    /// An action on a computer.
    ComputerCall = "computer_call",
    /// What an action on a computer led to.
    ComputerCallOutput = "computer_call_output",
    /// Code run by the provider.
    CodeInterpreterCall = "code_interpreter_call",
    /// A picture made by the provider.
    ImageGenerationCall = "image_generation_call",
    /// A command for a local shell.
    LocalShellCall = "local_shell_call",
    /// What a local shell printed.
    LocalShellCallOutput = "local_shell_call_output",
    /// A command for a shell.
    ShellCall = "shell_call",
    /// What a shell printed.
    ShellCallOutput = "shell_call_output",
    /// A patch to apply.
    ApplyPatchCall = "apply_patch_call",
    /// How applying a patch went.
    ApplyPatchCallOutput = "apply_patch_call_output",
    /// A call of a tool with free-form input.
    CustomToolCall = "custom_tool_call",
    /// What a tool with free-form input answered.
    CustomToolCallOutput = "custom_tool_call_output",
    /// A call of an MCP tool, run by the provider.
    McpCall = "mcp_call",
    /// The tools an MCP server offers.
    McpListTools = "mcp_list_tools",
    /// The provider asks whether an MCP tool may be called.
    McpApprovalRequest = "mcp_approval_request",
    /// The answer to such a request.
    McpApprovalResponse = "mcp_approval_response",
    /// The model looks for tools.
    ToolSearchCall = "tool_search_call",
    /// The tools found.
    ToolSearchOutput = "tool_search_output",
    /// Earlier conversation, compacted by the provider.
    Compaction = "compaction",
    /// A program the provider runs, which may call tools.
    Program = "program",
    /// What a program came to.
    ProgramOutput = "program_output",
    /// A tool run by the provider, of a kind without a type of its own.
    HostedToolCall = "hosted_tool_call",
}

impl ItemKind {
    /// For a call that wants an answer: the kind of that answer.
    pub const fn output_kind(self) -> Option<Self> {
        match self {
            Self::FunctionCall => Some(Self::FunctionCallOutput),
            Self::CustomToolCall => Some(Self::CustomToolCallOutput),
            Self::ShellCall => Some(Self::ShellCallOutput),
            Self::ApplyPatchCall => Some(Self::ApplyPatchCallOutput),
            Self::ComputerCall => Some(Self::ComputerCallOutput),
            Self::LocalShellCall => Some(Self::LocalShellCallOutput),
            Self::ToolSearchCall => Some(Self::ToolSearchOutput),
            Self::Program => Some(Self::ProgramOutput),
            _ => None,
        }
    }

    /// Whether this answers a call.
    pub const fn is_output(self) -> bool {
        matches!(
            self,
            Self::FunctionCallOutput
                | Self::CustomToolCallOutput
                | Self::ShellCallOutput
                | Self::ApplyPatchCallOutput
                | Self::ComputerCallOutput
                | Self::LocalShellCallOutput
                | Self::ToolSearchOutput
                | Self::ProgramOutput
        )
    }

    /// Whether this belongs to the use of tools: calls, outputs, and the reasoning tied to them.
    pub const fn is_tool_use(self) -> bool {
        !matches!(self, Self::Message | Self::Compaction | Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_type() {
        assert_eq!(ItemKind::from_type("function_call"), ItemKind::FunctionCall);
        assert_eq!(ItemKind::from_type("hologram"), ItemKind::Unknown);
        assert_eq!(ItemKind::FunctionCall.as_str(), "function_call");
    }
}
