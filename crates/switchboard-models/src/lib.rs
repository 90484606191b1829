//! Models for Switchboard: over the wire, and one that needs no network.

pub mod offline;
#[cfg(feature = "http")]
mod wire;

#[cfg(feature = "http")]
pub use wire::{
    ChatModel, Client, Endpoint, ModelError, ModelErrorKind, RateLimits, ResponsesModel,
};
