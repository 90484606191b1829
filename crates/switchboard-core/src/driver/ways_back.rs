//! Ways back: the handoffs that an agent has because of how the conversation came to it.

use std::sync::Arc;

use serde_json::Value;

use super::Driver;
use crate::agent::Agent;
use crate::filters::add_note;
use crate::handoff::{Handoff, HandoffInputData, Returning, Target, ToolNames, target, ways_back};
use crate::items::Item;
use crate::run::ways_back::{PriorHandoff, WayBackChange};
use crate::run::{Run, agent_keys};

impl<C: Send + Sync + 'static> Driver<C> {
    /// The agent with the handoffs that it has at this point of the conversation; `None` if they are those of
    /// the agent as it is.
    pub(super) fn agent_in_place(&self) -> Option<Agent<C>> {
        agent_in_place(&self.run, &self.start, &self.agent, self.config.tool_names)
    }

    /// The agent that handed the conversation to the current one, and its handoff, as far as they still
    /// exist.
    pub(super) fn previous(&self) -> Option<(Agent<C>, Option<Handoff<C>>)> {
        previous(&self.run, &self.start, self.config.tool_names)
    }

    /// The change of the way back by a handoff that is taken.
    pub(super) fn way_back_after(
        &self,
        handoff: &Handoff<C>,
        to: &Agent<C>,
        payload: &Value,
    ) -> WayBackChange {
        if !self.keeps_way_back() {
            return WayBackChange::None;
        }
        match handoff.returning() {
            Some(Returning::Previous) => return WayBackChange::Return,
            Some(Returning::Start) => return WayBackChange::Clear,
            None => {}
        }
        let call = self.handoff_calls().first();
        let names = self.config.tool_names.names_of(self.agent.handoffs());
        let mut own = self.agent.handoffs().iter();
        let at = own.position(|own| own.ptr_eq(handoff));
        let tool = at.and_then(|at| names.get(at)).cloned();
        let call_id = call.and_then(|call| call.call.call_id());
        let payload = to.is_person().then(|| payload.to_string());
        WayBackChange::Forward(PriorHandoff {
            from: self.run.agent.key.clone(),
            tool: tool.unwrap_or_default(),
            call_id: call_id.unwrap_or_default().into(),
            payload: payload.unwrap_or_default().into(),
        })
    }

    /// The change of the way back by a move without a handoff.
    pub(super) fn way_back_after_move(&self) -> WayBackChange {
        if !self.keeps_way_back() {
            return WayBackChange::None;
        }
        let none: Arc<str> = "".into();
        WayBackChange::Forward(PriorHandoff {
            from: self.run.agent.key.clone(),
            tool: none.clone(),
            call_id: none.clone(),
            payload: none,
        })
    }

    /// Returns `true` if an agent of the run may have to find its way back.
    fn keeps_way_back(&self) -> bool {
        let start = &self.start;
        *start.def.caches.keeps_way_back.get_or_init(|| {
            let agents = agent_keys::with_keys(start);
            let mut agents = agents.iter().map(|(_, agent)| agent);
            agents.any(|agent| {
                let mut handoffs = agent.handoffs().iter();
                let is_needed =
                    |edge: &Handoff<C>| edge.returning().is_some() || edge.way_back().is_some();
                agent.is_person() || handoffs.any(is_needed)
            })
        })
    }

    /// The way back that the conversation keeps with the agent that gets the next message.
    pub(super) fn way_back_of(&self, next_agent: &str) -> &[PriorHandoff] {
        if *self.run.agent.key == *next_agent {
            self.run.way_back()
        } else {
            &[]
        }
    }

    /// Shows the result of a way back where a filter has cut out the output that has it.
    pub(super) fn show_result(
        &self,
        handoff: &Handoff<C>,
        payload: &Value,
        data: HandoffInputData<C>,
    ) -> HandoffInputData<C> {
        if handoff.returning().is_none() || !handoff.takes_payload() {
            return data;
        }
        let call = self.handoff_calls().first();
        let call_id = call.and_then(|call| call.call.call_id());
        let is_output = |item: &Item| item.output().is_some() && item.call_id() == call_id;
        let shown = data.input_items().unwrap_or_else(|| data.new_items());
        if shown.iter().any(|made| is_output(made.item())) {
            return data;
        }
        let from = self.agent.name();
        let payload = data.payload().unwrap_or(payload);
        let note = format!("{from} has handed the conversation back with this result: {payload}");
        add_note(data, &Item::developer(note))
    }
}

/// The agent with the handoffs that it has at this point of the conversation: those to the previous and the
/// first agent lead to them, or are left out, and a handoff that returns something has added its way back.
/// `None` if they are the handoffs of the agent as it is.
pub(crate) fn agent_in_place<C>(
    run: &Run,
    start: &Agent<C>,
    agent: &Agent<C>,
    names: ToolNames,
) -> Option<Agent<C>> {
    let mut own = agent.handoffs().iter();
    let is_relative = own.any(|handoff| handoff.returning().is_some());
    if run.way_back().is_empty() && !is_relative {
        return None;
    }
    let previous = previous(run, start, names);
    let has_way_back = (previous.as_ref()).is_some_and(|(_, edge)| {
        let way_back = edge.as_ref().and_then(Handoff::way_back);
        way_back.is_some() || agent.is_person()
    });
    if !has_way_back && !is_relative {
        return None;
    }
    let is_start = agent.ptr_eq(start);
    let mut handoffs = Vec::with_capacity(agent.handoffs().len() + 1);
    for handoff in agent.handoffs() {
        match (handoff.returning(), &previous) {
            (None, _) => handoffs.push(handoff.clone()),
            (Some(Returning::Previous), Some((previous, _))) => {
                handoffs.push(handoff.resolved(previous));
            }
            (Some(Returning::Start), _) if !is_start => handoffs.push(handoff.resolved(start)),
            _ => {}
        }
    }
    if let Some((previous, edge)) = previous {
        let way_back = edge.as_ref().and_then(Handoff::way_back);
        if let Some(way_back) = way_back {
            handoffs.push(way_back.resolved(&previous));
        } else if agent.is_person() && !leads_to(agent, &handoffs, &previous) {
            handoffs.push(ways_back::hand_back().resolved(&previous));
        }
    }
    Some(agent.with_handoffs(handoffs))
}

fn previous<C>(
    run: &Run,
    start: &Agent<C>,
    names: ToolNames,
) -> Option<(Agent<C>, Option<Handoff<C>>)> {
    let prior = run.way_back().last()?;
    let from = agent_keys::find(start, &prior.from)?;
    let names = names.names_of(from.handoffs());
    let at = names.iter().position(|name| *name == prior.tool);
    let edge = at.and_then(|at| from.handoffs().get(at)).cloned();
    Some((from, edge))
}

/// Returns `true` if one of the agent's handoffs leads to `to`.
fn leads_to<C>(agent: &Agent<C>, handoffs: &[Handoff<C>], to: &Agent<C>) -> bool {
    handoffs.iter().any(|handoff| match handoff.target() {
        Target::Custom(custom) => custom.candidates.iter().any(|known| known.ptr_eq(to)),
        _ => target(agent, handoff).is_some_and(|known| known.ptr_eq(to)),
    })
}
