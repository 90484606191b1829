//! Runs that wait: for decisions, for people, for the outputs of a client's tools.

use std::sync::Arc;

use switchboard_core::Run;
use switchboard_core::approval::{Decision, DecisionError, Interruption, InterruptionKind};
use switchboard_core::conversation::Conversation;
use switchboard_core::people::PersonAnswer;
use switchboard_core::tool::ToolOutput;

use super::start::RunIdentity;
use super::{Caller, MessageOptions, Service};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::runs::RunRecord;
use crate::team::{RunRequest, RunStart};

impl Service {
    /// Decides calls that wait, and goes on with their run.
    pub(crate) async fn decide(
        &self,
        caller: &Caller,
        id: &str,
        decisions: Vec<(Arc<str>, Decision)>,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        if decisions.is_empty() {
            return Err(ServiceError::invalid("there is no decision"));
        }
        let (conversation, mut run) = self.waiting(caller, id).await?;
        for (call_id, decision) in decisions {
            let waiting = find_waiting(&run, |waiting| {
                waiting.call_id == call_id && !is_person(waiting)
            })?;
            let decided = run.decide(&waiting, decision);
            decided.map_err(|error| {
                ServiceError::new(ServiceErrorKind::Conflict, error.to_string())
            })?;
        }
        self.resume(caller, id, conversation, run, MessageOptions::default())
            .await
    }

    /// Answers for a person that a run waits for, and goes on with it.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        id: &str,
        person: Option<&str>,
        answer: Result<PersonAnswer, ServiceError>,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let (conversation, mut run) = self.waiting(caller, id).await?;
        let waiting = find_waiting(&run, |waiting| {
            is_person(waiting) && person.is_none_or(|person| *waiting.agent == *person)
        })?;
        let answered = run.answer(&waiting, answer?);
        answered.map_err(|error| ServiceError::invalid(error.to_string()))?;
        self.resume(caller, id, conversation, run, MessageOptions::default())
            .await
    }

    /// Gives the outputs of a client's tools, and goes on with their run. Returns `None` if no such call waits.
    pub(crate) async fn give_outputs(
        &self,
        caller: &Caller,
        id: &str,
        outputs: Vec<(Arc<str>, ToolOutput)>,
        mut options: MessageOptions,
    ) -> Result<Option<Arc<RunRecord>>, ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let run = conversation.waiting_run().await;
        let Some(mut run) = run.map_err(|error| ServiceError::of_store(&error))? else {
            return Ok(None);
        };
        let team = self.team_of(caller, &conversation).await?;
        let waiting = run.interruptions();
        let calls = outputs.into_iter().filter_map(|(call_id, output)| {
            let call = waiting.iter().find(|waiting| waiting.call_id == call_id)?;
            team.is_client_call(call).then_some((call, output))
        });
        let calls: Vec<(&Interruption, ToolOutput)> = calls.collect();
        if calls.is_empty() {
            return Ok(None);
        }
        let conflict =
            |error: DecisionError| ServiceError::new(ServiceErrorKind::Conflict, error.to_string());
        if !options.added.is_empty() {
            run.add_input(std::mem::take(&mut options.added))
                .map_err(conflict)?;
        }
        for (call, output) in calls {
            run.decide(call, Decision::approve()).map_err(conflict)?;
            options.client_tools.set_output(&call.call_id, output);
        }
        if waiting.iter().all(|waiting| team.is_client_call(waiting)) {
            // A client may describe its tools otherwise, or not at all, when it sends their outputs.
            run.accept_schema_changes();
        }
        options
            .client_tools
            .add_waiting(&waiting, |waiting| team.is_client_call(waiting));
        self.resume(caller, id, conversation, run, options)
            .await
            .map(Some)
    }

    /// The run of a conversation that waits.
    async fn waiting(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(Conversation, Run), ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let head = conversation.head().await;
        if head
            .map_err(|error| ServiceError::of_store(&error))?
            .is_none()
        {
            return Err(ServiceError::not_found("there is no such conversation"));
        }
        let run = conversation.waiting_run().await;
        let run = run.map_err(|error| ServiceError::of_store(&error))?;
        let run = run.ok_or_else(|| {
            ServiceError::new(
                ServiceErrorKind::Conflict,
                "nothing waits in this conversation",
            )
        })?;
        Ok((conversation, run))
    }

    async fn resume(
        &self,
        caller: &Caller,
        id: &str,
        conversation: Conversation,
        run: Run,
        options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let team = self.team_of(caller, &conversation).await?;
        let request = RunRequest {
            start: RunStart::Resume(Box::new(run)),
            agent: None,
            conversation: Some(conversation),
            client_tools: options.client_tools,
            settings: options.settings,
            instructions: options.instructions,
            without_tools: false,
            exclusive: self.0.limits.conversation_wait,
            recording: None,
        };
        let identity = RunIdentity {
            id: options.run_id,
            idempotency_key: options.idempotency_key,
            is_temporary: options.is_temporary,
        };
        self.start(caller, &team, Some(id.into()), request, identity)
    }
}

fn is_person(waiting: &Interruption) -> bool {
    matches!(waiting.kind, InterruptionKind::Person { .. })
}

fn find_waiting(
    run: &Run,
    is_meant: impl Fn(&Interruption) -> bool,
) -> Result<Interruption, ServiceError> {
    let waiting = run.interruptions().into_iter().find(is_meant);
    waiting.ok_or_else(|| {
        let message = "no such call or person waits in this conversation";
        ServiceError::new(ServiceErrorKind::Conflict, message)
    })
}
