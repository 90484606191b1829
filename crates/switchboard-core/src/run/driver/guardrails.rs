//! Guardrails, and the end of a run, which is theirs to allow.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;

use super::hooks::Told;
use super::{Driver, Soon, at_once, later};
use crate::callback::{BoxError, Outcome, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{
    GuardrailOutcome, GuardrailResult, InputGuardrail, InputKind, OutputGuardrail, OutputKind,
    Said, Verdict,
};
use crate::items::Input;
use crate::output::FinalOutput;
use crate::run::machine::{InputChecks, Step};
use crate::tool::ToolOutput;
use crate::trace::SpanData;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Tells hooks and asks guardrails about the final output, and ends the run.
    pub(super) async fn conclude(&mut self) -> Result<(), Error> {
        let Step::Conclude(output) = self.run.step() else {
            return Ok(());
        };
        // Where nobody is to see the output it stays where it is.
        if self.events.is_some() || self.has_hooks() {
            let output = output.clone();
            Box::pin(self.tell_of_end(output)).await?;
        }
        self.run.note_end_told();
        self.trace.end([&mut self.turn_span]);
        self.run.output_guardrails.begin_attempt();
        if self.has_output_guardrails() {
            Box::pin(self.check_output()).await?;
        }
        self.run.concluded();
        self.told.clear();
        Ok(())
    }

    async fn tell_of_end(&mut self, output: FinalOutput) -> Result<(), Error> {
        if self.events.is_some() {
            let items = self.run.last_turn_items().to_vec();
            self.tell_items(items).await;
        }
        if self.run.is_end_told() {
            Ok(())
        } else {
            self.tell_hooks(Told::AgentEnd(&output)).await
        }
    }

    pub(super) fn has_output_guardrails(&self) -> bool {
        self.all_output_guardrails().next().is_some()
    }

    fn all_output_guardrails(&self) -> impl Iterator<Item = &OutputGuardrail<C>> {
        let own = self.agent.output_guardrails().iter();
        own.chain(&self.config.output_guardrails)
    }

    /// Asks the guardrails on the output: those that may replace it one after the other, and then
    /// those that only check. A tripwire is an error.
    async fn check_output(&mut self) -> Result<(), Error> {
        let Step::Conclude(output) = self.run.step() else {
            return Ok(());
        };
        let mut output = output.clone();
        let mut found = Vec::new();
        let mut is_replaced = false;
        let all: Vec<_> = self.all_output_guardrails().cloned().collect();
        for guardrail in &all {
            let OutputKind::Replacing(check) = guardrail.kind() else {
                continue;
            };
            let (ctx, agent, seen) = (self.ctx(), self.agent.clone(), output.clone());
            let asked = self.ask_replacing(guardrail.name_arc(), || check(ctx, agent, seen));
            let (result, replacement) = asked.await?;
            found.push(result);
            if let Some(replacement) = replacement {
                let who = format!("the guardrail \"{}\"", guardrail.name());
                output = self.fitting(&who, replacement)?;
                is_replaced = true;
            }
            if has_tripped(&found) {
                break;
            }
        }
        if !has_tripped(&found) {
            let checks = all.iter().filter_map(|guardrail| {
                let OutputKind::Checking(check) = guardrail.kind() else {
                    return None;
                };
                let (ctx, agent, output) = (self.ctx(), self.agent.clone(), output.clone());
                let verdict = call(move || check(ctx, agent, output));
                Some(self.run_guardrail(guardrail.name_arc(), verdict))
            });
            found.extend(until_one_trips(checks.collect()).await?);
        }
        let error = self.trip(ErrorKind::OutputGuardrail, &found);
        self.run.output_guardrails.attempted(found);
        if let Some(error) = error {
            self.run.keep_withheld();
            self.save_or_warn().await;
            return Err(error);
        }
        self.run.output_guardrails.settle();
        if is_replaced {
            let (kind, name) = (self.agent.output_type(), self.agent.name_arc());
            self.run.replace_output(output, kind, name);
        }
        Ok(())
    }

    /// The application's output in the form the agent's has.
    pub(super) fn fitting(&self, who: &str, output: FinalOutput) -> Result<FinalOutput, Error> {
        let Some(kind) = self.agent.output_type() else {
            return Ok(FinalOutput::Text(output.text().as_ref().into()));
        };
        if self.run.ends_at_tool() {
            return Ok(output);
        }
        kind.accept(&output).map_err(|error| {
            let message = format!(
                "{who} gave an output that is not a {}, which the agent answers with: {error}",
                kind.name()
            );
            Error::new(ErrorKind::UserCode, message)
                .caused_by(error)
                .at_agent(self.agent.name())
        })
    }

    /// Lets the guardrails that come before the model see the input, and then the session have it.
    pub(super) fn pass_input(&mut self) -> Soon<'_, Result<(), Error>> {
        self.run.input_guardrails.begin_attempt();
        if self.run.input_checks != InputChecks::Pending {
            return at_once(Ok(()));
        }
        if self.has_input_guardrails_before_model() {
            return later(async {
                self.check_input().await?;
                self.run.input_checks = InputChecks::PassedBeforeModel;
                self.save().await
            });
        }
        self.run.input_checks = InputChecks::PassedBeforeModel;
        self.save()
    }

    /// Runs the input guardrails that come before the model: those that may replace the words one
    /// after the other, and then those that only check. A tripwire is an error.
    async fn check_input(&mut self) -> Result<(), Error> {
        self.replace_input().await?;
        let is_before = |kind: &_| matches!(kind, InputKind::BeforeModel(_));
        let found = self.run_input_guardrails(&self.run.input, is_before);
        let found = found.await?;
        let error = self.trip(ErrorKind::InputGuardrail, &found);
        self.run.input_guardrails.attempted(found);
        if let Some(error) = error {
            self.save_or_warn().await;
            return Err(error);
        }
        self.run.input_guardrails.settle();
        Ok(())
    }

    /// Asks the guardrails that may replace the words, each given what the one before it made of
    /// them. One that has had its say is not asked again when the run is resumed.
    async fn replace_input(&mut self) -> Result<(), Error> {
        let all: Vec<_> = self.all_input_guardrails().cloned().collect();
        let replacing = all.iter().filter_map(|guardrail| match guardrail.kind() {
            InputKind::Replacing(check) => Some((guardrail.name_arc(), check)),
            _ => None,
        });
        for (name, check) in replacing.skip(self.run.input_guardrails.settled()) {
            let (ctx, agent, input) = (self.ctx(), self.agent.clone(), self.run.input.clone());
            let asked = self.ask_replacing(name, || check(ctx, agent, input));
            let (result, words) = asked.await?;
            let error = self.trip(ErrorKind::InputGuardrail, std::slice::from_ref(&result));
            if error.is_none()
                && let Some(words) = words
                && !self.run.replace_input(&words)
            {
                let message = format!(
                    "the guardrail \"{name}\" put other words in place of the user's, and nothing \
                     that is new in this run is of the user; allow such input, or trip"
                );
                return Err(Error::new(ErrorKind::UserCode, message).at_agent(self.agent.name()));
            }
            self.run.input_guardrails.attempted([result]);
            if let Some(error) = error {
                return Err(error);
            }
            self.run.input_guardrails.settle();
        }
        Ok(())
    }

    /// Whether guardrails have yet to see the user's words before anybody keeps them.
    pub(super) fn holds_input_back(&self) -> bool {
        self.run.input_checks == InputChecks::Pending
            && self.run.turns() == 0
            && self.has_input_guardrails_before_model()
    }

    pub(super) fn has_input_guardrails_before_model(&self) -> bool {
        let mut kinds = self.all_input_guardrails().map(InputGuardrail::kind);
        kinds.any(|kind| !matches!(kind, InputKind::BesideModel(_)))
    }

    pub(super) fn has_input_guardrails_beside_model(&self) -> bool {
        let mut kinds = self.all_input_guardrails().map(InputGuardrail::kind);
        kinds.any(|kind| matches!(kind, InputKind::BesideModel(_)))
    }

    fn all_input_guardrails(&self) -> impl Iterator<Item = &InputGuardrail<C>> {
        let own = self.agent.input_guardrails().iter();
        own.chain(&self.config.input_guardrails)
    }

    /// Runs the guardrails that only check, side by side.
    pub(super) async fn run_input_guardrails(
        &self,
        input: &Input,
        is_meant: impl Fn(&InputKind<C>) -> bool,
    ) -> Result<Vec<GuardrailResult>, Error> {
        let checks = self.all_input_guardrails().filter_map(|guardrail| {
            let (InputKind::BeforeModel(check) | InputKind::BesideModel(check)) = guardrail.kind()
            else {
                return None;
            };
            is_meant(guardrail.kind()).then(|| {
                let (ctx, agent, input) = (self.ctx(), self.agent.clone(), input.clone());
                let verdict = call(move || check(ctx, agent, input));
                self.run_guardrail(guardrail.name_arc(), verdict)
            })
        });
        until_one_trips(checks.collect()).await
    }

    /// Asks one guardrail that may replace what it looks at. Returns what it found, and what to go
    /// on with instead.
    pub(super) async fn ask_replacing<T: AsText>(
        &self,
        name: &Arc<str>,
        check: impl FnOnce() -> Outcome<Verdict<T>> + Send,
    ) -> Result<(GuardrailResult, Option<T>), Error> {
        let mut replacement = None;
        let said = async {
            Ok(match call(check).await? {
                Verdict::Allow => Said::allowed(),
                Verdict::Trip(info) => Said::tripped(info),
                Verdict::Replace(instead) => {
                    let text = instead.as_text();
                    replacement = Some(instead);
                    Said::replaced_by(text)
                }
            })
        };
        let result = self.run_guardrail(name, said).await?;
        Ok((result, replacement))
    }

    /// Runs one guardrail, in a span of its own.
    pub(super) async fn run_guardrail<S: Into<Said>>(
        &self,
        name: &Arc<str>,
        said: impl Future<Output = Result<S, BoxError>>,
    ) -> Result<GuardrailResult, Error> {
        let mut span = self.trace.span(self.parent_span(), || SpanData::Guardrail {
            name: name.clone(),
            triggered: false,
            outcome: GuardrailOutcome::Allowed,
        });
        self.trace.time_passes();
        let said = said.await.map_err(|error| {
            span.fail("the guardrail failed", Vec::new());
            self.user_error(&format!("the guardrail \"{name}\""), error)
        })?;
        let agent = self.agent.name_arc().clone();
        let result = said.into().by(name.clone(), agent);
        span.update(|data| {
            if let SpanData::Guardrail {
                triggered, outcome, ..
            } = data
            {
                *triggered = result.verdict.tripped;
                *outcome = result.outcome;
            }
        });
        Ok(result)
    }

    /// The error of what guardrails found, where one of them tripped.
    pub(super) fn trip(&self, kind: ErrorKind, found: &[GuardrailResult]) -> Option<Error> {
        let result = found.iter().find(|result| result.verdict.tripped)?;
        let what = match kind {
            ErrorKind::InputGuardrail => "input",
            ErrorKind::OutputGuardrail => "output",
            ErrorKind::HandoffGuardrail => "handoff",
            _ => "tool",
        };
        let because = match &result.verdict.info {
            Value::Null => String::new(),
            info => format!(": {info}"),
        };
        let name = &result.guardrail;
        let message = format!("the {what} guardrail \"{name}\" tripped{because}");
        let error = Error::new(kind, message).at_agent(self.agent.name());
        Some(error.with_guardrail(result.clone()))
    }
}

/// What a guardrail may put in place of something, as its result tells it.
pub(super) trait AsText {
    fn as_text(&self) -> String;
}

impl AsText for String {
    fn as_text(&self) -> String {
        self.clone()
    }
}

impl AsText for FinalOutput {
    fn as_text(&self) -> String {
        self.text().into_owned()
    }
}

impl AsText for ToolOutput {
    fn as_text(&self) -> String {
        self.text().into_owned()
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

pub(super) fn has_tripped(found: &[GuardrailResult]) -> bool {
    found.iter().any(|result| result.verdict.tripped)
}
