//! The context that user code gets during a run.

use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::callback::BoxError;
use crate::handoff::ReceivedPayload;
use crate::items::Items;
use crate::journal::{JournalScope, StepKind};
use crate::model::{AddedUsage, Usage};
use crate::tool::OuterToolCall;

/// The application's own state and the run's usage so far, passed to every callback.
///
/// It dereferences to the state, which is shared and never shown to a model; for state that changes,
/// use a lock or an atomic.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use switchboard_core::RunContext;
///
/// struct App { transfers: AtomicU32 }
///
/// fn count(ctx: RunContext<App>) {
///     ctx.transfers.fetch_add(1, Ordering::Relaxed);
/// }
/// ```
pub struct RunContext<C = ()> {
    state: Arc<C>,
    usage: Usage,
    added: AddedUsage,
    turn_input: Option<Items>,
    outer_call: Option<Arc<OuterToolCall>>,
    received: Option<Arc<ReceivedPayload>>,
    journal: Option<Arc<ContextJournal>>,
}

/// The journal of the run, and the place of the code that has the context.
struct ContextJournal {
    scope: JournalScope,
    turn: u32,
}

impl<C> RunContext<C> {
    /// Creates a context as a run would.
    pub fn new(state: impl Into<Arc<C>>) -> Self {
        Self::with_usage(state.into(), Usage::default(), AddedUsage::default())
    }

    pub(crate) fn with_usage(state: Arc<C>, usage: Usage, added: AddedUsage) -> Self {
        Self {
            state,
            usage,
            added,
            turn_input: None,
            outer_call: None,
            received: None,
            journal: None,
        }
    }

    pub(crate) fn with_turn_input(mut self, input: Items) -> Self {
        self.turn_input = Some(input);
        self
    }

    /// The items that the model sees in the turn, in hooks on the start and the end of an agent;
    /// `None` elsewhere.
    pub fn turn_input(&self) -> Option<&Items> {
        self.turn_input.as_ref()
    }

    /// For a run inside a tool call, where it is inside one.
    pub(crate) fn inside(mut self, outer_call: Option<Arc<OuterToolCall>>) -> Self {
        self.outer_call = outer_call;
        self
    }

    /// For an agent that keeps a payload.
    pub(crate) fn with_received(mut self, received: Option<Arc<ReceivedPayload>>) -> Self {
        self.received = received;
        self
    }

    /// For a run with a journal, which has taken this number of turns.
    pub(crate) fn with_journal(mut self, scope: Option<&JournalScope>, turn: u32) -> Self {
        self.journal = scope.map(|scope| {
            let scope = scope.clone();
            Arc::new(ContextJournal { scope, turn })
        });
        self
    }

    /// The same context, with another counter of added usage.
    pub(crate) fn counting(mut self, added: AddedUsage) -> Self {
        self.added = added;
        self
    }

    /// The place of runs inside this one in the journal.
    pub(crate) fn journal_scope(&self) -> Option<&JournalScope> {
        self.journal.as_ref().map(|journal| &journal.scope)
    }

    /// Does a part of the work of a tool, a filter or another callback as a step of its own. In a run with a
    /// [`journal`](crate::journal) its outcome is recorded: if the run is interrupted later, this part does
    /// not take place again. Elsewhere the work is just awaited.
    ///
    /// ```
    /// use switchboard_core::callback::BoxError;
    /// use switchboard_core::{Tool, ToolContext, tool};
    ///
    /// async fn reserve() -> Result<u32, BoxError> { Ok(7) }
    /// async fn charge(seat: u32) -> Result<String, BoxError> { Ok(format!("seat {seat}")) }
    ///
    /// let book: Tool = tool("book").run(|ctx: ToolContext, (): ()| async move {
    ///     let seat = ctx.run_context().step("reserve", reserve()).await?;
    ///     ctx.run_context().step("charge", charge(seat)).await
    /// });
    /// ```
    ///
    /// # Errors
    /// The error of the work, or of the journal. Of an error from before an interruption, only the text is left.
    pub async fn step<T, F>(&self, name: &str, work: F) -> Result<T, BoxError>
    where
        T: Serialize + DeserializeOwned + Send,
        F: Future<Output = Result<T, BoxError>> + Send,
    {
        match &self.journal {
            None => work.await,
            Some(journal) => {
                let place = (journal.turn, StepKind::Code, name);
                journal.scope.carry_out(place, Box::pin(work)).await
            }
        }
    }

    /// The payload of the handoff by which the current agent got the conversation, as a `T`: where the handoff
    /// delivers it in the instructions or the context ([`HandoffBuilder::deliver`]), as long as the agent has
    /// the conversation. `None` if there is none, or if it is no `T`; an agent that several handoffs lead to
    /// can so try the type of each. After a redaction it is without what that hides; a number that is hidden is
    /// a string.
    ///
    /// [`HandoffBuilder::deliver`]: crate::handoff::HandoffBuilder::deliver
    pub fn handoff_payload<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.received.as_ref()?.payload).ok()
    }

    /// The application's state, to keep it longer than the callback.
    pub fn state(&self) -> &Arc<C> {
        &self.state
    }

    /// The usage of the run when this context was made.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The tool call that this run lies inside of: that of [`Agent::as_tool`](crate::Agent::as_tool),
    /// or the one given to [`Runner::within`](crate::Runner::within). The innermost, if there are
    /// several; `None` outside of tool calls.
    ///
    /// Hooks, tools and instructions of an agent used as a tool can so tell concurrent calls apart,
    /// and read the arguments.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, RunContext, Runner};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let expert: Agent = Agent::new("Expert").instructions_fn(|ctx: RunContext, _agent| {
    ///     let asked = ctx.outer_call().map(|call| call.arguments.to_string());
    ///     format!("You were called with {}.", asked.unwrap_or_default())
    /// });
    /// let clerk = Agent::new("Clerk").tool(expert.as_tool("ask_expert"));
    /// let model = ScriptedModel::new()
    ///     .call("ask_expert", r#"{"input": "Why?"}"#)
    ///     .say("Because.")
    ///     .say("It is so.");
    /// Runner::new(&clerk).model(model.clone()).run("Hm?").await?;
    /// let instructions = model.requests()[1].instructions.clone();
    /// assert_eq!(instructions.as_deref(), Some(r#"You were called with {"input": "Why?"}."#));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn outer_call(&self) -> Option<&OuterToolCall> {
        self.outer_call.as_deref()
    }

    /// Counts usage of a model that user code called itself, in a tool, a filter, a guardrail or a
    /// callback. It is counted also if that code fails or is cancelled later.
    pub fn add_usage(&self, usage: Usage) {
        self.added.add(usage);
    }

    /// The usage that a run inside this one reports to.
    pub(crate) fn added(&self) -> &AddedUsage {
        &self.added
    }
}

impl<C> Deref for RunContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.state
    }
}

impl_clone! {
    struct RunContext<C> { state, usage, added, turn_input, outer_call, received, journal }
}

impl_debug! { RunContext<C> { usage: usage } }
