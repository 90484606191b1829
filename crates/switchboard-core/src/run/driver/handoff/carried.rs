//! What a handoff carries over: everything as it is, or what a filter or nesting makes of it.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::Agent;
use crate::callback::caught;
use crate::error::{Error, ErrorKind};
use crate::handoff::{Given, Handoff, HandoffInputData, Unsound, nest_handoff_history};
use crate::items::RunItems;
use crate::run::driver::Driver;
use crate::run::handover::Passing;

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn is_rewritten(&self, handoff: &Handoff<C>) -> bool {
        handoff.input_filter().is_some()
            || self.config.handoff_input_filter.is_some()
            || self.nests(handoff) && self.config.server_history.is_none()
    }

    fn nests(&self, handoff: &Handoff<C>) -> bool {
        let nests = handoff.nest_history();
        nests.unwrap_or(self.config.nest_handoff_history)
    }

    /// What the provider keeps cannot be filtered.
    pub(super) fn fits_server_history(&self, handoff: &Handoff<C>) -> Result<(), Error> {
        if self.config.server_history.is_none() {
            return Ok(());
        }
        if handoff.input_filter().is_some() || self.config.handoff_input_filter.is_some() {
            return Err(self.configuration(
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

    /// The data of the handoff: a handoff's own filter beats the run's, and any filter switches
    /// nesting off.
    pub(super) async fn carried_data(
        &self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        payload: Option<Value>,
    ) -> Result<HandoffInputData<C>, Error> {
        let config = &*self.config;
        let passing = passing(self.agent.name_arc(), target);
        let items = self.run.handed_over_items(passing);
        let data = HandoffInputData::new(
            self.run.input.clone(),
            self.run.generated.clone(),
            RunItems::from(items),
            self.ctx(),
        )
        .with_payload(payload);
        let given = Given::of(&data);
        let filter = handoff.input_filter();
        if let Some(filter) = filter.or(config.handoff_input_filter.as_ref()) {
            let filtered = filter.apply(data).await;
            let left = filtered.map_err(|error| self.user_error("the filter", error))?;
            return self.sound("the filter", handoff, &given, left);
        }
        if !self.is_rewritten(handoff) {
            return Ok(data);
        }
        let mapper = config.handoff_history_mapper.as_ref();
        let nested = caught(|| nest_handoff_history(data, mapper, &config.history_markers));
        let nested =
            nested.map_err(|error| self.user_error("the mapper of nested histories", error))?;
        match mapper {
            Some(_) => self.sound("the history mapper", handoff, &given, nested),
            None => Ok(nested),
        }
    }

    /// What code of the user's left, if a model can be shown it.
    fn sound(
        &self,
        what: &str,
        handoff: &Handoff<C>,
        given: &Given,
        left: HandoffInputData<C>,
    ) -> Result<HandoffInputData<C>, Error> {
        let markers = &self.config.history_markers;
        let problem = match given.check(&left, markers) {
            Ok(0) => return Ok(left),
            Ok(_) if self.config.drop_orphaned_calls => return Ok(left),
            Ok(halves) => {
                tracing::warn!(
                    agent = self.agent.name(),
                    handoff = handoff.tool_name(),
                    halves,
                    "{what} leaves calls without outputs or outputs without calls, which most \
                     providers refuse; Runner::drop_orphaned_calls takes them out"
                );
                return Ok(left);
            }
            Err(Unsound::Nothing) => format!(
                "{what} left nothing for \"{}\" to see; let it keep at least what the user said \
                 last, or say in a message what there is to do",
                handoff.agent_name()
            ),
            Err(Unsound::Nameless(at)) => format!(
                "{what} made an item that has neither a type nor a role (item {} of what \"{}\" \
                 would see); give it one of the two",
                at + 1,
                handoff.agent_name()
            ),
        };
        Err(Error::new(ErrorKind::UserCode, problem))
    }
}

pub(super) fn passing<'a, C>(from: &'a Arc<str>, target: &'a Agent<C>) -> Passing<'a> {
    Passing {
        from,
        to: target.name_arc(),
        message: target.transfer_message(),
    }
}
