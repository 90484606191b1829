//! Beginning runs: each is a task of its own.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use switchboard_core::conversation::{Conversation, Revision};
use switchboard_core::model::RequestUsage;
use switchboard_core::run::Price;
use switchboard_core::stream::StopHandle;

use super::admission::Admission;
use super::temporary::{self, TemporaryEnd};
use super::unanswered::is_unanswered;
use super::waiting_marks::is_interrupted;
use super::{Caller, Follower, Service, status_name};
use crate::changes::{Change, ConversationChange, RunChange};
use crate::error::ServiceError;
use crate::event_log::{EventLog, LogLimits};
use crate::idempotency::IdempotencyKey;
use crate::keys::random_id;
use crate::limits::Limits;
use crate::recording::{Recording, SessionRecording};
use crate::runs::{Insertion, RunRecord};
use crate::team::{EndStatus, RunEnd, RunRequest, RunStart, ServedTeam};
use crate::tenant::Tenant;

impl Service {
    /// Begins a run as a task.
    pub(super) fn start(
        &self,
        caller: &Caller,
        team: &ServedTeam,
        conversation: Option<Arc<str>>,
        mut request: RunRequest,
        identity: RunIdentity,
    ) -> Result<Arc<RunRecord>, ServiceError> {
        let inner = &self.0;
        let Admission { slot, permit } = match identity.admission {
            Some(admission) => admission,
            None => self.admit(caller)?,
        };
        let log = Arc::new(EventLog::new(LogLimits {
            events: inner.limits.events,
            bytes: inner.limits.event_bytes,
            is_copied: inner.logs_content,
        }));
        let id = match identity.id {
            Some(id) => id,
            None => random_id("run")?,
        };
        let prices = self.prices_of(team);
        let recording = self.new_recording(caller, &id, conversation.as_ref(), &prices);
        request.recording.clone_from(&recording);
        let sink = {
            let (service, log, team) = (self.clone(), log.clone(), team.clone());
            let recording = recording.clone();
            Box::new(move |event, cut_off| {
                let metrics = &service.0.metrics;
                metrics.observe(team.name(), &event, |tool| team.has_tool(tool));
                if let Some(recording) = &recording {
                    recording.observe(&event);
                }
                log.push_end(event, cut_off);
            })
        };
        let stored = request.conversation.clone();
        let is_resumed = matches!(request.start, RunStart::Resume(_));
        let prepared = team.prepare(request, sink)?;
        let mut record = RunRecord::new(
            id,
            caller.tenant.clone(),
            team.name().into(),
            conversation,
            log,
            prepared.stop.clone(),
            identity.idempotency_key,
        );
        record.is_temporary = identity.is_temporary;
        let record = Arc::new(record);
        if let Insertion::Known(known) = inner.runs.insert(&record)? {
            return Ok(known);
        }
        inner.metrics.run_started();
        if let (Some(recordings), Some(recording)) = (&inner.recordings, &recording) {
            recordings.add(recording);
        }
        self.tell_of_run(&record, "running");
        tracing::info!(
            request = &*caller.request,
            run = &*record.id,
            team = team.name(),
            tenant = caller.tenant.name(),
            key = caller.key.as_ref().map(|key| key.id()),
            "a run begins"
        );
        let (service, caller, team) = (self.clone(), caller.clone(), team.clone());
        let running = record.clone();
        let follower = identity
            .follower
            .map(|follower| tokio::spawn(follower.follow(record.clone())));
        tokio::spawn(async move {
            let began = Instant::now();
            // A panic in the task must not leave the run in the list of those that are under way.
            let limits = service.0.limits.clone();
            let temporary = stored.filter(|_| identity.is_temporary);
            let mut is_new = false;
            if let Some(conversation) = temporary.as_ref().filter(|_| !is_resumed) {
                is_new = temporary::create(conversation)
                    .await
                    .unwrap_or_else(|error| {
                        // The run finds out whether the store works.
                        tracing::warn!(%error, "a temporary conversation could not be created");
                        true
                    });
            }
            let end = match tokio::spawn(within_time(prepared.future, prepared.stop, limits)).await
            {
                Ok(end) => end,
                Err(_) => {
                    running.log.push_failure("the run has panicked");
                    RunEnd::panicked()
                }
            };
            if let Some(at) = end.wait {
                running.set_wait(at);
            }
            let mut temporary_end = None;
            if let Some(conversation) = &temporary {
                let left = end_of_temporary(conversation, is_new, &running, &team, &end).await;
                temporary::end(conversation, left).await;
                temporary_end = Some(left);
            }
            let is_deleted = temporary_end == Some(TemporaryEnd::Ended);
            let noted = service.note_wait(&caller, &team, &running, end.status, is_resumed);
            let waits = noted.await;
            if is_deleted && !is_new {
                service.forget_temporary_resumptions(&running).await;
            } else if let Some(wait) = identity.resumed_from {
                let still_waits = waits || temporary_end == Some(TemporaryEnd::Unchanged);
                let ended = service.end_resumption(&running, wait, end.status, still_waits);
                ended.await;
            }
            let cost = cost(&prices, &end.request_usage);
            if let Some(key) = &caller.key {
                let used = key.add_usage(end.usage.total_tokens(), cost);
                if let Some((day, used)) = used {
                    service.store_usage(key, day, used).await;
                }
            }
            drop(permit);
            let status = status_name(end.status, running.is_cancelled());
            let time = began.elapsed();
            let metrics = &service.0.metrics;
            metrics.run_ended(&running.team, status, time, &end.usage, cost);
            if let Some(follower) = follower {
                running.log.end();
                if follower.await.is_err() {
                    tracing::error!(run = &*running.id, "the record of a run was not kept");
                }
            }
            if let Some(recording) = recording {
                recording.end(status, end.usage);
            }
            let is_kept = match &temporary {
                Some(_) => end.status == EndStatus::Interrupted,
                None => running.conversation.is_some(),
            };
            service.0.runs.ended(&running, &end);
            if !is_kept {
                service.forget_run(&running.id);
            }
            if let Some(id) = running.conversation.as_deref().filter(|_| is_deleted) {
                service.forget_runs_of(&running.tenant, id);
            }
            drop(slot);
            running.log.close();
            service.tell_of_run(&running, status);
            tracing::info!(
                run = &*running.id,
                status,
                seconds = time.as_secs_f64(),
                tokens = end.usage.total_tokens(),
                "a run has ended"
            );
        });
        Ok(record)
    }

    /// Forgets a run of which nothing is kept, with its recording.
    fn forget_run(&self, id: &str) {
        self.0.runs.forget(id);
        if let Some(recordings) = &self.0.recordings {
            recordings.forget_run(id);
        }
    }

    /// Forgets the runs of a temporary conversation that was deleted, with their recordings.
    fn forget_runs_of(&self, tenant: &Tenant, id: &str) {
        self.0.runs.forget_runs_of(tenant, id);
        if let Some(recordings) = &self.0.recordings {
            recordings.forget(tenant, id);
        }
    }

    /// A recording, which is not kept yet; `None` where nothing is recorded.
    fn new_recording(
        &self,
        caller: &Caller,
        id: &Arc<str>,
        conversation: Option<&Arc<str>>,
        prices: &Arc<[(Arc<str>, Price)]>,
    ) -> Option<Arc<Recording>> {
        let recordings = self.0.recordings.as_ref()?;
        Some(Arc::new(Recording::new(
            id.clone(),
            caller.tenant.clone(),
            conversation.cloned(),
            &recordings.limits,
            prices.clone(),
        )))
    }

    /// Begins the recording of a spoken conversation; `None` where nothing is recorded.
    pub(crate) fn record_session(
        &self,
        caller: &Caller,
        team: &ServedTeam,
        id: &Arc<str>,
        conversation: &Arc<str>,
    ) -> Option<SessionRecording> {
        let prices = self.prices_of(team);
        let recording = self.new_recording(caller, id, Some(conversation), &prices)?;
        self.0.recordings.as_ref()?.add(&recording);
        Some(SessionRecording(recording))
    }

    /// Tells clients that a run has changed, and its conversation if that is listed.
    fn tell_of_run(&self, run: &RunRecord, status: &'static str) {
        let changes = &self.0.changes;
        let conversation = run.conversation.clone();
        if let Some(id) = conversation.clone().filter(|_| !run.is_temporary) {
            let change = "changed";
            let change = Change::Conversation(ConversationChange { id, change });
            changes.tell(&run.tenant, change);
        }
        let id = run.id.clone();
        let change = RunChange {
            id,
            conversation,
            status,
        };
        changes.tell(&run.tenant, Change::Run(change));
    }

    /// The prices of models for a run of a team, of which the last that has a model counts: those of other teams, of
    /// the service, and of the team as it is now. A run goes on with the prices that it began with.
    fn prices_of(&self, team: &ServedTeam) -> Arc<[(Arc<str>, Price)]> {
        let teams = self.all_teams();
        let others = teams.iter().filter(|other| other.name() != team.name());
        let others = others.flat_map(ServedTeam::prices);
        let prices = others.chain(&*self.0.prices).chain(team.prices());
        prices.cloned().collect()
    }
}

/// The cost of model calls whose prices are known.
fn cost(prices: &[(Arc<str>, Price)], usage: &[RequestUsage]) -> f64 {
    let costs = usage.iter().filter_map(|request| {
        let model = request.model.as_deref()?;
        let mut prices = prices.iter().rev();
        let (_, price) = prices.find(|(name, _)| **name == *model)?;
        Some(price.cost(&request.usage))
    });
    costs.sum()
}

/// The identity of a run.
pub(super) struct RunIdentity {
    pub(super) id: Option<Arc<str>>,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    pub(super) admission: Option<Admission>,
    pub(super) is_temporary: bool,
    /// The wait that a decision or an answer was for.
    pub(super) resumed_from: Option<Revision>,
    pub(super) follower: Option<Follower>,
}

/// Decides if a temporary conversation is kept after its run, and for which reason.
async fn end_of_temporary(
    conversation: &Conversation,
    is_new: bool,
    run: &RunRecord,
    team: &ServedTeam,
    end: &RunEnd,
) -> TemporaryEnd {
    match end.status {
        EndStatus::Completed => TemporaryEnd::Ended,
        EndStatus::Interrupted if is_interrupted(run, team) => TemporaryEnd::WaitsForPeople,
        EndStatus::Interrupted => TemporaryEnd::WaitsForClient,
        EndStatus::Stopped | EndStatus::Failed(_) if end.lost_conversation => {
            TemporaryEnd::Unchanged
        }
        // The client knows no call of it that it could send the output of again.
        EndStatus::Stopped | EndStatus::Failed(_) if is_new => TemporaryEnd::Ended,
        EndStatus::Stopped | EndStatus::Failed(_) => match is_unanswered(conversation).await {
            Ok(false) => TemporaryEnd::Ended,
            Ok(true) => TemporaryEnd::Unchanged,
            Err(error) => {
                // It expires.
                tracing::warn!(%error, "a temporary conversation could not be looked at");
                TemporaryEnd::Unchanged
            }
        },
    }
}

/// Carries a run out within a time.
async fn within_time(
    mut run: BoxFuture<'static, RunEnd>,
    stop: StopHandle,
    limits: Limits,
) -> RunEnd {
    if let Ok(end) = tokio::time::timeout(limits.run_time, &mut run).await {
        return end;
    }
    stop.stop_after_turn();
    if let Ok(end) = tokio::time::timeout(limits.stop_time, &mut run).await {
        return end;
    }
    stop.stop();
    run.await
}
