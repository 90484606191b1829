//! Taking a handoff: everything that can be refused first, then the side effects, then the step.

mod carried;

use carried::passing;
use serde_json::Value;

use super::hooks::Told;
use super::{Driver, Soon, at_once, later};
use crate::agent::Agent;
use crate::callback::call;
use crate::error::{Error, ErrorKind};
use crate::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict, Said};
use crate::handoff::{Callback, Handoff, HandoffDecision, Target};
use crate::items::Input;
use crate::run::events::StreamEvent;
use crate::run::handoff_log::HandoffOutcome;
use crate::run::handover::Handover;
use crate::run::machine::Step;
use crate::run::roster;
use crate::run::turn::{HandoffCall, Progress};
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Hands the conversation over. An error leaves the run where it was before; what the handoff
    /// had done by then is not done again when the run is resumed.
    pub(super) async fn take_handoff(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::TakeHandoff([taken, ..]) = self.run.step() else {
            return Err(self.configuration("the run is to hand over, and nobody asked for it"));
        };
        let taken = taken.clone();
        let from = &self.agent.name_arc().clone();
        let data = || SpanData::Handoff {
            from_agent: from.clone(),
            to_agent: None,
            payload: None,
            carried_items: None,
        };
        let mut span = std::mem::take(&mut self.spare_span);
        self.trace.begin(&mut span, self.parent_span(), data);
        let Some(handoff) = offer.handoff(&self.agent, &taken.tool).cloned() else {
            let message = "the model asked for this handoff, and the agent the run was resumed with \
                           has none of that name";
            return Err(self.configuration(message).at_handoff(&taken.tool));
        };
        let handed = self.hand_over(&handoff, &taken, &mut span).await;
        let handed =
            handed.map_err(|error| error.at_agent(self.agent.name()).at_handoff(&taken.tool))?;
        let (target, handover) = match handed {
            Handed::Over(target, handover) => (target, handover),
            Handed::Refused(target, reason) => {
                span.fail("Handoff refused", Vec::new());
                let recorded = self.run.record.len();
                let outcome = HandoffOutcome::Refused(reason.clone());
                self.run.note_handoff(from, target.name_arc(), outcome);
                self.run.handoff_guardrails.settle();
                self.run.handoff_refused(&reason, self.agent.name_arc());
                self.trace.end([&mut span]);
                self.tell_recorded_since(recorded).await;
                return Ok(());
            }
        };

        let recorded = self.run.record.len();
        let key = roster::key(&self.start, &target);
        let outcome = HandoffOutcome::Taken;
        self.run.note_handoff(from, target.name_arc(), outcome);
        let passing = passing(from, &target);
        self.run.handed_over(key, passing, handover);
        self.agent = target;
        self.offer = None;
        let input_items = match &self.run.input {
            Input::Text(_) => 1,
            Input::Items(items) => items.len(),
        };
        let carried = input_items + self.run.generated.len();
        span.update(|data| {
            if let SpanData::Handoff { carried_items, .. } = data {
                *carried_items = Some(carried);
            }
        });
        self.trace.end([&mut span]);
        self.spare_span = span;
        self.tell_recorded_since(recorded).await;
        self.trace.end([&mut self.turn_span, &mut self.agent_span]);
        self.save().await?;
        self.tell(|driver| StreamEvent::AgentUpdated(driver.agent.clone()))
            .await;
        Ok(())
    }

    /// Everything a handoff does before the run moves.
    fn hand_over<'a>(
        &'a mut self,
        handoff: &'a Handoff<C>,
        taken: &'a HandoffCall,
        span: &'a mut OpenSpan,
    ) -> Soon<'a, Result<Handed<C>, Error>> {
        let negotiation = Negotiation {
            driver: self,
            handoff,
            taken,
            span,
            payload: None,
        };
        let negotiated = negotiation.begin();
        negotiated.unwrap_or_else(|error| at_once(Err(error)))
    }

    /// Asks the guardrails of the edge and of the run about what would be carried over. What they
    /// allowed is what is carried over, whatever the callback and hooks change afterwards. A handoff
    /// that is resumed after its callback ran is not checked again, as it could no longer be
    /// refused; its filter is given the same conversation again.
    async fn check_handoff(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: Option<&Value>,
    ) -> Result<Checked, Error> {
        let guardrails: Vec<_> = self.edge_guardrails(handoff).cloned().collect();
        let data = self.carried_data(handoff, target, payload.cloned()).await?;
        for guardrail in guardrails {
            let check = HandoffRequest {
                from: self.agent.clone(),
                to: target.clone(),
                payload: payload.cloned(),
                data: data.clone(),
            };
            let mut refusal = None;
            let said = async {
                Ok(match call(|| guardrail.check(check)).await? {
                    HandoffVerdict::Allow => Said::allowed(),
                    HandoffVerdict::Refuse(reason) => Said::refused(refusal.insert(reason)),
                    HandoffVerdict::Trip(info) => Said::tripped(info),
                })
            };
            let result = self.run_guardrail(guardrail.name_arc(), said).await?;
            let error = self.trip(ErrorKind::HandoffGuardrail, std::slice::from_ref(&result));
            self.run.handoff_guardrails.attempted([result]);
            if let Some(error) = error {
                return Err(error);
            }
            if let Some(reason) = refusal {
                return Ok(Checked::Refused(reason));
            }
        }
        let is_rewritten = self.is_rewritten(handoff);
        let rewritten = is_rewritten.then(|| Handover::Rewritten(Box::new(data.into_parts())));
        Ok(Checked::Allowed(rewritten))
    }

    fn edge_guardrails<'a>(
        &'a self,
        handoff: &'a Handoff<C>,
    ) -> impl Iterator<Item = &'a HandoffGuardrail<C>> {
        let own = handoff.guardrails().iter();
        own.chain(&self.config.handoff_guardrails)
    }

    /// Tools that ran since the model was offered the handoff may have changed its condition.
    async fn still_enabled(&self, handoff: &Handoff<C>) -> Result<(), Error> {
        let enabled = handoff.enabled().check(&self.ctx(), &self.agent).await;
        if enabled.map_err(|error| self.user_error("the handoff's condition", error))? {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::ModelBehavior,
                "the handoff's condition held when the model was asked and no longer does, after \
                 the tools of the same response; nothing was handed over",
            ))
        }
    }

    fn known_target(&self, handoff: &Handoff<C>) -> Result<Option<Agent<C>>, Error> {
        if let Target::Custom(_) = handoff.target() {
            return Ok(None);
        }
        match roster::target(&self.agent, handoff) {
            Some(target) => Ok(Some(target)),
            None => Err(self.configuration(format!(
                "it leads to \"{}\" by name, and the agent is in no team with an agent of that name; \
                 put both into a Team",
                handoff.agent_name()
            ))),
        }
    }

    async fn call_back(
        &self,
        handoff: &Handoff<C>,
        payload: Option<Value>,
    ) -> Result<HandoffDecision, Error> {
        let outcome = match handoff.callback() {
            Callback::None => return Ok(HandoffDecision::Proceed),
            Callback::Plain(code) => call(|| code(self.ctx())).await,
            Callback::WithPayload(code) => {
                call(|| code(self.ctx(), payload.unwrap_or_default())).await
            }
        };
        outcome.map_err(|error| self.user_error("the on_handoff callback", error))
    }

    /// Whom code picks; where the callback has run for somebody already, nobody else.
    async fn pick_target(
        &self,
        handoff: &Handoff<C>,
        taken: &HandoffCall,
    ) -> Result<Agent<C>, Error> {
        let Target::Custom(custom) = handoff.target() else {
            return Err(self.configuration("the handoff leads nowhere"));
        };
        let before = self.run.picked();
        if let Some(known) = before.and_then(|key| roster::find(&self.start, key)) {
            return Ok(known);
        }
        let arguments = taken.call.arguments().unwrap_or_default().into_owned();
        let picked = call(|| custom.pick(self.ctx(), arguments)).await;
        let picked =
            picked.map_err(|error| self.user_error("the function that picks the agent", error))?;
        let picked = picked.reached_from(&self.agent);
        match before {
            Some(key) if roster::key(&self.start, &picked) != *key => {
                Err(self.configuration(format!(
                    "the callback has run for \"{key}\", which cannot be found again; say with \
                     candidate whom the handoff may pick"
                )))
            }
            _ => Ok(picked),
        }
    }
}

/// A handoff before the run moves, stage by stage. Each stage asks one party at most and leads to the
/// next; where it has nobody to ask it does so at once, and where it asks, it and all that comes after
/// wait in a box. So a handoff that asks nobody is done at once, by the same code: a run would otherwise
/// keep room for it.
struct Negotiation<'a, C> {
    driver: &'a mut Driver<C>,
    handoff: &'a Handoff<C>,
    taken: &'a HandoffCall,
    span: &'a mut OpenSpan,
    payload: Option<Value>,
}

/// What comes of the stages that are left.
type Negotiated<'a, C> = Result<Soon<'a, Result<Handed<C>, Error>>, Error>;

impl<'a, C: Send + Sync + 'static> Negotiation<'a, C> {
    fn begin(mut self) -> Negotiated<'a, C> {
        self.payload = payload(self.handoff, self.taken, self.span)?;
        let is_conditional = !self.handoff.enabled().is_always();
        let may_have_changed = self.driver.run.ran_tools_this_turn() && is_conditional;
        if !may_have_changed || self.has_called_back() {
            return self.find_target();
        }
        Ok(later(async move {
            self.driver.still_enabled(self.handoff).await?;
            self.find_target()?.await
        }))
    }

    fn find_target(self) -> Negotiated<'a, C> {
        self.driver.fits_server_history(self.handoff)?;
        let known_target = self.driver.known_target(self.handoff)?;
        self.driver.run.handoff_guardrails.begin_attempt();
        if self.driver.config.trace_sensitive_data {
            self.span.update(|data| {
                if let SpanData::Handoff { payload, .. } = data {
                    payload.clone_from(&self.payload);
                }
            });
        }
        if let Some(target) = known_target {
            return self.check(target);
        }
        Ok(later(async move {
            let target = self.driver.pick_target(self.handoff, self.taken).await?;
            self.check(target)?.await
        }))
    }

    fn check(self, target: Agent<C>) -> Negotiated<'a, C> {
        self.driver.guards_no_server_history(&target)?;
        if self.has_called_back() {
            return self.tell_hooks(target, None);
        }
        if self.driver.edge_guardrails(self.handoff).next().is_none() {
            return self.call_back(target, None);
        }
        Ok(later(async move {
            let payload = self.payload.as_ref();
            let check = self.driver.check_handoff(self.handoff, &target, payload);
            match check.await? {
                Checked::Refused(reason) => Ok(Handed::Refused(target, reason)),
                Checked::Allowed(handover) => self.call_back(target, handover)?.await,
            }
        }))
    }

    /// From here on there may be what guardrails were shown rewritten.
    fn call_back(self, target: Agent<C>, checked: Option<Handover>) -> Negotiated<'a, C> {
        if let Callback::None = self.handoff.callback() {
            return self.called_back(target, checked);
        }
        Ok(later(async move {
            let payload = self.payload.clone();
            match self.driver.call_back(self.handoff, payload).await? {
                HandoffDecision::Refuse(reason) => Ok(Handed::Refused(target, reason)),
                HandoffDecision::Proceed => self.called_back(target, checked)?.await,
            }
        }))
    }

    fn called_back(self, target: Agent<C>, checked: Option<Handover>) -> Negotiated<'a, C> {
        let is_picked = matches!(self.handoff.target(), Target::Custom(_));
        let picked = is_picked.then(|| roster::key(&self.driver.start, &target));
        self.driver.run.handoff_guardrails.settle();
        self.driver.run.note_called_back(picked);
        self.tell_hooks(target, checked)
    }

    fn tell_hooks(self, target: Agent<C>, checked: Option<Handover>) -> Negotiated<'a, C> {
        self.span.update(|data| {
            if let SpanData::Handoff { to_agent, .. } = data {
                *to_agent = Some(target.name_arc().clone());
            }
        });
        if let Step::TakeHandoff(requested @ [_, _, ..]) = self.driver.run.step() {
            let requested = requested.iter().map(|call| call.agent.clone());
            let requested = requested.collect();
            self.span.fail("Multiple handoffs requested", requested);
        }
        let are_told = self.driver.run.handoff_progress() == Progress::ToldHooks;
        if are_told || !self.driver.has_hooks() {
            return self.carry_over(target, checked);
        }
        Ok(later(async move {
            let told = Told::Handoff(&target, self.taken);
            self.driver.tell_hooks(told).await?;
            self.carry_over(target, checked)?.await
        }))
    }

    /// What the next agent is given.
    fn carry_over(self, target: Agent<C>, checked: Option<Handover>) -> Negotiated<'a, C> {
        let told = Progress::ToldHooks;
        self.driver.run.note_handoff_progress(told);
        if let Some(handover) = checked {
            return Ok(at_once(Ok(Handed::Over(target, handover))));
        }
        if !self.driver.is_rewritten(self.handoff) {
            return Ok(at_once(Ok(Handed::Over(target, Handover::AsItIs))));
        }
        Ok(later(async move {
            let data = self
                .driver
                .carried_data(self.handoff, &target, self.payload);
            let handover = Handover::Rewritten(Box::new(data.await?.into_parts()));
            Ok(Handed::Over(target, handover))
        }))
    }

    /// Whether this handoff failed after its callback, and is taken again.
    fn has_called_back(&self) -> bool {
        self.driver.run.handoff_progress() != Progress::Nothing
    }
}

/// What the model sent along, where the handoff takes anything.
fn payload<C>(
    handoff: &Handoff<C>,
    taken: &HandoffCall,
    span: &mut OpenSpan,
) -> Result<Option<Value>, Error> {
    let arguments = taken.call.arguments().unwrap_or_default();
    handoff.parse_payload(&arguments).map_err(|error| {
        span.fail("Invalid JSON provided", Vec::new());
        let message = format!("the model's payload is not what the handoff asks for: {error}");
        Error::new(ErrorKind::ModelBehavior, message).caused_by(error)
    })
}

/// What came of a handoff before the run moves.
enum Handed<C> {
    Over(Agent<C>, Handover),
    /// The agent that would have got the conversation, and why it did not.
    Refused(Agent<C>, String),
}

/// What guardrails said, with what would be carried over where they were shown it rewritten.
enum Checked {
    Allowed(Option<Handover>),
    Refused(String),
}
