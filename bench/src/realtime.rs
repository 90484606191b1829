//! Realtime sessions under load: audio at its real rate in both directions, and a handoff halfway.
//!
//! A server and its callers are processes of their own, so that the CPU time of each is known. Every frame of
//! audio begins with the time at which it was made; whoever receives it notes its age.

mod bare;
mod load;
mod server;
mod stamp;
mod switchboard;

pub use load::Load;
pub use server::RealtimeLoadServer;

use std::error::Error;

use serde_json::Value;

use self::bare::BareCaller;
use self::load::measure;
use self::switchboard::{SwitchboardCaller, desk};

type Failed = Box<dyn Error + Send + Sync>;

/// The client whose callers are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealtimeClient {
    /// Realtime sessions of Switchboard.
    Switchboard,
    /// A WebSocket that sends and reads the same frames, and does nothing else.
    Bare,
}

impl RealtimeClient {
    /// The client of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "switchboard" => Some(Self::Switchboard),
            "bare" => Some(Self::Bare),
            _ => None,
        }
    }

    /// Lets callers talk to the server at `url`, and returns what that cost.
    ///
    /// # Errors
    /// Returns an error if the runtime cannot start or a caller fails.
    pub fn measure(self, url: &str, load: Load) -> Result<Value, Failed> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let desk = desk();
        runtime.block_on(async {
            match self {
                Self::Switchboard => measure(load, || SwitchboardCaller::connect(url, &desk)).await,
                Self::Bare => measure(load, || BareCaller::connect(url)).await,
            }
        })
    }
}
