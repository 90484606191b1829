//! Taking over the runs of processes that are gone.
//!
//! DBOS executes a workflow again that its own process has left unfinished, when that starts again. For the others, each
//! process counts up in a table. One whose number another process has not seen change for the time of the lease is gone, and
//! the workflows that it had go back to the queue. No clocks are compared. A process that was only slow finds that a step
//! which it records is recorded, and that its writes to the store are refused.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::postgres::{PostgresSystemDatabase, Settings as DatabaseSettings};
use dbos::{Client, EngineOnly, ResumeOptions};
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::local_runs::{LocalRuns, State};
use super::{Names, Settings};
use crate::error::{DurableError, DurableErrorKind};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS switchboard_executors (\
     executor text PRIMARY KEY, beats bigint NOT NULL)";
const BEAT: &str = "INSERT INTO switchboard_executors AS e (executor, beats) VALUES ($1, 1) \
     ON CONFLICT (executor) DO UPDATE SET beats = e.beats + 1";
const FORGET: &str = "DELETE FROM switchboard_executors WHERE executor = $1";
/// The processes that have workflows, with their numbers.
const EXECUTORS: &str = "SELECT w.executor_id, max(e.beats) FROM dbos.workflow_status w \
     LEFT JOIN switchboard_executors e ON e.executor = w.executor_id \
     WHERE w.status = 'PENDING' AND w.name = $1 AND w.application_name = $2 \
     AND w.application_version = $3 AND w.executor_id IS NOT NULL GROUP BY w.executor_id";
const OWN: &str = "SELECT workflow_uuid FROM dbos.workflow_status \
     WHERE status = 'PENDING' AND name = $1 AND application_name = $2 AND executor_id = $3";
/// DBOS counts how often a workflow is taken from the queue, and gives it up after 100 times.
const UNCOUNT: &str = "UPDATE dbos.workflow_status SET recovery_attempts = recovery_attempts - 1 \
     WHERE status = 'PENDING' AND name = $1 AND application_name = $2 AND executor_id = $3 \
     AND recovery_attempts > 0";

/// The number of leases after which a workflow that was taken from the queue, and has not begun, goes back there.
const BEGINNING: u32 = 3;

/// The number of workflows of this process that one look has executed again.
const AGAIN: usize = 100;

pub(super) struct Takeover {
    pool: PgPool,
    system: PostgresSystemDatabase,
    application: String,
    executor: String,
    names: Names,
    lease: Duration,
    pause: Duration,
    local: LocalRuns,
    /// The number of each process, and the time at which it was seen first.
    seen: HashMap<String, (Option<i64>, Instant)>,
    /// Workflows of this process that it does not execute, and the time at which each was seen first.
    idle: HashMap<String, Instant>,
}

impl Takeover {
    pub(super) async fn new(
        settings: &Settings,
        names: &Names,
        local: LocalRuns,
    ) -> Result<Self, DurableError> {
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect(&settings.url)
            .await
            .map_err(|error| failed(&error))?;
        // Processes that create the table at the same moment get in each other's way.
        for attempt in 0.. {
            match sqlx::query(CREATE).execute(&pool).await {
                Ok(_) => break,
                Err(error) if attempt == 5 => return Err(failed(&error)),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let system = PostgresSystemDatabase::from_pool(
            pool.clone(),
            &DatabaseSettings {
                executor_id: Some(&settings.executor),
                application_name: Some(&settings.application),
                ..DatabaseSettings::default()
            },
        );
        Ok(Self {
            pool,
            system,
            application: settings.application.clone(),
            executor: settings.executor.clone(),
            names: names.clone(),
            lease: settings.lease,
            pause: settings.pause(),
            local,
            seen: HashMap::new(),
            idle: HashMap::new(),
        })
    }

    /// Shows that this process is alive.
    pub(super) async fn beat(&self) -> Result<(), DurableError> {
        let beat = sqlx::query(BEAT).bind(&self.executor).execute(&self.pool);
        beat.await.map(drop).map_err(|error| failed(&error))
    }

    /// Shows again and again that this process is alive.
    pub(super) fn beats(&self) -> impl Future<Output = ()> + Send + use<> {
        let (pool, executor, pause) = (self.pool.clone(), self.executor.clone(), self.pause);
        async move {
            loop {
                tokio::time::sleep(pause).await;
                let beat = sqlx::query(BEAT).bind(&executor).execute(&pool);
                if let Err(error) = beat.await {
                    tracing::warn!(%error, "this process cannot show that it is alive");
                }
            }
        }
    }

    /// Looks again and again.
    pub(super) async fn look_on(&mut self, client: &Client) {
        loop {
            tokio::time::sleep(self.pause).await;
            if let Err(error) = self.look(client).await {
                tracing::warn!(%error, "the processes that execute runs cannot be listed");
            }
        }
    }

    /// Takes over the runs of processes that do not show that they are alive, and has runs of this process that have stopped
    /// executed again.
    async fn look(&mut self, client: &Client) -> Result<(), DurableError> {
        let looked = async {
            let executors = sqlx::query_as::<_, (String, Option<i64>)>(EXECUTORS)
                .bind(&self.names.workflow)
                .bind(&self.application)
                .bind(&self.names.version)
                .fetch_all(&self.pool);
            executors.await.map_err(|error| failed(&error))
        };
        let executors = match looked.await {
            Ok(executors) => executors,
            Err(error) => {
                // While the database could not be reached, nobody could show that it is alive.
                self.seen.clear();
                return Err(error);
            }
        };
        let time = Instant::now();
        self.seen
            .retain(|name, _| executors.iter().any(|(executor, _)| executor == name));
        let mut gone = Vec::new();
        for (executor, beats) in executors {
            if executor == self.executor {
                continue;
            }
            let seen = self.seen.entry(executor.clone()).or_insert((beats, time));
            if seen.0 != beats {
                *seen = (beats, time);
            }
            if time.duration_since(seen.1) >= self.lease {
                gone.push(executor);
            }
        }
        for executor in gone {
            let taken = self.give_to_queue(&executor).await?;
            tracing::warn!(
                executor,
                runs = taken,
                "the runs of a process that is gone are taken over"
            );
            self.seen.remove(&executor);
        }
        self.resume_own(client).await
    }

    /// Puts the workflows of a process back to the queue.
    async fn give_to_queue(&self, executor: &str) -> Result<usize, DurableError> {
        let executors = [executor];
        let system = &self.system;
        let taken =
            system.reenqueue_for_recovery(&executors, &self.names.version, &self.names.queue);
        let taken = taken.await.map_err(|error| failed(&error))?;
        let forget = sqlx::query(FORGET).bind(executor).execute(&self.pool);
        forget.await.map_err(|error| failed(&error))?;
        Ok(taken.len())
    }

    /// Has workflows executed again that are this process's, and that it has stopped executing, or has not begun to.
    async fn resume_own(&mut self, client: &Client) -> Result<(), DurableError> {
        let not_executed = self.local.not_executed();
        let own = sqlx::query_scalar::<_, String>(OWN)
            .bind(&self.names.workflow)
            .bind(&self.application)
            .bind(&self.executor)
            .fetch_all(&self.pool);
        let own = own.await.map_err(|error| failed(&error))?;
        let own: HashSet<String> = own.into_iter().collect();
        self.local.forget(not_executed.difference(&own));
        let (time, pause, lease) = (Instant::now(), self.pause, self.lease);
        let is_idle = |id: &String| own.contains(id) && is_to_be_executed(self.local.state(id));
        self.idle.retain(|id, _| is_idle(id));
        for id in own.iter().filter(|id| is_idle(id)) {
            self.idle.entry(id.clone()).or_insert(time);
        }
        let again = self.idle.iter().filter(|(id, since)| {
            let patience = match self.local.state(id) {
                Some(_) => pause / 2,
                // DBOS has taken it from the queue, and begins one after the other.
                None => lease * BEGINNING,
            };
            time.duration_since(**since) >= patience
        });
        let again: Vec<String> = again.map(|(id, _)| id.clone()).take(AGAIN).collect();
        for id in again {
            self.idle.remove(&id);
            let options = ResumeOptions {
                queue: Some(&self.names.queue),
            };
            let resumed = client.resume_with::<(), EngineOnly>(&id, options).await;
            if let Err(error) = resumed {
                tracing::warn!(workflow = id, %error, "a run of this process cannot be executed again");
            }
        }
        Ok(())
    }

    /// Gives the runs of this process, which executes none any more, to the others.
    pub(super) async fn give_back(self) -> Result<(), DurableError> {
        let uncounted = sqlx::query(UNCOUNT)
            .bind(&self.names.workflow)
            .bind(&self.application)
            .bind(&self.executor)
            .execute(&self.pool);
        uncounted.await.map_err(|error| failed(&error))?;
        let executor = self.executor.clone();
        self.give_to_queue(&executor).await.map(drop)
    }
}

/// Returns `true` for a workflow that this process has not begun to execute, or has stopped executing.
fn is_to_be_executed(state: Option<State>) -> bool {
    matches!(state, None | Some(State::Interrupted))
}

fn failed(error: &dyn std::error::Error) -> DurableError {
    let message = format!("the processes that execute runs cannot be looked after: {error}");
    DurableError::new(DurableErrorKind::Engine, message)
}
