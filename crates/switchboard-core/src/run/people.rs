//! The turns of people: waiting for an answer, and taking it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::handoff::HandoffOutcome;
use super::turn::{HandoffCall, Turn};
use super::{Phase, Run};
use crate::approval::{DecisionError, Interruption, InterruptionKind};
use crate::error::excerpt;
use crate::items::{Item, RunItem, RunItemKind};
use crate::output::FinalOutput;
use crate::people::{NextAgent, PersonAnswer};

/// The turn of a person.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PersonTurn {
    /// The handoffs that the person can make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) handoffs: Vec<PersonHandoff>,
    /// The name of the tool that leads back to where the conversation came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hand_back: Option<Arc<str>>,
    /// The answer, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<PersonAnswer>,
}

/// A handoff that a person can make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PersonHandoff {
    pub(crate) tool: Arc<str>,
    /// The name of the agent that it leads to.
    pub(crate) to: Arc<str>,
}

impl PersonTurn {
    /// The handoff that an answer asks for.
    fn handoff(&self, next: &NextAgent) -> Option<&PersonHandoff> {
        let mut handoffs = self.handoffs.iter();
        match next {
            NextAgent::Previous => {
                let tool = self.hand_back.as_ref()?;
                handoffs.find(|handoff| handoff.tool == *tool)
            }
            NextAgent::Named(name) => handoffs
                .clone()
                .find(|handoff| handoff.to == *name)
                .or_else(|| handoffs.find(|handoff| handoff.tool == *name)),
        }
    }

    /// The problem with an answer.
    fn problem(&self, answer: &PersonAnswer) -> Option<String> {
        let is_empty = |text: &Arc<str>| text.trim().is_empty();
        if answer.is_reply && answer.text.as_ref().is_none_or(is_empty) {
            return Some("the reply is empty".to_owned());
        }
        let next = answer.next.as_ref()?;
        if self.handoff(next).is_some() {
            return None;
        }
        let known: Vec<&str> = self.handoffs.iter().map(|handoff| &*handoff.to).collect();
        let known = match known.as_slice() {
            [] => "nobody".to_owned(),
            known => excerpt(&known.join(", ")).into_owned(),
        };
        Some(match next {
            NextAgent::Previous => format!(
                "nobody is known that the person has the conversation from; it can be handed to {known}"
            ),
            NextAgent::Named(name) => format!(
                "the person cannot hand the conversation to \"{}\", only to {known}",
                excerpt(name)
            ),
        })
    }
}

/// The part of a turn that is a person's. Stored with the decisions, so that runs without people have no room
/// for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PersonPart {
    /// The handoff that follows the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<PersonCall>,
    /// The reply that the run ends with after the handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<FinalOutput>,
}

/// A handoff of a person, with the note for the next agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PersonCall {
    items: Vec<RunItem>,
    call: HandoffCall,
}

impl Run {
    /// Answers for the person that the run waits for. Until the run is resumed the last answer counts. The
    /// interruption is one of [`interruptions`](Self::interruptions), or one of an earlier message that the
    /// same person was asked to answer.
    ///
    /// # Errors
    /// An error if the run does not wait for that person, the reply is empty, or the person cannot hand the
    /// conversation to that agent; the run is unchanged.
    pub fn answer(
        &mut self,
        waiting: &Interruption,
        answer: PersonAnswer,
    ) -> Result<(), DecisionError> {
        let refused = |problem: String| Err(DecisionError(format!("no answer: {problem}")));
        if !matches!(waiting.kind, InterruptionKind::Person { .. }) {
            return refused(
                "this is a call that waits for a decision; decide it with Run::decide".to_owned(),
            );
        }
        let inner = self.inside_mut(&waiting.inside);
        let turn = inner.and_then(|run| run.waiting_person(waiting));
        let Some(turn) = turn else {
            return refused(format!(
                "the run does not wait for \"{}\" at this place; answer what Run::interruptions lists",
                excerpt(&waiting.agent)
            ));
        };
        if let Some(problem) = turn.problem(&answer) {
            return refused(problem);
        }
        turn.answer = Some(answer);
        Ok(())
    }

    /// The run inside these tool calls.
    fn inside_mut(&mut self, inside: &[Arc<str>]) -> Option<&mut Self> {
        let Some((outer, rest)) = inside.split_first() else {
            return Some(self);
        };
        let Phase::Tools(turn) = &mut self.position.phase else {
            return None;
        };
        let tools = turn.tools.as_deref_mut()?;
        let is_outer = |item: &Item| item.call_id().is_some_and(|id| *id == **outer);
        let at = (tools.calls.iter()).position(|call| is_outer(&call.call))?;
        let inner = tools.inner_runs.iter_mut().find(|inner| inner.at == at)?;
        inner.run.inside_mut(rest)
    }

    /// The turn of the person that an interruption is about.
    fn waiting_person(&mut self, waiting: &Interruption) -> Option<&mut PersonTurn> {
        let known = self.person_interruption()?;
        let is_same = known.agent == waiting.agent && known.call_id == waiting.call_id;
        match &mut self.position.phase {
            Phase::Person(turn) if is_same => Some(turn),
            _ => None,
        }
    }

    /// The person that the run waits for.
    pub(crate) fn person_interruption(&self) -> Option<Interruption> {
        let Phase::Person(turn) = &self.position.phase else {
            return None;
        };
        let prior = self.way_back().last();
        let of_prior = |text: fn(&super::ways_back::PriorHandoff) -> &Arc<str>| {
            prior.map(text).cloned().unwrap_or_default()
        };
        let mut may_hand_to: Vec<Arc<str>> = Vec::new();
        for handoff in &turn.handoffs {
            if !may_hand_to.contains(&handoff.to) {
                may_hand_to.push(handoff.to.clone());
            }
        }
        let last = self.handoffs.last();
        let last = last.filter(|record| record.from == self.agent.name);
        let problem = last.and_then(|record| match &record.outcome {
            HandoffOutcome::Refused(reason) | HandoffOutcome::Failed(reason) => {
                Some(reason.as_str().into())
            }
            _ => None,
        });
        Some(Interruption {
            kind: InterruptionKind::Person {
                from: prior.map(|prior| prior.from.clone()),
                may_hand_to,
                problem,
            },
            agent: self.agent.name.clone(),
            tool: of_prior(|prior| &prior.tool),
            call_id: of_prior(|prior| &prior.call_id),
            arguments: of_prior(|prior| &prior.payload),
            inside: Vec::new(),
        })
    }

    /// Begins to wait for a person. The user's message is stored with the wait, so that it is not lost if
    /// another one comes before the answer.
    pub(crate) fn wait_for_person(&mut self, turn: PersonTurn) {
        self.position.phase = Phase::Person(Box::new(turn));
        if let Some(state) = &mut self.session.conversation
            && !state.has_turn
            && !self.session.unsaved.is_empty()
        {
            state.has_turn = true;
            state.turn_agent = Some(self.agent.name.clone());
        }
        self.begin_wait();
    }

    /// Takes the person's answer: a turn with the input that was added before it, the words, and the handoff
    /// where there is one.
    pub(crate) fn take_answer(&mut self) {
        let Phase::Person(asked) = &mut self.position.phase else {
            return;
        };
        let Some(answer) = asked.answer.take() else {
            return;
        };
        let asked = std::mem::take(&mut **asked);
        self.position.phase = Phase::Model;
        self.position.turn = self.position.turn.saturating_add(1);
        self.position.person_turns += 1;
        // Part of the turn, so that another answer can be given if this one fails.
        let added = self.take_added_input().into_iter();
        let added = added.map(|item| self.made_by_person(RunItemKind::Input, item));
        let mut items: Vec<RunItem> = added.collect();
        if let Some(text) = &answer.text {
            items.push(self.made_by_person(RunItemKind::MessageOutput, Item::assistant(text)));
        }
        let next = answer.next.as_ref().and_then(|next| asked.handoff(next));
        let call = next.map(|next| self.person_call(next, &answer));
        let mut part = PersonPart::default();
        match (call, answer.is_reply, &answer.text) {
            (then, true, Some(text)) => {
                part.then = then;
                let turn = Turn {
                    items,
                    ..Turn::default()
                };
                self.position.phase = Phase::Output(turn, FinalOutput::Text(text.clone()));
            }
            (Some(call), ..) => {
                items.extend(call.items);
                let turn = Turn {
                    items,
                    handoffs: vec![call.call],
                    ..Turn::default()
                };
                self.conversation.calls.add(&turn);
                self.position.phase = Phase::Handoff(turn);
            }
            // A stored run that was changed: the person is asked again.
            (None, ..) => return,
        }
        self.approvals_mut().person = Some(part);
    }

    /// The handoff that follows the reply with which the turn has ended the run.
    pub(crate) fn handoff_after_reply(&mut self, output: &FinalOutput) -> Option<Turn> {
        let mut part = self.take_person_part()?;
        let then = part.then.take()?;
        part.output = Some(output.clone());
        let turn = Turn {
            items: then.items,
            handoffs: vec![then.call],
            ..Turn::default()
        };
        self.conversation.calls.add(&turn);
        self.approvals_mut().person = Some(part);
        Some(turn)
    }

    /// The person's part of the turn in progress.
    pub(crate) fn person_part(&self) -> Option<&PersonPart> {
        self.approvals.as_ref()?.person.as_ref()
    }

    /// Takes the person's part of a turn that ends.
    pub(crate) fn take_person_part(&mut self) -> Option<PersonPart> {
        self.approvals.as_mut()?.person.take()
    }

    /// The call of a person's handoff, in the form in which a model would have made it.
    fn person_call(&mut self, handoff: &PersonHandoff, answer: &PersonAnswer) -> PersonCall {
        let note = answer.note.as_ref().map(|note| {
            let note = Item::developer(format!("Note from {}: {note}", self.agent.name));
            self.made_by_person(RunItemKind::Input, note)
        });
        let payload = answer.payload.as_ref();
        let arguments = payload.map_or_else(|| "{}".to_owned(), ToString::to_string);
        // Unique among all runs of a conversation.
        let call_id = format!("call_{:016x}_{}", self.id, self.position.last_item + 1);
        let call = Item::function_call(&call_id, &handoff.tool, &arguments);
        let made = self.made_by_person(RunItemKind::HandoffCall, call.clone());
        PersonCall {
            items: note.into_iter().chain([made]).collect(),
            call: HandoffCall {
                tool: handoff.tool.clone(),
                to: handoff.to.clone(),
                call,
            },
        }
    }

    fn made_by_person(&mut self, kind: RunItemKind, item: Item) -> RunItem {
        let number = self.next_item();
        RunItem::made(kind, self.agent.name.clone(), item, number)
    }
}
