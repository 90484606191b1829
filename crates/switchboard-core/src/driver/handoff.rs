//! Taking a handoff: first everything that can be refused, then the side effects, then the step.

use serde_json::{Value, json};

use super::hooks::HookCall;
use super::{Driver, configuration_error, user_error};
use crate::agent::Agent;
use crate::callback::{call, catch_panic_sync};
use crate::error::{Error, ErrorKind, model_error};
use crate::filters::Filter;
use crate::guardrail::{Decision, GuardrailKind, HandoffGuardrail, HandoffRequest, HandoffVerdict};
use crate::handoff::{
    FilterInput, Handoff, HandoffContext, HandoffDecision, HandoffInputData, InvalidResult, Target,
    nest_handoff_history, target,
};
use crate::run::handoff::{Carried, IGNORED_HANDOFF};
use crate::run::turn::{HandoffCall, HandoffProgress};
use crate::run::{Step, agent_keys};
use crate::schema::ParsedPayload;
use crate::stream::{EventKind, HandoffEvent, HandoffStatus};
use crate::trace::SpanData;
use crate::trace::trace_handle::OpenSpan;
use crate::{hooks, json};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Takes the handoff that the model asked for. An error leaves the run as it was; the stages
    /// that were done are not repeated when it is resumed.
    pub(super) async fn take_handoff(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::TakeHandoff([call, ..]) = self.run.step() else {
            return Err(configuration_error(
                "the run is at a handoff that nobody asked for",
            ));
        };
        let call = call.clone();
        let mut span = self.trace.span(self.parent_span(), || SpanData::Handoff {
            from: self.agent.name_arc().clone(),
            to: None,
            payload: None,
            carried_items: None,
        });
        let Some(handoff) = offer.handoff(&self.agent, &call.tool).cloned() else {
            let error = configuration_error(
                "the model asked for this handoff, and the agent the run was resumed with has none \
                 of that name",
            );
            return Err(error.at_handoff(&call.tool));
        };
        let outcome = self.negotiate(&handoff, &call, &mut span).await;
        let (target, payload, outcome) = outcome.map_err(|error| error.at_handoff(&call.tool))?;
        match outcome {
            Negotiated::Taken(carried) => {
                self.commit_handoff(&handoff, target, payload, carried, span)
                    .await
            }
            Negotiated::Refused(reason) => {
                span.fail("Handoff refused");
                span.end();
                // Boxed: it is rare, and larger than all else.
                Box::pin(self.commit_refusal(target, payload, reason)).await;
                Ok(())
            }
        }
    }

    /// All stages of a handoff before the run moves, in their order. Returns the agent that gets the
    /// conversation, the payload and the outcome.
    async fn negotiate(
        &mut self,
        handoff: &Handoff<C>,
        call: &HandoffCall,
        span: &mut OpenSpan,
    ) -> Result<(Agent<C>, Value, Negotiated), Error> {
        // A handoff that failed after its callback is resumed behind it.
        let turn = self.run.turn();
        let progress = turn.map_or(HandoffProgress::NotStarted, |turn| turn.progress);
        let ran_tools = turn.is_some_and(|turn| !turn.tools().results.is_empty());
        let is_resumed = progress != HandoffProgress::NotStarted;

        let parsed = parse_payload(handoff, call, span)?;
        let payload = parsed.value.clone();
        if ran_tools && !is_resumed {
            self.recheck_condition(handoff, span).await?;
        }
        self.check_filter_allowed(handoff)?;
        self.run_mut().guardrails.handoff.begin_attempt();
        if self.config.trace_sensitive_data && handoff.takes_payload() {
            update_span!(span, Handoff.payload = Some(payload.clone()));
        }

        let target = self.find_target(handoff, call, span).await?;
        self.check_output_guardrails(&target)?;
        let mut checked = self.run.checked_handoff().cloned();
        // Also where the run was stored without what they allowed: a filter that is repeated may
        // leave something else than they saw.
        if checked.is_none() && self.handoff_guardrails(handoff).next().is_some() {
            let shown = Box::pin(self.input_data(handoff, &target, &payload, span));
            let shown = Box::new(shown.await?);
            let asked = self.ask_handoff_guardrails(handoff, &target, &payload, &shown);
            if let HandoffDecision::Refuse(reason) = Box::pin(asked).await? {
                return Ok((target, payload, Negotiated::Refused(reason)));
            }
            checked = Some(match self.carry_rule(handoff) {
                CarryRule::Everything => Carried::Everything,
                _ => Carried::Rewritten(Box::new(shown.into_parts())),
            });
        }
        if !is_resumed {
            let decision = self.call_back(handoff, &target, call, parsed, span).await?;
            if let HandoffDecision::Refuse(reason) = decision {
                return Ok((target, payload, Negotiated::Refused(reason)));
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

        let carried = match (checked, self.carry_rule(handoff)) {
            (Some(checked), _) => checked,
            (None, CarryRule::Everything) => Carried::Everything,
            (None, _) => {
                let data = self.input_data(handoff, &target, &payload, span);
                Carried::Rewritten(Box::new(Box::pin(data).await?.into_parts()))
            }
        };
        Ok((target, payload, Negotiated::Taken(carried)))
    }

    /// Hands the conversation over and reports it.
    async fn commit_handoff(
        &mut self,
        handoff: &Handoff<C>,
        target: Agent<C>,
        payload: Value,
        carried: Carried,
        mut span: OpenSpan,
    ) -> Result<(), Error> {
        if matches!(carried, Carried::Rewritten(_)) {
            self.warn_of_lost_filter(&target);
        }
        let recorded = self.run.new_items().len();
        let of_items = self.run.items_before_handoff();
        let calls = self.handoff_events(&target, &payload, HandoffStatus::Taken, None);
        let from = self.agent.name_arc().clone();
        let agent = agent_keys::agent_ref(&self.start, &target);
        let message = handoff.transfer_message(&target);
        self.run_mut()
            .take_handoff(agent, message, payload, carried);
        // No await between the move of the run and this: a stop in between would leave two agents.
        self.agent = target;
        self.offer = None;
        let shown = self.run.shown_items();
        update_span!(span, Handoff.carried_items = Some(shown));
        span.end();
        for event in self.recorded_events(recorded) {
            self.emit_for(&from, || event).await;
        }
        for mut event in calls {
            if event.status == HandoffStatus::Taken {
                event.carried_items = Some(shown);
                event.of_items = Some(of_items);
            }
            self.emit_for(&from, || EventKind::Handoff(event)).await;
        }
        self.end_spans();
        self.save().await?;
        self.report_agent().await;
        Ok(())
    }

    async fn commit_refusal(&mut self, target: Agent<C>, payload: Value, reason: String) {
        let recorded = self.run.new_items().len();
        let status = HandoffStatus::Refused;
        let events = self.handoff_events(&target, &payload, status, Some(&reason));
        self.run_mut()
            .refuse_handoff(target.name_arc(), payload, reason);
        self.report_recorded(recorded).await;
        for event in events {
            self.emit(|| EventKind::Handoff(event)).await;
        }
    }

    /// The events of all handoffs of the response: the first one, then those that are ignored.
    fn handoff_events(
        &self,
        target: &Agent<C>,
        payload: &Value,
        status: HandoffStatus,
        reason: Option<&str>,
    ) -> Vec<HandoffEvent> {
        if self.events.is_none() {
            return Vec::new();
        }
        let event = |(at, call): (usize, &HandoffCall)| {
            let (to, payload, status, reason) = if at == 0 {
                let to = target.name_arc();
                (to, payload.clone(), status, reason)
            } else {
                let arguments = call.call.arguments().unwrap_or_default();
                let arguments = json::arguments_value(&arguments);
                let status = HandoffStatus::Ignored;
                (&call.to, arguments, status, Some(IGNORED_HANDOFF))
            };
            HandoffEvent {
                from: self.agent.name_arc().clone(),
                to: to.clone(),
                tool: call.tool.clone(),
                call_id: call.call.call_id().unwrap_or_default().into(),
                payload,
                status,
                reason: reason.map(str::to_owned),
                carried_items: None,
                of_items: None,
            }
        };
        let calls = self.handoff_calls().iter().enumerate();
        calls.map(event).collect()
    }

    /// The handoffs of the response.
    fn handoff_calls(&self) -> &[HandoffCall] {
        self.run.turn().map_or(&[], |turn| &turn.handoffs)
    }

    /// Checks the condition again: tools of the same response may have changed it.
    async fn recheck_condition(&self, handoff: &Handoff<C>, span: &OpenSpan) -> Result<(), Error> {
        if handoff.enabled().is_always() {
            return Ok(());
        }
        let ctx = self.ctx();
        let check = handoff.enabled().check(&ctx, &self.agent);
        if Box::pin(self.run_code(span.id(), "the handoff's condition", check)).await? {
            return Ok(());
        }
        Err(model_error(
            "the handoff's condition held when the model was asked and no longer does, after the \
             tools of the same response; nothing was handed over",
        ))
    }

    /// The provider's history cannot be filtered.
    fn check_filter_allowed(&self, handoff: &Handoff<C>) -> Result<(), Error> {
        if self.config.server_history.is_none() {
            return Ok(());
        }
        if let CarryRule::Filter(_) = self.carry_rule(handoff) {
            return Err(configuration_error(
                "the provider keeps the conversation, so what the next agent sees cannot be \
                 filtered; take the filter off the handoff and the run, or do without \
                 server_history",
            ));
        }
        if self.nests(handoff) {
            tracing::warn!(
                agent = self.agent.name(),
                handoff = handoff.tool_name(),
                "the provider keeps the conversation, so its history is not nested"
            );
        }
        Ok(())
    }

    /// A handoff's own filter takes precedence over the run's, and any filter over nesting. What the
    /// provider keeps cannot be nested.
    fn carry_rule<'a>(&'a self, handoff: &'a Handoff<C>) -> CarryRule<'a, C> {
        let own = handoff.input_filter();
        match own.or(self.config.handoff_input_filter.as_ref()) {
            Some(filter) => CarryRule::Filter(filter),
            None if self.nests(handoff) && self.config.server_history.is_none() => CarryRule::Nest,
            None => CarryRule::Everything,
        }
    }

    fn nests(&self, handoff: &Handoff<C>) -> bool {
        let own = handoff.nest_history();
        own.unwrap_or(self.config.nest_handoff_history)
    }

    /// The agent that gets the conversation. Where code picks it and the callback has run for one
    /// already, no other may be picked.
    async fn find_target(
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
        let before = self.run.turn().and_then(|turn| turn.picked.as_ref());
        if let Some(known) = before.and_then(|key| agent_keys::find(&self.start, key)) {
            return Ok(known);
        }
        let arguments = requested.call.arguments().unwrap_or_default().into_owned();
        let what = "the function that picks the agent";
        let pick = call(|| custom.pick(self.ctx(), arguments));
        let picked = Box::pin(self.run_code(span.id(), what, pick)).await?;
        let picked = picked.reached_from(&self.agent);
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

    fn handoff_guardrails<'a>(
        &'a self,
        handoff: &'a Handoff<C>,
    ) -> impl Iterator<Item = &'a HandoffGuardrail<C>> {
        let own = handoff.guardrails().iter();
        own.chain(&self.config.handoff_guardrails)
    }

    /// Asks the guardrails of the handoff and of the run. They are shown what the next agent would
    /// get, after the filter; what they allowed is carried over, whatever the callback and hooks
    /// change afterwards, also by a run that is stored and resumed after the callback.
    async fn ask_handoff_guardrails(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        data: &HandoffInputData<C>,
    ) -> Result<HandoffDecision, Error> {
        let guardrails: Vec<_> = self.handoff_guardrails(handoff).cloned().collect();
        for guardrail in guardrails {
            let request = HandoffRequest {
                from: self.agent.clone(),
                to: target.clone(),
                payload: handoff.takes_payload().then(|| payload.clone()),
                data: data.clone(),
            };
            let mut refusal = None;
            let decision = async {
                Ok(match call(|| guardrail.check(request)).await? {
                    HandoffVerdict::Allow => Decision::Allowed(Value::Null),
                    HandoffVerdict::Refuse(reason) => {
                        refusal = Some(reason.clone());
                        Decision::Refused(reason)
                    }
                    HandoffVerdict::Trip(info) => Decision::Tripped(info),
                })
            };
            let kind = GuardrailKind::Handoff;
            let asked = self.run_guardrail(kind, guardrail.name_arc(), decision);
            let result = [asked.await?];
            let passed = self.check_trip(kind, &result).await;
            self.run_mut().guardrails.handoff.add(result);
            passed?;
            if let Some(reason) = refusal {
                return Ok(HandoffDecision::Refuse(reason));
            }
        }
        Ok(HandoffDecision::Proceed)
    }

    async fn call_back(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        asked: &HandoffCall,
        payload: ParsedPayload,
        span: &OpenSpan,
    ) -> Result<HandoffDecision, Error> {
        let Some(code) = handoff.callback() else {
            return Ok(HandoffDecision::Proceed);
        };
        let (from, to) = (self.agent.clone(), target.clone());
        let ctx = HandoffContext::new(self.ctx(), from, to, asked.clone());
        let called = call(|| code(ctx, payload));
        Box::pin(self.run_code(span.id(), "the on_handoff callback", called)).await
    }

    /// Adds the target to the span, and an error where the model asked for several handoffs.
    fn trace_target(&self, target: &Agent<C>, span: &mut OpenSpan) {
        update_span!(span, Handoff.to = Some(target.name_arc().clone()));
        if let requested @ [_, _, ..] = self.handoff_calls() {
            let agents = || requested.iter().map(|call| &*call.to).collect::<Vec<_>>();
            span.fail_with(
                "Multiple handoffs requested",
                || json!({"requested_agents": agents()}),
            );
        }
    }

    /// The data of the handoff, after the filter or nesting that applies.
    async fn input_data(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        span: &OpenSpan,
    ) -> Result<HandoffInputData<C>, Error> {
        let mut new_items = Vec::new();
        if let Some(turn) = self.run.turn() {
            new_items.clone_from(&turn.items);
            let (to, message) = (target.name_arc(), handoff.transfer_message(target));
            self.run
                .answer_handoffs(&turn.handoffs, &mut new_items, to, message);
        }
        let data = HandoffInputData::new(
            self.run.conversation.input.clone(),
            self.run.conversation.generated.clone(),
            new_items,
            self.ctx(),
        )
        .with_payload(handoff.takes_payload().then(|| payload.clone()))
        .with_notes(&self.run.conversation.notes);
        let given = FilterInput::of(&data);
        match self.carry_rule(handoff) {
            CarryRule::Everything => Ok(data),
            CarryRule::Filter(filter) => {
                let filtered = self.run_code(span.id(), "the filter", filter.apply(data));
                self.check_filtered("the filter", handoff, &given, filtered.await?)
            }
            CarryRule::Nest => {
                let mapper = self.config.handoff_history_mapper.as_ref();
                let markers = &self.config.history_markers;
                let nested = catch_panic_sync(|| nest_handoff_history(data, mapper, markers))
                    .map_err(|error| user_error("the mapper of nested histories", error))?;
                match mapper {
                    Some(_) => self.check_filtered("the history mapper", handoff, &given, nested),
                    None => Ok(nested),
                }
            }
        }
    }

    /// Checks that a model can be shown what user code left.
    fn check_filtered(
        &self,
        what: &str,
        handoff: &Handoff<C>,
        given: &FilterInput,
        left: HandoffInputData<C>,
    ) -> Result<HandoffInputData<C>, Error> {
        let problem = match given.check(&left, &self.config.history_markers) {
            Ok(0) => return Ok(left),
            Ok(_) if self.config.drop_orphaned_calls => return Ok(left),
            Ok(orphans) => {
                tracing::warn!(
                    agent = self.agent.name(),
                    handoff = handoff.tool_name(),
                    orphans,
                    "{what} leaves calls without outputs or outputs without calls, which most \
                     providers refuse; Runner::drop_orphaned_calls removes them"
                );
                return Ok(left);
            }
            Err(InvalidResult::Empty) => format!(
                "{what} left nothing for \"{}\" to see; let it keep at least what the user said \
                 last, or say in a message what there is to do",
                handoff.agent_name()
            ),
            Err(InvalidResult::UntypedItem(at)) => format!(
                "{what} made an item that has neither a type nor a role (item {} of what \"{}\" \
                 would see); give it one of the two",
                at + 1,
                handoff.agent_name()
            ),
        };
        Err(Error::new(ErrorKind::UserCode, problem))
    }
}

fn parse_payload<C>(
    handoff: &Handoff<C>,
    call: &HandoffCall,
    span: &mut OpenSpan,
) -> Result<ParsedPayload, Error> {
    let arguments = call.call.arguments().unwrap_or_default();
    handoff.parse_payload(&arguments).map_err(|error| {
        span.fail("Invalid JSON provided");
        let message = format!("the model's payload is not what the handoff asks for: {error}");
        model_error(message).caused_by(error)
    })
}

/// The rule by which the conversation for the next agent is made.
enum CarryRule<'a, C> {
    Everything,
    Filter(&'a Filter<C>),
    Nest,
}

/// The outcome of a handoff before the run moves.
enum Negotiated {
    Taken(Carried),
    Refused(String),
}
