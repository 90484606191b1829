//! `switchboard serve` and `switchboard key`: teams as a service.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::conversation::Conversations;
use switchboard_realtime::model::RealtimeModelSettings;
use switchboard_realtime::openai::OpenAiRealtimeModel;
use switchboard_server::{
    Keys, RecordingLimits, ServeError, ServeErrorKind, ServedTeam, Server, Service, ServiceBuilder,
    Settings, SourceProblem, TeamFileSource, Tenant, Tls, VoiceModels,
};
use switchboard_teamfile::TeamFile;

use super::speech::Speech;
use crate::args::{self, SPEECH_MODEL, TRANSCRIPTION_MODEL};
use crate::bounded_read;
use crate::conversation_store;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;

/// The names of loopback addresses in `Host` headers.
pub(super) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

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
    Tenant::named(&args.tenant).map_err(|error| {
        Failure::usage(error.to_string(), "name the tenant, as in --tenant acme")
    })?;
    check_plain(&args.file)?;
    let key = switchboard_server::add_key(&args.file, &args.tenant);
    let key = key.map_err(|error| {
        Failure::usage(
            format!("the key cannot be added: {error}"),
            "name a file of keys that you may write to, on a disk with room",
        )
    })?;
    writeln!(out, "{key}")?;
    Ok(Exit::Ok)
}

/// The settings of the file, the environment and the command line; each overrides those before it.
fn settings(args: &args::Serve) -> Result<Settings, Failure> {
    let file = match &args.config {
        Some(path) => {
            check_plain(path)?;
            Settings::read(path).map_err(|error| unusable(&error))?
        }
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
    let settings = file.overridden_by(variables).overridden_by(line);
    if let Some(keys) = &settings.keys {
        check_plain(keys.as_ref())?;
    }
    Ok(settings)
}

/// Fails for a file of the system, which would be waited for.
fn check_plain(path: &Path) -> Result<(), Failure> {
    if !bounded_read::is_of_system(path) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{} is no plain file", path.display()),
        "name a file of your own",
    ))
}

async fn serve(args: &args::Serve, settings: &Settings) -> Result<Exit, Failure> {
    let mut builder = Service::builder()
        .limits(settings.limits())
        .log_content(settings.log_content.unwrap_or(false));
    if let Some(url) = &settings.url {
        builder = builder.public_url(url);
    }
    if settings.record.unwrap_or(false) {
        builder = builder.record(RecordingLimits::default());
    }
    let mut store = settings.store.clone();
    for path in &args.teams {
        let (added, team) = with_team(builder, path, &args.options, false, settings).await?;
        builder = added;
        if store.is_none() {
            store = team.open.store()?.map(ToOwned::to_owned);
        }
    }
    let keys = match &settings.keys {
        Some(path) => Some(Keys::read(path).map_err(|error| {
            Failure::usage(
                error.to_string(),
                format!("name a file of keys; {KEYS_HELP}"),
            )
        })?),
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
    let server = Server::bind(service.clone(), (host, port)).await;
    let mut server = server.map_err(|error| not_bound(&error))?;
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
        service.reload_teams();
    }
    tracing::info!("the server ends: no new runs are taken");
    running.shut_down().await;
    Ok(Exit::Ok)
}

/// Adds a team under its own name, or that of its file. It can be read again from its file.
pub(super) async fn with_team(
    builder: ServiceBuilder,
    path: &Path,
    options: &args::TeamOptions,
    is_editable: bool,
    settings: &Settings,
) -> Result<(ServiceBuilder, LoadedTeam), Failure> {
    let load = match settings.speech.as_deref() {
        // The server of the command line may be that of the speech.
        Some("provider" | "realtime") => LoadedTeam::load_with_any_server,
        _ => LoadedTeam::load,
    };
    let file = TeamFile::read(path)?;
    let team = load(&file, options, &[])?;
    let served = served_team(path, &file, &team);
    let served = with_speech(served, &team, options.base_url.as_deref(), settings).await?;
    let (reopened, options) = (path.to_owned(), options.clone());
    let source = TeamFileSource::new(path, move |file| {
        let team = load(file, &options, &[]).map_err(|failure| problems(&failure))?;
        Ok(served_team(&reopened, file, &team))
    });
    let source = if is_editable {
        source.editable()
    } else {
        source
    };
    Ok((builder.team(source.attach_to(served)), team))
}

/// A team under its own name, or that of its file.
pub(super) fn served_team(path: &Path, file: &TeamFile, team: &LoadedTeam) -> ServedTeam {
    let config = team.runner().config().clone();
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name: Arc<str> = match &config.team_name {
        Some(name) => name.clone(),
        None => stem.unwrap_or_default().into(),
    };
    let served = ServedTeam::of_team_file(name, &team.open, config);
    match file.description() {
        Some(description) => served.description(description),
        None => served,
    }
}

/// The problems of a team file that cannot be read again.
pub(super) fn problems(failure: &Failure) -> Vec<SourceProblem> {
    match failure {
        Failure::Problems(problems) => problems.iter().map(SourceProblem::from).collect(),
        Failure::Message { message, .. } => vec![SourceProblem::error("unusable", message)],
        Failure::BrokenPipe => Vec::new(),
    }
}

/// Lets clients speak with a team, by the models that the settings choose.
async fn with_speech(
    served: ServedTeam,
    team: &LoadedTeam,
    base_url: Option<&str>,
    settings: &Settings,
) -> Result<ServedTeam, Failure> {
    let voices = settings.voices.iter().flat_map(|voices| voices.split(','));
    let voices = voices.map(args::voice).collect::<Result<Vec<_>, _>>();
    let voices =
        voices.map_err(|problem| Failure::usage("the setting voices is wrong", problem))?;
    let name = |set: &Option<String>, default: &'static str| {
        set.clone().unwrap_or_else(|| default.to_owned())
    };
    let speech = match settings.speech.as_deref().unwrap_or("none") {
        "none" => return Ok(served),
        "realtime" => return with_realtime(served, base_url, &voices, settings),
        "offline" => Speech::offline(&voices, team).await?,
        "provider" => {
            let hears = name(&settings.transcription_model, TRANSCRIPTION_MODEL);
            let speaks = name(&settings.speech_model, SPEECH_MODEL);
            let help =
                "set OPENAI_API_KEY, name a server with --base-url, or use --set speech=offline";
            Speech::of_provider(base_url, [&hears, &speaks], &voices, team, help)?
        }
        other => {
            let message = format!("the setting speech cannot be {other:?}");
            let help = "it is realtime, provider, offline or none";
            return Err(Failure::usage(message, help));
        }
    };
    let models = VoiceModels::new(speech.speech_to_text, speech.text_to_speech);
    let models = (speech.voices.into_iter())
        .fold(models, |models, (agent, voice)| models.voice(agent, voice));
    Ok(served.voice(models))
}

/// Lets clients speak with a team through a realtime model of OpenAI, or of a server that speaks its protocol.
fn with_realtime(
    served: ServedTeam,
    base_url: Option<&str>,
    voices: &[args::AgentVoice],
    settings: &Settings,
) -> Result<ServedTeam, Failure> {
    let mut model = OpenAiRealtimeModel::new();
    if let Some(name) = &settings.realtime_model {
        model = model.model(name.as_str());
    }
    match base_url {
        Some(url) => model = model.base_url(url),
        None if std::env::var_os("OPENAI_API_KEY").is_none() => {
            return Err(Failure::usage(
                "there is no key for the realtime model",
                "set OPENAI_API_KEY, name a server with --base-url, or use --set speech=offline",
            ));
        }
        None => {}
    }
    if voices.iter().any(|voice| voice.agent.is_some()) {
        return Err(Failure::usage(
            "the agents of a realtime session share one voice",
            "name one voice without an agent",
        ));
    }
    let settings = RealtimeModelSettings {
        voice: voices.last().map(|voice| voice.voice.as_str().into()),
        ..RealtimeModelSettings::default()
    };
    let name = served.name().to_owned();
    served.realtime(model, settings).map_err(|error| {
        let message = format!("the team {name} cannot be spoken with in realtime: {error}");
        Failure::usage(message, "use --set speech=provider or speech=offline")
    })
}

/// Opens the store of an address, or else of the data folder.
pub(super) async fn conversations(address: Option<&str>) -> Result<Conversations, Failure> {
    if address == Some("memory:") {
        return Ok(Conversations::in_memory());
    }
    conversation_store::open_for_service(address).await
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

/// Advice on making keys.
const KEYS_HELP: &str = "`switchboard key keys.toml --tenant NAME` makes one";

/// The failure for an address that cannot be listened on.
pub(super) fn not_bound(error: &ServeError) -> Failure {
    let help = match error.kind() {
        ServeErrorKind::AddressInUse => {
            Some("choose another --port; 0 is any that is free".to_owned())
        }
        ServeErrorKind::Open => Some(format!("name a file of keys with --keys; {KEYS_HELP}")),
        _ => None,
    };
    Failure::Message {
        exit: Exit::Usage,
        message: error.to_string(),
        help,
    }
}

pub(super) fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::Message {
        exit: Exit::Usage,
        message: error.to_string(),
        help: None,
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the program cannot work here: {error}"),
        help: None,
    }
}

/// A signal to a server.
pub(super) enum ServeSignal {
    End,
    /// The keys and the teams are to be read again.
    Reload,
}

#[cfg(unix)]
pub(super) struct ServeSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ServeSignals {
    pub(super) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> ServeSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ServeSignal::End,
            _ = self.terminate.recv() => ServeSignal::End,
            _ = self.hangup.recv() => ServeSignal::Reload,
        }
    }
}

#[cfg(not(unix))]
pub(super) struct ServeSignals(());

#[cfg(not(unix))]
impl ServeSignals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self(()))
    }

    pub(super) async fn next(&mut self) -> ServeSignal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => ServeSignal::End,
            // There are no signals to wait for.
            Err(_) => std::future::pending().await,
        }
    }
}
