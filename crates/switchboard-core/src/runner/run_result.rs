//! The result of a run.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::agent::Agent;
use crate::approval::Interruption;
use crate::guardrail::{GuardrailKind, GuardrailResult};
use crate::items::{Input, Items, RunItems};
use crate::model::{ModelResponse, RequestUsage, Usage};
use crate::output::{FinalOutput, NotInUnion, OutputUnion};
use crate::run::{HandoffRecord, Run, Step};

/// The result of a run.
pub struct RunResult<C = ()> {
    run: Box<Run>,
    agent: Agent<C>,
}

/// The status of a run that has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunStatus {
    /// It has a final output.
    Completed,
    /// Calls wait for a person's decision, or a person is asked for an answer: see
    /// [`approval`](crate::approval) and [`people`](crate::people).
    Interrupted,
    /// It was stopped before its end and can be resumed.
    Stopped,
}

impl<C> RunResult<C> {
    pub(crate) fn new(run: Box<Run>, agent: Agent<C>) -> Self {
        Self { run, agent }
    }

    /// The status of the run.
    pub fn status(&self) -> RunStatus {
        match self.run.step() {
            Step::Done(_) => RunStatus::Completed,
            Step::AwaitDecision => RunStatus::Interrupted,
            _ => RunStatus::Stopped,
        }
    }

    /// The calls that wait for a decision; see [`Run::interruptions`].
    pub fn interruptions(&self) -> Vec<Interruption> {
        self.run.interruptions()
    }

    /// The final output, if the run completed.
    pub fn final_output(&self) -> Option<&FinalOutput> {
        match self.run.step() {
            Step::Done(output) => Some(output),
            _ => None,
        }
    }

    /// The final output as text; empty if there is none.
    pub fn final_text(&self) -> Cow<'_, str> {
        self.final_output()
            .map(FinalOutput::text)
            .unwrap_or_default()
    }

    /// The final output as a `T`.
    ///
    /// # Errors
    /// An error if it is not a `T`, or there is none.
    pub fn final_output_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.final_output() {
            Some(output) => output.parse(),
            None => Err(serde::de::Error::custom("the run has no final output")),
        }
    }

    /// The final output as the variant of `U` that has the type of the agent that gave it; see
    /// [`output_union!`](crate::output_union).
    ///
    /// # Errors
    /// An error if `U` has no such variant, or the output is not of the type, because the run ended
    /// with the result of a tool for example.
    pub fn output_of<U: OutputUnion>(&self) -> Result<U, NotInUnion> {
        let agent = &self.agent;
        let read = self.final_output().and_then(|output| {
            let rust_type = agent.output_rust_type()?;
            U::read(rust_type, output)
        });
        let name = agent.name();
        match read {
            Some(Ok(output)) => Ok(output),
            Some(Err(error)) => Err(NotInUnion(format!(
                "the output of \"{name}\" is not of its type: {error}"
            ))),
            None => Err(NotInUnion(format!(
                "no variant has the type that \"{name}\" answers with; check the team with \
                 Team::check_output"
            ))),
        }
    }

    /// The agent that has the conversation; pass it the next message.
    pub fn last_agent(&self) -> &Agent<C> {
        &self.agent
    }

    /// The handoffs of the run in order, refused ones included. Filters do not change them.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::run::HandoffOutcome;
    /// use switchboard_core::{Agent, Runner, filters, handoff};
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

    /// The input of the last agent: the run's input, or what the filter of a handoff made of it.
    pub fn input(&self) -> &Input {
        self.run.input()
    }

    /// All items the run has made.
    pub fn new_items(&self) -> &RunItems {
        self.run.new_items()
    }

    /// The conversation so far: pass it to the next run with the next message added.
    pub fn to_input_list(&self) -> Items {
        self.run.to_input_list()
    }

    /// The conversation so far as the last agent saw it, without what a filter or a nested history has
    /// left out. See [`Run::to_normalized_input_list`].
    ///
    /// ```
    /// use switchboard_core::items::{ItemKind, Items};
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let billing: Agent = Agent::new("Billing");
    /// let triage = Agent::new("Triage").handoff(&billing);
    /// let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Done.");
    /// let runner = Runner::new(&triage).model(model).nest_handoff_history(true);
    /// let result = runner.run("My bill is wrong").await?;
    /// let has_calls =
    ///     |items: Items| items.iter().any(|item| item.kind() == ItemKind::FunctionCall);
    /// assert!(has_calls(result.to_input_list()));
    /// assert!(!has_calls(result.to_normalized_input_list()));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn to_normalized_input_list(&self) -> Items {
        self.run.to_normalized_input_list()
    }

    /// The responses of the models.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        self.run.raw_responses()
    }

    /// Requests and tokens of all models of the run.
    pub fn usage(&self) -> &Usage {
        self.run.usage()
    }

    /// The usage of each model response; see [`Run::request_usage`].
    ///
    /// ```
    /// use switchboard_core::model::{RequestUsage, Usage};
    /// use switchboard_core::RunResult;
    ///
    /// /// Requests with more than 200 000 tokens of input have another price.
    /// fn long_requests(result: &RunResult) -> Vec<&RequestUsage> {
    ///     let requests = result.request_usage().iter();
    ///     requests.filter(|request| request.usage.input_tokens > 200_000).collect()
    /// }
    /// ```
    pub fn request_usage(&self) -> &[RequestUsage] {
        self.run.request_usage()
    }

    /// The provider's identifier of the last response; see [`Run::last_response_id`].
    pub fn last_response_id(&self) -> Option<&str> {
        self.run.last_response_id()
    }

    /// The results of the guardrails of one kind.
    pub fn guardrail_results(&self, kind: GuardrailKind) -> &[GuardrailResult] {
        self.run.guardrail_results(kind)
    }

    /// The run, to inspect, store or resume.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Converts into the run.
    pub fn into_run(self) -> Run {
        *self.run
    }
}

impl_clone! { struct RunResult<C> { run, agent } }

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

impl<C> Serialize for RunResult<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result = serializer.serialize_struct("RunResult", 6)?;
        result.serialize_field("input", self.input())?;
        result.serialize_field("new_items", self.new_items())?;
        result.serialize_field("raw_responses", self.raw_responses())?;
        let output = self.final_output().map(FinalOutput::to_value);
        result.serialize_field("final_output", &output)?;
        result.serialize_field("last_agent", &json!({"name": self.agent.name()}))?;
        result.serialize_field("usage", self.usage())?;
        result.end()
    }
}
