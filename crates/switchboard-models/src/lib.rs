//! Models for Switchboard: over the wire, and one that needs no network.

pub mod offline;
mod providers;
#[cfg(feature = "http")]
mod wire;

pub use providers::{NoModel, Providers};
#[cfg(all(fuzzing, feature = "http"))]
pub use wire::fuzzing;
#[cfg(feature = "http")]
pub use wire::{
    ChatModel, Client, Endpoint, ModelError, ModelErrorKind, RateLimits, ResponsesModel,
};
