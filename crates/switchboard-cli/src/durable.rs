//! Durable runs of the program: their engine, their names, and their failures.

use std::io;
use std::sync::Arc;

use switchboard_core::Runner;
use switchboard_core::conversation::Conversations;
use switchboard_core::stream::StreamEvent;
use switchboard_durable::{DurableError, DurableErrorKind, DurableRunner, Embedded};
use switchboard_teamfile::Context;

use crate::args::{EngineName, EngineOptions};
use crate::failure::{Exit, Failure};
use crate::shell;

/// The addresses of a worker on a Restate server.
#[cfg(feature = "restate")]
pub(crate) struct Served {
    /// The admin address of the server.
    pub(crate) admin: String,
    /// The address at which the server reaches the worker.
    pub(crate) listen: std::net::SocketAddr,
}

/// Only Restate calls workers.
#[cfg(not(feature = "restate"))]
pub(crate) enum Served {}

/// A runner on the engine of the command line. `address` is that of the store; `served` is for workers.
pub(crate) fn runner(
    store: &Conversations,
    address: Option<&str>,
    options: &EngineOptions,
    served: Option<Served>,
    runner: Runner<Context, Arc<Context>>,
) -> Result<DurableRunner<Context>, Failure> {
    #[cfg(not(any(feature = "restate", feature = "dbos")))]
    let _ = (address, served);
    Ok(match options.engine {
        EngineName::Embedded => {
            let engine = Embedded::new(store.clone()).lease(options.lease);
            DurableRunner::new(engine, runner)
        }
        #[cfg(feature = "restate")]
        EngineName::Restate => {
            let mut restate = switchboard_durable::Restate::new(store.clone(), &options.restate);
            if let Some(Served { admin, listen }) = served {
                restate = restate.admin(admin).listen(listen);
            }
            DurableRunner::new(restate, runner)
        }
        #[cfg(feature = "dbos")]
        EngineName::Dbos => {
            let database = options.dbos.as_deref().or(address);
            let database = database.filter(|url| url.starts_with("postgres"));
            let Some(database) = database else {
                return Err(Failure::usage(
                    "DBOS needs a PostgreSQL database",
                    "name it with --dbos, or have the store there: --store postgres://...",
                ));
            };
            let dbos = switchboard_durable::Dbos::new(store.clone(), database);
            DurableRunner::new(dbos.lease(options.lease), runner)
        }
    })
}

/// The options with which another command finds the engine and the store, each after a space. A password is left out.
pub(crate) fn options_text(options: &EngineOptions, address: Option<&str>) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: &str| {
        text += " ";
        text += name;
        text += " ";
        text += &shell::quoted(value.as_ref());
    };
    match options.engine {
        EngineName::Embedded => {}
        #[cfg(feature = "restate")]
        EngineName::Restate => {
            add("--engine", "restate");
            add("--restate", &without_password(&options.restate));
        }
        #[cfg(feature = "dbos")]
        EngineName::Dbos => {
            add("--engine", "dbos");
            if let Some(database) = &options.dbos {
                add("--dbos", &without_password(database));
            }
        }
    }
    if let Some(address) = address {
        add("--store", &without_password(address));
    }
    text
}

fn without_password(address: &str) -> String {
    let parts = address.split_once("://");
    let parts = parts.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)));
    match parts {
        Some((scheme, (_, place))) => format!("{scheme}://{place}"),
        None => address.to_owned(),
    }
}

/// A name for a message that has none.
pub(crate) fn new_key() -> String {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = time.unwrap_or_default().as_nanos();
    format!("{:x}-{:x}", nanos, std::process::id())
}

/// The event that tells of events that do not count, because their step was interrupted and begins again. It is built
/// from JSON, because it is no kind of event of a plain run.
pub(crate) fn retraction(agent: &str, from: u64, to: u64) -> io::Result<StreamEvent> {
    let json = serde_json::json!({
        "type": "retracted", "agent": agent, "turn": 0, "from": from, "to": to
    });
    Ok(serde_json::from_value(json)?)
}

/// The failure for an error of durable runs.
pub(crate) fn failure(error: DurableError) -> Failure {
    let (exit, help) = match error.kind() {
        DurableErrorKind::NotFound => (Exit::Usage, Some("`switchboard runs list` has the names")),
        DurableErrorKind::OtherEngine => (
            Exit::Usage,
            Some(
                "name its engine with --engine; an application of your own goes on with runs of its own engine",
            ),
        ),
        DurableErrorKind::NotWaiting => {
            (Exit::Usage, Some("`switchboard runs show` has its state"))
        }
        _ => (Exit::Failed, None),
    };
    Failure::Message {
        exit,
        message: error.to_string(),
        help: help.map(str::to_owned),
    }
}
