//! The inputs of the machine, and the commands that it answers with.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::GuardrailResult;
use switchboard_core::model::Usage;

use crate::error::RealtimeError;
use crate::event::RealtimeEvent;
use crate::model::{
    RealtimeModelCommand, RealtimeModelError, RealtimeModelEvent, RealtimeModelSettings,
    RealtimeToolCall,
};

/// The number of a request of the application, a task or a send; never used twice in a session.
pub type Ticket = u64;

/// An input of the machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MachineInput {
    /// The model has told something.
    Model(RealtimeModelEvent),
    /// The application asks for something. [`MachineCommand::Reply`] has the same ticket.
    User {
        /// The ticket of the request.
        request: Ticket,
        /// The request.
        action: UserAction,
    },
    /// A task has ended.
    TaskDone {
        /// The ticket of the task.
        task: Ticket,
        /// The outcome.
        outcome: TaskOutcome,
    },
    /// A command was sent, or could not be.
    Sent {
        /// The ticket of the send.
        send: Ticket,
        /// The error, if it could not be sent.
        error: Option<RealtimeModelError>,
    },
}

/// A request of the application.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum UserAction {
    /// Sends a command to the model: a message, audio, or one of the provider's own.
    Send(Box<RealtimeModelCommand>),
    /// Interrupts the model.
    Interrupt,
    /// Decides on a call that waits.
    Decide {
        /// The identifier of the call.
        call_id: Arc<str>,
        /// The decision.
        decision: Decision,
    },
    /// Gives the conversation to another agent.
    UpdateAgent {
        /// The key of the agent.
        agent: Arc<str>,
    },
    /// The context has changed.
    ContextChanged,
    /// Closes the session.
    Close,
}

/// Work that the machine asks for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Task {
    /// Evaluates the condition of a call, and whether it needs approval; then the tool guardrails, if it
    /// may run or `guardrails_first` is set. Ends with [`TaskOutcome::Prepared`].
    Prepare {
        /// The call.
        call: CallRef,
        /// Set if a handoff is called.
        is_handoff: bool,
        /// The decision that is known, for always.
        decision: Option<Decision>,
        /// Asks the guardrails also about a call that needs approval.
        guardrails_first: bool,
    },
    /// Checks an approved call again. Ends with [`TaskOutcome::Prepared`].
    Check {
        /// The call.
        call: CallRef,
        /// Evaluates the condition of its tool.
        condition: bool,
        /// Asks the guardrails.
        guardrails: bool,
    },
    /// Runs a tool. Ends with [`TaskOutcome::ToolRan`].
    RunTool(CallRef),
    /// Makes the text for a rejected call. Ends with [`TaskOutcome::Text`].
    RejectionText(CallRef, Decision),
    /// Runs the callback of a handoff and resolves the agent it leads to. Ends with
    /// [`TaskOutcome::Handoff`].
    HandOff {
        /// The call.
        call: CallRef,
        /// The handoff that a callback has led it to.
        redirect: Option<HandoffRedirect>,
        /// Set if a person has approved it.
        is_approved: bool,
        /// Evaluates its condition again, after a person was asked.
        recheck: bool,
    },
    /// Resolves an agent. Ends with [`TaskOutcome::Agent`].
    ResolveAgent(Arc<str>),
    /// Resolves the tools and handoffs of an agent. Ends with [`TaskOutcome::Offer`].
    ResolveOffer(Arc<str>),
    /// Asks output guardrails. Ends with [`TaskOutcome::OutputChecked`].
    CheckOutput {
        /// The agent.
        agent: Arc<str>,
        /// The text.
        text: Arc<str>,
    },
    /// Calls hooks. Ends with [`TaskOutcome::HooksCalled`].
    CallHooks {
        /// The agent.
        agent: Arc<str>,
        /// The answer, at its end; `None` at its beginning.
        output: Option<String>,
    },
    /// Waits. Ends with [`TaskOutcome::TimeUp`].
    Timer(Duration),
}

/// A call, with the agent it belongs to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRef {
    /// The key of the agent.
    pub agent: Arc<str>,
    /// The call.
    pub call: RealtimeToolCall,
}

/// The outcome of a task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// A call was looked at.
    Prepared(Result<Prepared, CallFailure>),
    /// A tool has run.
    ToolRan(Result<ToolAnswer, CallFailure>),
    /// A text was made.
    Text(String),
    /// A handoff was decided on.
    Handoff(Result<HandoffAnswer, CallFailure>),
    /// An agent was resolved.
    Agent(Result<Box<ResolvedAgent>, RealtimeError>),
    /// Tools and handoffs were resolved.
    Offer(Result<Box<ResolvedOffer>, RealtimeError>),
    /// Output guardrails have looked at a text: those that tripped.
    OutputChecked(Vec<GuardrailResult>),
    /// Hooks were called.
    HooksCalled(Result<(), RealtimeError>),
    /// The time is up.
    TimeUp,
}

/// A call that was looked at.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Prepared {
    /// It may run.
    Run,
    /// It waits for a person.
    NeedsApproval,
    /// Guardrails have answered it.
    Answered(ToolAnswer),
    /// Its tool or handoff is disabled.
    Unavailable,
}

/// A failure of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallFailure {
    /// The error.
    pub error: RealtimeError,
    /// The text for the model, if it may be told.
    pub text: Option<String>,
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// The output for the model.
    pub text: Arc<str>,
    /// The output as the tool returned it.
    pub output: Value,
}

/// The decision on a handoff.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HandoffAnswer {
    /// It is made.
    Taken {
        /// The agent, with its settings.
        to: Box<ResolvedAgent>,
        /// The output of the call.
        message: Arc<str>,
    },
    /// It is refused; the model gets this reason.
    Refused(String),
    /// A person decides.
    AskApproval,
    /// It leads to another agent, which may need approval of its own.
    Redirected {
        /// The handoff.
        redirect: HandoffRedirect,
        /// Set if that handoff needs approval.
        needs_approval: bool,
    },
}

/// The handoff that a callback has led another one to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffRedirect {
    /// The name of the agent.
    pub to: Arc<str>,
    /// The name of the handoff's tool.
    pub tool: Arc<str>,
    /// The payload.
    pub arguments: Arc<str>,
    /// The number of redirects so far.
    pub count: u32,
}

/// An agent that can get the conversation: everything that can fail is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResolvedAgent {
    /// The key of the agent.
    pub agent: Arc<str>,
    /// The settings of the session with this agent. Their tools and handoffs are not stored.
    pub settings: RealtimeModelSettings,
    /// The names that the model is offered.
    pub offer: Offer,
}

/// The tools and handoffs of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResolvedOffer {
    /// The settings, of which only tools and handoffs are set.
    pub settings: RealtimeModelSettings,
    /// The names that the model is offered.
    pub offer: Offer,
}

/// The names that a model is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Offer {
    /// The names of tools.
    pub tools: Vec<Arc<str>>,
    /// The names of the tools of handoffs.
    pub handoffs: Vec<Arc<str>>,
    /// Set if any tool or handoff of the agent has a condition.
    pub is_conditional: bool,
}

/// A command of the machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MachineCommand {
    /// Sends a command to the model, after those before it. [`MachineInput::Sent`] has the same ticket.
    Send {
        /// The ticket.
        send: Ticket,
        /// The command.
        command: Box<RealtimeModelCommand>,
    },
    /// Begins a task. [`MachineInput::TaskDone`] has the same ticket.
    Begin {
        /// The ticket.
        task: Ticket,
        /// The task.
        work: Box<Task>,
    },
    /// Tells the application.
    Emit(RealtimeEvent),
    /// Answers a request of the application.
    Reply {
        /// The ticket of the request.
        request: Ticket,
        /// The result.
        result: Result<(), RealtimeError>,
    },
    /// Counts usage of the model.
    CountUsage(Usage),
    /// Ends the events, with an error if there is one.
    EndEvents(Option<RealtimeError>),
    /// Cancels all tasks and closes the connection.
    Close,
}

impl HandoffRedirect {
    /// The first redirect of a handoff.
    pub fn new(
        to: impl Into<Arc<str>>,
        tool: impl Into<Arc<str>>,
        arguments: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            to: to.into(),
            tool: tool.into(),
            arguments: arguments.into(),
            count: 1,
        }
    }
}

impl Offer {
    /// The names that a model is offered.
    pub fn new(
        tools: impl IntoIterator<Item = Arc<str>>,
        handoffs: impl IntoIterator<Item = Arc<str>>,
        is_conditional: bool,
    ) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            handoffs: handoffs.into_iter().collect(),
            is_conditional,
        }
    }
}

impl ResolvedAgent {
    /// An agent with its settings, and the names that its model is offered.
    pub fn new(agent: impl Into<Arc<str>>, settings: RealtimeModelSettings, offer: Offer) -> Self {
        Self {
            agent: agent.into(),
            settings,
            offer,
        }
    }
}

impl ResolvedOffer {
    /// Tools and handoffs, with their names.
    pub const fn new(settings: RealtimeModelSettings, offer: Offer) -> Self {
        Self { settings, offer }
    }
}

impl ToolAnswer {
    /// An output for the model, and as the tool returned it.
    pub fn new(text: impl Into<Arc<str>>, output: Value) -> Self {
        Self {
            text: text.into(),
            output,
        }
    }
}

impl CallFailure {
    /// An error, with the text for the model if it may be told.
    pub fn new(error: impl Into<RealtimeError>, text: Option<String>) -> Self {
        Self {
            error: error.into(),
            text,
        }
    }
}
