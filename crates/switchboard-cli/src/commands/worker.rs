//! `switchboard worker`: goes on with durable runs whose process is gone.

use std::time::Duration;

use switchboard_durable::DurableRunner;
use switchboard_teamfile::{Context, TeamFile};

use crate::args::{EngineName, Worker};
use crate::conversation_store;
use crate::durable;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::signals::Signals;

/// The time that steps in progress have to end.
const DRAIN_TIME: Duration = Duration::from_secs(25);

/// Works until the program is asked to end.
pub(super) fn run(args: &Worker) -> Result<Exit, Failure> {
    super::serve::start_log("text")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::Message {
        exit: Exit::Failed,
        message: format!("the program cannot work here: {error}"),
        help: None,
    })?;
    runtime.block_on(work(args))
}

async fn work(args: &Worker) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.team)?;
    let team = LoadedTeam::load(&file, &args.options, &[])?;
    let address = match &args.store {
        Some(address) => Some(address.clone()),
        None => team.open.store()?.map(ToOwned::to_owned),
    };
    let store = conversation_store::open_all(address.as_deref()).await?;
    let mut runner = team.runner();
    if let Ok(path) = std::fs::canonicalize(&args.team) {
        runner = runner.team_source(path.display().to_string());
    }
    #[cfg(feature = "restate")]
    let served = Some(durable::Served {
        admin: args.restate_admin.clone(),
        listen: args.listen,
    });
    #[cfg(not(feature = "restate"))]
    let served = None;
    let durable: DurableRunner<Context> =
        durable::runner(&store, address.as_deref(), &args.engine, served, runner)?;
    let mut signals = Signals::listen()?;
    // For scripts, which wait for it.
    println!("working");
    let worker = durable.clone();
    // It goes on while steps in progress end.
    let mut work = tokio::spawn(async move { worker.work().await });
    let failure = tokio::select! {
        // A worker that was asked to end has not failed, also if its work is over by now.
        biased;
        _ = signals.next() => None,
        _ = &mut work => Some(engine_stopped(args.engine.engine)),
    };
    tracing::info!("the worker ends: no new runs are taken");
    tokio::select! {
        is_drained = durable.drain(DRAIN_TIME) => {
            if !is_drained {
                tracing::warn!("steps in progress are cut off; other workers begin them again");
            }
        }
        signal = signals.next() => return failure.map_or(Ok(signal.exit()), Err),
    }
    store.close().await;
    failure.map_or(Ok(Exit::Ok), Err)
}

/// The failure of a worker that nobody asked to end. The engine has logged the reason.
fn engine_stopped(engine: EngineName) -> Failure {
    let help = match engine {
        EngineName::Embedded => "mend what the log above says, and start the worker again",
        #[cfg(feature = "restate")]
        EngineName::Restate => {
            "mend what the log above says; --listen names another address at which the Restate \
             server reaches the worker"
        }
        #[cfg(feature = "dbos")]
        EngineName::Dbos => {
            "mend what the log above says; check that the PostgreSQL server runs and that the \
             address of the database is right (--dbos, or else --store)"
        }
    };
    Failure::Message {
        exit: Exit::Failed,
        message: "the worker executes no runs: its engine could not start, or has stopped"
            .to_owned(),
        help: Some(help.to_owned()),
    }
}
