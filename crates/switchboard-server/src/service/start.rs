//! Beginning runs: each is a task of its own.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use switchboard_core::conversation::Conversation;
use switchboard_core::model::RequestUsage;
use switchboard_core::run::Price;
use switchboard_core::stream::StopHandle;

use super::{Caller, Follower, Service, draining, status_name};
use crate::changes::{Change, ConversationChange, RunChange};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::event_log::{EventLog, LogLimits};
use crate::keys::random_id;
use crate::limits::Limits;
use crate::recording::{Recording, SessionRecording};
use crate::runs::{Insertion, RunRecord};
use crate::team::{EndStatus, RunEnd, RunRequest, RunStart, ServedTeam};

/// The time for which the calls of a client that keeps its conversations itself wait for their outputs.
const KEEP_WAITING: Duration = Duration::from_secs(24 * 60 * 60);

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
        let refuse = |reason: &str, error: ServiceError| {
            inner.metrics.refused(reason);
            Err(error)
        };
        if self.is_draining() {
            return refuse("draining", draining());
        }
        let permit = match &caller.key {
            None => None,
            Some(key) => match key.take_run() {
                Ok(permit) => Some(permit),
                Err(error) => return refuse("key", error),
            },
        };
        inner
            .runs
            .forget_ended(inner.limits.keep_ended, inner.limits.ended_runs);
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
            Box::new(move |event| {
                let metrics = &service.0.metrics;
                metrics.observe(team.name(), &event, |tool| team.has_tool(tool));
                if let Some(recording) = &recording {
                    recording.observe(&event);
                }
                log.push(event);
            })
        };
        let stored = request.conversation.clone();
        let is_resumed = matches!(request.start, RunStart::Resume(_));
        let prepared = team.prepare(request, sink)?;
        let record = Arc::new(RunRecord::new(
            id,
            caller.tenant.clone(),
            team.name().into(),
            conversation,
            log,
            prepared.stop.clone(),
            identity.idempotency_key,
        ));
        match inner.runs.insert(&record, inner.limits.runs) {
            Insertion::Done => {}
            Insertion::Known(known) => return Ok(known),
            Insertion::Full => {
                let message = "too many runs are under way";
                let error = ServiceError::new(ServiceErrorKind::Unavailable, message);
                return refuse("runs", error.retry_after(Duration::from_secs(1)));
            }
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
            let is_kept = !identity.is_temporary || end.status == EndStatus::Interrupted;
            if let Some(conversation) = stored.filter(|_| identity.is_temporary) {
                end_temporary(&conversation, end.status).await;
            } else {
                let noted = service.note_wait(&caller, &team, &running, end.status, is_resumed);
                let waits = noted.await;
                if is_resumed {
                    service.end_resumption(&running, end.status, waits).await;
                }
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
            if let (Some(recordings), Some(id), false) =
                (&service.0.recordings, &running.conversation, is_kept)
            {
                recordings.forget(&running.tenant, id);
            }
            service.0.runs.ended(&running, &end);
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

    /// Tells clients that a run and its conversation have changed.
    fn tell_of_run(&self, run: &RunRecord, status: &'static str) {
        let changes = &self.0.changes;
        let conversation = run.conversation.clone();
        if let Some(id) = conversation.clone() {
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
    pub(super) idempotency_key: Option<Arc<str>>,
    pub(super) is_temporary: bool,
    pub(super) follower: Option<Follower>,
}

/// Deletes the conversation of a client that keeps its conversations itself, unless it waits.
async fn end_temporary(conversation: &Conversation, status: EndStatus) {
    let ended = if status == EndStatus::Interrupted {
        let time = SystemTime::now() + KEEP_WAITING;
        conversation.expire_at(time).await
    } else {
        let store = conversation.conversations();
        store.delete(conversation.name()).await.map(drop)
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "a temporary conversation could not be removed");
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
