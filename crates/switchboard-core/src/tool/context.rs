//! The context of a tool call.

use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Tool;
use crate::agent::Agent;
use crate::context::RunContext;
use crate::items::Item;
use crate::lock::lock;
use crate::model::{AddedUsage, Usage};
use crate::run::approvals::StandingDecision;
use crate::run::turn::CallKey;
use crate::run::{Run, RunConfig};
use crate::runner::{InnerEvents, OuterBudgets};
use crate::session::SessionHandle;
use crate::stream::event_sink::{CallPlace, EventSink};
use crate::stream::{EventKind, StreamEvent};
use crate::trace::{CustomSpan, TraceParent};

/// The context of a tool call: the run's context, and the call's details.
///
/// It dereferences to the application's context.
pub struct ToolContext<C = ()> {
    run: RunContext<C>,
    call: Arc<CallInfo<C>>,
}

/// A tool call that a run lies inside of; see [`RunContext::outer_call`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OuterToolCall {
    /// The tool's name.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments as the model wrote them; where the tool reads numbers or booleans from text, with
    /// those in place of the text.
    pub arguments: Arc<str>,
}

/// The details of a tool call.
pub(crate) struct CallInfo<C> {
    /// The agent whose model called the tool.
    pub(crate) agent: Agent<C>,
    pub(crate) tool: Arc<str>,
    /// The call as the model sent it.
    pub(crate) item: Item,
    pub(crate) call_id: Arc<str>,
    pub(crate) arguments: Arc<str>,
    /// The settings of the run.
    pub(crate) config: Arc<RunConfig<C>>,
    /// The span of the call, for runs inside the tool.
    pub(crate) trace: TraceParent,
    /// Set if the run is streamed.
    pub(crate) progress: Option<ProgressReporter>,
    /// The data that the tool attached for the application.
    pub(crate) attached: Mutex<Option<Value>>,
    pub(crate) key: CallKey,
    /// Standing decisions for runs inside the tool.
    pub(crate) standing: Vec<StandingDecision>,
    /// The run inside the tool that waits for decisions: the one to resume, and the one that came of it.
    pub(crate) inner_run: Mutex<Option<Box<Run>>>,
    /// The run inside the tool that has failed, as far as it went.
    pub(crate) failed_run: Mutex<Option<Box<Run>>>,
    /// The budgets of the run, for runs inside the tool.
    pub(crate) budgets: Option<Arc<OuterBudgets>>,
}

/// The way of progress reports to the stream.
pub(crate) struct ProgressReporter {
    pub(crate) events: EventSink,
    pub(crate) turn: u32,
    /// Weak, so that the run is not copied when it changes.
    pub(crate) run: Weak<Run>,
}

impl<C> ToolContext<C> {
    pub(crate) fn new(run: RunContext<C>, call: CallInfo<C>) -> Self {
        Self {
            run,
            call: Arc::new(call),
        }
    }

    /// The context of a call outside of a run.
    pub(crate) fn outside_run(state: Arc<C>, tool: &Tool<C>, arguments: &Value) -> Self
    where
        C: Send + Sync + 'static,
    {
        let call_id = "call";
        let (arguments, item) = match arguments {
            Value::String(text) if tool.spec().takes_text() => {
                let item = Item::custom_tool_call(call_id, tool.name(), text);
                (text.clone(), item)
            }
            arguments => {
                let arguments = arguments.to_string();
                let item = Item::function_call(call_id, tool.name(), &arguments);
                (arguments, item)
            }
        };
        let call = CallInfo {
            agent: Agent::new(""),
            tool: tool.spec().name.clone(),
            item,
            call_id: call_id.into(),
            arguments: arguments.into(),
            config: Arc::default(),
            trace: TraceParent::default(),
            progress: None,
            attached: Mutex::default(),
            key: CallKey::default(),
            standing: Vec::new(),
            inner_run: Mutex::default(),
            failed_run: Mutex::default(),
            budgets: None,
        };
        Self::new(RunContext::new(state), call)
    }

    /// The same context, with usage counted here and where it was counted before.
    pub(crate) fn counting(&self, added: AddedUsage) -> Self {
        Self {
            run: self.run.clone().counting(added),
            call: self.call.clone(),
        }
    }

    /// The settings of the run.
    pub fn config(&self) -> &RunConfig<C> {
        &self.call.config
    }

    pub(crate) fn trace(&self) -> &TraceParent {
        &self.call.trace
    }

    /// Standing decisions for runs inside the tool.
    pub(crate) fn standing(&self) -> &[StandingDecision] {
        &self.call.standing
    }

    /// The budgets of the run, for runs inside the tool.
    pub(crate) fn budgets(&self) -> Option<&Arc<OuterBudgets>> {
        self.call.budgets.as_ref()
    }

    /// The sink for the events of a run inside the tool, where the stream of the run shows them.
    pub(crate) fn events_inside(&self) -> Option<EventSink> {
        let reporter = self.call.progress.as_ref()?;
        if self.call.config.inner_events == InnerEvents::Hidden {
            return None;
        }
        let place = CallPlace {
            agent: self.call.agent.name_arc().clone(),
            turn: reporter.turn,
            call_id: self.call.call_id.clone(),
            tool: self.call.tool.clone(),
        };
        Some(reporter.events.inside(place, &reporter.run))
    }

    /// Takes the run inside the tool that waits for decisions.
    pub(crate) fn take_inner_run(&self) -> Option<Box<Run>> {
        lock(&self.call.inner_run).take()
    }

    /// Sets the run inside the tool that waits for decisions.
    pub(crate) fn set_inner_run(&self, run: Run) {
        *lock(&self.call.inner_run) = Some(Box::new(run));
    }

    /// Takes the run inside the tool that has failed.
    pub(crate) fn take_failed_run(&self) -> Option<Box<Run>> {
        lock(&self.call.failed_run).take()
    }

    /// Sets the run inside the tool that has failed.
    pub(crate) fn set_failed_run(&self, run: Run) {
        *lock(&self.call.failed_run) = Some(Box::new(run));
    }

    /// Returns `true` if a run inside the tool is to be resumed.
    pub(crate) fn is_resumed(&self) -> bool {
        lock(&self.call.inner_run).is_some()
    }

    /// The session of the run, or of the one around it.
    pub(crate) fn session(&self) -> Option<&SessionHandle> {
        self.call.key.session.as_ref()
    }

    /// This call, for a run inside it.
    pub(crate) fn as_outer(&self) -> OuterToolCall {
        OuterToolCall {
            tool: self.call.tool.clone(),
            call_id: self.call.call_id.clone(),
            arguments: self.call.arguments.clone(),
        }
    }

    /// Reports progress to the stream of the run, as [`EventKind::ToolProgress`]. It does nothing if
    /// the run is not streamed, and never waits: if the stream is not read, reports are dropped and
    /// counted.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::tool;
    ///
    /// let import = tool::<()>("import").run(|ctx, (): ()| async move {
    ///     for done in 1..=3 {
    ///         ctx.report_progress(json!({"files": done}));
    ///     }
    ///     "imported 3 files"
    /// });
    /// ```
    ///
    /// Progress of a tool that may end a run with output guardrails is not reported.
    pub fn report_progress(&self, progress: impl Into<Value>) {
        let Some(reporter) = &self.call.progress else {
            return;
        };
        let event = StreamEvent {
            kind: EventKind::ToolProgress {
                call_id: self.call.call_id.clone(),
                tool: self.call.tool.clone(),
                progress: progress.into(),
                dropped: 0,
            },
            agent: self.call.agent.name_arc().clone(),
            turn: reporter.turn,
        };
        reporter.events.report_progress(event, &reporter.run);
    }

    /// Begins a span under that of the call, for a part of the tool's work. It ends when it is dropped.
    /// Runs go under it with [`Runner::within_trace`](crate::Runner::within_trace).
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::tool;
    ///
    /// let find = tool::<()>("find_orders").run(|ctx, (): ()| async move {
    ///     let mut span = ctx.custom_span("query", json!({"table": "orders"}));
    ///     let rows = 3;
    ///     span.set_data(json!({"table": "orders", "rows": rows}));
    ///     format!("{rows} orders")
    /// });
    /// ```
    pub fn custom_span(&self, name: impl Into<Arc<str>>, data: impl Into<Value>) -> CustomSpan {
        CustomSpan::under(&self.call.trace, name, data)
    }

    /// Attaches data for the application to the call's output, for example the records behind a text.
    /// No model gets it, and no session. It is [`RunItem::data`](crate::items::RunItem::data) of the
    /// output, a part of [`EventKind::ToolEnded`], and stored with the run.
    ///
    /// A later call replaces the data of an earlier one; null removes it. Data that is attached before
    /// the tool fails is kept.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner, tool};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let search = tool::<()>("search").run(|ctx, (): ()| {
    ///     ctx.attach(json!({"rows": [7, 9]}));
    ///     "two rows"
    /// });
    /// let agent = Agent::new("Searcher").tool(search);
    /// let model = ScriptedModel::new().call("search", "{}").say("There are two.");
    /// let result = Runner::new(&agent).model(model).run("How many?").await?;
    /// let data = result.new_items().iter().find_map(|made| made.data());
    /// assert_eq!(data, Some(&json!({"rows": [7, 9]})));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn attach(&self, data: impl Into<Value>) {
        let data = Some(data.into()).filter(|data| !data.is_null());
        *lock(&self.call.attached) = data;
    }

    /// The data that was attached to the call.
    pub fn attached(&self) -> Option<Value> {
        lock(&self.call.attached).clone()
    }

    /// Counts usage of models that the tool called itself as part of the run; see
    /// [`RunContext::add_usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.run.add_usage(usage);
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run
    }

    /// The payload of the handoff by which the agent got the conversation; see
    /// [`RunContext::handoff_payload`].
    pub fn handoff_payload<T: DeserializeOwned>(&self) -> Option<T> {
        self.run.handoff_payload()
    }

    /// The agent whose model called the tool.
    pub fn agent(&self) -> &Agent<C> {
        &self.call.agent
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.call.tool
    }

    /// The identifier of the call. It is stable over retries; see also
    /// [`idempotency_key`](Self::idempotency_key).
    pub fn call_id(&self) -> &str {
        &self.call.call_id
    }

    /// A key that is the same whenever this call is carried out, also by a run that is stored and resumed,
    /// and differs from that of any other: of the conversation, the run, the turn and the call. Use it where
    /// a side effect must happen once.
    pub fn idempotency_key(&self) -> String {
        self.call.key.of_call(&self.call.call_id)
    }

    /// The call as the model sent it.
    pub fn call(&self) -> &Item {
        &self.call.item
    }

    /// The arguments as the model wrote them; the text, for a free-form tool.
    pub fn arguments(&self) -> &str {
        &self.call.arguments
    }
}

impl<C> Deref for ToolContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.run
    }
}

impl_clone! { struct ToolContext<C> { run, call } }

impl_debug! { ToolContext<C> { tool: call.tool, call_id: call.call_id } }
