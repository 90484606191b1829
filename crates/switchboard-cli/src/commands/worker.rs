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
    let durable: DurableRunner<Context> = match args.engine {
        EngineName::Embedded => durable::runner(&store, args.lease.lease, runner),
        #[cfg(feature = "restate")]
        EngineName::Restate => {
            let restate = switchboard_durable::Restate::new(store.clone(), &args.restate);
            let restate = restate.admin(&args.restate_admin).listen(args.listen);
            DurableRunner::new(restate, runner)
        }
        #[cfg(feature = "dbos")]
        EngineName::Dbos => {
            let database = args.dbos.clone().or_else(|| address.clone());
            let database = database.filter(|url| url.starts_with("postgres"));
            let database = database.ok_or_else(|| Failure::Message {
                exit: Exit::Usage,
                message: "DBOS needs a PostgreSQL database".to_owned(),
                help: Some(
                    "name it with --dbos, or have the store there: --store postgres://..."
                        .to_owned(),
                ),
            })?;
            let dbos = switchboard_durable::Dbos::new(store.clone(), database);
            DurableRunner::new(dbos.lease(args.lease.lease), runner)
        }
    };
    let mut signals = Signals::listen()?;
    // For scripts, which wait for it.
    println!("working");
    tokio::select! {
        () = durable.work() => {}
        _ = signals.next() => {}
    }
    tracing::info!("the worker ends: no new runs are taken");
    if !durable.drain(DRAIN_TIME).await {
        tracing::warn!("steps in progress are cut off; other workers begin them again");
    }
    store.close().await;
    Ok(Exit::Ok)
}
