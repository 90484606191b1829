//! What came of a run.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;

use super::handoff_log::HandoffRecord;
use super::machine::{Run, Step};
use crate::agent::Agent;
use crate::guardrail::GuardrailResult;
use crate::items::{Input, Items, RunItems};
use crate::model::{ModelResponse, Usage};
use crate::output::FinalOutput;

/// What came of a run.
pub struct RunResult<C = ()> {
    /// Boxed: a result is passed on again and again, and a task keeps room for the one it ends with.
    run: Box<Run>,
    agent: Agent<C>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunStatus {
    /// With a final output.
    Completed,
    /// It was stopped before; the run can be resumed.
    Stopped,
}

impl<C> RunResult<C> {
    pub(super) fn new(run: Box<Run>, agent: Agent<C>) -> Self {
        Self { run, agent }
    }

    /// How the run ended.
    pub fn status(&self) -> RunStatus {
        match self.run.step() {
            Step::Done(_) => RunStatus::Completed,
            _ => RunStatus::Stopped,
        }
    }

    /// The final output, where the run completed.
    pub fn final_output(&self) -> Option<&FinalOutput> {
        match self.run.step() {
            Step::Done(output) => Some(output),
            _ => None,
        }
    }

    /// The final output as text; empty where there is none.
    pub fn final_text(&self) -> Cow<'_, str> {
        self.final_output()
            .map(FinalOutput::text)
            .unwrap_or_default()
    }

    /// The final output as a value of `T`.
    ///
    /// # Errors
    /// Where it is not one, or there is none.
    pub fn final_output_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.final_output() {
            Some(output) => output.parse(),
            None => Err(serde::de::Error::custom("the run has no final output")),
        }
    }

    /// The agent that had the conversation at the end; the next message is best given to it.
    pub fn last_agent(&self) -> &Agent<C> {
        &self.agent
    }

    /// The handoffs of the run in their order, those refused among them. Filters do not change it.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, HandoffOutcome, Runner, filters, handoff};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let billing: Agent = Agent::new("Billing");
    /// let triage =
    ///     Agent::new("Triage").handoff(handoff(&billing).filter(filters::remove_all_tools()));
    /// let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Done.");
    /// let result = Runner::new(&triage).model(model).run("My bill is wrong").await?;
    /// let taken = &result.handoffs()[0];
    /// assert_eq!((&*taken.from, &*taken.to), ("Triage", "Billing"));
    /// assert_eq!(taken.outcome, HandoffOutcome::Taken);
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn handoffs(&self) -> &[HandoffRecord] {
        self.run.handoffs()
    }

    /// What the last agent's conversation started from.
    pub fn input(&self) -> &Input {
        self.run.input()
    }

    /// What the run made.
    pub fn new_items(&self) -> &RunItems {
        self.run.new_items()
    }

    /// The conversation to go on from: give it to the next run with the next message added.
    pub fn to_input_list(&self) -> Items {
        self.run.to_input_list()
    }

    /// What the models answered.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        self.run.raw_responses()
    }

    /// What the models used.
    pub fn usage(&self) -> &Usage {
        self.run.usage()
    }

    /// What the input guardrails found.
    pub fn input_guardrail_results(&self) -> &[GuardrailResult] {
        self.run.input_guardrail_results()
    }

    /// What the output guardrails found.
    pub fn output_guardrail_results(&self) -> &[GuardrailResult] {
        self.run.output_guardrail_results()
    }

    /// What the guardrails on tools found.
    pub fn tool_guardrail_results(&self) -> &[GuardrailResult] {
        self.run.tool_guardrail_results()
    }

    /// What the guardrails on handoffs found.
    pub fn handoff_guardrail_results(&self) -> &[GuardrailResult] {
        self.run.handoff_guardrail_results()
    }

    /// The run itself, to look at, store, or resume.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run itself, to keep.
    pub fn into_run(self) -> Run {
        *self.run
    }
}

impl<C> Clone for RunResult<C> {
    fn clone(&self) -> Self {
        Self {
            run: self.run.clone(),
            agent: self.agent.clone(),
        }
    }
}

impl<C> fmt::Debug for RunResult<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResult")
            .field("status", &self.status())
            .field("final_output", &self.final_output())
            .field("last_agent", &self.agent.name())
            .field("new_items", &self.run.new_items())
            .finish_non_exhaustive()
    }
}
