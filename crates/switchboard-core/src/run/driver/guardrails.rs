//! Guardrails, and the end of a run, which is theirs to allow.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;

use super::Driver;
use super::hooks::Told;
use crate::callback::{BoxError, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailResult, GuardrailTiming, GuardrailVerdict, InputGuardrail};
use crate::run::machine::Step;
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Tells hooks and asks guardrails about the final output, and ends the run.
    pub(super) async fn conclude(&mut self) -> Result<(), Error> {
        let Step::Conclude(output) = self.run.step() else {
            return Ok(());
        };
        let output = output.clone();
        let items = self.run.last_turn_items().to_vec();
        self.tell_items(items).await;
        self.tell_hooks(Told::AgentEnd(&output)).await?;
        self.turn_span = OpenSpan::default();
        self.run.output_guardrails.clear();
        let guardrails = self.agent.output_guardrails().iter();
        let guardrails = guardrails.chain(&self.config.output_guardrails);
        let checks = guardrails.map(|guardrail| {
            let span = self.guardrail_span(guardrail.name_arc());
            let (ctx, agent, output) = (self.ctx(), self.agent.clone(), output.clone());
            let verdict = call(move || guardrail.check(ctx, agent, output));
            self.run_guardrail(guardrail.name_arc(), verdict, span)
        });
        let found = Box::pin(until_one_trips(checks.collect())).await?;
        if tripped(&found).is_some() {
            self.run.keep_withheld();
            self.save().await?;
            return Err(self.guardrails_found(ErrorKind::OutputGuardrail, found));
        }
        if let Some(text) = replacement(&found) {
            let text = text.to_owned();
            self.run.replace_output(&text, self.agent.name_arc());
        }
        self.run.output_guardrails.extend(found);
        self.run.concluded();
        self.told.clear();
        Ok(())
    }

    /// Runs the input guardrails that come before the model; a tripwire is an error.
    pub(super) async fn check_input(&mut self) -> Result<(), Error> {
        let timing = GuardrailTiming::BeforeModel;
        if !self.has_input_guardrails(timing) {
            return Ok(());
        }
        let found = Box::pin(self.run_input_guardrails(timing)).await?;
        if tripped(&found).is_some() {
            return Err(self.guardrails_found(ErrorKind::InputGuardrail, found));
        }
        if let Some(words) = replacement(&found) {
            let words = words.to_owned();
            self.run.replace_input(&words);
        }
        self.run.input_guardrails.extend(found);
        Ok(())
    }

    /// Whether guardrails have yet to see the user's words before anybody keeps them.
    pub(super) fn holds_input_back(&self) -> bool {
        !self.run.input_checked
            && self.run.turns() == 0
            && self.has_input_guardrails(GuardrailTiming::BeforeModel)
    }

    pub(super) fn has_input_guardrails(&self, timing: GuardrailTiming) -> bool {
        self.all_input_guardrails(timing).next().is_some()
    }

    fn all_input_guardrails(
        &self,
        timing: GuardrailTiming,
    ) -> impl Iterator<Item = &InputGuardrail<C>> {
        let own = self.agent.input_guardrails().iter();
        let all = own.chain(&self.config.input_guardrails);
        all.filter(move |guardrail| guardrail.timing() == timing)
    }

    pub(super) async fn run_input_guardrails(
        &self,
        timing: GuardrailTiming,
    ) -> Result<Vec<GuardrailResult>, Error> {
        let checks = self.all_input_guardrails(timing).map(|guardrail| {
            let span = self.guardrail_span(guardrail.name_arc());
            let (ctx, agent, input) = (self.ctx(), self.agent.clone(), self.run.input.clone());
            let verdict = call(move || guardrail.check(ctx, agent, input));
            self.run_guardrail(guardrail.name_arc(), verdict, span)
        });
        until_one_trips(checks.collect()).await
    }

    pub(super) fn guardrail_span(&self, name: &Arc<str>) -> OpenSpan {
        let data = || SpanData::Guardrail {
            name: name.clone(),
            triggered: false,
        };
        self.trace.span(self.parent_span(), data)
    }

    async fn run_guardrail(
        &self,
        name: &Arc<str>,
        verdict: impl Future<Output = Result<GuardrailVerdict, BoxError>>,
        mut span: OpenSpan,
    ) -> Result<GuardrailResult, Error> {
        let verdict = verdict.await.map_err(|error| {
            span.fail("the guardrail failed", Vec::new());
            self.user_error(&format!("the guardrail \"{name}\""), error)
        })?;
        span.update(|data| {
            if let SpanData::Guardrail { triggered, .. } = data {
                *triggered = verdict.tripped;
            }
        });
        Ok(GuardrailResult {
            guardrail: name.clone(),
            agent: self.agent.name_arc().clone(),
            verdict,
        })
    }

    /// Notes what guardrails found, one of which tripped, and says so.
    pub(super) fn guardrails_found(
        &mut self,
        kind: ErrorKind,
        found: Vec<GuardrailResult>,
    ) -> Error {
        let mut error = Error::new(kind, "a guardrail tripped").at_agent(self.agent.name());
        if let Some(result) = tripped(&found) {
            let because = match &result.verdict.info {
                Value::Null => String::new(),
                info => format!(": {info}"),
            };
            let what = match kind {
                ErrorKind::InputGuardrail => "input",
                _ => "output",
            };
            let name = &result.guardrail;
            let message = format!("the {what} guardrail \"{name}\" tripped{because}");
            error = Error::new(kind, message)
                .at_agent(self.agent.name())
                .with_guardrail(result.clone());
        }
        match kind {
            ErrorKind::InputGuardrail => self.run.input_guardrails.extend(found),
            _ => self.run.output_guardrails.extend(found),
        }
        error
    }
}

/// Waits for all checks, or for the first that trips; the others are then cancelled.
async fn until_one_trips<F>(mut checks: FuturesUnordered<F>) -> Result<Vec<GuardrailResult>, Error>
where
    F: Future<Output = Result<GuardrailResult, Error>>,
{
    let mut found = Vec::new();
    while let Some(result) = checks.next().await {
        let result = result?;
        let tripped = result.verdict.tripped;
        found.push(result);
        if tripped {
            // Those that are done as well say so in their spans.
            while let Some(Some(_)) = checks.next().now_or_never() {}
            break;
        }
    }
    Ok(found)
}

/// What the first guardrail that wants something else wants instead.
pub(super) fn replacement(found: &[GuardrailResult]) -> Option<&str> {
    found
        .iter()
        .find_map(|result| result.verdict.replacement.as_deref())
}

pub(super) fn tripped(found: &[GuardrailResult]) -> Option<&GuardrailResult> {
    found.iter().find(|result| result.verdict.tripped)
}
