//! People as agents.

use std::sync::Arc;

use super::Agent;

impl<C> Agent<C> {
    /// Creates an agent that a person answers for; see [`people`](crate::people).
    ///
    /// A person has a name, a description, handoffs, input and output guardrails and hooks. It has no
    /// model: instructions, tools, knowledge, an output type and model settings have no effect, and
    /// [`Team::check`](crate::Team::check) reports them.
    pub fn person(name: impl Into<Arc<str>>) -> Self {
        Self::new(name).with(|def| def.is_person = true)
    }

    /// Returns `true` if a person answers for the agent.
    pub fn is_person(&self) -> bool {
        self.def.is_person
    }

    /// The settings of a person that have no effect, in words.
    pub(crate) fn ignored_by_person(&self) -> Vec<&'static str> {
        if !self.is_person() {
            return Vec::new();
        }
        let def = &self.def;
        let settings = [
            (
                def.instructions.is_some() || def.prompt.is_some(),
                "instructions",
            ),
            (!def.tools.is_empty(), "tools"),
            (!def.knowledge.is_empty(), "knowledge"),
            (def.output.is_some(), "an output type"),
            (def.model.is_some() || def.settings.is_some(), "a model"),
        ];
        let set = settings.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, name)| name).collect()
    }
}
