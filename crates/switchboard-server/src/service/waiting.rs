//! Runs that wait: for decisions, for people, for the outputs of a client's tools.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::approval::{Decision, DecisionError, Interruption, InterruptionKind};
use switchboard_core::conversation::{Conversation, ConversationStore, Revision};
use switchboard_core::people::PersonAnswer;
use switchboard_core::tool::ToolOutput;
use switchboard_core::{Item, Run};

use super::resumptions::NewResumption;
use super::start::RunIdentity;
use super::{Caller, MessageOptions, Service};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::team::{RunRequest, RunStart, ServedTeam};
use crate::tenant::Tenant;

/// The time for which a wait is held, at most.
const HOLD: Duration = Duration::from_secs(30);

/// What a conversation waits for.
#[derive(Debug)]
pub(crate) struct Wait {
    /// The place of the wait in the conversation. A run that waits again does so at another one.
    pub(crate) at: Revision,
    /// The calls and people; there is at least one.
    pub(crate) calls: Vec<Interruption>,
}

impl Wait {
    /// The wait of a run that was read from its conversation; `None` if it waits for nothing.
    fn of(run: &Run) -> Option<Self> {
        let (at, calls) = (run.waits_at()?, run.interruptions());
        (!calls.is_empty()).then_some(Self { at, calls })
    }
}

/// A run that waits in its conversation.
struct WaitingRun {
    conversation: Conversation,
    run: Run,
    at: Revision,
}

/// The outputs of calls of a client's tools, and the messages after them.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenOutputs {
    /// The outputs by the identifiers of their calls.
    pub(crate) outputs: Vec<(Arc<str>, ToolOutput)>,
    pub(crate) added: Vec<Item>,
}

/// The outcome of giving a run the outputs of a client's tools.
pub(crate) enum OutputsGiven {
    /// Their run goes on.
    Resumed(Arc<RunRecord>),
    /// No such call waits; the options were not used.
    NotWaiting(Box<MessageOptions>),
}

/// A wait that nobody else can end by going on with the run.
pub(crate) struct HeldWait {
    service: Service,
    tenant: Tenant,
    id: Arc<str>,
    /// The stored name of the conversation.
    name: Arc<str>,
    owner: Arc<str>,
}

impl HeldWait {
    /// Ends the wait without a decision: the calls are not carried out, and the next message goes on from there.
    pub(crate) async fn end(self) -> Result<(), ServiceError> {
        let ended = self.end_held().await;
        self.release().await;
        ended
    }

    async fn end_held(&self) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.service.inner().store.get(self.name.clone());
        let head = conversation.head().await.map_err(failed)?;
        let next = head.map(|head| head.revision.next).unwrap_or_default();
        // A new state at the end of the record waits for nothing.
        conversation.rewind(next).await.map_err(failed)?;
        self.service.unmark_waiting(&self.tenant, &self.id).await;
        Ok(())
    }

    /// Lets the wait go on.
    pub(crate) async fn release(self) {
        let store = &self.service.inner().store;
        let released = ConversationStore::release(store, &self.name, &self.owner).await;
        if let Err(error) = released {
            tracing::warn!(%error, "the lease of a conversation could not be ended");
        }
    }
}

/// An answer to something that a run waits for.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// A decision on the call with this identifier.
    Decide(Arc<str>, Decision),
    /// The answer of a person; of the only one that waits, where none is named.
    Answer {
        person: Option<Arc<str>>,
        answer: PersonAnswer,
    },
}

impl Service {
    /// Decides calls that wait, and goes on with their run.
    pub(crate) async fn decide(
        &self,
        caller: &Caller,
        id: &str,
        decisions: Vec<(Arc<str>, Decision)>,
        options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        if decisions.is_empty() {
            return Err(ServiceError::invalid("there is no decision"));
        }
        let decisions = decisions.into_iter();
        let decisions = decisions.map(|(call_id, decision)| Resolution::Decide(call_id, decision));
        self.resolve(caller, id, decisions.collect(), Vec::new(), options)
            .await
    }

    /// Answers for a person that a run waits for, and goes on with it.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        id: &str,
        person: Option<&str>,
        answer: Result<PersonAnswer, ServiceError>,
        options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let mut wait = self.waiting(caller, id, options.wait).await?;
        let person = person.map(Arc::from);
        // A wait that is over is told before a mistake in the answer.
        find_person(&wait.run, person.as_deref())?;
        let answer = Resolution::Answer {
            person,
            answer: answer?,
        };
        apply(&mut wait.run, answer)?;
        self.resume_noted(caller, id, wait, options).await
    }

    /// Answers what a run waits for, with the outputs of a client's tools, and goes on with it.
    pub(crate) async fn resolve(
        &self,
        caller: &Caller,
        id: &str,
        resolutions: Vec<Resolution>,
        outputs: Vec<(Arc<str>, ToolOutput)>,
        mut options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let mut wait = self.waiting(caller, id, options.wait).await?;
        let team = self.team_of(caller, &wait.conversation).await?;
        add_input(&mut wait.run, &mut options)?;
        give(&team, &mut wait.run, outputs, &mut options)?;
        for resolution in resolutions {
            apply(&mut wait.run, resolution)?;
        }
        self.resume_noted(caller, id, wait, options).await
    }

    /// Gives the outputs of a client's tools, and goes on with their run, if such a call waits.
    pub(crate) async fn give_outputs(
        &self,
        caller: &Caller,
        id: &str,
        given: GivenOutputs,
        mut options: MessageOptions,
    ) -> Result<OutputsGiven, ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let run = conversation.waiting_run().await;
        let run = run.map_err(|error| ServiceError::of_store(&error))?;
        let waiting = run.and_then(|run| Some((run.waits_at()?, run)));
        let Some((at, mut run)) = waiting.filter(|_| !given.outputs.is_empty()) else {
            return Ok(OutputsGiven::NotWaiting(Box::new(options)));
        };
        let team = self.team_of(caller, &conversation).await?;
        if !waits_for_any(&team, &run, &given.outputs) {
            return Ok(OutputsGiven::NotWaiting(Box::new(options)));
        }
        options.added = given.added;
        add_input(&mut run, &mut options)?;
        give(&team, &mut run, given.outputs, &mut options)?;
        let wait = WaitingRun {
            conversation,
            run,
            at,
        };
        let run = self.resume_noted(caller, id, wait, options).await?;
        Ok(OutputsGiven::Resumed(run))
    }

    /// Returns `true` if a conversation waits for one of these outputs of a client's tools.
    pub(crate) async fn waits_for_outputs(
        &self,
        caller: &Caller,
        id: &str,
        outputs: &[(Arc<str>, ToolOutput)],
    ) -> Result<bool, ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let run = conversation.waiting_run().await;
        let Some(run) = run.map_err(|error| ServiceError::of_store(&error))? else {
            return Ok(false);
        };
        let team = self.team_of(caller, &conversation).await?;
        Ok(waits_for_any(&team, &run, outputs))
    }

    /// The calls and people that a conversation waits for; `None` if nothing waits.
    pub(crate) async fn waiting_for(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<Wait>, ServiceError> {
        let run = self.conversation(caller, id)?.waiting_run().await;
        let run = run.map_err(|error| ServiceError::of_store(&error))?;
        Ok(run.as_ref().and_then(Wait::of))
    }

    /// Keeps others from going on with the run of a conversation, if it has the wait at this place. Returns `None` if
    /// that wait is over, or its run goes on.
    pub(crate) async fn hold_wait(
        &self,
        caller: &Caller,
        id: &str,
        at: Revision,
    ) -> Result<Option<HeldWait>, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        let held = HeldWait {
            service: self.clone(),
            tenant: caller.tenant.clone(),
            id: id.into(),
            name: conversation.name().into(),
            owner: random_id("hold")?,
        };
        let store = &self.inner().store;
        let leased = ConversationStore::lease(store, &held.name, &held.owner, HOLD);
        if !leased.await.map_err(failed)? {
            return Ok(None);
        }
        match self.waiting_for(caller, id).await {
            Ok(Some(wait)) if wait.at == at => Ok(Some(held)),
            Ok(_) => {
                held.release().await;
                Ok(None)
            }
            Err(error) => {
                held.release().await;
                Err(error)
            }
        }
    }

    /// The run of a conversation that waits, at this place if there is one.
    async fn waiting(
        &self,
        caller: &Caller,
        id: &str,
        expected: Option<Revision>,
    ) -> Result<WaitingRun, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        let run = conversation.waiting_run().await.map_err(failed)?;
        match run.and_then(|run| Some((run.waits_at()?, run))) {
            Some((at, _)) if expected.is_some_and(|expected| expected != at) => {
                Err(decided_before())
            }
            Some((at, run)) => Ok(WaitingRun {
                conversation,
                run,
                at,
            }),
            None if conversation.head().await.map_err(failed)?.is_none() => {
                Err(ServiceError::not_found("there is no such conversation"))
            }
            None => {
                let message = "nothing waits in this conversation";
                Err(ServiceError::new(ServiceErrorKind::Conflict, message))
            }
        }
    }

    /// Goes on with a run, and lets other processes know of it.
    async fn resume_noted(
        &self,
        caller: &Caller,
        id: &str,
        wait: WaitingRun,
        options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let (service, caller, id) = (self.clone(), caller.clone(), Arc::<str>::from(id));
        // A client that disconnects must not leave the record of a run that has not begun.
        let resumed =
            tokio::spawn(async move { service.note_and_resume(&caller, &id, wait, options).await });
        resumed.await.map_err(|_| ServiceError::panicked())?
    }

    async fn note_and_resume(
        &self,
        caller: &Caller,
        id: &str,
        wait: WaitingRun,
        mut options: MessageOptions,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let WaitingRun {
            conversation,
            run,
            at,
        } = wait;
        let run_id = match &options.run_id {
            Some(id) => id.clone(),
            None => random_id("run")?,
        };
        options.run_id = Some(run_id.clone());
        options.wait = Some(at);
        // Until the run is in the list of runs.
        let _beginning = self.0.beginning.add(&run_id);
        let resumption = NewResumption {
            conversation: id,
            run: &run_id,
            wait: at,
        };
        self.begin_resumption(caller, &resumption).await?;
        let resumed = match self.check_wait(&conversation, at).await {
            Ok(()) => self.resume(caller, id, conversation, run, options).await,
            Err(error) => Err(error),
        };
        // A request that was sent twice has the run of the first one.
        if !resumed.as_ref().is_ok_and(|run| run.id == run_id) {
            self.forget_resumption(&caller.tenant, &resumption).await;
        }
        resumed
    }

    /// Checks that a conversation still has the wait at a place: another decision may have been carried out since it was
    /// read.
    async fn check_wait(
        &self,
        conversation: &Conversation,
        at: Revision,
    ) -> Result<(), ServiceError> {
        let run = conversation.waiting_run().await;
        let run = run.map_err(|error| ServiceError::of_store(&error))?;
        if run.and_then(|run| run.waits_at()) == Some(at) {
            return Ok(());
        }
        Err(decided_before())
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
            admission: options.admission,
            is_temporary: self.is_temporary(caller, id).await?,
            resumed_from: options.wait,
            follower: options.follower,
        };
        self.start(caller, &team, Some(id.into()), request, identity)
    }
}

/// Adds the messages that follow the outputs of tools.
fn add_input(run: &mut Run, options: &mut MessageOptions) -> Result<(), ServiceError> {
    if options.added.is_empty() {
        return Ok(());
    }
    run.add_input(std::mem::take(&mut options.added))
        .map_err(conflict)
}

/// Returns `true` if a run waits for one of these outputs of a client's tools.
fn waits_for_any(team: &ServedTeam, run: &Run, outputs: &[(Arc<str>, ToolOutput)]) -> bool {
    let waiting = run.interruptions();
    let mut calls = waiting.iter().filter(|call| team.is_client_call(call));
    calls.any(|call| {
        let mut outputs = outputs.iter();
        outputs.any(|(call_id, _)| call.call_id == *call_id)
    })
}

/// The error of a decision or an answer that came after another one.
fn decided_before() -> ServiceError {
    let message = "another decision or answer came first";
    ServiceError::new(ServiceErrorKind::Conflict, message)
}

/// Gives the outputs of those calls of the client's tools that wait.
fn give(
    team: &ServedTeam,
    run: &mut Run,
    outputs: Vec<(Arc<str>, ToolOutput)>,
    options: &mut MessageOptions,
) -> Result<(), ServiceError> {
    let waiting = run.interruptions();
    for (call_id, output) in outputs {
        let mut calls = waiting.iter().filter(|call| team.is_client_call(call));
        if let Some(call) = calls.find(|call| call.call_id == call_id) {
            run.decide(call, Decision::approve()).map_err(conflict)?;
            options.client_tools.set_output(&call_id, output);
        }
    }
    if waiting.iter().all(|waiting| team.is_client_call(waiting)) {
        // A client may describe its tools otherwise, or not at all, when it sends their outputs.
        run.accept_schema_changes();
    }
    options
        .client_tools
        .add_waiting(&waiting, |waiting| team.is_client_call(waiting));
    Ok(())
}

/// Applies an answer to a run that waits for it.
fn apply(run: &mut Run, resolution: Resolution) -> Result<(), ServiceError> {
    match resolution {
        Resolution::Decide(call_id, decision) => {
            let waiting = find_waiting(run, |waiting| {
                waiting.call_id == call_id && !is_person(waiting)
            })?;
            run.decide(&waiting, decision).map_err(conflict)
        }
        Resolution::Answer { person, answer } => {
            let waiting = find_person(run, person.as_deref())?;
            let answered = run.answer(&waiting, answer);
            answered.map_err(|error| ServiceError::invalid(error.to_string()))
        }
    }
}

fn conflict(error: DecisionError) -> ServiceError {
    ServiceError::new(ServiceErrorKind::Conflict, error.to_string())
}

fn find_person(run: &Run, person: Option<&str>) -> Result<Interruption, ServiceError> {
    find_waiting(run, |waiting| {
        is_person(waiting) && person.is_none_or(|person| *waiting.agent == *person)
    })
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
