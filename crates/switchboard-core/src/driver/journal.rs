//! The seam between the effects of a run and its journal. Without a journal, effects are awaited as they
//! are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Driver;
use super::handoff_decision::HandoffFailure;
use super::tool_calls::InvokedTool;
use crate::agent::{Agent, ToolResult};
use crate::callback::{BoxError, BoxFuture};
use crate::condition::{Enabled, enabled_at};
use crate::error::{Error, ErrorKind, StoredFailure};
use crate::handoff::HandoffInputData;
use crate::items::Item;
use crate::journal::{Carried, Failure, JournalScope, Repeat, StepKind, ToolWaits};
use crate::model::{
    AddedUsage, ModelHandle, ModelRequest, ModelResponse, RequestUsage, RetryAdvice, TextHash,
};
use crate::offered_tools::Offer;
use crate::run::tool_results::RanTool;
use crate::tool::{OutcomeUnknown, Tool, ToolContext, ToolError};
use crate::trace::trace_handle::OpenSpan;

impl<C: Send + Sync + 'static> Driver<C> {
    /// The name of a step; empty for a run without a journal, which needs none.
    pub(super) fn step_name(&self, name: fmt::Arguments<'_>) -> String {
        match &self.journal {
            None => String::new(),
            Some(_) => name.to_string(),
        }
    }

    /// The place of runs inside a call in the journal.
    pub(super) fn journal_inside(&self, call: &Item) -> Option<JournalScope> {
        let journal = self.journal.as_deref()?;
        let call_id = call.call_id().unwrap_or_default();
        Some(journal.inside(self.run.turns(), &call_id))
    }

    /// The indexes of the tools of an agent that are enabled.
    pub(super) async fn enabled_tools(&self, agent: &Agent<C>) -> Result<Vec<usize>, BoxError> {
        let tools = agent.tools().iter();
        let conditions = tools.map(|tool| (&**tool.name_arc(), tool.enabled()));
        self.enabled(agent, "tools", conditions.collect()).await
    }

    /// Evaluates the conditions of the handoffs and resolves the offer, with the tools that are enabled.
    pub(super) async fn offer_with_tools(
        &self,
        agent: &Agent<C>,
        tools: Vec<usize>,
    ) -> Result<Offer, BoxError> {
        let policy = self.config.tool_names;
        let names = policy.names_of(agent.handoffs());
        let handoffs = names.iter().zip(agent.handoffs());
        let conditions = handoffs.map(|(name, handoff)| (&**name, handoff.enabled()));
        let handoffs = self.enabled(agent, "handoffs", conditions.collect());
        Ok(Offer::of_enabled(agent, policy, tools, handoffs.await?))
    }

    /// The indexes of the conditions that hold. They are recorded by name.
    async fn enabled(
        &self,
        agent: &Agent<C>,
        what: &str,
        conditions: Vec<(&str, &Enabled<C>)>,
    ) -> Result<Vec<usize>, BoxError> {
        let ctx = self.ctx();
        let hold = enabled_at(
            conditions.iter().map(|(_, condition)| *condition),
            agent,
            &ctx,
        );
        let is_conditional = conditions
            .iter()
            .any(|(_, condition)| condition.is_conditional());
        if self.journal.is_none() || !is_conditional {
            return hold.await;
        }
        let named = async {
            let hold = hold.await?;
            let names = hold.iter().map(|at| conditions[*at].0.to_owned());
            Ok::<Vec<String>, BoxError>(names.collect())
        };
        let names = condition!(self, Condition, what, named)?;
        let all = conditions.iter().enumerate();
        let hold = all.filter(|(_, (name, _))| names.iter().any(|held| held == name));
        Ok(hold.map(|(at, _)| at).collect())
    }

    /// Evaluates a rule that cannot fail. If the journal fails, so does the next step, and the rule holds.
    pub(super) async fn rule(&self, name: &str, work: impl Future<Output = bool> + Send) -> bool {
        if self.journal.is_none() {
            return work.await;
        }
        let work = async { Ok::<_, Error>(work.await) };
        condition!(self, Approval, name, work).unwrap_or(true)
    }

    /// Compares what a filter has left with what it left before the run was interrupted.
    pub(super) async fn verify_filter(
        &self,
        name: &str,
        left: &HandoffInputData<C>,
    ) -> Result<(), Error> {
        let Some(journal) = self.journal.as_deref() else {
            return Ok(());
        };
        let mut hash = TextHash::new();
        for item in &left.history_items() {
            hash.text(item.as_json());
        }
        hash.end_list();
        let shown = left.input_items().unwrap_or(left.new_items());
        for made in left.pre_handoff_items().iter().chain(shown.iter()) {
            hash.text(made.item().as_json());
        }
        let hash = hash.to_string();
        let place = (self.run.turns(), StepKind::Filter, name);
        let recorded = journal.carry_out(place, Box::pin(async { Ok::<_, Error>(hash.clone()) }));
        if recorded.await? != hash {
            tracing::warn!(
                handoff = name,
                "the filter of a handoff leaves something else than before the run was interrupted"
            );
        }
        Ok(())
    }

    /// Calls the tool's code, unless the journal has its outcome. A tool that may run once and was interrupted is
    /// not called again, and the model is told.
    pub(super) async fn invoke_journaled(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        at: usize,
        span: &mut OpenSpan,
    ) -> Result<InvokedTool, Error> {
        let Some(journal) = self.journal.as_deref() else {
            return self.invoke_tool(tool, ctx, at, span).await;
        };
        let used = AddedUsage::within(self.added_usage.clone());
        let counted = ctx.counting(used.clone());
        let mut waits = None;
        let invoke = async {
            match self.invoke_tool(tool, &counted, at, span).await? {
                InvokedTool::Ran(ran) => Ok(ToolStep {
                    ran: *ran,
                    usage: used.pending(),
                }),
                InvokedTool::Waits(inner) => {
                    waits = Some(inner);
                    // The run inside is made again from its own steps.
                    Err(Error::new(ErrorKind::Tool, "the tool waits").caused_by(ToolWaits))
                }
            }
        };
        let name = format!("{} {}", ctx.tool(), ctx.call_id());
        let place = (self.run.turns(), StepKind::Tool, &*name);
        let made = journal.step(place, tool.repeat(), Box::pin(invoke)).await;
        if let Some(inner) = waits {
            return Ok(InvokedTool::Waits(inner));
        }
        let ran = match made? {
            Carried::Ran(step) => step.ran,
            Carried::Recorded(step) => {
                for request in step.usage {
                    self.added_usage.add_request(request);
                }
                if let Some(data) = &step.ran.result.data {
                    ctx.attach(data.clone());
                }
                RanTool { at, ..step.ran }
            }
            Carried::Unknown => {
                let error = ToolError::new(OutcomeUnknown(ctx.tool().into()));
                let (output, error) = self.outcome_for_model(tool, ctx, span, Err(error)).await?;
                let result = ToolResult {
                    tool: tool.spec().name.clone(),
                    output,
                    data: None,
                };
                RanTool::invoked(at, result, error, Duration::ZERO)
            }
        };
        Ok(InvokedTool::Ran(Box::new(ran)))
    }

    /// Asks the model, in a future that may be polled beside others.
    pub(super) fn generate_beside<'a>(
        &'a self,
        model: &'a ModelHandle,
        request: ModelRequest,
    ) -> BoxFuture<'a, Result<ModelResponse, Error>> {
        match self.journal.as_deref() {
            None => Box::pin(self.generate(model, request)),
            Some(journal) => Box::pin(self.replay_response(journal, model, request)),
        }
    }

    /// Asks the model, unless the journal has the response.
    pub(super) async fn replay_response(
        &self,
        journal: &JournalScope,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, Error> {
        let shown = shown_to_model(&request);
        let failed = request.clone();
        let cache_group = self.added_usage.cache_group();
        let ask = async {
            let response = self.generate(model, request).await;
            let response = response.map_err(|error| match error.cause() {
                Some(cause) if may_pass(&model.retry_advice(cause, &failed)) => error.transient(),
                _ => error,
            })?;
            Ok(ModelStep {
                response,
                shown: shown.clone(),
                cache_key: cache_group.and_then(|group| group.run_key()).cloned(),
            })
        };
        let place = (self.run.turns(), StepKind::Model, self.agent.name());
        let step = match journal.step(place, Repeat::Allowed, Box::pin(ask)).await? {
            Carried::Recorded(step) => step,
            made => return made.into_value().map(|step: ModelStep| step.response),
        };
        if step.shown != shown {
            tracing::warn!(
                agent = self.agent.name(),
                turn = self.run.turns() + 1,
                "the model was shown something else before the run was interrupted; its answer from then \
                 is used"
            );
        }
        if let (Some(group), Some(key)) = (cache_group, step.cache_key) {
            group.set_run_key(key);
        }
        let usage = self.request_usage(model.shared_name(), step.response.usage);
        self.added_usage.add_request(usage);
        Ok(step.response)
    }
}

/// A model call as it is recorded.
#[derive(Serialize, Deserialize)]
struct ModelStep {
    response: ModelResponse,
    /// The hash of what the model was shown.
    shown: String,
    /// The key of the provider's prompt cache, if the model has asked for a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_key: Option<Arc<str>>,
}

/// A tool that ran, as it is recorded.
#[derive(Serialize, Deserialize)]
pub(super) struct ToolStep {
    pub(super) ran: RanTool,
    /// The usage that the tool has added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) usage: Vec<RequestUsage>,
}

/// A hash of the conversation and the names that a model can call. Instructions often hold the time.
fn shown_to_model(request: &ModelRequest) -> String {
    let mut hash = TextHash::new();
    request
        .input
        .iter()
        .for_each(|item| hash.text(item.as_json()));
    hash.end_list();
    request.tools.iter().for_each(|tool| hash.text(&tool.name));
    let handoffs = request.handoffs.iter();
    handoffs.for_each(|handoff| hash.text(&handoff.tool_name));
    hash.to_string()
}

fn may_pass(advice: &RetryAdvice) -> bool {
    let by_status = |status| matches!(status, 408 | 409 | 429 | 500..);
    advice.suggested.unwrap_or_else(|| {
        advice.is_network_error || advice.is_timeout || advice.status.is_some_and(by_status)
    })
}

impl Failure for HandoffFailure {
    fn stored(&self) -> Option<StoredFailure> {
        match self {
            Self::Fatal(error) => error.stored(),
            Self::Told(told) => {
                let mut stored = told.0.stored()?;
                stored.text = Some(told.1.clone());
                Some(stored)
            }
        }
    }

    fn from_stored(mut stored: StoredFailure) -> Self {
        match stored.text.take() {
            None => Self::Fatal(Error::of_stored(stored)),
            Some(text) => Self::told(Error::of_stored(stored), text),
        }
    }

    fn of_journal(error: BoxError) -> Self {
        Self::Fatal(Error::of_journal(error))
    }
}
