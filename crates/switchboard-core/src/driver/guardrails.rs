//! Guardrails on the input and the output, and the end of a run.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::{FutureExt as _, TryFutureExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::held_events::hidden_output;
use super::hooks::HookCall;
use super::{Driver, user_error};
use crate::callback::{BoxError, Outcome, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{
    Decision, GuardrailKind, GuardrailOutcome, GuardrailResult, InputGuardrail, InputMode,
    OutputGuardrail, Verdict,
};
use crate::output::FinalOutput;
use crate::run::Step;
use crate::run::guardrail_results::InputChecks;
use crate::runner::blocked_output_text;
use crate::stream::EventKind;
use crate::trace::SpanData;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Notifies hooks of the final output, checks it, and ends the run.
    pub(super) async fn conclude(&mut self) -> Result<(), Error> {
        if let Some(error) = self.withheld_error().await {
            return Err(error);
        }
        let is_fallback = self.run.turn().is_some_and(|turn| turn.is_fallback);
        if let Some(turn) = self.run.turn() {
            let (items, is_reported) = (turn.items.clone(), turn.end_reported);
            // A fallback is shown once the guardrails have passed it.
            if !is_fallback {
                self.report_items(&items).await;
            }
            if !is_reported && let Step::Conclude(output) = self.run.step() {
                self.call_hooks(HookCall::AgentEnd(output)).await?;
            }
        }
        self.run_mut().end_reported();
        self.end_turn_span();
        self.run_mut().guardrails.output.begin_attempt();
        let mut replacement = None;
        if self.has_output_guardrails() {
            replacement = Box::pin(self.check_output()).await?;
        }
        if self.events.is_some() {
            Box::pin(self.report_output(replacement.as_deref(), is_fallback)).await;
        }
        self.run_mut().conclude();
        self.reported = None;
        Ok(())
    }

    /// Reports the output that the guardrails have passed, or what they have put in its place.
    async fn report_output(&mut self, replaced: Option<&Replaced>, is_fallback: bool) {
        let Some(turn) = self.run.turn() else {
            return;
        };
        let items = turn.items.clone();
        let is_held = self.holds_output_back();
        if let (Some(Replaced { was, by }), true) = (replaced, is_held) {
            let text = hidden_output(by);
            self.release_without_output(Some(was), &text).await;
            if !self.run.ends_at_tool() {
                self.report_replacement(&by.text()).await;
            }
            self.report_items(&items).await;
        } else if is_fallback {
            self.release_without_output(None, "").await;
            self.report_items(&items).await;
        } else {
            self.release_held().await;
        }
    }

    /// The error of a run whose output a guardrail has rejected: it cannot be concluded any more.
    async fn withheld_error(&self) -> Option<Error> {
        if !self.run.turn()?.is_withheld {
            return None;
        }
        let results = self.run.guardrail_results(GuardrailKind::Output);
        self.check_trip(GuardrailKind::Output, results).await.err()
    }

    pub(super) fn has_output_guardrails(&self) -> bool {
        self.output_guardrails().next().is_some()
    }

    pub(super) fn output_guardrails(&self) -> impl Iterator<Item = &OutputGuardrail<C>> {
        let own = self.agent.def.output_guardrails.iter();
        own.chain(&self.config.output_guardrails)
    }

    /// Asks the guardrails on the output: first those that may replace it, in order, then those that
    /// only check, concurrently.
    ///
    /// Returns what they have replaced the output with.
    async fn check_output(&mut self) -> Result<Option<Box<Replaced>>, Error> {
        let Step::Conclude(output) = self.run.step() else {
            return Ok(None);
        };
        let was = output.clone();
        let mut output = output.clone();
        let mut is_replaced = false;
        let mut results = Vec::new();
        let all: Vec<_> = self.output_guardrails().cloned().collect();
        for guardrail in all.iter().filter(|guardrail| guardrail.may_replace) {
            let (ctx, agent, current) = (self.ctx(), self.agent.clone(), output.clone());
            let check = || (guardrail.check)(ctx, agent, current);
            let mut replacement = None;
            let replace = |output: FinalOutput| Ok(replacement.insert(output).text().into_owned());
            let asked = self.ask(GuardrailKind::Output, guardrail.name_arc(), check, replace);
            match asked.await {
                Ok(result) => results.push(result),
                Err(error) => {
                    self.run_mut().guardrails.output.add(results);
                    return Err(error);
                }
            }
            if let Some(replacement) = replacement {
                let what = format!("the guardrail \"{}\"", guardrail.name());
                output = self.to_output_type(&what, replacement)?;
                is_replaced = true;
            }
            if has_tripped(&results) {
                break;
            }
        }
        if !has_tripped(&results) {
            let checks = all.iter().filter(|guardrail| !guardrail.may_replace);
            let checks = checks.map(|guardrail| {
                let (ctx, agent, output) = (self.ctx(), self.agent.clone(), output.clone());
                let check = move || (guardrail.check)(ctx, agent, output);
                let name = guardrail.name_arc();
                self.ask(GuardrailKind::Output, name, check, refuse_replacement)
            });
            let (checked, failure) = self.until_one_trips(checks).await;
            results.extend(checked);
            if let Some(error) = failure {
                self.run_mut().guardrails.output.add(results);
                return Err(error);
            }
        }
        let passed = self.check_trip(GuardrailKind::Output, &results).await;
        self.run_mut().guardrails.output.add(results);
        if let Err(error) = passed {
            let code = self.config.blocked_output_text.as_ref();
            let text = blocked_output_text(code, error.guardrail());
            if let (Some(turn), Some(attached)) = (self.run.turn(), &mut self.conversation) {
                let items = turn.items.iter().map(|made| made.item().clone());
                attached.refused = self.config.keep_refused.then(|| items.collect());
            }
            self.run_mut().withhold_output(&text);
            self.save_or_warn().await;
            return Err(error);
        }
        self.run_mut().guardrails.output.settle();
        if !is_replaced {
            return Ok(None);
        }
        let run = Arc::make_mut(&mut self.run);
        run.replace_output(output.clone(), self.agent.output_type());
        Ok(Some(Box::new(Replaced { was, by: output })))
    }

    /// An output of the application in the form of the agent's output type.
    pub(super) fn to_output_type(
        &self,
        what: &str,
        output: FinalOutput,
    ) -> Result<FinalOutput, Error> {
        let Some(output_type) = self.agent.output_type() else {
            return Ok(FinalOutput::Text(output.text().as_ref().into()));
        };
        if self.run.ends_at_tool() {
            return Ok(output);
        }
        output_type.accept(&output).map_err(|error| {
            let message = format!(
                "{what} gave an output that is not a {}, which the agent answers with: {error}",
                output_type.name()
            );
            Error::new(ErrorKind::UserCode, message).caused_by(error)
        })
    }

    /// Asks the input guardrails that run before the model, and then saves the input.
    pub(super) async fn check_input_before_model(&mut self) -> Result<(), Error> {
        self.run_mut().guardrails.input.begin_attempt();
        if self.run.guardrails.input_checks != InputChecks::Pending {
            return Ok(());
        }
        if self.has_input_guardrails_before_model() {
            Box::pin(self.check_input()).await?;
            if self.run.turns() == 0 {
                let input = self.run.input().last_words().map(Cow::into_owned);
                self.emit(|| EventKind::InputPassed { input }).await;
            }
        }
        self.run_mut().guardrails.input_checks = InputChecks::PassedBeforeModel;
        self.save().await
    }

    /// Asks the guardrails before the model: first those that may replace the input, in order, then
    /// those that only check, concurrently.
    async fn check_input(&mut self) -> Result<(), Error> {
        self.replace_input().await?;
        let (results, failure) = self.ask_input_guardrails(InputMode::BeforeModel).await;
        let passed = self.check_trip(GuardrailKind::Input, &results).await;
        self.run_mut().guardrails.input.add(results);
        if let Some(error) = failure {
            return Err(error);
        }
        if let Err(error) = passed {
            self.save_or_warn().await;
            return Err(error);
        }
        self.run_mut().guardrails.input.settle();
        Ok(())
    }

    /// Asks the guardrails that may replace the input, each with what the one before it left. One
    /// whose result is final is not asked again when the run is resumed.
    async fn replace_input(&mut self) -> Result<(), Error> {
        let replacing = self.input_guardrails_of(InputMode::Replacing);
        let replacing: Vec<_> = replacing.cloned().collect();
        let asked = self.run.guardrails.input.settled();
        for guardrail in replacing.iter().skip(asked) {
            let input = self.run.conversation.input.clone();
            let (ctx, agent, name) = (self.ctx(), self.agent.clone(), guardrail.name_arc());
            let check = || (guardrail.check)(ctx, agent, input);
            let result = [self.ask(GuardrailKind::Input, name, check, Ok).await?];
            let passed = self.check_trip(GuardrailKind::Input, &result).await;
            if let Some(text) = &result[0].replaced_by
                && !self.run_mut().replace_input(text)
            {
                let message = format!(
                    "the guardrail \"{name}\" replaced the user's message, and no new message in \
                     this run is the user's; allow such input, or trip"
                );
                return Err(Error::new(ErrorKind::UserCode, message));
            }
            self.run_mut().guardrails.input.add(result);
            passed?;
            self.run_mut().guardrails.input.settle();
        }
        Ok(())
    }

    pub(super) fn has_input_guardrails_before_model(&self) -> bool {
        self.input_guardrails()
            .any(|guardrail| guardrail.mode != InputMode::BesideModel)
    }

    /// Returns `true` if input guardrails are to run beside the next model call.
    pub(super) fn checks_input_beside_model(&self) -> bool {
        self.run.guardrails.input_checks != InputChecks::Passed
            && self
                .input_guardrails_of(InputMode::BesideModel)
                .next()
                .is_some()
    }

    pub(super) fn input_guardrails(&self) -> impl Iterator<Item = &InputGuardrail<C>> {
        let own = self.agent.def.input_guardrails.iter();
        self.entrance_guardrails()
            .chain(own)
            .chain(&self.config.input_guardrails)
    }

    fn input_guardrails_of(&self, mode: InputMode) -> impl Iterator<Item = &InputGuardrail<C>> {
        self.input_guardrails()
            .filter(move |guardrail| guardrail.mode == mode)
    }

    /// Asks the input guardrails of a mode that only check, concurrently.
    pub(super) async fn ask_input_guardrails(&self, mode: InputMode) -> CheckResults {
        let checks = self.input_guardrails_of(mode).map(|guardrail| {
            let (ctx, agent, input) = (self.ctx(), self.agent.clone(), self.run.input().clone());
            let check = move || (guardrail.check)(ctx, agent, input);
            let name = guardrail.name_arc();
            self.ask(GuardrailKind::Input, name, check, refuse_replacement)
        });
        self.until_one_trips(checks).await
    }

    /// Awaits all checks, or the first that trips or fails. In a run with a journal the results are in the order of
    /// the checks, so that they do not depend on the time that each takes.
    async fn until_one_trips<F>(&self, checks: impl Iterator<Item = F>) -> CheckResults
    where
        F: Future<Output = Result<GuardrailResult, Error>>,
    {
        let checks = checks.enumerate();
        let checks = checks.map(|(at, check)| check.map_ok(move |result| (at, result)));
        let (mut results, failure) = until_one_trips(checks.collect()).await;
        if self.journal.is_some() {
            results.sort_by_key(|(at, _)| *at);
        }
        (
            results.into_iter().map(|(_, result)| result).collect(),
            failure,
        )
    }

    /// Takes the results of the input guardrails that ran beside the model or in place of it. All of them have
    /// passed the input if this does not fail.
    pub(super) async fn take_input_checks(
        &mut self,
        results: Vec<GuardrailResult>,
        failure: Option<Error>,
    ) -> Result<(), Error> {
        let passed = self.check_trip(GuardrailKind::Input, &results).await;
        let guardrails = &mut self.run_mut().guardrails;
        guardrails.input.add(results);
        if let Some(error) = failure {
            return Err(error);
        }
        passed?;
        guardrails.input.settle();
        guardrails.input_checks = InputChecks::Passed;
        Ok(())
    }

    /// Asks a guardrail. `replace` accepts a replacement and returns its text.
    pub(super) async fn ask<T>(
        &self,
        kind: GuardrailKind,
        name: &Arc<str>,
        check: impl FnOnce() -> Outcome<Verdict<T>> + Send,
        replace: impl FnOnce(T) -> Result<String, BoxError>,
    ) -> Result<GuardrailResult, Error>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        self.ask_about("", kind, name, check, replace).await
    }

    /// Asks a guardrail about a call, of which several may be made at once.
    pub(super) async fn ask_about<T>(
        &self,
        call_id: &str,
        kind: GuardrailKind,
        name: &Arc<str>,
        check: impl FnOnce() -> Outcome<Verdict<T>> + Send,
        replace: impl FnOnce(T) -> Result<String, BoxError>,
    ) -> Result<GuardrailResult, Error>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        let step = match call_id {
            "" => Cow::Borrowed(&**name),
            call_id => self.step_name(format_args!("{name} {call_id}")).into(),
        };
        let decision = async {
            let verdict = effect!(self, Guardrail, &*step, async {
                let verdict = call(check).await;
                if self.journal.is_some() && verdict.as_ref().map_or(true, Verdict::trips) {
                    self.input_refused.store(true, Ordering::Relaxed);
                }
                verdict
            });
            verdict?.into_decision(replace)
        };
        self.run_guardrail(kind, name, decision).await
    }

    /// Runs a guardrail in a span of its own, and reports its result.
    pub(super) async fn run_guardrail(
        &self,
        kind: GuardrailKind,
        name: &Arc<str>,
        decision: impl Future<Output = Result<Decision, BoxError>>,
    ) -> Result<GuardrailResult, Error> {
        let mut span = self.trace.span(self.parent_span(), || SpanData::Guardrail {
            name: name.clone(),
            triggered: false,
            outcome: GuardrailOutcome::Allowed,
        });
        let decision = self.trace.within(span.id(), decision).await;
        let decision = decision.map_err(|error| {
            span.fail("the guardrail failed");
            user_error(&format!("the guardrail \"{name}\""), error)
        })?;
        let result = decision.into_result(name, self.agent.name_arc());
        update_span!(span, Guardrail.triggered = result.tripped());
        update_span!(span, Guardrail.outcome = result.outcome);
        span.end();
        // A trip is reported with the error: what runs beside the guardrail is cancelled first.
        if !result.tripped() {
            self.report_guardrail(kind, &result).await;
        }
        Ok(result)
    }

    async fn report_guardrail(&self, kind: GuardrailKind, result: &GuardrailResult) {
        self.emit(|| EventKind::Guardrail {
            on: kind,
            result: result.clone(),
        })
        .await;
    }

    /// Reports a guardrail that tripped and returns its error.
    pub(super) async fn check_trip(
        &self,
        kind: GuardrailKind,
        results: &[GuardrailResult],
    ) -> Result<(), Error> {
        let Some(result) = results.iter().find(|result| result.tripped()) else {
            return Ok(());
        };
        self.report_guardrail(kind, result).await;
        let (error, what) = match kind {
            GuardrailKind::Input => (ErrorKind::InputGuardrail, "input"),
            GuardrailKind::Output => (ErrorKind::OutputGuardrail, "output"),
            GuardrailKind::Handoff => (ErrorKind::HandoffGuardrail, "handoff"),
            GuardrailKind::Tool => (ErrorKind::ToolGuardrail, "tool"),
        };
        let reason = match &result.info {
            Value::Null => String::new(),
            info => format!(": {info}"),
        };
        let message = format!(
            "the {what} guardrail \"{}\" tripped{reason}",
            result.guardrail
        );
        Err(Error::new(error, message).with_guardrail(result.clone()))
    }
}

/// An output that guardrails have replaced.
pub(super) struct Replaced {
    was: FinalOutput,
    by: FinalOutput,
}

/// Refuses the replacement of a guardrail that only checks.
pub(super) fn refuse_replacement<T>(_replacement: T) -> Result<String, BoxError> {
    Err("it returned a replacement, and it only checks; create it with `replacing`".into())
}

/// The results of guardrails that ran concurrently, and the error of one that failed.
type CheckResults = (Vec<GuardrailResult>, Option<Error>);

/// Awaits all checks, or the first that trips or fails; the others are then cancelled. Results that
/// came before are returned in any case.
async fn until_one_trips<F>(
    mut checks: FuturesUnordered<F>,
) -> (Vec<(usize, GuardrailResult)>, Option<Error>)
where
    F: Future<Output = Result<(usize, GuardrailResult), Error>>,
{
    let mut results = Vec::new();
    while let Some(result) = checks.next().await {
        match result {
            Ok(result) => results.push(result),
            Err(error) => return (results, Some(error)),
        }
        if results
            .iter()
            .any(|(_, result): &(_, GuardrailResult)| result.tripped())
        {
            // Let those that are ready end their spans.
            while let Some(Some(_)) = checks.next().now_or_never() {}
            break;
        }
    }
    (results, None)
}

pub(super) fn has_tripped(results: &[GuardrailResult]) -> bool {
    results.iter().any(GuardrailResult::tripped)
}
