//! Reading an agent's parts, for drawings and user interfaces.

use super::{Agent, Instructions};
use crate::approval::ApprovalMode;
use crate::condition::Enabled;
use crate::handoff::Handoff;
use crate::model::ModelSettings;
use crate::tool::Tool;

impl<C> Agent<C> {
    /// The instructions; `None` if there are none, or a function makes them.
    pub fn instructions_text(&self) -> Option<&str> {
        match &self.def.instructions {
            Some(Instructions::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if a function makes the instructions.
    pub fn has_dynamic_instructions(&self) -> bool {
        matches!(self.def.instructions, Some(Instructions::Function(_)))
    }

    /// The name of the agent's own model.
    pub fn model_name(&self) -> Option<&str> {
        let model = self.def.model.as_ref()?;
        Some(model.name()).filter(|_| !self.is_person())
    }

    /// The agent's own settings of model calls.
    pub fn own_settings(&self) -> Option<&ModelSettings> {
        self.def.settings.as_deref()
    }

    /// The names of the guardrails on its input.
    pub fn input_guardrail_names(&self) -> impl Iterator<Item = &str> {
        self.def.input_guardrails.iter().map(|guard| guard.name())
    }

    /// The names of the guardrails on its output.
    pub fn output_guardrail_names(&self) -> impl Iterator<Item = &str> {
        self.def.output_guardrails.iter().map(|guard| guard.name())
    }

    /// The names of the guardrails on its tools.
    pub fn tool_guardrail_names(&self) -> impl Iterator<Item = &str> {
        self.def.tool_guardrails.iter().map(|guard| guard.name())
    }
}

impl<C> Tool<C> {
    /// Tells if calls need approval.
    pub fn approval_mode(&self) -> ApprovalMode {
        self.approval().mode()
    }

    /// Returns `true` if the tool has a condition.
    pub fn is_conditional(&self) -> bool {
        matches!(self.enabled(), Enabled::When(_))
    }
}

impl<C> Handoff<C> {
    /// Tells if the handoff needs approval.
    pub fn approval_mode(&self) -> ApprovalMode {
        self.approval().mode()
    }

    /// The names of its guardrails.
    pub fn guardrail_names(&self) -> impl Iterator<Item = &str> {
        self.guardrails().iter().map(|guard| guard.name())
    }
}
