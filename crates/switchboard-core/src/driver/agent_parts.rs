//! The parts of one agent, carried out for machines other than [`Run`]: its instructions, conditions,
//! tools, guardrails, hooks and the callbacks of handoffs, with the code and the spans that runs have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::approvals::readable_arguments;
use super::guardrails::refuse_replacement;
use super::handoff_decision::{HandoffFailure, Route, parse_payload};
use super::hooks::HookCall;
use super::spans::TraceScope;
use super::{Driver, configuration_error};
use crate::agent::{Agent, ToolResult, ToolUseBehaviorKind};
use crate::approval::Decision;
use crate::condition::Enabled;
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailKind, GuardrailResult, OutputGuardrail};
use crate::handoff::{self, Handoff, HandoffDecision};
use crate::hooks::{ToolEnd, Transfer};
use crate::items::{Input, Item};
use crate::model::{Prompt, Usage};
use crate::output::FinalOutput;
use crate::run::turn::{HandoffCall, ToolCall};
use crate::run::{HandoffTrigger, Run, RunConfig, agent_keys};
use crate::runner::Surroundings;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput};
use crate::trace::SpanData;
use crate::trace::trace_handle::OpenSpan;
use crate::{RunContext, json};

/// The parts of one agent, for drivers of machines other than [`Run`]. Not part of the public API:
/// realtime sessions use it.
pub struct AgentParts<C> {
    driver: Driver<C>,
    calls_hooks: bool,
}

/// A call of the model, of a tool or of a handoff.
#[derive(Debug, Clone)]
pub struct PartCall {
    /// The name that the model called.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments as the model wrote them.
    pub arguments: Arc<str>,
}

/// The result of a tool.
#[derive(Debug)]
pub struct PartResult {
    /// The output for the model; the failure text, where the tool failed.
    pub output: ToolOutput,
    /// The failure that the model is told of.
    pub error: Option<ToolError>,
    /// The time the tool took.
    pub took: Duration,
}

/// The failure of a part.
#[derive(Debug)]
pub struct PartFailure {
    /// The error.
    pub error: Error,
    /// The text for the model, where it may be told instead.
    pub text: Option<String>,
}

impl From<HandoffFailure> for PartFailure {
    fn from(failure: HandoffFailure) -> Self {
        match failure {
            HandoffFailure::Fatal(error) => Self { error, text: None },
            HandoffFailure::Told(told) => Self {
                error: told.0,
                text: Some(told.1),
            },
        }
    }
}

impl PartCall {
    fn to_item(&self) -> Item {
        Item::function_call(&self.call_id, &self.tool, &self.arguments)
    }

    fn to_tool_call(&self) -> ToolCall {
        ToolCall {
            tool: self.tool.clone(),
            call: self.to_item(),
        }
    }

    fn to_handoff_call(&self, to: &Arc<str>) -> HandoffCall {
        HandoffCall {
            tool: self.tool.clone(),
            to: to.clone(),
            call: self.to_item(),
        }
    }
}

impl<C: Send + Sync + 'static> AgentParts<C> {
    /// Begins a trace, with the parts of its first agent.
    pub fn new(agent: &Agent<C>, config: Arc<RunConfig<C>>, context: Arc<C>) -> Self {
        let run = Run::new(
            agent_keys::agent_ref(agent, agent),
            Input::Items(Vec::new().into()),
        );
        let outer = Surroundings::default();
        let (start, agent) = (agent.clone(), agent.clone());
        let mut driver = Driver::new(run, start, agent, config, context, &outer);
        driver.begin_trace(TraceScope::Run);
        driver.open_agent_span();
        let calls_hooks = true;
        Self {
            driver,
            calls_hooks,
        }
    }

    /// The same parts, which call no hooks.
    #[must_use]
    pub fn without_hooks(mut self) -> Self {
        self.calls_hooks = false;
        self
    }

    /// The parts of another agent, with the same context, settings, usage and trace. Its spans lie
    /// beside those of this one, which must live as long.
    pub fn of_agent(&self, agent: &Agent<C>) -> Self {
        let outer = Surroundings::default();
        let run = Run::clone(&self.driver.run);
        let (config, context) = (self.driver.config.clone(), self.driver.context.clone());
        let start = self.driver.start.clone();
        let mut driver = Driver::new(run, start, agent.clone(), config, context, &outer);
        driver.added_usage = self.driver.added_usage.clone();
        driver.trace = self.driver.trace.clone();
        driver.is_inside_trace = true;
        driver.root_span = self.driver.task_span.id().or(self.driver.root_span);
        driver.open_agent_span();
        let calls_hooks = self.calls_hooks;
        Self {
            driver,
            calls_hooks,
        }
    }

    /// The agent.
    pub fn agent(&self) -> &Agent<C> {
        &self.driver.agent
    }

    /// The context for user code, with the usage so far.
    pub fn context(&self) -> RunContext<C> {
        self.driver.ctx()
    }

    /// Counts usage of the model.
    pub fn add_usage(&self, usage: Usage) {
        self.driver.added_usage.add(usage);
    }

    /// The instructions, made by their function if they have one.
    pub async fn instructions(&self) -> Result<Option<Arc<str>>, Error> {
        let made = self.driver.agent.make_instructions(self.driver.ctx());
        self.run_code("the function for the instructions", made)
            .await
    }

    /// The stored prompt, made by its function if it has one.
    pub async fn prompt(&self) -> Result<Option<Arc<Prompt>>, Error> {
        let made = self.driver.agent.make_prompt(self.driver.ctx());
        self.run_code("the function for the prompt", made).await
    }

    /// Evaluates the condition of a tool.
    pub async fn tool_is_enabled(&self, tool: &Tool<C>) -> Result<bool, Error> {
        let ctx = self.driver.ctx();
        let check = tool.enabled().check(&ctx, &self.driver.agent);
        self.run_code("a condition", check).await
    }

    /// Evaluates the condition of a handoff.
    pub async fn handoff_is_enabled(&self, handoff: &Handoff<C>) -> Result<bool, Error> {
        let ctx = self.driver.ctx();
        let check = handoff.enabled().check(&ctx, &self.driver.agent);
        self.run_code("a condition", check).await
    }

    /// The problem with how a tool or a handoff was built.
    pub fn problem(tool: Option<&Tool<C>>, handoff: Option<&Handoff<C>>) -> Option<Error> {
        let tool = tool.and_then(|tool| Some((tool.name(), tool.problem()?.to_owned())));
        let handoff = || handoff.and_then(|edge| Some((edge.tool_name(), edge.problem()?)));
        let (name, problem) = tool.or_else(handoff)?;
        Some(configuration_error(format!("\"{name}\": {problem}")))
    }

    /// Evaluates the rule by which the call of a tool needs approval.
    pub async fn tool_needs_approval(&self, tool: &Tool<C>, call: &PartCall) -> bool {
        if tool.approval().is_never() {
            return false;
        }
        let made = call.to_tool_call();
        let text = call.arguments.clone();
        let context = || {
            self.driver
                .tool_context(&made, text, &OpenSpan::default(), None)
        };
        let arguments = readable_arguments(&made.call);
        let needed = tool.approval().applies(context, arguments, &call.tool);
        self.driver
            .trace
            .within(self.driver.parent_span(), needed)
            .await
    }

    /// Evaluates the rule by which the call of a handoff needs approval.
    pub async fn handoff_needs_approval(
        &self,
        handoff: &Handoff<C>,
        to: &Agent<C>,
        call: &PartCall,
    ) -> bool {
        if handoff.approval().is_never() {
            return false;
        }
        let made = call.to_handoff_call(to.name_arc());
        let context = || self.driver.handoff_context(to, &made);
        let arguments = readable_arguments(&made.call);
        let needed = handoff.approval().applies(context, arguments, &call.tool);
        self.driver
            .trace
            .within(self.driver.parent_span(), needed)
            .await
    }

    /// The text for the model about a call that a person has rejected.
    pub async fn rejection_text(&self, call: &PartCall, decision: &Decision) -> String {
        self.driver
            .rejection_text(&call.tool, &call.call_id, decision)
            .await
    }

    /// Asks the guardrails on a call. Returns the output for the model if the tool must not run.
    pub async fn check_call(
        &self,
        tool: &Tool<C>,
        call: &PartCall,
    ) -> Result<Option<ToolOutput>, Error> {
        let ctx = self.tool_context(tool, call, &OpenSpan::default());
        self.driver.check_call(tool, &ctx, &mut Vec::new()).await
    }

    /// Runs a tool whose call the guardrails have allowed: hooks, the tool, the guardrails on its output.
    /// The error of a tool whose failures end a run has the text for a model that is told instead.
    pub async fn run_tool(
        &self,
        tool: &Tool<C>,
        call: &PartCall,
    ) -> Result<PartResult, PartFailure> {
        let is_traced = self.driver.config.trace_sensitive_data;
        let mut span = self
            .driver
            .trace
            .span(self.driver.parent_span(), || SpanData::Function {
                name: call.tool.clone(),
                input: is_traced.then(|| call.arguments.clone()),
                output: None,
            });
        let ctx = self.tool_context(tool, call, &span);
        let ran = self.run_in_span(tool, &ctx, &mut span).await;
        match &ran {
            Ok(ran) => {
                let output = || is_traced.then(|| ran.output.text().into_owned());
                update_span!(span, Function.output = output());
            }
            Err(failure) => self
                .driver
                .mark_failed_tool(&mut span, tool, &failure.error),
        }
        ran
    }

    async fn run_in_span(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        span: &mut OpenSpan,
    ) -> Result<PartResult, PartFailure> {
        let driver = &self.driver;
        let fatal = |error| PartFailure { error, text: None };
        let started = self.notify(HookCall::ToolStart(tool, ctx)).await;
        started.map_err(fatal)?;
        let start = Instant::now();
        let outcome = driver.trace.within(span.id(), tool.invoke(ctx.clone()));
        let mut outcome = outcome.await;
        if ctx.take_inner_run().is_some() {
            outcome = Err(ToolError::new(
                "a call inside the tool waits for a decision, and nothing waits inside of tools here",
            ));
        }
        let text = outcome.as_ref().err().map(ToolError::default_text);
        let made = driver.outcome_for_model(tool, ctx, span, outcome).await;
        let (output, error) = made.map_err(|error| PartFailure { error, text })?;
        let took = start.elapsed();
        let mut result = ToolResult {
            tool: tool.spec().name.clone(),
            output,
            data: ctx.attached(),
        };
        let mut results = Vec::new();
        let checked = driver.check_tool_output(tool, ctx, &mut result, &mut results);
        checked.await.map_err(fatal)?;
        let end = ToolEnd {
            output: &result.output,
            error: error.as_ref(),
            duration: took,
        };
        let ended = self.notify(HookCall::ToolEnd(tool, ctx, &end)).await;
        ended.map_err(fatal)?;
        Ok(PartResult {
            output: result.output,
            error,
            took,
        })
    }

    /// Parses the arguments of a handoff's call, checks its condition again, and calls its callback.
    pub async fn call_back(
        &self,
        handoff: &Handoff<C>,
        to: &Agent<C>,
        call: &PartCall,
        is_approved: bool,
    ) -> Result<HandoffDecision, PartFailure> {
        let made = call.to_handoff_call(to.name_arc());
        let driver = &self.driver;
        let mut span = driver
            .trace
            .span(driver.parent_span(), || SpanData::Handoff {
                from: driver.agent.name_arc().clone(),
                to: Some(to.name_arc().clone()),
                payload: None,
                carried_items: None,
                details: Box::default(),
            });
        let route = Route {
            handoff: handoff.clone(),
            redirect: None,
            trigger: HandoffTrigger::Model,
        };
        let payload = parse_payload(&route, &made, &mut span)?;
        driver.recheck_condition(handoff, &span).await?;
        let called = driver.call_back_approved(handoff, to, &made, payload, is_approved, &span);
        let decision = called.await.inspect_err(|_| span.fail("Handoff failed"))?;
        Ok(decision)
    }

    /// Parses the arguments of a handoff's call, so that a call that cannot be taken asks nobody.
    pub fn parse_payload(
        handoff: &Handoff<C>,
        to: &Agent<C>,
        call: &PartCall,
    ) -> Result<Value, PartFailure> {
        let made = call.to_handoff_call(to.name_arc());
        let route = Route {
            handoff: handoff.clone(),
            redirect: None,
            trigger: HandoffTrigger::Model,
        };
        let parsed = parse_payload(&route, &made, &mut OpenSpan::default())?;
        Ok(parsed.value)
    }

    /// The output of the call of a handoff that is taken.
    pub fn transfer_message(handoff: &Handoff<C>, to: &Agent<C>) -> String {
        handoff.transfer_message(to, &Value::Null).into_owned()
    }

    /// Asks an output guardrail about a text. `None` is its failure.
    pub async fn check_output(
        &self,
        guardrail: &OutputGuardrail<C>,
        text: &str,
    ) -> Result<GuardrailResult, Error> {
        let output = FinalOutput::Text(text.into());
        let (ctx, agent) = (self.driver.ctx(), self.driver.agent.clone());
        let check = || (guardrail.check)(ctx, agent, output);
        let (kind, name) = (GuardrailKind::Output, guardrail.name_arc());
        if guardrail.may_replace {
            let replace = |output: FinalOutput| Ok(output.text().into_owned());
            return self.driver.ask(kind, name, check, replace).await;
        }
        self.driver.ask(kind, name, check, refuse_replacement).await
    }

    /// Calls the hooks on the agent's start.
    pub async fn notify_start(&self) -> Result<(), Error> {
        self.notify(HookCall::AgentStart).await
    }

    /// Calls the hooks on the agent's end.
    pub async fn notify_end(&self, output: &str) -> Result<(), Error> {
        let output = FinalOutput::Text(output.into());
        self.notify(HookCall::AgentEnd(&output)).await
    }

    /// Calls the hooks on a handoff that is being taken.
    pub async fn notify_handoff(&self, to: &Agent<C>, call: &PartCall) -> Result<(), Error> {
        let made = call.to_handoff_call(to.name_arc());
        let payload = json::arguments_value(&call.arguments);
        let transfer = Transfer {
            from: &self.driver.agent,
            to,
            call: &made,
            payload: &payload,
        };
        self.notify(HookCall::Handoff(&transfer)).await
    }

    /// Returns `true` if the agent or the settings have hooks that are called.
    pub fn has_hooks(&self) -> bool {
        self.calls_hooks && self.driver.has_hooks()
    }

    async fn notify(&self, occasion: HookCall<'_, C>) -> Result<(), Error> {
        if !self.calls_hooks {
            return Ok(());
        }
        self.driver.call_hooks(occasion).await
    }

    fn tool_context(&self, tool: &Tool<C>, call: &PartCall, span: &OpenSpan) -> ToolContext<C> {
        // Guardrails see what the tool will read.
        let arguments = tool.coerced(&call.arguments);
        let arguments = arguments.map_or_else(|| call.arguments.clone(), Arc::from);
        self.driver
            .tool_context(&call.to_tool_call(), arguments, span, None)
    }

    async fn run_code<T>(
        &self,
        what: &str,
        code: impl Future<Output = Result<T, crate::callback::BoxError>>,
    ) -> Result<T, Error> {
        let ran = self
            .driver
            .run_code(self.driver.parent_span(), what, code)
            .await;
        ran.map_err(|error| error.at_agent(self.driver.agent.name()))
    }
}

/// The name of the part that the model of a session replaces.
pub const MODEL: &str = "its model";

/// The name of the part that the settings of a session replace.
pub const MODEL_SETTINGS: &str = "its model settings";

/// A text agent's parts, for conversions into agents of other kinds: those that only runs have.
#[must_use]
pub fn parts_of_runs<C>(agent: &Agent<C>) -> Vec<&'static str> {
    let def = &agent.def;
    let parts = [
        (def.is_person, "the person who answers"),
        (def.model.is_some(), MODEL),
        (def.settings.is_some(), MODEL_SETTINGS),
        (def.output.is_some(), "its output type"),
        (!def.input_guardrails.is_empty(), "its input guardrails"),
        (
            !matches!(def.tool_use.0, ToolUseBehaviorKind::RunModelAgain),
            "its tool use behaviour",
        ),
        (def.keeps_tool_choice, "the tool choice that it keeps"),
        (!def.knowledge.is_empty(), "its knowledge"),
        (
            def.explains_handoffs,
            "the handoff prompt in its instructions",
        ),
        (
            def.active_agent.is_some(),
            "its policy for the active agent",
        ),
        (
            def.tools.iter().any(|tool| tool.as_hosted().is_some()),
            "tools that the provider runs",
        ),
        (
            def.tools.iter().any(|tool| tool.spec().takes_text()),
            "free-form tools",
        ),
    ];
    let lost = parts.into_iter().filter(|(is_set, _)| *is_set);
    lost.map(|(_, part)| part).collect()
}

/// The parts of a handoff that only runs have.
#[must_use]
pub fn handoff_parts_of_runs<C>(handoff: &Handoff<C>) -> Vec<&'static str> {
    let parts = [
        (handoff.input_filter().is_some(), "an input filter"),
        (handoff.nest_history().is_some(), "nested history"),
        (!handoff.guardrails().is_empty(), "guardrails"),
    ];
    let lost = parts.into_iter().filter(|(is_set, _)| *is_set);
    lost.map(|(_, part)| part).collect()
}

/// The guardrails on the output that an agent has.
pub fn output_guardrails<C>(agent: &Agent<C>) -> &[OutputGuardrail<C>] {
    &agent.def.output_guardrails
}

/// The agent that a handoff leads to, where it leads to one.
pub fn handoff_target<C>(agent: &Agent<C>, handoff: &Handoff<C>) -> Option<Agent<C>> {
    handoff::target(agent, handoff)
}

/// Returns `true` if the tool has a condition.
pub fn tool_is_conditional<C>(tool: &Tool<C>) -> bool {
    matches!(tool.enabled(), Enabled::When(_))
}

/// Returns `true` if both are clones of one guardrail.
pub fn is_same_guardrail<C>(one: &OutputGuardrail<C>, other: &OutputGuardrail<C>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(&one.check), Arc::as_ptr(&other.check))
}

/// Creates an error of user code, of the configuration or of the model's behaviour.
pub fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message)
}

impl<C> std::fmt::Debug for AgentParts<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AgentParts")
            .field(&self.driver.agent)
            .finish()
    }
}
