//! Runs, and the types to start and configure them.
//!
//! A [`Run`] is a state machine: it makes every decision and awaits nothing.
//!
//! The driver asks for the next [`Step`], carries it out, and reports the outcome with one of the
//! methods of [`Run`] here and in the files below, which hold the transitions of one subject each.
//! Each of these transitions succeeds as a whole or leaves the run unchanged.

mod added_input;
pub(crate) mod agent_keys;
mod announced;
pub(crate) mod approvals;
pub(crate) mod budgets;
mod call_log;
pub(crate) mod conversation;
mod deciding;
pub(crate) mod edges;
pub(crate) mod fan_out;
mod final_output;
pub(crate) mod guardrail_results;
pub(crate) mod handoff;
pub(crate) mod handoff_limits;
mod mapping;
mod mcp_tools;
pub(crate) mod model_input;
pub(crate) mod model_response;
pub(crate) mod people;
pub(crate) mod resumption;
pub(crate) mod server_history;
mod session_state;
mod small_map;
mod snapshot;
mod state_limits;
pub(crate) mod tool_results;
pub(crate) mod turn;
mod user_input;
pub(crate) mod ways_back;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::agent_keys::AgentRef;
use self::announced::AnnouncedHandoff;
use self::approvals::ApprovalState;
use self::budgets::Spent;
use self::call_log::CallLog;
use self::guardrail_results::GuardrailState;
use self::model_input::ModelInput;
use self::people::PersonTurn;
use self::server_history::Delivered;
use self::session_state::SessionState;
use self::turn::Turn;
use self::ways_back::WayBack;
use crate::agent::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailKind, GuardrailResult};
use crate::handoff::ReceivedPayload;
use crate::handoff::history_links::{self, HistoryLink};
use crate::items::{Input, Item, Items, RunItem, RunItems};
use crate::model::{ModelResponse, ModelSettings, RequestUsage, Usage};
use crate::output::FinalOutput;
use crate::people::PersonAnswer;
use crate::trace::{LastSpan, TraceInfo};

pub(crate) use self::user_input::replace_text;

pub use self::edges::HandoffTrigger;
pub use self::handoff::{HandoffOutcome, HandoffRecord};
pub use self::model_response::UnknownTool;
pub use self::server_history::ServerHistory;
pub use self::state_limits::{StateError, StateErrorKind, StateLimits};
pub use self::turn::{HandoffCall, ToolCall};
pub use crate::runner::{
    ActiveAgent, AnnouncedHandoffs, ApprovalGuardrails, AtBudget, AtLoopLimit, BlockedOutputText,
    BranchAnswer, BranchFailures, Budget, Budgets, Compaction, ContextSource,
    DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, Exclusive, Fallback, FanOut, HandoffPolicy,
    HandoffRetries, HistoryPolicy, InnerEvents, LoopLimits, ModelFilter, NameCollision,
    PossibleAnnouncement, Price, Recovery, ResumeChecks, RunConfig, RunFailure, RunProblem,
    RunResult, RunStatus, Runner, SessionInput, SeveralHandoffs, StateProblem, StateProblemKind,
    StateProblems, StreamedOutput, ToolErrorMessage, ToolErrorText,
};

/// Returns a number for a new run.
pub(crate) fn new_id() -> u64 {
    fastrand::u64(..)
}

/// A run: its position and everything it has made.
///
/// Errors and results carry it. It serialises with each item stored once, and a run read back
/// continues where it stood with [`Runner::resume`](crate::Runner::resume).
///
/// Its fields are repeated in `snapshot.rs`, which stores them.
#[derive(Debug, Clone)]
pub struct Run {
    /// The agent that has the conversation.
    pub(crate) agent: AgentRef,
    /// The agent the run began with.
    pub(crate) first_agent: AgentRef,
    /// A random number that tells the run from others.
    pub(crate) id: u64,
    pub(crate) position: Position,
    pub(crate) conversation: Conversation,
    pub(crate) session: SessionState,
    pub(crate) guardrails: GuardrailState,
    /// The part of the conversation that the provider has, where it keeps one.
    pub(crate) delivered: Option<Box<Delivered>>,
    pub(crate) handoffs: Vec<HandoffRecord>,
    pub(crate) responses: Vec<ModelResponse>,
    pub(crate) usage: Usage,
    pub(crate) request_usage: Vec<RequestUsage>,
    /// The key of the provider's prompt cache, if a model has asked for it.
    pub(crate) cache_key: Option<Arc<str>>,
    /// The trace of the run, where spans were made.
    pub(crate) trace: Option<Box<RunTrace>>,
    /// The time that was taken, where it is limited.
    pub(crate) spent: Option<Box<Spent>>,
    /// The decisions of people, where there are any or a call waits for one.
    pub(crate) approvals: Option<Box<ApprovalState>>,
    /// The handoffs that led to the current agent, where agents may go back.
    pub(crate) way_back: Option<Box<WayBack>>,
    /// The payload that the current agent keeps of the handoff by which it got the conversation.
    pub(crate) received: Option<Arc<ReceivedPayload>>,
}

/// The trace of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunTrace {
    pub(crate) info: Arc<TraceInfo>,
    /// Set once tracers are told of its end, or somebody else will do that.
    #[serde(default)]
    pub(crate) is_ended: bool,
    /// The span of the last model call.
    #[serde(default, skip_serializing_if = "LastSpan::is_none")]
    pub(crate) generation: LastSpan,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The number of turns taken.
    pub(crate) turn: u32,
    pub(crate) phase: Phase,
    /// Set once hooks were notified that the current agent has the conversation.
    pub(crate) agent_started: bool,
    /// Set if a person answers for the current agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_person: bool,
    /// The number of the last item the run made.
    pub(crate) last_item: u32,
    /// The handoff that the agent has announced without calling it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) announced: Option<Box<AnnouncedHandoff>>,
    /// The number of turns that were people's, which count for no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) person_turns: u32,
    /// The agents that have called a tool, by key.
    pub(crate) tool_users: BTreeSet<Arc<str>>,
}

/// The items of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Conversation {
    /// The input of the current agent: the run's own, or what a handoff made of it.
    #[serde(with = "StoredInput")]
    pub(crate) input: Input,
    /// The number of leading input items that the session had before the run.
    pub(crate) stored_input: usize,
    /// Set for the input items that are from the session, where the application has merged them with
    /// new ones.
    #[serde(default, skip_serializing_if = "<[bool]>::is_empty")]
    pub(crate) merged_from_session: Box<[bool]>,
    /// Items made since, as models see them.
    pub(crate) generated: RunItems,
    /// All items of the run, as the session gets them.
    pub(crate) record: RunItems,
    /// Links from items of a nested history to the run items they stand for.
    #[serde(alias = "owned")]
    pub(crate) history_links: Vec<HistoryLink>,
    pub(crate) calls: CallLog,
    /// The notes of handoffs that the current agent sees.
    #[serde(default, skip_serializing_if = "<[Item]>::is_empty")]
    pub(crate) notes: Box<[Item]>,
    /// The prepared input of the next model call; rebuilt when absent.
    #[serde(skip)]
    pub(crate) model_input: Option<ModelInput>,
}

/// The position of a run within a turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    #[default]
    Model,
    Tools(Turn),
    /// Code of the agent decides whether the tools' results end the run.
    #[serde(alias = "judge")]
    ToolUse(Turn),
    Handoff(Turn),
    Output(Turn, FinalOutput),
    /// A person is asked, or has answered.
    Person(Box<PersonTurn>),
    Done(FinalOutput),
}

/// The step a run takes next.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Ask the model, unless a condition of a handoff holds first.
    CallModel,
    /// Run these tools concurrently.
    RunTools(&'a [ToolCall]),
    /// Ask the agent's [`ToolUseBehavior`](crate::agent::ToolUseBehavior) function whether these
    /// results are the final output.
    DecideToolUse(&'a [ToolResult]),
    /// Hand the conversation over: the first of these; the others are ignored. One that a condition takes
    /// has a call that is in no history.
    TakeHandoff(&'a [HandoffCall]),
    /// Let the agents of these handoffs answer side by side, and join their answers.
    FanOut(&'a [ToolCall]),
    /// Wait for decisions on the calls that [`Run::interruptions`] lists, or for the answer of the person.
    AwaitDecision,
    /// Ask the person that has the conversation.
    AskPerson,
    /// Take the answer of the person.
    TakeAnswer(&'a PersonAnswer),
    /// Check this final output and end.
    Conclude(&'a FinalOutput),
    /// The run has ended.
    Done(&'a FinalOutput),
}

impl Conversation {
    /// Removes the items from the record that a turn has added while it waited.
    pub(crate) fn forget_recorded(&mut self, recorded: usize) {
        if recorded > 0 {
            let others = self.record.len().saturating_sub(recorded);
            self.record.truncate(others);
        }
    }
}

impl Run {
    pub(crate) fn new(agent: AgentRef, input: Input) -> Self {
        Self {
            first_agent: agent.clone(),
            agent,
            id: new_id(),
            position: Position::default(),
            conversation: Conversation {
                input,
                stored_input: 0,
                merged_from_session: Box::default(),
                generated: RunItems::new(),
                record: RunItems::new(),
                history_links: Vec::new(),
                calls: CallLog::default(),
                notes: Box::default(),
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
            approvals: None,
            spent: None,
            way_back: None,
            received: None,
        }
    }

    /// The trace of the run, which goes on in it when it is resumed; `None` if no spans were made.
    pub fn trace(&self) -> Option<&TraceInfo> {
        self.trace.as_ref().map(|trace| &*trace.info)
    }

    /// Takes the run, and leaves an empty one.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::new(self.agent.clone(), "".into());
        std::mem::replace(self, empty)
    }

    /// Returns the step the run takes next.
    pub fn step(&self) -> Step<'_> {
        match &self.position.phase {
            Phase::Model if self.position.is_person => Step::AskPerson,
            Phase::Model => Step::CallModel,
            Phase::Tools(turn) if turn.tools().is_waiting() => Step::AwaitDecision,
            Phase::Handoff(turn) if turn.handoff_is_waiting() => Step::AwaitDecision,
            Phase::Tools(turn) if turn.is_fanned_out() => Step::FanOut(&turn.tools().calls),
            Phase::Tools(turn) => Step::RunTools(&turn.tools().calls),
            Phase::ToolUse(turn) => Step::DecideToolUse(&turn.tools().results),
            Phase::Handoff(turn) => Step::TakeHandoff(&turn.handoffs),
            Phase::Person(turn) => match &turn.answer {
                Some(answer) => Step::TakeAnswer(answer),
                None if self.added_input().is_empty() => Step::AwaitDecision,
                None => Step::AskPerson,
            },
            Phase::Output(_, output) => Step::Conclude(output),
            Phase::Done(output) => Step::Done(output),
        }
    }

    /// The settings of the next model call: the agent's, overridden by the run's. A forced tool
    /// choice is dropped once the agent has called a tool, so that it cannot call tools forever.
    pub(crate) fn model_settings(
        &self,
        own: Arc<ModelSettings>,
        run: Option<&Arc<ModelSettings>>,
        keeps_tool_choice: bool,
    ) -> Arc<ModelSettings> {
        let merged = match run {
            Some(run) => Arc::new(own.overridden_by(run)),
            None => own,
        };
        if let Some(choice) = self.announced_choice() {
            return Arc::new(ModelSettings {
                tool_choice: Some(choice),
                ..(*merged).clone()
            });
        }
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
    pub(crate) fn next_turn(&self, max_turns: Option<u32>) -> Result<u32, Error> {
        let next = self.position.turn.saturating_add(1);
        let counted = next.saturating_sub(self.position.person_turns);
        match max_turns {
            Some(max) if counted > max => Err(max_turns_error(max)),
            _ => Ok(next),
        }
    }

    /// The items that were added since the record had `recorded` of them.
    pub(crate) fn items_since(&self, recorded: usize) -> Vec<RunItem> {
        let items = self.conversation.record.tail(recorded);
        items.into_iter().cloned().collect()
    }

    /// Ends a turn in which the agent stayed: with the final output, or by asking the model again.
    pub(crate) fn end_turn(&mut self, mut turn: Turn, output: Option<FinalOutput>) {
        match output {
            Some(output) => {
                turn.ends_at_tool = !turn.tools().results.is_empty();
                self.position.phase = Phase::Output(turn, output);
            }
            None => {
                let reply = self.take_person_part().and_then(|part| part.output);
                self.commit(turn.items, turn.recorded);
                self.position.phase = reply.map_or(Phase::Model, Phase::Done);
            }
        }
    }

    /// The turn in progress.
    pub(crate) fn turn(&self) -> Option<&Turn> {
        match &self.position.phase {
            Phase::Tools(turn)
            | Phase::ToolUse(turn)
            | Phase::Handoff(turn)
            | Phase::Output(turn, _) => Some(turn),
            Phase::Model | Phase::Person(_) | Phase::Done(_) => None,
        }
    }

    /// Adds the items of a finished turn. The last `recorded` items of the record are the first of them,
    /// as they were while the turn waited.
    pub(crate) fn commit(&mut self, items: Vec<RunItem>, recorded: usize) {
        self.add_unsaved(items.iter());
        let conversation = &mut self.conversation;
        if let Some(prepared) = &mut conversation.model_input {
            prepared.extend(&items);
        }
        conversation.forget_recorded(recorded);
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

    /// Returns the number of the next item.
    pub(crate) fn next_item(&mut self) -> u32 {
        self.position.last_item = number_after(self.position.last_item);
        self.position.last_item
    }

    /// The name of the agent that has the conversation.
    pub fn agent(&self) -> &str {
        &self.agent.name
    }

    /// The name of the agent the run began with.
    pub fn first_agent(&self) -> &str {
        &self.first_agent.name
    }

    /// The number of turns taken.
    pub fn turns(&self) -> u32 {
        self.position.turn
    }

    /// The input of the current agent: the run's input, or what the filter of a handoff made of it.
    pub fn input(&self) -> &Input {
        &self.conversation.input
    }

    /// All items the run has made.
    pub fn new_items(&self) -> &RunItems {
        &self.conversation.record
    }

    /// The items of tools that have completed in a turn that failed: calls with their outputs, and the
    /// reasoning before each. They are not among the [`new_items`](Self::new_items) until the run is
    /// resumed; the session has them, unless output guardrails have yet to pass what a tool may end the run
    /// with.
    pub fn completed_items(&self) -> Vec<RunItem> {
        self.turn().map(Turn::completed_tools).unwrap_or_default()
    }

    /// The responses of the models.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        &self.responses
    }

    /// Requests and tokens of all models of the run, failed responses included.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The usage of each model response in order: of the run's agents, of agents used as tools, and
    /// what user code has added. Together they are the [`usage`](Self::usage), except in a run that a
    /// version before this one has stored.
    pub fn request_usage(&self) -> &[RequestUsage] {
        &self.request_usage
    }

    /// The provider's identifier of the last response, to continue from with
    /// [`Runner::previous_response`](crate::Runner::previous_response).
    pub fn last_response_id(&self) -> Option<&str> {
        self.responses.last()?.response_id.as_deref()
    }

    /// The handoffs of the run in order, refused and ignored ones included. Filters do not change them.
    pub fn handoffs(&self) -> &[HandoffRecord] {
        &self.handoffs
    }

    /// The results of the guardrails of one kind.
    pub fn guardrail_results(&self, kind: GuardrailKind) -> &[GuardrailResult] {
        self.guardrails.of(kind).all()
    }

    /// The conversation so far, to continue from: the input, then the items the run made, without
    /// those that the input already contains.
    pub fn to_input_list(&self) -> Items {
        let conversation = &self.conversation;
        let mut items = conversation.input.items();
        let rest =
            history_links::unlinked(&conversation.record, &conversation.history_links, &items);
        items.extend(rest.into_iter().map(RunItem::to_input_item));
        items
    }

    /// The conversation so far as the current agent sees it: its input, then the items since. Where a
    /// filter or a nested history has rewritten the conversation, this has none of the items that it
    /// left out, while [`to_input_list`](Self::to_input_list) has all; otherwise they are the same.
    pub fn to_normalized_input_list(&self) -> Items {
        let conversation = &self.conversation;
        let mut items = conversation.input.items();
        items.extend(conversation.generated.iter().map(RunItem::to_input_item));
        items
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The error of a run that has no turns left.
pub(crate) fn max_turns_error(max: u32) -> Error {
    Error::new(
        ErrorKind::MaxTurns,
        format!(
            "the run was not done after {max} turns (max turns ({max}) exceeded); if its agents do not \
             hand off in circles, raise the limit with max_turns"
        ),
    )
}

/// The number of the item after this one. It is never 0, which stands for no number.
pub(crate) fn number_after(last: u32) -> u32 {
    last.checked_add(1).unwrap_or(1)
}

/// The input as it is stored: `{"text": ...}` or `{"items": [...]}`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Input", rename_all = "snake_case")]
pub(crate) enum StoredInput {
    Text(Arc<str>),
    Items(Items),
}
