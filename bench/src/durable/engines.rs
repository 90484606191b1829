//! The conversation on Restate and DBOS, and empty steps on them without Switchboard.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dbos::{Config, DBOS, EngineOnly, StartOptions};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use switchboard_durable::{Dbos, DurableRunner, Restate};
use tokio::net::TcpListener;

use super::load::{Work, work};
use super::team::team;
use super::{DurablePlace, Failed, durable};

/// The pause after which a process that executes runs is ready.
const LAUNCH: Duration = Duration::from_millis(500);

/// The number of connections to PostgreSQL, with and without Switchboard.
const CONNECTIONS: u32 = 10;

fn ingress_and_admin(place: DurablePlace<'_>) -> Result<(String, String), Failed> {
    let (ingress, admin) = place.restate.ok_or("Restate needs INGRESS and ADMIN")?;
    let without_slash = |address: &str| address.trim_end_matches('/').to_owned();
    Ok((without_slash(ingress), without_slash(admin)))
}

/// The conversation as durable runs on Restate.
pub(super) async fn restate(place: DurablePlace<'_>) -> Result<Work, Failed> {
    let (ingress, admin) = ingress_and_admin(place)?;
    let store = switchboard_sessions::open(place.store).await?;
    let engine = Restate::new(store, ingress)
        .admin(admin)
        .application(format!("bench-{}", std::process::id()));
    Ok(working(DurableRunner::new(engine, team())).await)
}

/// The conversation as durable runs on DBOS.
pub(super) async fn dbos(place: DurablePlace<'_>) -> Result<Work, Failed> {
    let store = switchboard_sessions::open(place.store).await?;
    let engine = Dbos::new(store, place.store)
        .application(format!("bench_{}", std::process::id()))
        .connections(CONNECTIONS);
    Ok(working(DurableRunner::new(engine, team())).await)
}

async fn working(runner: DurableRunner) -> Work {
    let worker = runner.clone();
    drop(tokio::spawn(async move { worker.work().await }));
    tokio::time::sleep(LAUNCH).await;
    durable(runner)
}

/// A virtual object whose handler takes steps in which nothing takes place.
struct EmptySteps;

#[object(name = "EmptySteps")]
impl EmptySteps {
    #[handler(name = "run")]
    async fn run(&self, ctx: ObjectContext<'_>, steps: u64) -> HandlerResult<()> {
        for _ in 0..steps {
            ctx.run(|| async { Ok(()) }).name("step").await?;
        }
        Ok(())
    }
}

/// Invocations with as many steps.
pub(super) async fn bare_restate(place: DurablePlace<'_>, steps: u64) -> Result<Work, Failed> {
    let (ingress, admin) = ingress_and_admin(place)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}", listener.local_addr()?);
    let endpoint = Endpoint::builder()
        .bind(EmptySteps.into_service_definition())
        .build();
    drop(tokio::spawn(serve(listener, HyperEndpoint::new(endpoint))));
    // Registering asks this process for its services, by HTTP/2.
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(no_tls()?)
        .build()?;
    let body = serde_json::json!({"uri": uri, "force": true}).to_string();
    let registered = http.post(format!("{admin}/deployments")).body(body);
    let registered = registered.header("content-type", "application/json");
    registered.send().await?.error_for_status()?;
    Ok(work(move |name| {
        let url = format!("{ingress}/EmptySteps/{name}/run");
        let request = http
            .post(url)
            .header("content-type", "application/json")
            .header("idempotency-key", name)
            .body(steps.to_string());
        async move {
            request.send().await?.error_for_status()?;
            Ok(())
        }
    }))
}

fn no_tls() -> Result<rustls::ClientConfig, Failed> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}

async fn serve(listener: TcpListener, endpoint: HyperEndpoint) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let builder = http2::Builder::new(TokioExecutor::new());
        let connection = builder.serve_connection(TokioIo::new(stream), endpoint.clone());
        drop(tokio::spawn(async move {
            let _ = pin!(connection).await;
        }));
    }
}

/// Workflows with as many steps.
pub(super) async fn bare_dbos(place: DurablePlace<'_>, steps: u64) -> Result<Work, Failed> {
    let name = format!("bare_{}", std::process::id());
    let dbos = DBOS::new(Config {
        app_version: Some("1".to_owned()),
        executor_id: Some(name.clone()),
        max_connections: CONNECTIONS,
        ..Config::new(name, place.store)
    });
    let workflow = dbos.register_workflow("empty_steps", |steps: u64| async move {
        for _ in 0..steps {
            let step = dbos::step::<(), EngineOnly, _, _>("step", || async { Ok(()) });
            step.await?;
        }
        Ok::<(), dbos::Error<EngineOnly>>(())
    })?;
    dbos.launch().await?;
    let dbos = Arc::new(dbos);
    Ok(work(move |name| {
        let (workflow, dbos) = (workflow.clone(), dbos.clone());
        async move {
            let _running = dbos;
            let options = StartOptions {
                workflow_id: Some(&name),
                ..StartOptions::default()
            };
            let started = workflow.start_with(steps, options).await?;
            started.result().await?;
            Ok(())
        }
    }))
}
