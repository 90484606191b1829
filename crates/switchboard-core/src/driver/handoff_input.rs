//! The conversation that the next agent gets: filters, nested history, and checks of what they leave.

use super::handoff::explain;
use super::{Driver, configuration_error, user_error};
use crate::agent::Agent;
use crate::callback::catch_panic_sync;
use crate::error::{Error, ErrorKind};
use crate::filters::{self, Filter};
use crate::handoff::{
    FilterInput, FilterLog, Handoff, HandoffInputData, InvalidResult, nest_handoff_history,
};
use crate::trace::HandoffViews;
use crate::trace::trace_handle::OpenSpan;
use serde_json::Value;

impl<C: Send + Sync + 'static> Driver<C> {
    /// The provider's history cannot be filtered.
    pub(super) fn check_filter_allowed(&self, handoff: &Handoff<C>) -> Result<(), Error> {
        if self.config.server_history.is_none() {
            return Ok(());
        }
        if handoff.delivers_message() {
            return Err(configuration_error(
                "the provider keeps the conversation, so the payload cannot be a message in front of it; \
                 deliver it in the instructions or the context, or do without server_history",
            ));
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
    pub(super) fn carry_rule<'a>(&'a self, handoff: &'a Handoff<C>) -> CarryRule<'a, C> {
        let own = handoff.input_filter();
        match own.or(self.config.handoff_input_filter.as_ref()) {
            Some(filter) => CarryRule::Filter(filter),
            None if self.nests(handoff) && self.config.server_history.is_none() => CarryRule::Nest,
            None => CarryRule::Everything,
        }
    }

    /// Returns `true` if the next agent gets the conversation as it is.
    pub(super) fn carries_everything(&self, handoff: &Handoff<C>) -> bool {
        !handoff.delivers_message() && matches!(self.carry_rule(handoff), CarryRule::Everything)
    }

    pub(super) fn nests(&self, handoff: &Handoff<C>) -> bool {
        let own = handoff.nest_history();
        own.unwrap_or(self.config.nest_handoff_history)
    }

    /// The data of the handoff, after the filter or nesting that applies.
    pub(super) async fn input_data(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: &Value,
        span: &mut OpenSpan,
    ) -> Result<HandoffInputData<C>, Error> {
        let mut new_items = Vec::new();
        if let Some(turn) = self.run.turn() {
            new_items = if turn.is_fanned_out() {
                turn.of_branch().items
            } else {
                turn.items.clone()
            };
            let to = target.name_arc();
            let message = handoff.transfer_message(target, payload);
            self.run
                .answer_handoffs(turn.called_handoffs(), &mut new_items, to, &message);
        }
        let mut data = HandoffInputData::new(
            self.run.conversation.input.clone(),
            self.run.conversation.generated.clone(),
            new_items,
            self.ctx(),
        )
        .with_from(self.agent.name_arc())
        .with_payload(handoff.takes_payload().then(|| payload.clone()))
        .with_notes(&self.run.conversation.notes);
        let given = FilterInput::of(&data);
        let log = self.has_details().then(FilterLog::default);
        let record = log.as_ref().map(|_| data.visible_items());
        data.filter_log = log.clone();
        let data = match self.carry_rule(handoff) {
            CarryRule::Everything => data,
            CarryRule::Filter(filter) => {
                let filtered = self.run_code(span.id(), "the filter", filter.apply(data));
                let left = self.check_filtered("the filter", handoff, &given, filtered.await?)?;
                self.verify_filter(handoff.tool_name(), &left).await?;
                self.show_result(handoff, payload, left)
            }
            CarryRule::Nest => {
                let mapper = self.config.handoff_history_mapper.as_ref();
                let markers = &self.config.history_markers;
                let nested = catch_panic_sync(|| nest_handoff_history(data, mapper, markers))
                    .map_err(|error| user_error("the mapper of nested histories", error))?;
                match mapper {
                    Some(_) => {
                        let what = "the history mapper";
                        let left = self.check_filtered(what, handoff, &given, nested)?;
                        self.verify_filter(handoff.tool_name(), &left).await?;
                        self.show_result(handoff, payload, left)
                    }
                    None => nested,
                }
            }
        };
        let data = if handoff.delivers_message() {
            let shown = filters::payload().apply(data).await;
            shown.map_err(|error| user_error("the message with the payload", error))?
        } else {
            data
        };
        let data = filters::redact_added(data);
        if let (Some(log), Some(record)) = (log, record) {
            let views = HandoffViews {
                record,
                seen: data.visible_items(),
                filters: log.take(),
            };
            explain(span, |details| details.views = Some(Box::new(views)));
        }
        Ok(data)
    }

    /// Checks that a model can be shown what user code left.
    pub(super) fn check_filtered(
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

/// The rule by which the conversation for the next agent is made.
pub(super) enum CarryRule<'a, C> {
    Everything,
    Filter(&'a Filter<C>),
    Nest,
}
