//! Approvals: tools and handoffs that wait for a person's decision.
//!
//! A tool, an agent used as a tool or a handoff that [needs approval](crate::tool::ToolBuilder::needs_approval)
//! does not run when the model calls it. What needs none runs, and the run then ends with
//! [`RunStatus::Interrupted`](crate::run::RunStatus::Interrupted): [`Run::interruptions`] lists the calls that
//! wait, [`Run::decide`] approves or rejects each of them, and [`Runner::resume`](crate::Runner::resume)
//! continues the run, days later or in another process.
//!
//! ```
//! use switchboard_core::approval::Decision;
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Run, Runner, tool};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let refund = tool("refund").needs_approval().run(|_ctx, (): ()| "refunded");
//! let desk: Agent = Agent::new("Desk").tool(refund);
//! let model = ScriptedModel::new().call("refund", "{}").say("Your money is on its way.");
//! let runner = Runner::new(&desk).model(model);
//!
//! let result = runner.run("I want my money back").await?;
//! let stored = serde_json::to_string(result.run()).unwrap();
//!
//! let mut run: Run = serde_json::from_str(&stored).unwrap();
//! for waiting in run.interruptions() {
//!     println!("{} wants to call {}", waiting.agent, waiting.tool);
//!     run.decide(&waiting, Decision::approve())?;
//! }
//! let result = runner.resume(run).await?;
//! assert_eq!(result.final_text(), "Your money is on its way.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callback::{IntoOutcome, Outcome, call};
use crate::environment::environment;
#[cfg(doc)]
use crate::run::Run;

/// A call that waits for a decision, or a person that is asked for an answer; see [`Run::interruptions`].
///
/// It serialises, so that a person can decide elsewhere. A decision is bound to all of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interruption {
    /// The kind of the call.
    pub kind: InterruptionKind,
    /// The agent whose model made the call.
    pub agent: Arc<str>,
    /// The name of the tool, or of the handoff's tool.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments as the model wrote them; the payload of a redirect, where a handoff has one from there.
    pub arguments: Arc<str>,
    /// The calls of agents used as tools, and of handoffs to agents that answer beside others, that it lies
    /// inside of, by their identifiers, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Arc<str>>,
}

/// The kinds of calls that wait for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptionKind {
    /// A tool of the application.
    Tool,
    /// An agent used as a tool.
    AgentTool,
    /// A handoff.
    Handoff {
        /// The agent that would get the conversation.
        to: Arc<str>,
    },
    /// A tool of an MCP server that the provider would call.
    HostedTool {
        /// The label of the server.
        server: Arc<str>,
    },
    /// No call: a person has the conversation, and is asked for an answer
    /// ([`Run::answer`]). [`Interruption::agent`] is the person; the tool, the identifier and the arguments
    /// are those of the handoff to the person, and empty where there was none.
    #[non_exhaustive]
    Person {
        /// The agent that handed the conversation to the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Arc<str>>,
        /// The agents that the person can hand the conversation to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        may_hand_to: Vec<Arc<str>>,
        /// The reason for which the last handoff of the person was not made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<Arc<str>>,
    },
}

/// A decision on a call that waits.
///
/// ```
/// use switchboard_core::approval::Decision;
///
/// let once = Decision::approve();
/// let never = Decision::reject().message("Refunds need a manager.").always();
/// assert!(once.is_approved() && !never.is_approved());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Decision {
    is_approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_always: bool,
}

impl Decision {
    /// Lets the call run.
    pub const fn approve() -> Self {
        Self::new(true)
    }

    /// Answers the call instead of running it.
    pub const fn reject() -> Self {
        Self::new(false)
    }

    const fn new(is_approved: bool) -> Self {
        Self {
            is_approved,
            message: None,
            is_always: false,
        }
    }

    /// Sets the text that the model gets as the answer of a rejected call. Without one it is the run's
    /// [text for tool errors](crate::Runner::tool_error_text), or a default. For an approved call it
    /// has no meaning.
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Applies the decision to all calls of the same tool by the same agent until the run ends,
    /// including those that already wait. A decision on one of these calls takes precedence.
    pub const fn always(mut self) -> Self {
        self.is_always = true;
        self
    }

    /// Returns `true` if the call may run.
    pub const fn is_approved(&self) -> bool {
        self.is_approved
    }

    /// Returns `true` if the decision is also for later calls.
    pub const fn is_always(&self) -> bool {
        self.is_always
    }

    /// The text for the model.
    pub fn message_text(&self) -> Option<&Arc<str>> {
        self.message.as_ref()
    }
}

/// A decision or an input that a run cannot take; the run is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionError(pub(crate) String);

impl_error!(DecisionError, |error| "{}", error.0);

/// Tells if the calls of a tool, or a handoff, need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalMode {
    /// None does.
    Never,
    /// All do.
    Always,
    /// Code decides for each.
    Sometimes,
}

/// The rule by which calls need approval. `X` is the context of the call.
pub(crate) enum ApprovalRule<X> {
    Never,
    Always,
    When(Arc<Predicate<X>>),
}

type Predicate<X> = dyn Fn(X, Value) -> Outcome<bool> + Send + Sync;

impl<X> ApprovalRule<X> {
    pub(crate) fn when<F, R, M>(predicate: F) -> Self
    where
        F: Fn(X, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        Self::When(Arc::new(move |ctx, arguments| {
            predicate(ctx, arguments).into_outcome()
        }))
    }

    pub(crate) const fn mode(&self) -> ApprovalMode {
        match self {
            Self::Never => ApprovalMode::Never,
            Self::Always => ApprovalMode::Always,
            Self::When(_) => ApprovalMode::Sometimes,
        }
    }

    pub(crate) const fn is_never(&self) -> bool {
        matches!(self, Self::Never)
    }

    /// Returns `true` if a call needs approval: also if its arguments could not be read, and if the
    /// predicate fails. `context` is made only for a predicate.
    pub(crate) async fn applies(
        &self,
        context: impl FnOnce() -> X,
        arguments: Option<Value>,
        tool: &str,
    ) -> bool {
        let predicate = match self {
            Self::Never => return false,
            Self::Always => return true,
            Self::When(predicate) => predicate,
        };
        let Some(arguments) = arguments else {
            return true;
        };
        let context = context();
        match call(|| predicate(context, arguments)).await {
            Ok(is_needed) => is_needed,
            Err(error) => {
                let error = environment().logs_tool_data.then(|| error.to_string());
                tracing::warn!(
                    tool,
                    error,
                    "the condition for approvals of a call failed; a person is asked"
                );
                true
            }
        }
    }
}

impl_clone! { enum ApprovalRule<X> { Never, Always, When(predicate) } }
