//! Loading the session at the start of a run, and saving new items as they become final.

use super::{Driver, configuration_error};
use crate::agent::{Agent, ToolUseBehaviorKind};
use crate::callback::{call, catch_panic};
use crate::error::{Error, ErrorKind};
use crate::items::{Item, Items};
use crate::run::Step;
use crate::run::guardrail_results::InputChecks;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Starts a new run with the history of its session.
    pub(super) async fn load_session(&mut self) -> Result<(), Error> {
        self.check_server_history()?;
        if self.run.session.conversation.is_some() || !self.run.session.is_attached {
            if self.conversation.is_some() {
                return Ok(());
            }
            if let Some(conversation) = self.stored_conversation() {
                return Box::pin(self.open_conversation(conversation)).await;
            }
        }
        if self.run.session.is_attached {
            return Ok(());
        }
        let Some(session) = self.config.session.clone() else {
            return Ok(());
        };
        if self.run.turns() > 0 {
            self.run_mut().attach_session_late();
            return Ok(());
        }
        let limit = self.config.session_limit.or(session.limit());
        let load = async {
            let loaded = catch_panic(session.load(limit)).await;
            loaded.map_err(|error| {
                let message = format!("the session could not be read, so nothing was run: {error}");
                Error::new(ErrorKind::Session, message).caused_by(error)
            })
        };
        // The session has no revisions, so the journal keeps what the run began with.
        let history: Items = match self.journal {
            None => Box::pin(load).await?,
            Some(_) => {
                let load = async { Ok(load.await?.into_iter().collect::<Vec<Item>>()) };
                let history: Vec<Item> = effect!(self, Conversation, "load", load)?;
                history.into()
            }
        };
        if let Some(merge) = &self.config.session_input {
            let new = self.run.conversation.input.items();
            let merged = call(|| merge.call(self.ctx(), history.clone(), new));
            let merged = self.run_code(None, "the function for a session's input", merged);
            let merged = Box::pin(merged).await?;
            self.run_mut().attach_merged(&history, merged);
        } else {
            self.run_mut().attach_session(&history, limit.is_some());
        }
        Ok(())
    }

    /// The provider's history can neither be taken back nor stored a second time.
    fn check_server_history(&self) -> Result<(), Error> {
        let Some(history) = &self.config.server_history else {
            return Ok(());
        };
        if !self.run.is_kept_in(history) {
            return Err(configuration_error(
                "the run was begun without this conversation, so the provider does not have what \
                 came before; resume it with the server_history it was begun with, or without any",
            ));
        }
        if self.config.session.is_some() {
            return Err(configuration_error(
                "the provider keeps the conversation, and so would the session; use one of them",
            ));
        }
        self.check_output_guardrails(&self.agent)
    }

    /// An output that a guardrail rejects would stay with the provider.
    pub(super) fn check_output_guardrails(&self, agent: &Agent<C>) -> Result<(), Error> {
        let has_guardrails =
            !agent.def.output_guardrails.is_empty() || !self.config.output_guardrails.is_empty();
        if self.config.server_history.is_none() || !has_guardrails {
            return Ok(());
        }
        Err(configuration_error(format!(
            "the provider keeps the conversation, so an output guardrail of \"{}\" or of the run \
             could not take an output back; do without one of them",
            agent.name()
        )))
    }

    /// Saves new items, unless guardrails must pass the input first.
    pub(super) async fn save_unless_held_back(&mut self) -> Result<(), Error> {
        if self.holds_input_back() {
            return Ok(());
        }
        self.save().await
    }

    /// Returns `true` while the session must not get the input yet.
    pub(super) fn holds_input_back(&self) -> bool {
        self.run.guardrails.input_checks == InputChecks::Pending
            && self.run.turns() == 0
            && self.has_input_guardrails_before_model()
    }

    /// Gives the session the items it does not have yet.
    pub(super) async fn save(&mut self) -> Result<(), Error> {
        if self.conversation.is_some() {
            return Box::pin(self.commit_turn()).await;
        }
        let unsaved = &self.run.session.unsaved;
        let Some(session) = self.config.session.as_ref().filter(|_| !unsaved.is_empty()) else {
            return Ok(());
        };
        // Items must not be stored and still count as unsaved: a stop waits for this.
        let _guard = self.events.as_ref().map(|events| events.saving());
        let append = async {
            let appended = catch_panic(session.append(unsaved)).await;
            appended.map_err(|error| {
                let message = format!(
                    "the session could not be written: {error}; the run still holds what was not stored, and \
                     can be resumed once the session works again"
                );
                Error::new(ErrorKind::Session, message).caused_by(error)
            })
        };
        effect!(self, Conversation, "append", Box::pin(append))?;
        self.run_mut().session.unsaved.clear();
        Ok(())
    }

    /// Saves while the run fails for another reason: items that cannot be stored stay with the run.
    pub(super) async fn save_or_warn(&mut self) {
        if let Err(error) = self.save().await {
            tracing::warn!(%error, "items of a failed run could not be stored");
        }
    }

    /// Saves and reports tools that ran in a turn that then failed, so that the next run knows that
    /// they ran.
    pub(super) async fn save_completed_tools(&mut self) {
        // An output that guardrails have not passed yet must not get out this way.
        let may_end = matches!(self.run.step(), Step::Conclude(_))
            || !matches!(
                self.agent.def.tool_use.0,
                ToolUseBehaviorKind::RunModelAgain
            );
        if may_end && self.has_output_guardrails() {
            return;
        }
        let completed = self.run_mut().save_completed_tools();
        if !completed.is_empty() {
            self.save_or_warn().await;
            self.report_items(&completed).await;
        }
    }
}
