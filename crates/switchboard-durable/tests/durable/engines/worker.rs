//! Processes that execute runs on an engine: tests run this program again with this test.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::Runner;
use switchboard_core::conversation::Conversations;
use switchboard_durable::{Dbos, DurableRunner, Embedded, Restate, Teams};
use switchboard_sessions::PostgresOptions;

use super::{draining, paused, silent};
use crate::child_process::kill_this_process;
use crate::world::{Note, echo, runner, runner_with};

const ENGINE: &str = "SWITCHBOARD_TEST_ENGINE";
const FOLDER: &str = "SWITCHBOARD_TEST_FOLDER";
const NAME: &str = "SWITCHBOARD_TEST_NAME";
const PORT: &str = "SWITCHBOARD_TEST_PORT";
const KILL: &str = "SWITCHBOARD_TEST_KILL";
const TEAM: &str = "SWITCHBOARD_TEST_TEAM";
const TEAM_NAME: &str = "SWITCHBOARD_TEST_TEAM_NAME";
const APPLICATION: &str = "SWITCHBOARD_TEST_APPLICATION";
const AT_ONCE: &str = "SWITCHBOARD_TEST_AT_ONCE";

/// The file that asks workers to end.
const END: &str = "end";

/// The time after which the runs of a worker that is gone are taken over.
const LEASE: Duration = Duration::from_millis(800);

/// An engine with servers, and a place for one test on it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) engine: Engine,
    /// A name that no other test has.
    name: String,
    folder: PathBuf,
    /// The port of the workers.
    port: u16,
    pub(super) team: Team,
    /// The name of the team, if it has one.
    team_name: Option<String>,
    application: String,
    /// The number of runs that a worker takes at once, but on Restate.
    pub(super) at_once: usize,
}

/// The team of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Team {
    Random,
    /// The random one, in which a tool has another name.
    Renamed,
    /// An agent that answers with the last message.
    Echo,
    /// One with a tool that takes a while.
    Slow,
    /// One with a tool that waits for a time.
    Patient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Embedded,
    Restate,
    Dbos,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Restate => "restate",
            Self::Dbos => "dbos",
        }
    }

    /// The server without which nothing goes on.
    pub(super) fn server(self) -> &'static str {
        match self {
            Self::Restate => "restate",
            Self::Embedded | Self::Dbos => "postgres",
        }
    }
}

impl Place {
    pub(super) fn new(engine: Engine, test: &str, folder: &Path) -> Self {
        let name = format!("{}_{test}_{}", engine.name(), std::process::id());
        Self {
            engine,
            application: name.clone(),
            name,
            folder: folder.to_owned(),
            port: free_port(),
            team: Team::Random,
            team_name: None,
            at_once: 1_000,
        }
    }

    /// The place of another team, or of an application whose name ends in another way, beside this one.
    pub(super) fn beside(&self, application: &str, team_name: Option<&str>) -> Self {
        Self {
            application: format!("{}{application}", self.name),
            team_name: team_name.map(str::to_owned),
            port: free_port(),
            ..self.clone()
        }
    }

    /// The store of the conversations and the states of runs.
    pub(super) async fn store(&self) -> Conversations {
        let options = PostgresOptions::new(&variable("SWITCHBOARD_TEST_POSTGRES")).unwrap();
        let options = options.schema(&self.name);
        let options = options.connect_timeout(Duration::from_secs(60));
        Conversations::new(options.open().await.unwrap())
    }

    /// A runner on the engine, whose team notes its side effects.
    pub(super) async fn runner(&self, note: &Note) -> DurableRunner {
        let store = self.store().await;
        let team = match self.team {
            Team::Random => runner(0, note),
            Team::Renamed => runner_with(0, note, "post"),
            Team::Echo => Runner::new(&echo()),
            Team::Slow => draining::team(note),
            Team::Patient => paused::team(note),
        };
        let team = match &self.team_name {
            Some(name) => team.team_name(name.as_str()),
            None => team,
        };
        match self.engine {
            Engine::Embedded => {
                let embedded = Embedded::new(store)
                    .application(&self.application)
                    .at_once(self.at_once)
                    .lease(LEASE);
                // Workers do so little before they are killed that a run may be interrupted often in a row.
                DurableRunner::new(embedded, Teams::new(team).interruptions(u32::MAX))
            }
            Engine::Restate => {
                let restate = Restate::new(store, variable("SWITCHBOARD_TEST_RESTATE"))
                    .application(&self.application)
                    .admin(variable("SWITCHBOARD_TEST_RESTATE_ADMIN"))
                    .listen(([127, 0, 0, 1], self.port).into());
                DurableRunner::new(restate, team)
            }
            Engine::Dbos => {
                let dbos = Dbos::new(store, variable("SWITCHBOARD_TEST_POSTGRES"))
                    .application(&self.application)
                    .at_once(self.at_once)
                    .lease(LEASE);
                DurableRunner::new(dbos, team)
            }
        }
    }

    /// A runner in a process that executes no runs.
    pub(super) async fn client(&self) -> DurableRunner {
        let client = self.runner(&silent()).await;
        if self.engine == Engine::Embedded {
            // The others leave that to workers.
            assert!(client.drain(Duration::ZERO).await);
        }
        client
    }

    /// The application, as DBOS has its name.
    pub(super) fn application(&self) -> &str {
        &self.application
    }

    /// Starts a worker, which kills itself at a side effect if a number is given.
    pub(super) fn worker(&self, kill: Option<usize>) -> Worker {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "engines::worker::work", "--ignored"])
            .env(ENGINE, self.engine.name())
            .env(FOLDER, &self.folder)
            .env(NAME, &self.name)
            .env(PORT, self.port.to_string())
            .env(TEAM, format!("{:?}", self.team))
            .env(APPLICATION, &self.application)
            .env(AT_ONCE, self.at_once.to_string())
            .stdout(Stdio::null());
        if env::var_os("SWITCHBOARD_TEST_SHOW").is_none() {
            command.stderr(Stdio::null());
        }
        command.envs(self.team_name.as_ref().map(|name| (TEAM_NAME, name)));
        command.envs(kill.map(|kill| (KILL, kill.to_string())));
        Worker(command.spawn().unwrap())
    }

    /// Asks the workers to end, with this time for their steps.
    pub(super) fn end_workers(&self, time: Duration) {
        let (part, file) = (self.folder.join("part"), self.folder.join(END));
        fs::write(&part, time.as_millis().to_string()).unwrap();
        fs::rename(part, file).unwrap();
    }

    /// Lets workers begin again.
    pub(super) fn let_workers_begin(&self) {
        fs::remove_file(self.folder.join(END)).unwrap();
    }

    /// The side effects of all workers.
    pub(super) fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Kills the server of the engine as a power cut would, and starts it again.
    pub(super) fn restart_server(&self) {
        for action in ["--kill", "--start"] {
            let servers = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../switchboard-sessions/tests/with-servers"
            );
            let mut command = Command::new(servers);
            let status = command.args([action, self.engine.server()]).status();
            assert!(status.unwrap().success());
        }
    }
}

/// A process that executes runs. Dropping it kills it with signal 9.
pub(super) struct Worker(Child);

impl Worker {
    /// Returns `true` once the process has ended.
    pub(super) fn is_gone(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(super) fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: use with-servers"))
}

/// Executes runs until it is killed, or asked to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn work() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let engine = match env::var(ENGINE).as_deref() {
        Ok("embedded") => Engine::Embedded,
        Ok("restate") => Engine::Restate,
        _ => Engine::Dbos,
    };
    let place = Place {
        engine,
        name: variable(NAME),
        port: variable(PORT).parse().unwrap(),
        folder,
        team: match env::var(TEAM).as_deref() {
            Ok("Renamed") => Team::Renamed,
            Ok("Echo") => Team::Echo,
            Ok("Slow") => Team::Slow,
            Ok("Patient") => Team::Patient,
            _ => Team::Random,
        },
        team_name: env::var(TEAM_NAME).ok(),
        application: variable(APPLICATION),
        at_once: variable(AT_ONCE).parse().unwrap(),
    };
    if env::var_os("SWITCHBOARD_TEST_SHOW").is_some() {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .init();
    }
    let kill: Option<usize> = env::var(KILL).ok().map(|number| number.parse().unwrap());
    let mut file = OpenOptions::new();
    let file = file.create(true).append(true);
    let file = file.open(place.folder.join("effects")).unwrap();
    let effects = AtomicUsize::new(0);
    let note: Note = Arc::new(move |effect: &str| {
        let number = effects.fetch_add(1, Ordering::SeqCst) + 1;
        let is_last = kill.is_some_and(|kill| kill.div_ceil(2) == number);
        if is_last && kill.is_some_and(|kill| kill % 2 == 0) {
            kill_this_process();
        }
        // One write each, so that lines stay whole.
        (&file).write_all(format!("{effect}\n").as_bytes()).unwrap();
        if is_last {
            kill_this_process();
        }
    });
    let durable = place.runner(&note).await;
    let asked = async {
        loop {
            if let Ok(time) = fs::read_to_string(place.folder.join(END)) {
                return Duration::from_millis(time.parse().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let drain = async {
        let drained = durable.drain(asked.await).await;
        note(&format!("drained {drained}"));
    };
    futures_util::future::join(durable.work(), drain).await;
}
