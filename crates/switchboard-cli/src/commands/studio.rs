//! `switchboard studio`: a page to talk to a team and to see what happens in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use switchboard_server::{
    RecordingLimits, Server, Service, ServiceBuilder, Settings, Studio, TeamFileSource,
};
use switchboard_teamfile::TeamFile;

use super::serve::{
    LOOPBACK, ServeSignal, ServeSignals, conversations, failed, not_bound, prices, problems,
    served_team, start_log, unusable, with_team,
};
use crate::args;
use crate::embedded_teams;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::{Language, Look};

/// The time that runs have to end when the studio is asked to end.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Serves the page until the program is asked to end.
pub(super) fn run(args: &args::Studio, look: Look) -> Result<Exit, Failure> {
    start_log("off")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(serve(args, look))
}

async fn serve(args: &args::Studio, look: Look) -> Result<Exit, Failure> {
    let (studio, token) = Studio::with_token().map_err(|error| failed(&error))?;
    let language = match look.language {
        Language::En => "en",
        Language::Zh => "zh",
    };
    let mut studio = studio.language(language);
    let folder = std::env::var_os("SWITCHBOARD_STUDIO_PAGE").map(PathBuf::from);
    if let Some(folder) = args.page.clone().or(folder) {
        studio = studio.folder(folder);
    }
    let builder = Service::builder()
        .hosts(LOOPBACK)
        .studio(studio)
        .record(RecordingLimits::default());
    let mut settings = Settings::default();
    settings.speech.clone_from(&args.speech);
    let (builder, store) = match &args.team {
        None => (with_demo(builder, args, look)?, Some("memory:".to_owned())),
        Some(path) => {
            let options = usable_options(path, args, look)?;
            let (builder, team) =
                with_team(builder, path, &options, !args.read_only, &settings).await?;
            (builder, team.open.store()?.map(ToOwned::to_owned))
        }
    };
    let store = args.store.clone().or(store);
    let service = builder
        .conversations(conversations(store.as_deref()).await?)
        .build();
    let service = service.map_err(|error| unusable(&error))?;
    let server = Server::bind(service.clone(), ("127.0.0.1", args.port)).await;
    let server = server.map_err(|error| not_bound(&error))?;
    let mut signals = ServeSignals::listen().map_err(|error| failed(&error))?;
    let running = server.drain_time(DRAIN_TIME).start();
    let address = format!("http://{}/#token={token}", running.address());
    println!("{address}");
    let hint = look.language.choose(
        "The address is for you alone: its token lets talk to the team and change its file. Ctrl-C ends the studio.",
        "此地址仅供您使用：其中的令牌可以与团队对话并修改团队文件。按 Ctrl-C 结束。",
    );
    eprintln!("{hint}");
    if !args.no_open {
        open_browser(&address);
    }
    while let ServeSignal::Reload = signals.next().await {
        service.reload_teams();
    }
    running.shut_down().await;
    Ok(Exit::Ok)
}

/// Adds the team of `switchboard demo`.
fn with_demo(
    mut builder: ServiceBuilder,
    args: &args::Studio,
    look: Look,
) -> Result<ServiceBuilder, Failure> {
    let files = embedded_teams::support(look.language);
    let mut options = args.options.clone();
    options.model.get_or_insert_with(|| "offline".to_owned());
    let file = TeamFile::from_embedded(files)?;
    let team = LoadedTeam::load(&file, &options, &[])?;
    for (model, price) in prices(&team) {
        builder = builder.price(model, price);
    }
    let served = served_team(Path::new("demo"), &file, &team);
    let source = TeamFileSource::embedded(files, move |file| {
        let team = LoadedTeam::load(file, &options, &[]).map_err(|failure| problems(&failure))?;
        Ok(served_team(Path::new("demo"), file, &team))
    });
    Ok(builder.team(source.attach_to(served)))
}

/// The options of the command line; with the offline model where that of the file cannot be used here.
fn usable_options(
    path: &Path,
    args: &args::Studio,
    look: Look,
) -> Result<args::TeamOptions, Failure> {
    let mut options = args.options.clone();
    let file = TeamFile::read(path)?;
    let Err(failure) = LoadedTeam::load(&file, &options, &[]) else {
        return Ok(options);
    };
    if options.model.is_some() {
        return Err(failure);
    }
    options.model = Some("offline".to_owned());
    if LoadedTeam::load(&file, &options, &[]).is_err() {
        return Err(failure);
    }
    let hint = look.language.choose(
        "The models of the team cannot be used here, so the offline model answers; `switchboard run` says why.",
        "团队的模型在此无法使用，因此由离线模型回答；原因见 `switchboard run`。",
    );
    eprintln!("{hint}");
    Ok(options)
}

/// Opens the browser of the system. Where there is none, the address was printed.
fn open_browser(address: &str) {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    let command = command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // It ends once the browser has the address.
        std::thread::spawn(move || child.wait());
    }
}
