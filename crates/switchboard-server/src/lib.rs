//! Teams of agents as a service.
//!
//! A [`Service`] is built from one or several teams, a store of conversations, and the keys of its clients. Its
//! [`router`](Service::router) speaks OpenAI's Responses and Chat Completions, so that clients which exist already can
//! talk to a team, A2A, by which a team is an agent for other agents, and an API of its own for conversations, runs, approvals and teams. [`Server`] listens, with or
//! without TLS, within limits, and ends its work in order.
//!
//! ```
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Team};
//! use switchboard_server::{ServedTeam, Server, Service};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Which bill?");
//! let team: Team = Team::new()
//!     .agent(Agent::new("Triage").handoff("Billing").model(model.clone()))
//!     .agent(Agent::new("Billing").model(model))
//!     .build()?;
//! let service = Service::builder().team(ServedTeam::new("support", team, ())).build()?;
//! let server = Server::bind(service, "127.0.0.1:0").await?;
//! println!("http://{}", server.address());
//! let running = server.start();
//! // POST /v1/chat/completions {"model": "support", "messages": [...]}
//! running.shut_down().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod a2a;
mod agent_details;
mod agui;
mod api;
mod changes;
mod client_tools;
mod error;
mod event_log;
mod http;
mod idempotency;
mod keys;
mod limits;
mod metrics;
mod openai;
mod provider_error;
mod realtime;
mod recording;
mod records;
mod router;
mod runs;
mod server;
mod service;
mod settings;
mod studio;
mod team;
#[cfg(feature = "team-files")]
mod team_file;
mod team_source;
mod tenant;

pub use error::{ServiceError, ServiceErrorKind};
pub use keys::{KeyEntry, Keys, KeysError, add_key, make_key};
pub use limits::Limits;
pub use realtime::VoiceModels;
pub use recording::RecordingLimits;
pub use server::{RunningServer, ServeError, ServeErrorKind, Server, Tls};
pub use service::{Service, ServiceBuilder};
pub use settings::{Settings, SettingsError, VARIABLE_PREFIX};
pub use studio::Studio;
pub use team::{AgentInfo, ServedTeam, TeamContext};
#[cfg(feature = "team-files")]
pub use team_file::TeamFileSource;
pub use team_source::{Completion, Completions, SourceProblem, TeamSource};
pub use tenant::{MAX_CONVERSATION_ID, Tenant};
