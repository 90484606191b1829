//! Taking a handoff: first everything that can be refused, then the side effects, then the step.

use std::sync::Arc;

use serde_json::{Value, json};

use super::handoff_decision::{HandoffFailure, Negotiated, Route, parse_payload};
use super::hooks::HookCall;
use super::{Driver, configuration_error};
use crate::agent::Agent;
use crate::error::{Error, ErrorKind};
use crate::guardrail::GuardrailKind;
use crate::handoff::{Handoff, HandoffDecision, Target};
use crate::model::text_hash;
use crate::output::FinalOutput;
use crate::run::handoff::{Carried, HandoffOutcome, IGNORED_HANDOFF};
use crate::run::turn::{HandoffCall, HandoffProgress, Turn};
use crate::run::{Step, agent_keys};
use crate::stream::{EventKind, HandoffEvent, HandoffStatus};
use crate::trace::trace_handle::OpenSpan;
use crate::trace::{HandoffDecider, HandoffDetails, HandoffViews, SpanData};
use crate::{hooks, json};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Takes the handoff that the model asked for. An error leaves the run as it was; the stages
    /// that were done are not repeated when it is resumed.
    pub(super) async fn take_handoff(&mut self) -> Result<(), Error> {
        if let Some(policy) = self.fan_out() {
            return Box::pin(self.decide_branch(&policy)).await;
        }
        let Some(taken) = self.negotiate_handoff().await? else {
            return Ok(());
        };
        let from = self.agent.name_arc().clone();
        let events = self.hand_over(taken);
        for event in events {
            self.emit_for(&from, || event).await;
        }
        self.end_spans();
        self.save().await?;
        self.report_agent().await;
        Ok(())
    }

    /// Decides on the handoff. Returns it if it is taken; otherwise everything is done.
    async fn negotiate_handoff(&mut self) -> Result<Option<TakenHandoff<C>>, Error> {
        let offer = self.offer().await?;
        let Step::TakeHandoff([call, ..]) = self.run.step() else {
            return Err(configuration_error(
                "the run is at a handoff that nobody asked for",
            ));
        };
        let call = call.clone();
        let mut span = self.handoff_span();
        if let Some(reason) = self.refusal_of_several() {
            self.run_mut().refuse_all_handoffs();
            let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
            let refused = Negotiated::Refused(reason);
            let policy = self.config.handoff_policy.several.name();
            explain(&mut span, |details| {
                details.decided_by = Some(HandoffDecider::SeveralHandoffs);
                details.policy = Some(policy.into());
            });
            Box::pin(self.leave_handoff(call.to, payload, refused, span)).await;
            return Ok(None);
        }
        // A handoff that was rejected need not exist any more.
        let has_waited = (self.run.turn()).is_some_and(|turn| turn.handoff_approval.is_some());
        if has_waited
            && offer.handoff(&self.agent, &call.tool).is_none()
            && let Some(reason) = Box::pin(self.rejected_handoff(&call)).await
        {
            let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
            let refused = Negotiated::Refused(reason);
            Box::pin(self.leave_handoff(call.to, payload, refused, span)).await;
            return Ok(None);
        }
        loop {
            let at_handoff = |error: Error| error.at_handoff(&call.tool);
            let route = self.route(&offer, &call).map_err(at_handoff)?;
            match self.negotiate(&route, &call, &mut span).await {
                Ok((target, payload, Negotiated::Taken(carried))) => {
                    return Ok(Some(TakenHandoff {
                        handoff: route.handoff,
                        target,
                        payload,
                        carried,
                        span,
                    }));
                }
                Ok((_, _, Negotiated::Redirected(redirect))) => {
                    self.run_mut().redirect_handoff(redirect);
                }
                // Boxed: what follows is rare, and larger than all else.
                Ok((target, payload, other)) => {
                    let to = target.name_arc().clone();
                    Box::pin(self.leave_handoff(to, payload, other, span)).await;
                    return Ok(None);
                }
                Err(failure) => {
                    let told = Box::pin(self.tell_of_failure(&route, &call, failure, span));
                    return told.await.map(|()| None).map_err(at_handoff);
                }
            }
        }
    }

    /// Ends a handoff that is not taken, or not yet.
    pub(super) async fn leave_handoff(
        &mut self,
        to: Arc<str>,
        payload: Value,
        outcome: Negotiated,
        mut span: OpenSpan,
    ) {
        let (reason, output) = match outcome {
            Negotiated::Refused(reason) => (reason, None),
            Negotiated::Answered(answered) => {
                (answered.reason, Some(FinalOutput::Text(answered.answer)))
            }
            Negotiated::Waits | Negotiated::Taken(_) | Negotiated::Redirected(_) => {
                span.end();
                let recorded = self.run.new_items().len();
                self.run_mut().wait(true);
                self.report_recorded(recorded).await;
                return;
            }
        };
        explain(&mut span, |details| {
            details.outcome = Some(HandoffStatus::Refused);
            details.reason = self.config.trace_sensitive_data.then(|| reason.clone());
        });
        span.fail("Handoff refused");
        span.end();
        let refused = HandoffOutcome::Refused(reason);
        self.commit_refusal(to, payload, refused, output).await;
    }

    /// Tells the model of a handoff that could not be made. An error ends the run if it cannot be told, or
    /// was too often.
    async fn tell_of_failure(
        &mut self,
        route: &Route<C>,
        call: &HandoffCall,
        failure: HandoffFailure,
        mut span: OpenSpan,
    ) -> Result<(), Error> {
        let (error, text) = match failure {
            HandoffFailure::Fatal(error) => return Err(error),
            HandoffFailure::Told(told) => *told,
        };
        let retries = self.config.handoff_policy.retries;
        if !route.trigger.is_model() {
            return self.leave_failed_edge(route, call, error, text, span).await;
        }
        // A person is told as often as it takes.
        if !self.agent.is_person() && !self.run.may_tell_of_failure(&call.tool, retries) {
            return Err(error);
        }
        tracing::warn!(
            agent = self.agent.name(),
            handoff = &*call.tool,
            "a handoff could not be made; the model is told"
        );
        explain(&mut span, |details| {
            details.outcome = Some(HandoffStatus::Failed);
            details.decided_by = Some(HandoffDecider::Failure);
            details.policy = Some("retries".into());
            details.reason = self.config.trace_sensitive_data.then(|| text.clone());
        });
        span.fail_with("Handoff failed", || self.error_data(&error));
        span.end();
        let to = route.handoff.spec().to.clone();
        let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
        self.commit_refusal(to, payload, HandoffOutcome::Failed(text), None)
            .await;
        Ok(())
    }

    /// Ends a handoff by a condition that cannot be made. No model can be told: the agent goes on if the
    /// handoff is not possible any more, and otherwise the run ends.
    async fn leave_failed_edge(
        &mut self,
        route: &Route<C>,
        call: &HandoffCall,
        error: Error,
        reason: String,
        span: OpenSpan,
    ) -> Result<(), Error> {
        if error.kind() != ErrorKind::ModelBehavior {
            return Err(error);
        }
        let to = route.handoff.spec().to.clone();
        let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
        self.leave_handoff(to, payload, Negotiated::Refused(reason), span)
            .await;
        Ok(())
    }

    /// All stages of a handoff before the run moves, in their order. Returns the agent that gets the
    /// conversation, the payload and the outcome.
    pub(super) async fn negotiate(
        &mut self,
        route: &Route<C>,
        call: &HandoffCall,
        span: &mut OpenSpan,
    ) -> Result<(Agent<C>, Value, Negotiated), HandoffFailure> {
        let handoff = &route.handoff;
        // A handoff that failed after its callback is resumed behind it.
        let turn = self.run.turn();
        let progress = turn.map_or(HandoffProgress::NotStarted, |turn| turn.progress);
        let ran_tools = turn.is_some_and(|turn| !turn.tools().results.is_empty());
        let is_resumed = progress != HandoffProgress::NotStarted;
        let has_waited = turn.is_some_and(|turn| turn.handoff_approval.is_some());

        let parsed = parse_payload(route, call, span)?;
        let payload = parsed.value.clone();
        // Tools of the same response, and the time of a decision, may have changed it.
        if (ran_tools || has_waited || route.redirects() > 0) && !is_resumed {
            self.recheck_condition(handoff, span).await?;
        }
        self.check_filter_allowed(handoff)?;
        self.run_mut().guardrails.handoff.begin_attempt();
        if handoff.takes_payload() {
            self.trace_payload(&payload, span);
        }

        let target = self.find_target(handoff, call, span).await?;
        self.check_output_guardrails(&target)?;
        if !is_resumed
            && !has_waited
            && let Some(outcome) = self.check_limits(&target, route, span)?
        {
            return Ok((target, payload, outcome));
        }
        let mut checked = self.run.checked_handoff().cloned();
        // Also where the run was stored without what they allowed: a filter that is repeated may
        // leave something else than they saw.
        if checked.is_none() && self.handoff_guardrails(handoff).next().is_some() {
            let shown = Box::pin(self.input_data(handoff, &target, &payload, span));
            let shown = Box::new(shown.await?);
            let asked = self.ask_handoff_guardrails(handoff, &target, &payload, &shown);
            match Box::pin(asked).await? {
                HandoffDecision::Proceed => {}
                HandoffDecision::AskApproval => self.run_mut().ask_for_approval(),
                decision => {
                    let results = self.run.guardrail_results(GuardrailKind::Handoff);
                    let name = results.last().map(|result| result.guardrail.clone());
                    explain(span, |details| {
                        details.decided_by = Some(HandoffDecider::Guardrail);
                        details.policy = name;
                    });
                    let outcome = self.decided(decision, route)?;
                    return Ok((target, payload, outcome));
                }
            }
            checked = Some(if self.carries_everything(handoff) {
                Carried::Everything
            } else {
                Carried::Rewritten(Box::new(shown.into_parts()))
            });
        }
        if !is_resumed {
            if self.may_need_approval(handoff)
                && let Some(outcome) = Box::pin(self.clear(handoff, &target, call)).await
            {
                explain(span, |details| {
                    details.decided_by = Some(HandoffDecider::Approval)
                });
                if let (Negotiated::Waits, Some(checked)) = (&outcome, checked) {
                    self.run_mut().handoff_checked(checked);
                }
                return Ok((target, payload, outcome));
            }
            let decision = self.call_back(handoff, &target, call, parsed, span).await?;
            match decision {
                HandoffDecision::Proceed => {}
                HandoffDecision::AskApproval => {
                    self.run_mut().ask_for_approval();
                    if let Some(outcome) = Box::pin(self.clear(handoff, &target, call)).await {
                        if let Some(checked) = checked {
                            self.run_mut().handoff_checked(checked);
                        }
                        return Ok((target, payload, outcome));
                    }
                }
                decision => {
                    explain(span, |details| {
                        details.decided_by = Some(HandoffDecider::Callback)
                    });
                    let outcome = self.decided(decision, route)?;
                    return Ok((target, payload, outcome));
                }
            }
            let is_picked = matches!(handoff.target(), Target::Custom(_));
            let picked = is_picked.then(|| agent_keys::key(&self.start, &target));
            self.run_mut().handoff_called_back(picked);
        }
        if let Some(checked) = &checked {
            self.run_mut().handoff_checked(checked.clone());
        }

        self.trace_target(&target, span);
        if progress != HandoffProgress::HooksNotified {
            let transfer = hooks::Transfer {
                from: &self.agent,
                to: &target,
                call,
                payload: &payload,
            };
            self.call_hooks(HookCall::Handoff(&transfer)).await?;
        }
        self.run_mut().handoff_hooks_notified();

        let carried = match checked {
            Some(checked) => checked,
            None if self.carries_everything(handoff) => Carried::Everything,
            None => {
                let data = self.input_data(handoff, &target, &payload, span);
                Carried::Rewritten(Box::new(Box::pin(data).await?.into_parts()))
            }
        };
        Ok((target, payload, Negotiated::Taken(carried)))
    }

    /// Hands the conversation over. Returns the events that report it.
    fn hand_over(&mut self, taken: TakenHandoff<C>) -> Vec<EventKind> {
        let TakenHandoff {
            handoff,
            target,
            payload,
            carried,
            mut span,
        } = taken;
        if matches!(carried, Carried::Rewritten(_)) {
            self.warn_of_lost_filter(&target);
        }
        let of_items = self.run.items_before_handoff();
        let of_turn = self.run.turn().map_or(0, |turn| turn.recorded);
        let recorded = self.run.new_items().len() - of_turn;
        let calls = self.handoff_events(target.name_arc(), &payload, HandoffStatus::Taken, None);
        let agent = agent_keys::agent_ref(&self.start, &target);
        let message = handoff.transfer_message(&target, &payload);
        let shown = carried.shown_payload(&payload);
        let received = handoff.received(self.agent.name_arc(), shown);
        let way_back = self.way_back_after(&handoff, &target, shown);
        self.run_mut()
            .take_handoff(agent, &message, payload, carried, received);
        self.run_mut().arrive(way_back, target.is_person());
        self.agent = target;
        self.offer = None;
        let shown = self.run.shown_items();
        let asked_for = (self.run.handoffs().iter().rev())
            .find(|record| record.outcome == HandoffOutcome::Taken)
            .and_then(|record| record.redirected_from.clone());
        update_span!(span, Handoff.carried_items = Some(shown));
        explain(&mut span, |details| {
            details.carried_tokens = Some(self.run.shown_tokens());
            details.of_items = Some(of_items);
            details.outcome = Some(HandoffStatus::Taken);
            details.redirected_from = asked_for;
        });
        if self.has_details() {
            let items = self.run.conversation_items();
            explain(&mut span, |details| {
                let views = details.views.get_or_insert_with(|| {
                    Box::new(HandoffViews {
                        record: items.clone(),
                        ..HandoffViews::default()
                    })
                });
                views.seen = items;
            });
        }
        span.end();
        let mut events = self.recorded_events(recorded);
        events.extend(calls.into_iter().map(|mut event| {
            if event.status == HandoffStatus::Taken {
                event.carried_items = Some(shown);
                event.of_items = Some(of_items);
            }
            EventKind::Handoff(event)
        }));
        events
    }

    /// Answers the calls of handoffs that are not taken. The run ends with `output`, if there is one.
    async fn commit_refusal(
        &mut self,
        to: Arc<str>,
        payload: Value,
        outcome: HandoffOutcome,
        output: Option<FinalOutput>,
    ) {
        let recorded = self.run.new_items().len();
        let status = match outcome {
            HandoffOutcome::Failed(_) => HandoffStatus::Failed,
            _ => HandoffStatus::Refused,
        };
        let events = self.handoff_events(&to, &payload, status, outcome.reason());
        self.run_mut().refuse_handoff(&to, payload, outcome, output);
        self.report_recorded(recorded).await;
        for event in events {
            self.emit(|| EventKind::Handoff(event)).await;
        }
    }

    /// The events of all handoffs of the response: the first one, then those that are ignored.
    fn handoff_events(
        &self,
        to: &Arc<str>,
        payload: &Value,
        status: HandoffStatus,
        reason: Option<&str>,
    ) -> Vec<HandoffEvent> {
        if self.events.is_none() {
            return Vec::new();
        }
        let event = |(at, call): (usize, &HandoffCall)| {
            let (to, payload, status, reason) = if at == 0 {
                (to, payload.clone(), status, reason)
            } else {
                let arguments = call.call.arguments().unwrap_or_default();
                let arguments = json::arguments_value(&arguments);
                if self.run.turn().is_some_and(|turn| turn.refuses_all) {
                    (&call.to, arguments, status, reason)
                } else {
                    let ignored = Some(IGNORED_HANDOFF);
                    (&call.to, arguments, HandoffStatus::Ignored, ignored)
                }
            };
            HandoffEvent {
                reason: reason.map(str::to_owned),
                ..self.handoff_event(call, to, &payload, status)
            }
        };
        let calls = self.handoff_calls().iter().enumerate();
        calls.map(event).collect()
    }

    /// The event of one handoff.
    pub(super) fn handoff_event(
        &self,
        call: &HandoffCall,
        to: &Arc<str>,
        payload: &Value,
        status: HandoffStatus,
    ) -> HandoffEvent {
        HandoffEvent {
            from: self.agent.name_arc().clone(),
            to: to.clone(),
            tool: call.tool.clone(),
            call_id: call.call.call_id().unwrap_or_default().into(),
            payload: payload.clone(),
            status,
            reason: None,
            carried_items: None,
            of_items: None,
            trigger: self.run.handoff_trigger(),
        }
    }

    /// The handoffs of the response.
    pub(super) fn handoff_calls(&self) -> &[HandoffCall] {
        self.run.turn().map_or(&[], |turn| &turn.handoffs)
    }

    /// Begins the span of a handoff, with its cause.
    pub(super) fn handoff_span(&self) -> OpenSpan {
        let mut span = self.trace.span(self.parent_span(), || SpanData::Handoff {
            from: self.agent.name_arc().clone(),
            to: None,
            payload: None,
            carried_items: None,
            details: Box::default(),
        });
        self.explain_cause(&mut span);
        span
    }

    /// Adds the cause of the handoff to its span.
    fn explain_cause(&self, span: &mut OpenSpan) {
        let trigger = self.run.handoff_trigger();
        let of_model = (self.run.trace.as_ref()).and_then(|trace| trace.generation.get());
        explain(span, |details| {
            details.trigger = trigger;
            details.caused_by = of_model;
            if !trigger.is_model() {
                details.decided_by = Some(HandoffDecider::Condition);
                details.caused_by = self.turn_span.id();
            }
        });
    }

    /// Adds the payload to the span; its hash, where sensitive data is excluded.
    fn trace_payload(&self, payload: &Value, span: &mut OpenSpan) {
        if self.config.trace_sensitive_data {
            update_span!(span, Handoff.payload = Some(payload.clone()));
        } else {
            explain(span, |details| {
                details.payload_hash = Some(text_hash(&payload.to_string()));
            });
        }
    }

    /// Adds the target to the span, and an error where the model asked for several handoffs.
    fn trace_target(&self, target: &Agent<C>, span: &mut OpenSpan) {
        update_span!(span, Handoff.to = Some(target.name_arc().clone()));
        let is_fanned_out = self.run.turn().is_some_and(Turn::is_fanned_out);
        if let requested @ [_, _, ..] = self.handoff_calls()
            && !is_fanned_out
        {
            let agents = || requested.iter().map(|call| &*call.to).collect::<Vec<_>>();
            span.fail_with(
                "Multiple handoffs requested",
                || json!({"requested_agents": agents()}),
            );
        }
    }
}

/// Adds to the explanation of a handoff in its span.
pub(super) fn explain(span: &mut OpenSpan, explain: impl FnOnce(&mut HandoffDetails)) {
    span.update(|data| {
        if let SpanData::Handoff { details, .. } = data {
            explain(details);
        }
    });
}

/// A handoff that is taken.
struct TakenHandoff<C> {
    handoff: Handoff<C>,
    target: Agent<C>,
    payload: Value,
    carried: Carried,
    span: OpenSpan,
}
