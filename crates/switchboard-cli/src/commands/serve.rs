//! `switchboard serve` and `switchboard key`: teams as a service.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::conversation::Conversations;
use switchboard_server::{Keys, ServedTeam, Server, Service, ServiceBuilder, Settings, Tls};
use switchboard_teamfile::TeamFile;

use crate::args;
use crate::conversation_store::ConversationStore;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;

/// The names of loopback addresses in `Host` headers.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Serves until the program is asked to end.
pub(super) fn run(args: &args::Serve) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    start_log(settings.log.as_deref().unwrap_or("text"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(serve(args, &settings))
}

/// Makes a key, and prints it.
pub(super) fn add_key(args: &args::Key, out: &mut dyn Write) -> Result<Exit, Failure> {
    let key = switchboard_server::add_key(&args.file, &args.tenant);
    let key = key.map_err(|error| unusable(&error))?;
    writeln!(out, "{key}")?;
    Ok(Exit::Ok)
}

/// The settings of the file, the environment and the command line; each overrides those before it.
fn settings(args: &args::Serve) -> Result<Settings, Failure> {
    let file = match &args.config {
        Some(path) => Settings::read(path).map_err(|error| unusable(&error))?,
        None => Settings::default(),
    };
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables = Settings::from_variables(variables).map_err(|error| unusable(&error))?;
    let mut line = Settings::default();
    for (name, value) in &args.set {
        line.set(name, value).map_err(|error| unusable(&error))?;
    }
    line.host = args.host.clone().or(line.host);
    line.port = args.port.or(line.port);
    line.keys = args.keys.clone().or(line.keys);
    line.store = args.store.clone().or(line.store);
    Ok(file.overridden_by(variables).overridden_by(line))
}

async fn serve(args: &args::Serve, settings: &Settings) -> Result<Exit, Failure> {
    let mut builder = Service::builder()
        .limits(settings.limits())
        .log_content(settings.log_content.unwrap_or(false));
    let mut store = settings.store.clone();
    for path in &args.teams {
        let file = TeamFile::read(path)?;
        let team = LoadedTeam::load(&file, &args.options, &[])?;
        if store.is_none() {
            store = team.open.store()?.map(ToOwned::to_owned);
        }
        builder = with_team(builder, path, &file, &team);
    }
    let keys = match &settings.keys {
        Some(path) => Some(Keys::read(path).map_err(|error| unusable(&error))?),
        None => None,
    };
    let host = settings.host.as_deref().unwrap_or("127.0.0.1");
    builder = match &keys {
        Some(keys) => builder.keys(keys.clone()),
        // Pages of other sites must not reach it by a name of their own.
        None => builder.hosts(LOOPBACK.iter().copied().chain([host])),
    };
    let service = builder
        .conversations(conversations(store.as_deref()).await?)
        .build();
    let service = service.map_err(|error| unusable(&error))?;
    let port = settings.port.unwrap_or(8080);
    let server = Server::bind(service, (host, port)).await;
    let mut server = server.map_err(|error| unusable(&error))?;
    let scheme = match (&settings.tls_certificate, &settings.tls_key) {
        (None, None) => "http",
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_pem_files(Path::new(certificate), Path::new(key));
            server = server.tls(tls.map_err(|error| unusable(&error))?);
            "https"
        }
        _ => {
            let message = "TLS needs both tls_certificate and tls_key";
            return Err(Failure::usage(message, "set the other one as well"));
        }
    };
    let server = server.drain_time(Duration::from_secs(settings.drain_seconds.unwrap_or(25)));
    let mut signals = ServeSignals::listen().map_err(|error| failed(&error))?;
    let running = server.start();
    // For scripts, which read the port.
    println!("listening on {scheme}://{}", running.address());
    while let ServeSignal::Reload = signals.next().await {
        match keys.as_ref().map(Keys::reload) {
            Some(Err(error)) => tracing::error!(%error, "the keys stay as they are"),
            Some(Ok(())) => tracing::info!("the keys were read again"),
            None => {}
        }
    }
    tracing::info!("the server ends: no new runs are taken");
    running.shut_down().await;
    Ok(Exit::Ok)
}

/// Adds a team under its own name, or that of its file.
fn with_team(
    mut builder: ServiceBuilder,
    path: &Path,
    file: &TeamFile,
    team: &LoadedTeam,
) -> ServiceBuilder {
    let config = team.runner().config().clone();
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name: Arc<str> = match &config.team_name {
        Some(name) => name.clone(),
        None => stem.unwrap_or_default().into(),
    };
    for (model, price) in config.budgets.iter().flat_map(|budgets| &budgets.prices) {
        builder = builder.price(model.clone(), *price);
    }
    let open = &team.open;
    let served = ServedTeam::with_config(name, open.shared_team(), open.context().clone(), config);
    let served = served.start(open.start().name());
    builder.team(match file.description() {
        Some(description) => served.description(description),
        None => served,
    })
}

/// Opens the store of an address, or else of the data folder.
async fn conversations(address: Option<&str>) -> Result<Conversations, Failure> {
    if address == Some("memory:") {
        return Ok(Conversations::in_memory());
    }
    // The name is of no conversation: only the store behind it is used.
    let store = ConversationStore::open("serve", address).await?;
    Ok(store.conversation().conversations().clone())
}

pub(super) fn start_log(form: &str) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    match form {
        "text" => log.init(),
        "json" => log.json().init(),
        "off" => {}
        _ => {
            let message = format!("the log cannot be {form:?}");
            return Err(Failure::usage(message, "it is text, json or off"));
        }
    }
    Ok(())
}

fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::Message {
        exit: Exit::Usage,
        message: error.to_string(),
        help: None,
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the program cannot work here: {error}"),
        help: None,
    }
}

/// A signal to a server.
enum ServeSignal {
    End,
    /// The keys are to be read again.
    Reload,
}

#[cfg(unix)]
struct ServeSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ServeSignals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> ServeSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ServeSignal::End,
            _ = self.terminate.recv() => ServeSignal::End,
            _ = self.hangup.recv() => ServeSignal::Reload,
        }
    }
}

#[cfg(not(unix))]
struct ServeSignals(());

#[cfg(not(unix))]
impl ServeSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self(()))
    }

    async fn next(&mut self) -> ServeSignal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => ServeSignal::End,
            // There are no signals to wait for.
            Err(_) => std::future::pending().await,
        }
    }
}
