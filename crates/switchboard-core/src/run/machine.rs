//! The run as a state machine: it makes every decision and awaits nothing.
//!
//! A driver asks for the next [`Step`], carries it out, and reports the outcome with one of the
//! methods here and in the neighbouring files (`handoff.rs`, `session_items.rs`, `replacement.rs`,
//! `server_history.rs`). Each of these transitions succeeds as a whole or leaves the run unchanged.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calls::CallLog;
use super::guardrail_results::GuardrailState;
use super::handoff_log::HandoffRecord;
use super::model_input::{self, ModelInput};
use super::recovery::RunProblem;
use super::response;
use super::server_history::Delivered;
use super::session_items::SessionState;
use super::turn::{HandoffCall, RanTool, ToolCall, ToolStage, ToolTurn, Turn};
use crate::agent::{Agent, ToolResult, ToolUseBehaviorKind};
use crate::error::{Error, ErrorKind};
use crate::handoff::history_links::HistoryLink;
use crate::items::{Input, Item, Items, RunItem, RunItemKind, RunItems};
use crate::model::{ModelResponse, ModelSettings, RequestUsage, Usage};
use crate::offer::Offer;
use crate::output::{FinalOutput, OutputType};
use crate::trace::TraceInfo;

/// A run: its position and everything it has made.
///
/// Errors and results carry it. It serialises with each item stored once, and a run read back
/// continues where it stood with [`Runner::resume`](crate::Runner::resume).
///
/// Its fields are repeated in `snapshot.rs`, which stores them.
#[derive(Debug, Clone)]
pub struct Run {
    /// The agent that has the conversation.
    pub(super) agent: AgentRef,
    /// The agent the run began with.
    pub(super) first_agent: AgentRef,
    pub(super) position: Position,
    pub(super) conversation: Conversation,
    pub(super) session: SessionState,
    pub(super) guardrails: GuardrailState,
    /// The part of the conversation that the provider has, where it keeps one.
    pub(super) delivered: Option<Box<Delivered>>,
    pub(super) handoffs: Vec<HandoffRecord>,
    pub(super) responses: Vec<ModelResponse>,
    pub(super) usage: Usage,
    pub(super) request_usage: Vec<RequestUsage>,
    /// The key of the provider's prompt cache, if a model has asked for it.
    pub(super) cache_key: Option<Arc<str>>,
    /// The trace of the run, where spans were made.
    pub(super) trace: Option<Box<RunTrace>>,
}

/// The trace of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunTrace {
    pub(super) info: Arc<TraceInfo>,
    /// Set once tracers are told of its end, or somebody else will do that.
    #[serde(default)]
    pub(super) is_ended: bool,
}

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AgentRef {
    /// The name that is unique among the agents of the run: `name`, `name#2`.
    pub(super) key: Arc<str>,
    pub(super) name: Arc<str>,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Position {
    /// The number of turns taken.
    pub(super) turn: u32,
    pub(super) phase: Phase,
    /// Set once hooks were notified that the current agent has the conversation.
    pub(super) agent_started: bool,
    /// The number of the last item the run made.
    pub(super) last_item: u32,
    /// The agents that have called a tool, by key.
    pub(super) tool_users: BTreeSet<Arc<str>>,
}

/// The items of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// The input of the current agent: the run's own, or what a handoff made of it.
    #[serde(with = "StoredInput")]
    pub(super) input: Input,
    /// The number of leading input items that the session had before the run.
    pub(super) stored_input: usize,
    /// Set for the input items that are from the session, where the application has merged them with
    /// new ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) merged_from_session: Vec<bool>,
    /// Items made since, as models see them.
    pub(super) generated: RunItems,
    /// All items of the run, as the session gets them.
    pub(super) record: RunItems,
    /// Links from items of a nested history to the run items they stand for.
    #[serde(alias = "owned")]
    pub(super) history_links: Vec<HistoryLink>,
    pub(super) calls: CallLog,
    /// The notes of handoffs that the current agent sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<Item>,
    /// The prepared input of the next model call; rebuilt when absent.
    #[serde(skip)]
    pub(super) model_input: Option<ModelInput>,
}

/// The position of a run within a turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    #[default]
    Model,
    Tools(Turn),
    /// Code of the agent decides whether the tools' results end the run.
    #[serde(alias = "judge")]
    ToolUse(Turn),
    Handoff(Turn),
    Output(Turn, FinalOutput),
    Done(FinalOutput),
}

/// The step a run takes next.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Ask the model.
    CallModel,
    /// Run these tools concurrently.
    RunTools(&'a [ToolCall]),
    /// Ask the agent's [`ToolUseBehavior`](crate::agent::ToolUseBehavior) function whether these
    /// results are the final output.
    DecideToolUse(&'a [ToolResult]),
    /// Hand the conversation over: the first of these; the others are ignored.
    TakeHandoff(&'a [HandoffCall]),
    /// Check this final output and end.
    Conclude(&'a FinalOutput),
    /// The run has ended.
    Done(&'a FinalOutput),
}

/// The settings of the current agent and the run by which a response is accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseRules<'a> {
    pub(super) output_type: Option<&'a OutputType>,
    pub(super) unknown_tool: UnknownTool,
    pub(super) omit_reasoning_ids: bool,
    pub(super) empty_output: EmptyOutput,
}

/// Policy for an empty answer of an agent with an output type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyOutput {
    /// The model is asked again.
    AskAgain,
    /// It is rejected, so that the application can give a fallback.
    Reject,
}

/// Policy for a call of a tool that does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownTool {
    /// The run ends with an error.
    #[default]
    Fail,
    /// The model is told that the tool was not found, and continues.
    TellModel,
}

/// A model response that the run cannot accept.
#[derive(Debug)]
pub(super) struct RejectedResponse {
    pub(super) error: Error,
    /// Set where hooks and listeners are still notified of the response.
    pub(super) is_reported: bool,
    /// The problem that the application may recover from.
    pub(super) problem: Option<RunProblem>,
    /// The items of the response, as far as they could be classified.
    pub(super) items: Vec<RunItem>,
}

impl Run {
    pub(super) fn new(agent: AgentRef, input: Input) -> Self {
        Self {
            first_agent: agent.clone(),
            agent,
            position: Position::default(),
            conversation: Conversation {
                input,
                stored_input: 0,
                merged_from_session: Vec::new(),
                generated: RunItems::new(),
                record: RunItems::new(),
                history_links: Vec::new(),
                calls: CallLog::default(),
                notes: Vec::new(),
                model_input: None,
            },
            session: SessionState::default(),
            guardrails: GuardrailState::default(),
            delivered: None,
            handoffs: Vec::new(),
            responses: Vec::new(),
            usage: Usage::default(),
            trace: None,
            request_usage: Vec::new(),
            cache_key: None,
        }
    }

    /// The trace of the run, which goes on in it when it is resumed; `None` if no spans were made.
    pub fn trace(&self) -> Option<&TraceInfo> {
        self.trace.as_ref().map(|trace| &*trace.info)
    }

    /// Takes the run, and leaves an empty one.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self::new(self.agent.clone(), "".into());
        std::mem::replace(self, empty)
    }

    /// Returns the step the run takes next.
    pub fn step(&self) -> Step<'_> {
        match &self.position.phase {
            Phase::Model => Step::CallModel,
            Phase::Tools(turn) => Step::RunTools(&turn.tools().calls),
            Phase::ToolUse(turn) => Step::DecideToolUse(&turn.tools().results),
            Phase::Handoff(turn) => Step::TakeHandoff(&turn.handoffs),
            Phase::Output(_, output) => Step::Conclude(output),
            Phase::Done(output) => Step::Done(output),
        }
    }

    /// The items to show the model: every call has its output, and no item appears twice.
    pub(super) fn model_input(&mut self) -> Items {
        let conversation = &mut self.conversation;
        let (input, generated) = (&conversation.input, &conversation.generated);
        let prepared = conversation
            .model_input
            .get_or_insert_with(|| ModelInput::new(input, generated));
        match prepared.ready() {
            Some(items) => items.clone(),
            None => model_input::rebuilt(&input.items(), generated),
        }
    }

    /// The items that the model is shown in the turn in progress.
    pub(super) fn turn_input(&self) -> Items {
        let conversation = &self.conversation;
        let prepared = conversation.model_input.as_ref();
        match prepared.and_then(ModelInput::ready) {
            Some(items) => items.clone(),
            None => model_input::rebuilt(&conversation.input.items(), &conversation.generated),
        }
    }

    /// The settings of the next model call: the agent's, overridden by the run's. A forced tool
    /// choice is dropped once the agent has called a tool, so that it cannot call tools forever.
    pub(super) fn model_settings(
        &self,
        own: Arc<ModelSettings>,
        run: Option<&Arc<ModelSettings>>,
        keeps_tool_choice: bool,
    ) -> Arc<ModelSettings> {
        let merged = match run {
            Some(run) => Arc::new(own.overridden_by(run)),
            None => own,
        };
        let has_used_tools = self.position.tool_users.contains(&self.agent.key);
        if merged.tool_choice.is_none() || keeps_tool_choice || !has_used_tools {
            return merged;
        }
        Arc::new(ModelSettings {
            tool_choice: None,
            ..(*merged).clone()
        })
    }

    /// The number of the next turn, unless the limit is reached.
    pub(super) fn next_turn(&self, max_turns: Option<u32>) -> Result<u32, Error> {
        let next = self.position.turn.saturating_add(1);
        match max_turns {
            Some(max) if next > max => Err(Error::new(
                ErrorKind::MaxTurns,
                format!(
                    "the run was not done after {max} turns (max turns ({max}) exceeded); if its \
                     agents do not hand off in circles, raise the limit with max_turns"
                ),
            )),
            _ => Ok(next),
        }
    }

    /// Accepts the model's response.
    pub(super) fn accept_response(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
        rules: ResponseRules<'_>,
    ) -> Result<(), RejectedResponse> {
        let rejected = |error: Error, is_reported, items| RejectedResponse {
            error: error
                .at_agent(&self.agent.name)
                .with_rejected(response.clone()),
            is_reported,
            problem: None,
            items,
        };
        let calls = &self.conversation.calls;
        let (mut turn, last_item) = self.classify(&response, offer, rules).map_err(|error| {
            let is_handoff = |call: &Item| offer.is_handoff(&call.name().unwrap_or_default());
            let is_reported = !calls.has_conflict(&response.output, is_handoff);
            rejected(error, is_reported, Vec::new())
        })?;
        let (shown, recorded) = (&self.conversation.generated, &self.conversation.record);
        let skipped = calls
            .drop_repeated(&mut turn, shown, recorded)
            .map_err(|error| rejected(error, false, Vec::new()))?;
        let output = if turn.calls().next().is_some() {
            None
        } else {
            response::final_output(&turn, skipped, rules).map_err(|error| {
                let problem = match error.kind() {
                    ErrorKind::ModelRefusal => RunProblem::Refusal,
                    _ => RunProblem::InvalidOutput,
                };
                RejectedResponse {
                    problem: Some(problem),
                    ..rejected(error, true, turn.items.clone())
                }
            })?
        };

        self.conversation.calls.add(&turn);
        self.position.last_item = last_item;
        self.position.turn = self.position.turn.saturating_add(1);
        self.responses.push(response);
        if turn.made_calls() {
            self.position.tool_users.insert(self.agent.key.clone());
        }
        let tools = turn.tools();
        if !tools.calls.is_empty() || !tools.unknown.is_empty() {
            self.position.phase = Phase::Tools(turn);
        } else if !turn.handoffs.is_empty() {
            self.position.phase = Phase::Handoff(turn);
        } else {
            self.end_turn(turn, output);
        }
        Ok(())
    }

    /// The items that were added since the record had `recorded` of them.
    pub(super) fn items_since(&self, recorded: usize) -> Vec<RunItem> {
        let items = self.conversation.record.tail(recorded);
        items.into_iter().cloned().collect()
    }

    /// Accepts the results of the tools, in the order of their calls, and the texts for the calls of
    /// tools that do not exist.
    pub(super) fn tools_ran<C>(
        &mut self,
        ran: Vec<RanTool>,
        not_found: Vec<String>,
        agent: &Agent<C>,
    ) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let tools = std::mem::take(turn.tools_mut());
        let mut results = Vec::with_capacity(ran.len());
        for (call, ran) in tools.calls.iter().zip(ran) {
            let output = match ran.output {
                Some(saved) => saved,
                None => self.tool_output(&call.call, &ran.result),
            };
            turn.items.push(output);
            results.push(ran.result);
        }
        for (call, text) in tools.unknown.iter().zip(not_found) {
            let result = ToolResult {
                tool: call.tool.clone(),
                output: text.into(),
                data: None,
            };
            turn.items.push(self.tool_output(&call.call, &result));
        }
        *turn.tools_mut() = ToolTurn {
            results,
            done: Vec::new(),
            ..tools
        };
        if !turn.handoffs.is_empty() {
            self.position.phase = Phase::Handoff(turn);
            return;
        }
        let results = &turn.tools().results;
        let last = match agent.tool_use_kind() {
            ToolUseBehaviorKind::Function(_) if !results.is_empty() => {
                self.position.phase = Phase::ToolUse(turn);
                return;
            }
            ToolUseBehaviorKind::RunModelAgain | ToolUseBehaviorKind::Function(_) => None,
            ToolUseBehaviorKind::StopOnFirstTool => results.first(),
            ToolUseBehaviorKind::StopAtTools(names) => results
                .iter()
                .find(|result| names.iter().any(|name| **name == *result.tool)),
        };
        let output = last.map(|result| match agent.output_type() {
            None => FinalOutput::Text(result.output.text().as_ref().into()),
            Some(_) => FinalOutput::Json(result.output.clone().into_value()),
        });
        self.end_turn(turn, output);
    }

    /// Records the tools that finished before one of them failed, so that they do not run again, the
    /// calls whose start hooks were notified of, and those that guardrails allowed.
    pub(super) fn tools_failed(
        &mut self,
        mut finished: Vec<RanTool>,
        started: Vec<usize>,
        allowed: Vec<usize>,
    ) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let tools = turn.tools_mut();
        finished.sort_by_key(|ran| ran.at);
        for ran in &mut finished {
            if ran.output.is_none() && ran.stage != ToolStage::Ran {
                let call = &tools.calls[ran.at].call;
                ran.output = Some(self.tool_output(call, &ran.result));
            }
        }
        tools.done = finished;
        tools.started = started;
        tools.allowed = allowed;
        self.position.phase = Phase::Tools(turn);
    }

    /// Accepts the agent's decision on whether the tools' results are the final output.
    pub(super) fn tool_use_decided(&mut self, output: Option<FinalOutput>) {
        if let Phase::ToolUse(turn) = std::mem::take(&mut self.position.phase) {
            self.end_turn(turn, output);
        }
    }

    /// Ends a turn in which the agent stayed: with the final output, or by asking the model again.
    pub(super) fn end_turn(&mut self, mut turn: Turn, output: Option<FinalOutput>) {
        match output {
            Some(output) => {
                turn.ends_at_tool = !turn.tools().results.is_empty();
                self.position.phase = Phase::Output(turn, output);
            }
            None => {
                self.commit(turn.items);
                self.position.phase = Phase::Model;
            }
        }
    }

    /// Hooks were notified of the agent's end.
    pub(super) fn end_reported(&mut self) {
        if let Phase::Output(turn, _) = &mut self.position.phase {
            turn.end_reported = true;
        }
    }

    /// Ends the run with its final output.
    pub(super) fn conclude(&mut self) {
        if let Phase::Output(turn, output) = std::mem::take(&mut self.position.phase) {
            // No model is asked any more.
            self.conversation.model_input = None;
            self.commit(turn.items);
            self.position.phase = Phase::Done(output);
        }
    }

    /// The turn in progress.
    pub(super) fn turn(&self) -> Option<&Turn> {
        match &self.position.phase {
            Phase::Tools(turn)
            | Phase::ToolUse(turn)
            | Phase::Handoff(turn)
            | Phase::Output(turn, _) => Some(turn),
            Phase::Model | Phase::Done(_) => None,
        }
    }

    /// Adds the items of a finished turn.
    pub(super) fn commit(&mut self, items: Vec<RunItem>) {
        self.add_unsaved(items.iter());
        let conversation = &mut self.conversation;
        if let Some(prepared) = &mut conversation.model_input {
            prepared.extend(&items);
        }
        if !conversation.record.ptr_eq(&conversation.generated) {
            conversation.record.extend(items.iter().cloned());
            conversation.generated.extend(items);
            return;
        }
        // Until a filter separates them, both are one list, which grows in place while it has
        // a single owner.
        conversation.record = RunItems::new();
        conversation.generated.extend(items);
        conversation.record = conversation.generated.clone();
    }

    /// Makes the output item of a call.
    fn tool_output(&mut self, call: &Item, result: &ToolResult) -> RunItem {
        let item = result.output.to_item(call);
        let output = result.output.clone().into_value();
        let kind = RunItemKind::ToolCallOutput { output };
        let number = self.next_item();
        RunItem::made(kind, self.agent.name.clone(), item, number).with_data(result.data.clone())
    }

    /// Returns the number of the next item.
    pub(super) fn next_item(&mut self) -> u32 {
        self.position.last_item = number_after(self.position.last_item);
        self.position.last_item
    }
}

/// The error for a response that breaks the rules.
pub(super) fn model_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ModelBehavior, message)
}

/// The number of the item after this one. It is never 0, which stands for no number.
pub(super) fn number_after(last: u32) -> u32 {
    last.checked_add(1).unwrap_or(1)
}

/// The output item of a call.
pub(super) fn output_item(call: &Item, text: &str) -> Item {
    Item::function_call_output(&call.call_id().unwrap_or_default(), text)
}

/// The input as it is stored: `{"text": ...}` or `{"items": [...]}`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Input", rename_all = "snake_case")]
pub(super) enum StoredInput {
    Text(Arc<str>),
    Items(Items),
}
