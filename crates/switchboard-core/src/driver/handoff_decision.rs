//! Deciding on a handoff: where it leads, what forbids it, and what its code says.

use std::sync::Arc;

use futures_util::TryFutureExt as _;
use serde_json::Value;

use super::approvals::HandoffClearance;
use super::handoff::explain;
use super::{Driver, configuration_error};
use crate::agent::Agent;
use crate::callback::call;
use crate::error::{Error, ErrorKind, model_error};
use crate::guardrail::{Decision, GuardrailKind, HandoffGuardrail, HandoffRequest, HandoffVerdict};
use crate::handoff::{
    self, Handoff, HandoffContext, HandoffDecision, HandoffInputData, Target, target,
};
use crate::offered_tools::Offer;
use crate::run::handoff::{Carried, Redirect};
use crate::run::turn::{HandoffCall, HandoffProgress};
use crate::run::{HandoffTrigger, agent_keys};
use crate::runner::{AtLoopLimit, SeveralHandoffs};
use crate::schema::ParsedPayload;
use crate::tool::ToolFailure;
use crate::trace::HandoffDecider;
use crate::trace::trace_handle::OpenSpan;

impl<C: Send + Sync + 'static> Driver<C> {
    /// The reason to refuse all handoffs of a response that has several, where that is the policy.
    pub(super) fn refusal_of_several(&self) -> Option<String> {
        let calls @ [_, _, ..] = self.handoff_calls() else {
            return None;
        };
        let has_begun = self.run.turn().is_some_and(|turn| {
            turn.progress != HandoffProgress::NotStarted || turn.handoff_approval.is_some()
        });
        if has_begun {
            return None;
        }
        match &self.config.handoff_policy.several {
            SeveralHandoffs::First | SeveralHandoffs::FanOut(_) => None,
            SeveralHandoffs::AskToChoose => {
                let tools: Vec<&str> = calls.iter().map(|call| &*call.tool).collect();
                Some(format!(
                    "Several handoffs were asked for at once, and none was made. Call exactly one of \
                     {}.",
                    tools.join(", ")
                ))
            }
            SeveralHandoffs::Refuse => Some(
                "Several handoffs were asked for at once, and none was made. Go on without a handoff."
                    .to_owned(),
            ),
        }
    }

    /// The handoff to take: the one that the model called, or the one that a redirect leads to.
    pub(super) fn route(&self, offer: &Offer, call: &HandoffCall) -> Result<Route<C>, Error> {
        let in_place = self.agent_in_place();
        let agent = in_place.as_ref().unwrap_or(&self.agent);
        let trigger = self.run.handoff_trigger();
        let turn = self.run.turn();
        let Some(redirect) = turn.and_then(|turn| turn.redirect.as_ref()) else {
            if let Some(edge) = turn.and_then(|turn| turn.edge.as_ref()) {
                return Ok(Route {
                    handoff: self.edge_handoff(edge.at, &call.tool)?,
                    redirect: None,
                    trigger,
                });
            }
            let handoff = offer.handoff(agent, &call.tool).cloned();
            let handoff = handoff.ok_or_else(|| {
                configuration_error(
                    "the model asked for this handoff, and the agent the run was resumed with has \
                     none of that name",
                )
            })?;
            return Ok(Route {
                handoff,
                redirect: None,
                trigger,
            });
        };
        let Some(to) = agent_keys::find(&self.start, &redirect.to) else {
            return Err(configuration_error(format!(
                "it was redirected to \"{}\", which \"{}\" does not lead to",
                redirect.to,
                self.start.name()
            )));
        };
        let mut edges = agent.handoffs().iter();
        let leads_there =
            |edge: &&Handoff<C>| target(agent, edge).is_some_and(|agent| agent.ptr_eq(&to));
        let edge = edges.find(leads_there).cloned();
        Ok(Route {
            handoff: edge.unwrap_or_else(|| handoff::handoff(&to).build()),
            redirect: Some(redirect.clone()),
            trigger,
        })
    }

    /// Returns `true` if the handoff may need a person's approval.
    pub(super) fn may_need_approval(&self, handoff: &Handoff<C>) -> bool {
        let turn = self.run.turn();
        let was_asked = turn.is_some_and(|turn| turn.handoff_approval.is_some());
        was_asked || !handoff.approval().is_never()
    }

    /// Asks for a person's approval, where the handoff needs it. Returns the outcome unless the handoff
    /// may go on.
    pub(super) async fn clear(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        call: &HandoffCall,
    ) -> Option<Negotiated> {
        match self.clear_handoff(handoff, target, call).await {
            HandoffClearance::Take => None,
            HandoffClearance::Wait => Some(Negotiated::Waits),
            HandoffClearance::Refuse(reason) => Some(Negotiated::Refused(reason)),
        }
    }

    /// The text for the model about a handoff that a person has rejected, if one has.
    pub(super) async fn rejected_handoff(&self, call: &HandoffCall) -> Option<String> {
        let approval = self.run.turn()?.handoff_approval.as_ref()?;
        let decision = approval.decision.as_ref()?;
        if decision.is_approved() {
            return None;
        }
        let call_id = call.call.call_id().unwrap_or_default();
        Some(self.rejection_text(&call.tool, &call_id, decision).await)
    }

    /// The outcome of a decision against the handoff as the model asked for it.
    pub(super) fn decided(
        &self,
        decision: HandoffDecision,
        route: &Route<C>,
    ) -> Result<Negotiated, Error> {
        match decision {
            HandoffDecision::Refuse(reason) => Ok(Negotiated::Refused(reason)),
            HandoffDecision::Redirect { .. } if route.redirects() >= MAX_REDIRECTS => {
                Err(configuration_error(format!(
                    "it was redirected more than {MAX_REDIRECTS} times in a row; let one of the \
                     decisions accept it"
                )))
            }
            HandoffDecision::Redirect { to, payload } => {
                Ok(Negotiated::Redirected(Box::new(Redirect {
                    to,
                    payload,
                    count: route.redirects() + 1,
                    is_at_limit: false,
                })))
            }
            HandoffDecision::Proceed | HandoffDecision::AskApproval => {
                Err(configuration_error("the decision is no refusal"))
            }
        }
    }

    /// Checks the limits on handoffs that go in circles, before anything is done. Returns the outcome if
    /// one is reached.
    pub(super) fn check_limits(
        &self,
        target: &Agent<C>,
        route: &Route<C>,
        span: &mut OpenSpan,
    ) -> Result<Option<Negotiated>, Error> {
        let limits = &self.config.handoff_policy.loops;
        if route
            .redirect
            .as_ref()
            .is_some_and(|redirect| redirect.is_at_limit)
        {
            return Ok(None);
        }
        let Some(passed) = self.run.passed_limit(target.name(), limits) else {
            return Ok(None);
        };
        explain(span, |details| {
            details.decided_by = Some(HandoffDecider::LoopLimit);
            details.policy = Some(passed.name.into());
        });
        let limit = passed.description;
        let circle = self.run.circle(target.name());
        tracing::warn!(limit, circle, "a limit on handoffs is reached");
        let reason = || {
            format!(
                "The handoff to {} was not made: the conversation goes in a circle ({circle}). Go on \
                 without it.",
                target.name()
            )
        };
        match &limits.at_limit {
            AtLoopLimit::Refuse => Ok(Some(Negotiated::Refused(reason()))),
            // It has the conversation already.
            AtLoopLimit::Redirect(to)
                if **to == *self.agent.name() && !self.run.was_redirected_since_model_call() =>
            {
                Ok(Some(Negotiated::Refused(reason())))
            }
            AtLoopLimit::Answer(answer) => Ok(Some(Negotiated::Answered(Box::new(Answered {
                reason: reason(),
                answer: answer.clone(),
            })))),
            AtLoopLimit::Redirect(to)
                if **to != *target.name() && !self.run.was_redirected_since_model_call() =>
            {
                Ok(Some(Negotiated::Redirected(Box::new(Redirect {
                    to: to.clone(),
                    payload: None,
                    count: route.redirects() + 1,
                    is_at_limit: true,
                }))))
            }
            AtLoopLimit::Fail | AtLoopLimit::Redirect(_) => Err(Error::new(
                ErrorKind::HandoffLoop,
                format!(
                    "the agents hand the conversation around ({circle}), and the limit of {limit} is \
                     reached; change their instructions or conditions, or set another limit with \
                     HandoffPolicy::loops"
                ),
            )),
        }
    }

    /// Checks the condition again: tools of the same response may have changed it.
    pub(super) async fn recheck_condition(
        &self,
        handoff: &Handoff<C>,
        span: &OpenSpan,
    ) -> Result<(), HandoffFailure> {
        if handoff.enabled().is_always() {
            return Ok(());
        }
        let ctx = self.ctx();
        let check = handoff.enabled().check(&ctx, &self.agent);
        let check = self.run_code(span.id(), "the handoff's condition", check);
        if condition!(self, Condition, handoff.tool_name(), Box::pin(check))? {
            return Ok(());
        }
        Err(HandoffFailure::told(
            model_error(
                "the handoff's condition held when the model was asked and no longer does, after the \
                 tools of the same response; nothing was handed over",
            ),
            format!(
                "The handoff to {} is not possible any more. Go on without it.",
                handoff.agent_name()
            ),
        ))
    }

    /// The agent that gets the conversation. Where code picks it and the callback has run for one
    /// already, no other may be picked.
    pub(super) async fn find_target(
        &self,
        handoff: &Handoff<C>,
        requested: &HandoffCall,
        span: &OpenSpan,
    ) -> Result<Agent<C>, Error> {
        let Target::Custom(custom) = handoff.target() else {
            return target(&self.agent, handoff).ok_or_else(|| {
                configuration_error(format!(
                    "it leads to \"{}\" by name, and the agent is in no team with an agent of that \
                     name; put both into a Team",
                    handoff.agent_name()
                ))
            });
        };
        let before = self.run.turn().and_then(|turn| turn.picked.as_deref());
        if let Some(known) = before.and_then(|key| agent_keys::find(&self.start, key)) {
            return Ok(known);
        }
        let arguments = requested.call.arguments().unwrap_or_default().into_owned();
        let what = "the function that picks the agent";
        let pick = call(|| custom.pick(self.ctx(), arguments));
        let mut live = None;
        let pick = async {
            let picked = self.run_code(span.id(), what, pick).await?;
            let picked = live.insert(picked.reached_from(&self.agent));
            Ok::<_, Error>(agent_keys::key(&self.start, picked))
        };
        let key = effect!(self, Handoff, what, Box::pin(pick))?;
        let recorded = || agent_keys::find(&self.start, &key);
        let picked = live.or_else(recorded).ok_or_else(|| {
            configuration_error(format!(
                "it led to \"{key}\" before the run was interrupted, which cannot be found again; list \
                 the agents that the handoff may pick with candidate"
            ))
        })?;
        match before {
            Some(key) if agent_keys::key(&self.start, &picked) != *key => {
                Err(configuration_error(format!(
                    "the callback has run for \"{key}\", which cannot be found again; list the \
                     agents that the handoff may pick with candidate"
                )))
            }
            _ => Ok(picked),
        }
    }

    pub(super) fn handoff_guardrails<'a>(
        &'a self,
        handoff: &'a Handoff<C>,
    ) -> impl Iterator<Item = &'a HandoffGuardrail<C>> {
        let own = handoff.guardrails().iter();
        own.chain(&self.config.handoff_guardrails)
    }

    /// Asks the guardrails of the handoff and of the run. They are shown what the next agent would
    /// get, after the filter; what they allowed is carried over, whatever the callback and hooks
    /// change afterwards, also by a run that is stored and resumed after the callback.
    pub(super) async fn ask_handoff_guardrails(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        data: &HandoffInputData<C>,
    ) -> Result<HandoffDecision, Error> {
        let guardrails: Vec<_> = self.handoff_guardrails(handoff).cloned().collect();
        let mut asks_approval = false;
        for guardrail in guardrails {
            let request = HandoffRequest {
                from: self.agent.clone(),
                to: target.clone(),
                payload: handoff.takes_payload().then(|| payload.clone()),
                data: data.clone(),
            };
            let mut refusal = None;
            let decision = async {
                let asked = call(|| guardrail.check(request));
                Ok(
                    match effect!(self, Guardrail, &**guardrail.name_arc(), asked)? {
                        HandoffVerdict::Allow => Decision::Allowed(Value::Null),
                        HandoffVerdict::Refuse(reason) => {
                            refusal = Some(HandoffDecision::Refuse(reason.clone()));
                            Decision::Refused(reason)
                        }
                        HandoffVerdict::Redirect(to) => {
                            let reason = format!("redirected to {to}");
                            refusal = Some(HandoffDecision::redirect(to));
                            Decision::Refused(reason)
                        }
                        HandoffVerdict::AskApproval => {
                            asks_approval = true;
                            Decision::Allowed("a person decides".into())
                        }
                        HandoffVerdict::Trip(info) => Decision::Tripped(info),
                    },
                )
            };
            let kind = GuardrailKind::Handoff;
            let asked = self.run_guardrail(kind, guardrail.name_arc(), decision);
            let result = [asked.await?];
            let passed = self.check_trip(kind, &result).await;
            self.run_mut().guardrails.handoff.add(result);
            passed?;
            if let Some(refusal) = refusal {
                return Ok(refusal);
            }
        }
        Ok(if asks_approval {
            HandoffDecision::AskApproval
        } else {
            HandoffDecision::Proceed
        })
    }

    pub(super) async fn call_back(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        asked: &HandoffCall,
        payload: ParsedPayload,
        span: &OpenSpan,
    ) -> Result<HandoffDecision, HandoffFailure> {
        let is_approved = self.run.handoff_is_approved();
        self.call_back_approved(handoff, target, asked, payload, is_approved, span)
            .await
    }

    /// Calls the callback of a handoff that a person may have approved.
    pub(super) async fn call_back_approved(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        asked: &HandoffCall,
        payload: ParsedPayload,
        is_approved: bool,
        span: &OpenSpan,
    ) -> Result<HandoffDecision, HandoffFailure> {
        let Some(code) = handoff.callback() else {
            return Ok(HandoffDecision::Proceed);
        };
        let ctx = self.handoff_context(target, asked).approved(is_approved);
        let called = call(|| code(ctx, payload));
        let called = self.run_code(span.id(), "the on_handoff callback", called);
        let called = called.map_err(|error| {
            // The error may hold private data.
            let explained = error
                .cause()
                .and_then(|cause| cause.downcast_ref::<ToolFailure>());
            let text = match explained {
                Some(failure) => failure.message().to_owned(),
                None => format!(
                    "The handoff to {} could not be made because of an error. Try again, or go on \
                     without it.",
                    target.name()
                ),
            };
            HandoffFailure::told(error, text)
        });
        let call_id = asked.call.call_id().unwrap_or_default();
        let step = self.step_name(format_args!("{} {call_id}", asked.tool));
        effect!(self, Handoff, &*step, Box::pin(called))
    }

    pub(super) fn handoff_context(
        &self,
        target: &Agent<C>,
        call: &HandoffCall,
    ) -> HandoffContext<C> {
        let (from, to) = (self.agent.clone(), target.clone());
        HandoffContext::new(self.ctx(), from, to, call.clone(), self.call_key())
    }
}

/// The number of redirects of one handoff.
pub(super) const MAX_REDIRECTS: u32 = 8;

/// The handoff to take.
pub(super) struct Route<C> {
    pub(super) handoff: Handoff<C>,
    /// The redirect that led to it.
    pub(super) redirect: Option<Box<Redirect>>,
    /// The cause of the handoff.
    pub(super) trigger: HandoffTrigger,
}

impl<C> Route<C> {
    /// The number of redirects that led to it.
    pub(super) fn redirects(&self) -> u32 {
        self.redirect.as_ref().map_or(0, |redirect| redirect.count)
    }
}

/// A handoff that could not be made.
pub(super) enum HandoffFailure {
    /// The run ends.
    Fatal(Error),
    /// The model may be told with this text, and the run go on.
    Told(Box<(Error, String)>),
}

impl HandoffFailure {
    pub(super) fn told(error: Error, text: String) -> Self {
        Self::Told(Box::new((error, text)))
    }
}

impl From<Error> for HandoffFailure {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// The end of a run at a handoff that is not taken.
pub(super) struct Answered {
    /// The answer of the model's call.
    pub(super) reason: String,
    /// The final output.
    pub(super) answer: Arc<str>,
}

/// The outcome of a handoff before the run moves.
pub(super) enum Negotiated {
    Taken(Carried),
    Refused(String),
    /// The run ends, and the model's call is answered.
    Answered(Box<Answered>),
    /// Another agent gets the conversation.
    Redirected(Box<Redirect>),
    /// It waits for a decision.
    Waits,
}

pub(super) fn parse_payload<C>(
    route: &Route<C>,
    call: &HandoffCall,
    span: &mut OpenSpan,
) -> Result<ParsedPayload, HandoffFailure> {
    let handoff = &route.handoff;
    let given = route
        .redirect
        .as_ref()
        .and_then(|redirect| redirect.payload.as_ref());
    let arguments = match given {
        Some(payload) => payload.to_string().into(),
        None => call.call.arguments().unwrap_or_default(),
    };
    handoff.parse_payload(&arguments).map_err(|error| {
        span.fail("Invalid JSON provided");
        if route.redirects() > 0 {
            let message = format!(
                "it was redirected to \"{}\", whose handoff asks for another payload ({error}); give \
                 one with HandoffDecision::redirect_with",
                handoff.agent_name()
            );
            return HandoffFailure::Fatal(configuration_error(message).caused_by(error));
        }
        if !route.trigger.is_model() {
            let message = format!(
                "its condition holds, and the payload is not what it asks for ({error}); give one with \
                 EdgeDecision::hand_off_with"
            );
            return HandoffFailure::Fatal(configuration_error(message).caused_by(error));
        }
        let text = format!(
            "The handoff was not made: its arguments are invalid: {error}. Correct them and call {} \
             again.",
            call.tool
        );
        let message = format!("the model's payload is not what the handoff asks for: {error}");
        let error = model_error(message).caused_by(error);
        HandoffFailure::told(error, text)
    })
}
