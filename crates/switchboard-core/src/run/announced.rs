//! Handoffs that an agent announces and does not call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Run;
use super::turn::Turn;
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::model::{ModelResponse, ToolChoice};
use crate::offered_tools::Offer;
use crate::runner::{AnnouncedHandoffs, PossibleAnnouncement};

/// A handoff that the agent has announced. The model is asked once to call it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AnnouncedHandoff {
    /// The tool of the handoff, if it is known which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<Arc<str>>,
    /// Set until the model has answered.
    is_pending: bool,
}

impl Run {
    /// Notes that the final answer of a turn announces a handoff, if it does and the model was not asked
    /// about it before. Returns `true` if it is to be asked.
    pub(crate) fn note_announced(
        &mut self,
        turn: &Turn,
        offer: &Offer,
        policy: Option<&AnnouncedHandoffs>,
        is_announced: bool,
    ) -> bool {
        let was_asked = self.position.announced.is_some();
        if let Some(announced) = &mut self.position.announced {
            announced.is_pending = false;
        }
        let Some(policy) = policy.filter(|_| !was_asked && !offer.handoffs.is_empty()) else {
            return false;
        };
        let words = |made: &RunItem| {
            let is_message = *made.kind() == RunItemKind::MessageOutput;
            made.item()
                .text()
                .filter(|_| is_message)
                .map(|text| text.to_lowercase())
        };
        let said: Vec<String> = turn.items.iter().filter_map(words).collect();
        let said = said.join(" ");
        if !is_announced && !policy.is_in(&said) {
            return false;
        }
        let mut named = offer.handoffs.iter();
        let mut named = named
            .by_ref()
            .filter(|spec| said.contains(&spec.to.to_lowercase()));
        let tool = match (named.next(), named.next(), &*offer.handoffs) {
            (Some(only), None, _) | (None, _, [only]) => Some(only.tool_name.clone()),
            _ => None,
        };
        self.position.announced = Some(Box::new(AnnouncedHandoff {
            tool,
            is_pending: true,
        }));
        true
    }

    /// The answer in a response, if it may announce a handoff without any of the phrases and the model was
    /// not asked about that before.
    pub(crate) fn possible_announcement(
        &self,
        response: &ModelResponse,
        offer: &Offer,
        policy: &AnnouncedHandoffs,
    ) -> Option<PossibleAnnouncement> {
        if self.position.announced.is_some() || offer.handoffs.is_empty() {
            return None;
        }
        let is_call = |item: &Item| {
            matches!(
                item.kind(),
                ItemKind::FunctionCall | ItemKind::CustomToolCall
            )
        };
        if response.output.iter().any(is_call) {
            return None;
        }
        let messages = response.output.iter();
        let messages = messages.filter(|item| item.kind() == ItemKind::Message);
        let texts: Vec<_> = messages.filter_map(|item| item.text()).collect();
        let text = texts.join(" ");
        (!text.is_empty() && !policy.is_in(&text.to_lowercase())).then(|| PossibleAnnouncement {
            agent: self.agent.name.clone(),
            text,
            handoffs: offer.handoffs.iter().map(|spec| spec.to.clone()).collect(),
        })
    }

    /// The tool choice of the next model call, if the agent has announced a handoff.
    pub(crate) fn announced_choice(&self) -> Option<ToolChoice> {
        let announced = self.position.announced.as_ref()?;
        announced.is_pending.then(|| match &announced.tool {
            Some(tool) => ToolChoice::Named(tool.clone()),
            None => ToolChoice::Required,
        })
    }
}
