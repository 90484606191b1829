//! The machine of a realtime session: inputs in, commands out, no I/O.
//!
//! It decides everything: which call is a handoff, what runs when, who answers, what the history holds,
//! when guardrails are asked and when the agent changes. It awaits nothing; a driver carries out its
//! commands and tells it what came of them. It serialises, and the same inputs always give the same
//! commands.

mod agent_change;
mod approvals;
mod calls;
mod guardrails;
mod io;
mod model_events;
mod outputs;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::ErrorKind;
use switchboard_core::model::Usage;

pub use io::{
    CallFailure, CallRef, HandoffAnswer, HandoffRedirect, MachineCommand, MachineInput, Offer,
    Prepared, ResolvedAgent, ResolvedOffer, Task, TaskOutcome, Ticket, ToolAnswer, UserAction,
};

use self::agent_change::AgentChange;
use self::approvals::StandingDecision;
use self::calls::{Call, CallRecord};
use self::guardrails::{CheckedItem, OutputCheck};
use crate::conversation::is_complete;
use crate::error::RealtimeError;
use crate::event::{RealtimeEvent, SessionProblem};
use crate::history::RealtimeHistory;
use crate::items::RealtimeItem;
use crate::model::{RealtimeInterrupt, RealtimeModelCommand, RealtimeModelError, RealtimeVoice};
use crate::policy::RealtimePolicy;

/// The settings of the machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MachineSettings {
    /// The policy.
    pub policy: RealtimePolicy,
    /// Runs tools in the background, several at a time.
    pub async_tool_calls: bool,
    /// The number of characters after which output guardrails are asked again.
    pub debounce_text_length: usize,
    /// Asks tool guardrails before a person is asked for approval, beside afterwards.
    pub guardrails_before_approval: bool,
    /// Passes on the model's events.
    pub raw_events: bool,
}

impl Default for MachineSettings {
    fn default() -> Self {
        Self {
            policy: RealtimePolicy::production(),
            async_tool_calls: true,
            debounce_text_length: 100,
            guardrails_before_approval: false,
            raw_events: false,
        }
    }
}

/// The machine of a realtime session; see the [module](self).
///
/// ```
/// use switchboard_realtime::machine::{
///     MachineCommand, MachineInput, MachineSettings, RealtimeMachine, ResolvedAgent, UserAction,
/// };
/// use switchboard_realtime::model::RealtimeModelCommand;
///
/// let desk = ResolvedAgent::new("Desk", Default::default(), Default::default());
/// let mut machine = RealtimeMachine::new(desk, MachineSettings::default());
/// let hello = Box::new(RealtimeModelCommand::say("Hello"));
/// let commands = machine.apply(MachineInput::User { request: 1, action: UserAction::Send(hello) });
/// assert!(matches!(commands[..], [MachineCommand::Send { .. }]));
/// let stored = serde_json::to_string(&machine)?;
/// # let _: RealtimeMachine = serde_json::from_str(&stored)?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RealtimeMachine {
    settings: MachineSettings,
    /// The agent that has the conversation, as the server knows it.
    current: ResolvedAgent,
    history: RealtimeHistory,
    usage: Usage,
    /// The calls that are not answered yet, by their identifiers.
    calls: BTreeMap<Arc<str>, Call>,
    /// The calls that were, so that none runs twice.
    answered: BTreeMap<Arc<str>, CallRecord>,
    standing: Vec<StandingDecision>,
    /// Calls that wait for the one before them.
    queue: VecDeque<Arc<str>>,
    /// Responses whose outputs have left it to another call to ask for the next one.
    owed: BTreeSet<Arc<str>>,
    /// The response in which the last handoff was made.
    handed_off_in: Option<Arc<str>>,
    /// Failures that the model was told of since the last success.
    failures: u32,
    /// The change of the agent that is in progress.
    change: Option<AgentChange>,
    /// The updates that give the server the old agent back, after one that it did not take in time.
    rollbacks: BTreeSet<Arc<str>>,
    /// Changes that wait for it.
    waiting_changes: VecDeque<AgentChange>,
    /// Set while tools and handoffs are being resolved again.
    is_refreshing: bool,
    /// Set if the context has changed since that began.
    refresh_again: bool,
    response: Option<ActiveResponse>,
    /// The number of responses that have begun.
    responses: u64,
    /// Responses that were interrupted: their audio is dropped.
    interrupted: BTreeSet<Arc<str>>,
    spoken: BTreeMap<Arc<str>, CheckedItem>,
    checks: BTreeMap<Ticket, OutputCheck>,
    /// The length of the audio of each message of the current response, in bytes.
    audio: BTreeMap<Arc<str>, u64>,
    /// Messages that were cut to what was heard.
    cut: BTreeSet<Arc<str>>,
    has_spoken: bool,
    /// The items that a store has got.
    stored: BTreeSet<Arc<str>>,
    tasks: BTreeMap<Ticket, Pending>,
    sends: BTreeMap<Ticket, Pending>,
    next_ticket: Ticket,
    state: SessionState,
}

/// The state of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum SessionState {
    Open,
    Closed,
}

/// The response that the model is making.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ActiveResponse {
    id: Option<Arc<str>>,
    /// The number of the response.
    number: u64,
    /// The agent that began it.
    agent: Arc<str>,
    /// The text so far, for hooks.
    text: String,
}

/// The purpose of a task or a send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Pending {
    /// A stage of a call.
    Call(Arc<str>),
    /// A request of the application.
    Request(Ticket),
    /// The agent of a change.
    Change,
    /// The settings of a change.
    ChangeSent(Arc<str>),
    /// The settings of the old agent, after a change that the server did not take in time.
    Rollback(Arc<str>),
    /// The time that the server has to take a change.
    ChangeTimer(Arc<str>),
    /// The tools and handoffs of an agent.
    Refresh(Arc<str>),
    OutputCheck,
    Hooks,
    /// Nothing waits for it.
    Nobody,
}

/// The commands that one input has led to.
type Commands = Vec<MachineCommand>;

impl RealtimeMachine {
    /// A session that has been opened with an agent.
    pub fn new(current: ResolvedAgent, settings: MachineSettings) -> Self {
        Self {
            settings,
            current,
            history: RealtimeHistory::default(),
            usage: Usage::default(),
            calls: BTreeMap::new(),
            answered: BTreeMap::new(),
            standing: Vec::new(),
            queue: VecDeque::new(),
            owed: BTreeSet::new(),
            handed_off_in: None,
            failures: 0,
            change: None,
            rollbacks: BTreeSet::new(),
            waiting_changes: VecDeque::new(),
            is_refreshing: false,
            refresh_again: false,
            response: None,
            responses: 0,
            interrupted: BTreeSet::new(),
            spoken: BTreeMap::new(),
            checks: BTreeMap::new(),
            audio: BTreeMap::new(),
            cut: BTreeSet::new(),
            has_spoken: false,
            stored: BTreeSet::new(),
            tasks: BTreeMap::new(),
            sends: BTreeMap::new(),
            next_ticket: 1,
            state: SessionState::Open,
        }
    }

    /// Begins with a history that the model was given.
    #[must_use]
    pub fn with_history(mut self, history: RealtimeHistory) -> Self {
        let items = history.items().iter();
        self.stored = items.map(|item| item.item_id().clone()).collect();
        self.history = history;
        self
    }

    /// The key of the agent that has the conversation.
    pub fn agent(&self) -> &Arc<str> {
        &self.current.agent
    }

    /// The history.
    pub fn history(&self) -> &RealtimeHistory {
        &self.history
    }

    /// The usage of the model so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The calls that wait for a person, by their identifiers.
    pub fn waiting_calls(&self) -> impl Iterator<Item = &Arc<str>> {
        let calls = self.calls.iter().filter(|(_, call)| call.is_waiting());
        calls.map(|(call_id, _)| call_id)
    }

    /// The calls that have no output yet, by their identifiers.
    pub fn open_calls(&self) -> impl Iterator<Item = &Arc<str>> {
        self.calls.keys()
    }

    /// Returns `true` if the session was closed, or has failed.
    pub fn is_closed(&self) -> bool {
        self.state == SessionState::Closed
    }

    /// Returns `true` if the model has said something aloud, after which its voice cannot change.
    pub fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    /// The voice of the session.
    pub(crate) fn voice(&self) -> Option<&RealtimeVoice> {
        self.current.settings.voice.as_ref()
    }

    /// Returns `false` while the session must not read from the model.
    pub fn reads(&self) -> bool {
        !self.is_closed() && !self.calls.values().any(Call::stops_reading)
    }

    /// Takes the items of the history that are finished and were not taken before, in order, for a store.
    /// A message that is not transcribed yet holds those behind it back, unless these are the last.
    pub fn take_finished(&mut self, is_last: bool) -> Vec<Arc<RealtimeItem>> {
        let mut taken = Vec::new();
        for item in self.history.items() {
            if self.stored.contains(item.item_id()) {
                continue;
            }
            if is_complete(item) || (is_last && item.as_message().is_some()) {
                self.stored.insert(item.item_id().clone());
                taken.push(item.clone());
            } else if item.as_message().is_some() {
                break;
            }
        }
        taken
    }

    /// Takes an input, and returns what is to be done, in order.
    pub fn apply(&mut self, input: MachineInput) -> Vec<MachineCommand> {
        let mut commands = Vec::new();
        match input {
            MachineInput::User { request, action } => self.on_user(&mut commands, request, action),
            _ if self.is_closed() => {}
            MachineInput::Model(event) => self.on_model(&mut commands, event),
            MachineInput::TaskDone { task, outcome } => {
                self.on_task(&mut commands, task, outcome);
            }
            MachineInput::Sent { send, error } => self.on_sent(&mut commands, send, error),
        }
        commands
    }

    fn on_user(&mut self, out: &mut Commands, request: Ticket, action: UserAction) {
        if self.is_closed() {
            let ignored = matches!(action, UserAction::Close | UserAction::Decide { .. });
            let result = if ignored {
                Ok(())
            } else {
                Err(RealtimeError::not_connected())
            };
            out.push(MachineCommand::Reply { request, result });
            return;
        }
        match action {
            UserAction::Send(command) => self.send(out, Pending::Request(request), *command),
            UserAction::Interrupt => {
                let interrupt = RealtimeInterrupt {
                    force_response_cancel: self.policy().cancel_on_interrupt,
                    ..RealtimeInterrupt::default()
                };
                if self.policy().cancel_on_interrupt
                    && let Some(id) = self.response.as_ref().and_then(|active| active.id.clone())
                {
                    self.interrupted.insert(id);
                }
                let command = RealtimeModelCommand::Interrupt(interrupt);
                self.send(out, Pending::Request(request), command);
            }
            UserAction::Decide { call_id, decision } => {
                self.decide(out, request, &call_id, decision);
            }
            UserAction::UpdateAgent { agent } => {
                self.begin_change(out, AgentChange::by_user(agent, request));
            }
            UserAction::ContextChanged => {
                self.refresh(out);
                self.reply(out, request, Ok(()));
            }
            UserAction::Close => {
                self.close(out);
                out.push(MachineCommand::EndEvents(None));
                self.reply(out, request, Ok(()));
            }
        }
    }

    fn on_task(&mut self, out: &mut Commands, task: Ticket, outcome: TaskOutcome) {
        let Some(pending) = self.tasks.remove(&task) else {
            return;
        };
        match (pending, outcome) {
            (Pending::Call(call_id), outcome) => self.on_call_task(out, &call_id, outcome),
            (Pending::Change, TaskOutcome::Agent(resolved)) => {
                self.on_agent_resolved(out, resolved);
            }
            (Pending::ChangeTimer(update_id), _) => self.on_change_overdue(out, &update_id),
            (Pending::Refresh(agent), TaskOutcome::Offer(offer)) => {
                self.on_refreshed(out, &agent, offer);
            }
            (Pending::OutputCheck, TaskOutcome::OutputChecked(results)) => {
                self.on_output_checked(out, task, results);
            }
            (Pending::Hooks, TaskOutcome::HooksCalled(Err(error))) => {
                self.report(out, SessionProblem::Failed(error));
            }
            _ => {}
        }
    }

    fn on_sent(&mut self, out: &mut Commands, send: Ticket, error: Option<RealtimeModelError>) {
        let Some(pending) = self.sends.remove(&send) else {
            return;
        };
        match pending {
            Pending::Request(request) => {
                let result = error.map_or(Ok(()), |error| Err(error.into()));
                self.reply(out, request, result);
            }
            Pending::Call(call_id) => self.on_output_sent(out, &call_id, error),
            Pending::ChangeSent(update_id) => self.on_change_sent(out, &update_id, error),
            Pending::Rollback(update_id)
                if error.is_some() && self.rollbacks.remove(&update_id) =>
            {
                self.lose_track(out);
            }
            Pending::Nobody => {
                if let Some(error) = error
                    && self.policy().report_all
                {
                    self.report(out, SessionProblem::Failed(error.into()));
                }
            }
            _ => {}
        }
    }

    fn policy(&self) -> &RealtimePolicy {
        &self.settings.policy
    }

    fn ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        ticket
    }

    fn send(&mut self, out: &mut Commands, purpose: Pending, command: RealtimeModelCommand) {
        let send = self.ticket();
        self.sends.insert(send, purpose);
        let command = Box::new(command);
        out.push(MachineCommand::Send { send, command });
    }

    fn begin(&mut self, out: &mut Commands, purpose: Pending, work: Task) -> Ticket {
        let task = self.ticket();
        self.tasks.insert(task, purpose);
        let work = Box::new(work);
        out.push(MachineCommand::Begin { task, work });
        task
    }

    fn emit(&self, out: &mut Commands, event: RealtimeEvent) {
        out.push(MachineCommand::Emit(event));
    }

    fn report(&self, out: &mut Commands, problem: SessionProblem) {
        self.emit(out, RealtimeEvent::Error(problem));
    }

    fn reply(&self, out: &mut Commands, request: Ticket, result: Result<(), RealtimeError>) {
        out.push(MachineCommand::Reply { request, result });
    }

    /// Ends the session with an error.
    fn fail(&mut self, out: &mut Commands, error: RealtimeError) {
        out.push(MachineCommand::EndEvents(Some(error)));
        self.close(out);
    }

    fn close(&mut self, out: &mut Commands) {
        self.state = SessionState::Closed;
        // Requests that wait for something are answered, so that nobody waits for ever.
        let waiting = std::mem::take(&mut self.sends).into_values();
        let waiting = waiting.chain(std::mem::take(&mut self.tasks).into_values());
        let mut requests: BTreeSet<Ticket> = waiting
            .filter_map(|pending| match pending {
                Pending::Request(request) => Some(request),
                _ => None,
            })
            .collect();
        requests.extend(self.calls.values().filter_map(Call::request));
        let changes = self.change.take().into_iter();
        let changes = changes.chain(std::mem::take(&mut self.waiting_changes));
        requests.extend(changes.filter_map(|change| change.request()));
        for request in requests {
            self.reply(out, request, Err(RealtimeError::not_connected()));
        }
        self.calls.clear();
        self.queue.clear();
        self.checks.clear();
        out.push(MachineCommand::Close);
    }
}

fn model_behavior(message: impl Into<String>) -> RealtimeError {
    RealtimeError::new(ErrorKind::ModelBehavior, message)
}
