//! Taking a handoff: first everything that can be refused, then the side effects, then the step.

use std::sync::Arc;

use serde_json::Value;

use super::Driver;
use super::hooks::HookCall;
use crate::agent::Agent;
use crate::callback::{call, catch_panic_sync};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{Decision, GuardrailKind, HandoffGuardrail, HandoffRequest, HandoffVerdict};
use crate::handoff::{
    Callback, FilterInput, Handoff, HandoffDecision, HandoffInputData, InvalidResult, Target,
    nest_handoff_history,
};
use crate::hooks;
use crate::items::RunItems;
use crate::json;
use crate::run::agent_keys;
use crate::run::handoff::{Carried, CarryRule, CarrySettings, IGNORED_HANDOFF, Transfer};
use crate::run::machine::Step;
use crate::run::stream::{EventKind, HandoffEvent, HandoffStatus};
use crate::run::turn::{HandoffCall, HandoffProgress};
use crate::schema::ParsedPayload;
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Takes the handoff that the model asked for. An error leaves the run as it was; the stages
    /// that were done are not repeated when it is resumed.
    pub(super) async fn take_handoff(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::TakeHandoff([call, ..]) = self.run.step() else {
            return Err(self.configuration_error("the run is at a handoff that nobody asked for"));
        };
        let call = call.clone();
        let mut span = self.trace.span(self.parent_span(), || SpanData::Handoff {
            from: self.agent.name_arc().clone(),
            to: None,
            payload: None,
            carried_items: None,
        });
        let outcome = match offer.handoff(&self.agent, &call.tool).cloned() {
            Some(handoff) => self.negotiate(&handoff, &call, &mut span).await,
            None => Err(self.configuration_error(
                "the model asked for this handoff, and the agent the run was resumed with has none \
                 of that name",
            )),
        };
        let outcome =
            outcome.map_err(|error| error.at_agent(self.agent.name()).at_handoff(&call.tool))?;
        match outcome {
            Negotiated::Taken(taken) => self.commit_handoff(taken, span).await,
            Negotiated::Refused(refused) => {
                span.fail("Handoff refused");
                span.end();
                self.commit_refusal(refused).await;
                Ok(())
            }
        }
    }

    /// All stages of a handoff before the run moves, in their order.
    async fn negotiate(
        &mut self,
        handoff: &Handoff<C>,
        call: &HandoffCall,
        span: &mut OpenSpan,
    ) -> Result<Negotiated<C>, Error> {
        // A handoff that failed after its callback is resumed behind it, and can no longer be
        // refused.
        let progress = self.run.handoff_progress();
        let is_resumed = progress != HandoffProgress::NotStarted;

        let payload = parse_payload(handoff, call, span)?;
        let value = payload.value.clone();
        if self.run.ran_tools_before_handoff() && !is_resumed {
            self.recheck_condition(handoff, span).await?;
        }
        self.check_filter_allowed(handoff)?;
        self.run_mut().guardrails.handoff.begin_attempt();
        if self.config.trace_sensitive_data && handoff.takes_payload() {
            span.update(|data| {
                if let SpanData::Handoff { payload, .. } = data {
                    *payload = Some(value.clone());
                }
            });
        }

        let target = self.find_target(handoff, call, span).await?;
        self.check_output_guardrails(&target)?;
        let mut carried = None;
        if !is_resumed {
            if self.handoff_guardrails(handoff).next().is_some() {
                let request = Box::pin(self.ask_handoff_guardrails(handoff, &target, &value, span));
                match request.await? {
                    Checked::Refused(reason) => {
                        return Ok(Negotiated::refused(target, value, reason));
                    }
                    Checked::Allowed(rewritten) => carried = rewritten,
                }
            }
            match self.call_back(handoff, payload, span).await? {
                HandoffDecision::Proceed => {}
                HandoffDecision::Refuse(reason) => {
                    return Ok(Negotiated::refused(target, value, reason));
                }
            }
            let is_picked = matches!(handoff.target(), Target::Custom(_));
            let picked = is_picked.then(|| agent_keys::key(&self.start, &target));
            self.run_mut().handoff_called_back(picked);
        }

        self.trace_target(&target, span);
        if progress != HandoffProgress::HooksNotified {
            let transfer = hooks::Transfer {
                from: &self.agent,
                to: &target,
                call,
                payload: &value,
            };
            self.call_hooks(HookCall::Handoff(&transfer)).await?;
        }
        self.run_mut().handoff_hooks_notified();

        let carried = match carried {
            Some(carried) => carried,
            None => self.carried(handoff, &target, &value, span).await?,
        };
        Ok(Negotiated::Taken(Taken {
            target,
            payload: value,
            carried,
        }))
    }

    /// Hands the conversation over and reports it.
    async fn commit_handoff(&mut self, taken: Taken<C>, mut span: OpenSpan) -> Result<(), Error> {
        let Taken {
            target,
            payload,
            carried,
        } = taken;
        let recorded = self.run.new_items().len();
        let of_items = self.run.items_before_handoff();
        let calls = self.handoff_events(&target, &payload, HandoffStatus::Taken, None);
        let from = self.agent.clone();
        let agent = agent_keys::agent_ref(&self.start, &target);
        let transfer = transfer(from.name_arc(), &target);
        Arc::make_mut(&mut self.run).take_handoff(agent, &transfer, payload, carried);
        // No await between the move of the run and this: a stop in between would leave two agents.
        self.agent = target;
        self.offer = None;
        let carried_items = self.run.shown_items();
        span.update(|data| {
            if let SpanData::Handoff {
                carried_items: count,
                ..
            } = data
            {
                *count = Some(carried_items);
            }
        });
        span.end();
        self.report_recorded_of(&from, recorded).await;
        for mut event in calls {
            if event.status == HandoffStatus::Taken {
                event.carried_items = Some(carried_items);
                event.of_items = Some(of_items);
            }
            self.emit_for(&from, || EventKind::Handoff(event)).await;
        }
        self.end_spans();
        self.save().await?;
        self.report_agent().await;
        Ok(())
    }

    async fn commit_refusal(&mut self, refused: Refused<C>) {
        let Refused {
            target,
            payload,
            reason,
        } = refused;
        let recorded = self.run.new_items().len();
        let status = HandoffStatus::Refused;
        let events = self.handoff_events(&target, &payload, status, Some(&reason));
        let from = self.agent.name_arc().clone();
        self.run_mut()
            .refuse_handoff(&from, target.name_arc(), payload, reason);
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
        let event = |(at, call): (usize, &HandoffCall)| HandoffEvent {
            from: self.agent.name_arc().clone(),
            to: if at == 0 {
                target.name_arc().clone()
            } else {
                call.to.clone()
            },
            tool: call.tool.clone(),
            call_id: call.call.call_id().unwrap_or_default().into(),
            payload: if at == 0 {
                payload.clone()
            } else {
                json::arguments_value(&call.call.arguments().unwrap_or_default())
            },
            status: if at == 0 {
                status
            } else {
                HandoffStatus::Ignored
            },
            reason: if at == 0 {
                reason.map(str::to_owned)
            } else {
                Some(IGNORED_HANDOFF.to_owned())
            },
            carried_items: None,
            of_items: None,
        };
        let calls = self.run.handoff_calls().iter().enumerate();
        calls.map(event).collect()
    }

    /// Checks the condition again: tools of the same response may have changed it.
    async fn recheck_condition(&self, handoff: &Handoff<C>, span: &OpenSpan) -> Result<(), Error> {
        if handoff.enabled().is_always() {
            return Ok(());
        }
        let ctx = self.ctx();
        let check = handoff.enabled().check(&ctx, &self.agent);
        let enabled = Box::pin(self.trace.within(span.id(), check)).await;
        if enabled.map_err(|error| self.user_error("the handoff's condition", error))? {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::ModelBehavior,
            "the handoff's condition held when the model was asked and no longer does, after the \
             tools of the same response; nothing was handed over",
        ))
    }

    /// The provider's history cannot be filtered.
    fn check_filter_allowed(&self, handoff: &Handoff<C>) -> Result<(), Error> {
        let settings = self.carry_settings(handoff);
        if !settings.is_kept_by_provider {
            return Ok(());
        }
        if settings.handoff_filter || settings.run_filter {
            return Err(self.configuration_error(
                "the provider keeps the conversation, so what the next agent sees cannot be \
                 filtered; take the filter off the handoff and the run, or do without \
                 server_history",
            ));
        }
        if settings.nests() {
            tracing::warn!(
                agent = self.agent.name(),
                handoff = handoff.tool_name(),
                "the provider keeps the conversation, so its history is not nested"
            );
        }
        Ok(())
    }

    fn carry_settings(&self, handoff: &Handoff<C>) -> CarrySettings {
        CarrySettings {
            handoff_filter: handoff.input_filter().is_some(),
            run_filter: self.config.handoff_input_filter.is_some(),
            handoff_nests: handoff.nest_history(),
            run_nests: self.config.nest_handoff_history,
            is_kept_by_provider: self.config.server_history.is_some(),
        }
    }

    /// The agent that gets the conversation. Where code picks it and the callback has run for one
    /// already, no other may be picked.
    async fn find_target(
        &self,
        handoff: &Handoff<C>,
        call: &HandoffCall,
        span: &OpenSpan,
    ) -> Result<Agent<C>, Error> {
        let Target::Custom(custom) = handoff.target() else {
            return agent_keys::target(&self.agent, handoff).ok_or_else(|| {
                self.configuration_error(format!(
                    "it leads to \"{}\" by name, and the agent is in no team with an agent of that \
                     name; put both into a Team",
                    handoff.agent_name()
                ))
            });
        };
        let before = self.run.picked_agent();
        if let Some(known) = before.and_then(|key| agent_keys::find(&self.start, key)) {
            return Ok(known);
        }
        let arguments = call.call.arguments().unwrap_or_default().into_owned();
        let pick = self.call(span.id(), || custom.pick(self.ctx(), arguments));
        let picked = Box::pin(pick)
            .await
            .map_err(|error| self.user_error("the function that picks the agent", error))?
            .reached_from(&self.agent);
        match before {
            Some(key) if agent_keys::key(&self.start, &picked) != *key => Err(self
                .configuration_error(format!(
                    "the callback has run for \"{key}\", which cannot be found again; list the \
                     agents that the handoff may pick with candidate"
                ))),
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
    /// change afterwards.
    async fn ask_handoff_guardrails(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        span: &OpenSpan,
    ) -> Result<Checked, Error> {
        let guardrails: Vec<_> = self.handoff_guardrails(handoff).cloned().collect();
        let data = self.input_data(handoff, target, payload, span).await?;
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
                    HandoffVerdict::Allow => Decision::Allowed,
                    HandoffVerdict::Refuse(reason) => {
                        refusal = Some(reason.clone());
                        Decision::Refused(reason)
                    }
                    HandoffVerdict::Trip(info) => Decision::Tripped(info),
                })
            };
            let kind = GuardrailKind::Handoff;
            let result = self
                .run_guardrail(kind, guardrail.name_arc(), decision)
                .await?;
            let error = self.trip_error(kind, std::slice::from_ref(&result)).await;
            self.run_mut().guardrails.handoff.add([result]);
            if let Some(error) = error {
                return Err(error);
            }
            if let Some(reason) = refusal {
                return Ok(Checked::Refused(reason));
            }
        }
        let is_rewritten = self.carry_settings(handoff).rule() != CarryRule::Everything;
        let rewritten = is_rewritten.then(|| Carried::Rewritten(Box::new(data.into_parts())));
        Ok(Checked::Allowed(rewritten))
    }

    async fn call_back(
        &self,
        handoff: &Handoff<C>,
        payload: ParsedPayload,
        span: &OpenSpan,
    ) -> Result<HandoffDecision, Error> {
        let outcome = match handoff.callback() {
            Callback::None => return Ok(HandoffDecision::Proceed),
            Callback::Plain(code) => Box::pin(self.call(span.id(), || code(self.ctx()))).await,
            Callback::WithPayload(code) => {
                Box::pin(self.call(span.id(), || code(self.ctx(), payload))).await
            }
        };
        outcome.map_err(|error| self.user_error("the on_handoff callback", error))
    }

    /// Adds the target to the span, and an error where the model asked for several handoffs.
    fn trace_target(&self, target: &Agent<C>, span: &mut OpenSpan) {
        span.update(|data| {
            if let SpanData::Handoff { to, .. } = data {
                *to = Some(target.name_arc().clone());
            }
        });
        if let requested @ [_, _, ..] = self.run.handoff_calls() {
            let agents = requested.iter().map(|call| call.to.clone()).collect();
            span.fail_with("Multiple handoffs requested", agents);
        }
    }

    /// The conversation for the next agent.
    async fn carried(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        span: &OpenSpan,
    ) -> Result<Carried, Error> {
        if self.carry_settings(handoff).rule() == CarryRule::Everything {
            return Ok(Carried::Everything);
        }
        let data = Box::pin(self.input_data(handoff, target, payload, span)).await?;
        Ok(Carried::Rewritten(Box::new(data.into_parts())))
    }

    /// The data of the handoff, after the filter or nesting that applies.
    async fn input_data(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        span: &OpenSpan,
    ) -> Result<HandoffInputData<C>, Error> {
        let transfer = transfer(self.agent.name_arc(), target);
        let data = HandoffInputData::new(
            self.run.conversation.input.clone(),
            self.run.conversation.generated.clone(),
            RunItems::from(self.run.items_after_handoff(&transfer)),
            self.ctx(),
        )
        .with_payload(handoff.takes_payload().then(|| payload.clone()));
        let given = FilterInput::of(&data);
        let config = &*self.config;
        let filter = match self.carry_settings(handoff).rule() {
            CarryRule::Everything => return Ok(data),
            CarryRule::HandoffFilter => handoff.input_filter(),
            CarryRule::RunFilter => config.handoff_input_filter.as_ref(),
            CarryRule::Nest => None,
        };
        if let Some(filter) = filter {
            let filtered = self.trace.within(span.id(), filter.apply(data)).await;
            let left = filtered.map_err(|error| self.user_error("the filter", error))?;
            return self.check_filtered("the filter", handoff, &given, left);
        }
        let mapper = config.handoff_history_mapper.as_ref();
        let nested =
            catch_panic_sync(|| nest_handoff_history(data, mapper, &config.history_markers))
                .map_err(|error| self.user_error("the mapper of nested histories", error))?;
        match mapper {
            Some(_) => self.check_filtered("the history mapper", handoff, &given, nested),
            None => Ok(nested),
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
        Error::new(ErrorKind::ModelBehavior, message).caused_by(error)
    })
}

fn transfer<'a, C>(from: &'a Arc<str>, target: &'a Agent<C>) -> Transfer<'a> {
    Transfer {
        from,
        to: target.name_arc(),
        message: target.transfer_message(),
    }
}

/// The outcome of a handoff before the run moves.
enum Negotiated<C> {
    Taken(Taken<C>),
    Refused(Refused<C>),
}

struct Taken<C> {
    target: Agent<C>,
    payload: Value,
    carried: Carried,
}

struct Refused<C> {
    target: Agent<C>,
    payload: Value,
    reason: String,
}

impl<C> Negotiated<C> {
    fn refused(target: Agent<C>, payload: Value, reason: String) -> Self {
        Self::Refused(Refused {
            target,
            payload,
            reason,
        })
    }
}

/// The verdict of the guardrails on a handoff, with what is carried over where it was rewritten.
enum Checked {
    Allowed(Option<Carried>),
    Refused(String),
}
