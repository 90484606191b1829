//! The run as a state machine: it makes every decision and awaits nothing.
//!
//! A driver asks for the next [`Step`], does what it says, and tells the machine what came of
//! it. Every method that moves the machine either succeeds as a whole or leaves it where it was.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer;
use super::calls::{Calls, Where};
use super::guardrail_results::GuardrailResults;
use super::handoff_log::HandoffRecord;
use super::model_input::{self, ModelInput};
use super::server::Delivered;
use super::small_map::SmallMap;
use super::turn::{HandoffCall, ToolCall, Tools, Turn};
use crate::agent::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::handoff::owned::Owned;
use crate::items::{Input, Item, Items, RunItem, RunItemKind, RunItems};
use crate::model::{ModelResponse, Usage};
use crate::offer::Offer;
use crate::output::{FinalOutput, OutputType};

/// A run: where it stands, and all it has made.
///
/// It is what an [`Error`] and a result carry. It serialises (each item once), and a run read
/// back goes on where it stood with [`Runner::resume`](crate::Runner::resume).
#[derive(Debug, Clone)]
pub struct Run {
    /// Who has the conversation, by the name that is theirs alone.
    pub(super) agent: Arc<str>,
    /// What the current agent's conversation starts from.
    pub(super) input: Input,
    /// How many items of the run's input the session had already.
    pub(super) stored_input: usize,
    /// What the run made since, as models see it.
    pub(super) generated: RunItems,
    /// All the run made; what a session keeps.
    pub(super) record: RunItems,
    pub(super) owned: Vec<Owned>,
    pub(super) responses: Vec<ModelResponse>,
    pub(super) usage: Usage,
    pub(super) turn: u32,
    pub(super) calls: Calls,
    pub(super) tool_users: ToolUsers,
    /// Whether the current agent has been told that it has the conversation.
    pub(super) agent_started: bool,
    pub(super) input_checks: InputChecks,
    pub(super) input_guardrails: GuardrailResults,
    pub(super) output_guardrails: GuardrailResults,
    pub(super) tool_guardrails: GuardrailResults,
    pub(super) handoff_guardrails: GuardrailResults,
    /// What the session has not been given yet.
    pub(super) unsaved: Vec<Item>,
    /// Items of the turn under way that the session was given before the turn's end.
    pub(super) saved_early: Vec<usize>,
    /// Whether there is a session to be given anything.
    pub(super) has_session: bool,
    /// What the provider has, where it keeps the conversation.
    pub(super) delivered: Option<Box<Delivered>>,
    pub(super) phase: Phase,
    pub(super) made_items: u32,
    /// The agent the run began with.
    pub(super) first: Arc<str>,
    pub(super) trail: Vec<HandoffRecord>,
    /// What the model will be shown; made anew where it is absent.
    pub(super) view: Option<ModelInput>,
}

/// The agents that have used a tool in a run.
pub(super) type ToolUsers = SmallMap<Arc<str>, (), 1>;

/// How far the checks on the input got. What passed is not checked again when the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputChecks {
    /// Those that may replace the words come first; as many as have results that stand have had
    /// their say.
    Pending,
    /// Those before the model have passed it.
    PassedBeforeModel,
    Passed,
}

/// Where a run stands within a turn.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Model,
    Tools(Turn),
    Judge(Turn),
    Handoff(Turn),
    Output(Turn, FinalOutput),
    Done(FinalOutput),
}

/// What a run needs next.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Ask the model.
    CallModel,
    /// Run these tools, side by side.
    RunTools(&'a [ToolCall]),
    /// Decide whether what these tools returned is the final output.
    JudgeTools(&'a [ToolResult]),
    /// Hand the conversation over: the first of these, the others are ignored.
    TakeHandoff(&'a [HandoffCall]),
    /// Check this final output and end.
    Conclude(&'a FinalOutput),
    /// The run has ended.
    Done(&'a FinalOutput),
}

/// How the machine must see the agent that has the conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) name: &'a Arc<str>,
    pub(super) output: Option<&'a OutputType>,
    pub(super) unknown_tool: UnknownTool,
    pub(super) tool_use: ToolUseRule<'a>,
    /// Whether anybody wants to be told of the items of an answer.
    pub(super) is_watched: bool,
}

/// What happens after tools have run.
#[derive(Debug, Clone, Copy)]
pub(super) enum ToolUseRule<'a> {
    RunModelAgain,
    StopOnFirstTool,
    StopAtTools(&'a [String]),
    AskDriver,
}

/// What happens when the model calls a tool that is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownTool {
    /// The run ends with an error.
    #[default]
    Fail,
    /// The model is told, and goes on.
    TellModel,
}

/// A response the machine would not take.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) error: Error,
    /// Whether it was a valid answer at all, so that those who watch answers are told of it.
    pub(super) is_answer: bool,
    /// The items of the answer, as far as they could be told.
    pub(super) items: Vec<RunItem>,
}

impl Run {
    pub(super) fn new(agent: Arc<str>, input: Input) -> Self {
        Self {
            first: agent.clone(),
            trail: Vec::new(),
            agent,
            input,
            stored_input: 0,
            generated: RunItems::new(),
            record: RunItems::new(),
            owned: Vec::new(),
            responses: Vec::new(),
            usage: Usage::default(),
            turn: 0,
            calls: Calls::default(),
            tool_users: ToolUsers::default(),
            agent_started: false,
            input_checks: InputChecks::Pending,
            input_guardrails: GuardrailResults::default(),
            output_guardrails: GuardrailResults::default(),
            tool_guardrails: GuardrailResults::default(),
            handoff_guardrails: GuardrailResults::default(),
            unsaved: Vec::new(),
            saved_early: Vec::new(),
            has_session: false,
            delivered: None,
            phase: Phase::Model,
            made_items: 0,
            view: None,
        }
    }

    /// What the run needs next.
    pub fn step(&self) -> Step<'_> {
        match &self.phase {
            Phase::Model => Step::CallModel,
            Phase::Tools(turn) => Step::RunTools(&turn.tools().calls),
            Phase::Judge(turn) => Step::JudgeTools(&turn.tools().results),
            Phase::Handoff(turn) => Step::TakeHandoff(&turn.handoffs),
            Phase::Output(_, output) => Step::Conclude(output),
            Phase::Done(output) => Step::Done(output),
        }
    }

    /// What the model will be shown.
    pub(super) fn model_input(&mut self) -> Items {
        let (input, generated) = (&self.input, &self.generated);
        let view = self
            .view
            .get_or_insert_with(|| ModelInput::of(input, generated));
        match view.ready() {
            Some(items) => items.clone(),
            None => model_input::with_care(&self.input.items(), &self.generated),
        }
    }

    /// The number of the turn that would be next, if the run may take it.
    pub(super) fn next_turn(&self, max_turns: Option<u32>) -> Result<u32, Error> {
        let next = self.turn.saturating_add(1);
        match max_turns {
            Some(max) if next > max => Err(Error::new(
                ErrorKind::MaxTurns,
                format!(
                    "the run was not done after {max} turns (max turns ({max}) exceeded); if its \
                     agents do not go round in circles, allow more with max_turns"
                ),
            )),
            _ => Ok(next),
        }
    }

    pub(super) fn has_used_tools(&self) -> bool {
        self.tool_users.get(&self.agent).is_some()
    }

    /// Takes the model's answer. Returns the items it consists of.
    pub(super) fn answered(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
        facts: Facts<'_>,
    ) -> Result<Vec<RunItem>, Rejected> {
        let rejected = |error: Error, is_answer, items| Rejected {
            error: error.at_agent(facts.name).with_rejected(response.clone()),
            is_answer,
            items,
        };
        let mut made_items = self.made_items;
        let mut turn =
            answer::classify(&response, offer, facts, &mut made_items).map_err(|error| {
                let is_handoff = |call: &Item| offer.is_handoff(&call.name().unwrap_or_default());
                let is_answer = !self.calls.conflict(&response.output, is_handoff);
                rejected(error, is_answer, Vec::new())
            })?;
        let answer_is = |output: u64, place: Where| {
            let mut made = match place {
                Where::Shown => self.generated.iter(),
                Where::Recorded => self.record.iter(),
            };
            made.any(|made| made.item().identity() == output)
        };
        let skipped = self
            .calls
            .admit(&mut turn, answer_is)
            .map_err(|error| rejected(error, false, Vec::new()))?;
        let output = if turn.has_calls() {
            None
        } else {
            answer::settle(&turn, skipped, facts)
                .map_err(|error| rejected(error, true, turn.items.clone()))?
        };
        let items = if facts.is_watched {
            turn.items.clone()
        } else {
            Vec::new()
        };
        self.calls.note(&turn);
        self.made_items = made_items;
        self.turn = self.turn.saturating_add(1);
        if self.responses.is_empty() {
            // Most runs hand off once; a vector would begin with room for four.
            self.responses.reserve_exact(2);
        }
        self.responses.push(response);
        if turn.made_calls() && !self.has_used_tools() {
            self.tool_users.insert(self.agent.clone(), ());
        }
        let tools = turn.tools();
        if !tools.calls.is_empty() || !tools.unknown.is_empty() {
            self.phase = Phase::Tools(turn);
        } else if !turn.handoffs.is_empty() {
            self.phase = Phase::Handoff(turn);
        } else {
            self.end_turn(turn, output);
        }
        Ok(items)
    }

    /// Takes what the tools returned, in the order of the calls.
    pub(super) fn tools_ran(&mut self, results: Vec<ToolResult>, facts: Facts<'_>) {
        let Phase::Tools(mut turn) = std::mem::replace(&mut self.phase, Phase::Model) else {
            return;
        };
        let tools = std::mem::take(turn.tools_mut());
        for (call, result) in tools.calls.iter().zip(&results) {
            let text = result.output.text();
            let output = result.output.clone().into_value();
            let made = self.answer(&call.call, &text, facts.name, output);
            turn.items.push(made);
        }
        for call in &tools.unknown {
            let text = format!("Tool '{}' not found.", call.tool);
            let made = self.answer(&call.call, &text, facts.name, Value::from(text.as_str()));
            turn.items.push(made);
        }
        *turn.tools_mut() = Tools { results, ..tools };
        if !turn.handoffs.is_empty() {
            self.phase = Phase::Handoff(turn);
            return;
        }
        let last_word = match facts.tool_use {
            ToolUseRule::AskDriver if !turn.tools().results.is_empty() => {
                self.phase = Phase::Judge(turn);
                return;
            }
            ToolUseRule::RunModelAgain | ToolUseRule::AskDriver => None,
            ToolUseRule::StopOnFirstTool => turn.tools().results.first(),
            ToolUseRule::StopAtTools(names) => turn
                .tools()
                .results
                .iter()
                .find(|result| names.iter().any(|name| **name == *result.tool)),
        };
        let output = last_word.map(|result| answer::final_output_of(result, facts));
        self.end_turn(turn, output);
    }

    /// Takes the driver's word on whether what the tools returned is the final output.
    pub(super) fn tools_judged(&mut self, output: Option<FinalOutput>) {
        if let Phase::Judge(turn) = std::mem::replace(&mut self.phase, Phase::Model) {
            self.end_turn(turn, output);
        }
    }

    /// Ends a turn in which the agent stayed: with the final output, or with the model asked again.
    pub(super) fn end_turn(&mut self, mut turn: Turn, output: Option<FinalOutput>) {
        match output {
            Some(output) => {
                turn.ends_at_tool = !turn.tools().results.is_empty();
                self.phase = Phase::Output(turn, output);
            }
            None => {
                self.commit(turn.items);
                self.phase = Phase::Model;
            }
        }
    }

    /// Ends the run with its final output.
    pub(super) fn concluded(&mut self) {
        if let Phase::Output(turn, output) = std::mem::replace(&mut self.phase, Phase::Model) {
            // No model is asked any more.
            self.view = None;
            self.commit(turn.items);
            self.phase = Phase::Done(output);
        }
    }

    /// What the turn that is about to end the run has made.
    pub(super) fn last_turn_items(&self) -> &[RunItem] {
        match &self.phase {
            Phase::Output(turn, _) => &turn.items,
            _ => &[],
        }
    }

    /// Whether tools ran in this turn before its handoff.
    pub(super) fn ran_tools_this_turn(&self) -> bool {
        matches!(&self.phase, Phase::Handoff(turn) if !turn.tools().results.is_empty())
    }

    /// Adds what a turn made.
    pub(super) fn commit(&mut self, items: Vec<RunItem>) {
        if let Some(view) = &mut self.view {
            view.extend(&items);
        }
        if self.has_session {
            self.note_unsaved(items.iter());
        }
        if !self.record.ptr_eq(&self.generated) {
            self.record.extend(items.iter().cloned());
            self.generated.extend(items);
            return;
        }
        // As long as no filter has parted them they are one list. It grows in place, as nobody else
        // has it at this point.
        self.record = RunItems::new();
        self.generated.extend(items);
        self.record = self.generated.clone();
    }

    pub(super) fn answer(
        &mut self,
        call: &Item,
        text: &str,
        agent: &Arc<str>,
        output: Value,
    ) -> RunItem {
        self.made_items = next_occurrence(self.made_items);
        let kind = RunItemKind::ToolCallOutput { output };
        RunItem::made(
            kind,
            agent.clone(),
            answer_item(call, text),
            self.made_items,
        )
    }
}

/// The number of the next item a run makes. It is never 0, which stands for no number.
pub(super) fn next_occurrence(last: u32) -> u32 {
    last.checked_add(1).unwrap_or(1)
}

pub(super) fn answer_item(call: &Item, text: &str) -> Item {
    Item::function_call_output(&call.call_id().unwrap_or_default(), text)
}
