//! The server: two agents, one of which hands off to the other.

use switchboard_core::{Agent, Team};
use switchboard_server::{Limits, RunningServer, ServedTeam, Server, Service};
use tokio::runtime::Runtime;

use super::paced_model::PacedModel;
use super::{Failed, Pace};

/// A service with one team, whose model has this pace.
pub struct TeamServer {
    runtime: Runtime,
    running: RunningServer,
}

impl TeamServer {
    /// Starts a server on a free port of the loopback address, with conversations in `store`: `memory:`, or the
    /// address of another store.
    ///
    /// # Errors
    /// Returns an error if the store cannot be opened or no port is free.
    pub fn start(pace: Pace, store: &str) -> Result<Self, Failed> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let running = runtime.block_on(async {
            let model = PacedModel::new(pace);
            let team: Team = Team::new()
                .agent(Agent::new("Triage").handoff("Billing").model(model.clone()))
                .agent(Agent::new("Billing").model(model))
                .build()?;
            let mut limits = Limits::default();
            limits.runs = 50_000;
            limits.requests = 50_000;
            limits.connections = 50_000;
            let service = Service::builder()
                .team(ServedTeam::new("support", team, ()))
                .conversations(switchboard_sessions::open(store).await?)
                .limits(limits)
                .build()?;
            let server = Server::bind(service, "127.0.0.1:0").await?;
            Ok::<_, Failed>(server.start())
        })?;
        Ok(Self { runtime, running })
    }

    /// The server's address.
    pub fn url(&self) -> String {
        format!("http://{}", self.running.address())
    }

    /// Ends the server.
    pub fn stop(self) {
        self.runtime.block_on(self.running.shut_down());
    }
}
