//! Models for [Switchboard](switchboard_core): OpenAI's two protocols at any server that speaks them,
//! and one that needs no network.
//!
//! | model | speaks to |
//! | --- | --- |
//! | [`ResponsesModel`] | OpenAI's Responses API, or a server that speaks it |
//! | [`ChatModel`] | Chat Completions: OpenAI, Ollama, vLLM, llama.cpp, gateways |
//! | [`OfflineModel`] | nobody: it is part of the program |
//!
//! An [`Endpoint`] says where a server is and how to talk to it; connecting gives a [`Client`], which
//! keeps its connections and makes models. [`Providers`] gives models by name and reads the
//! environment:
//!
//! ```
//! use switchboard_core::{Agent, Knowledge, Runner};
//! use switchboard_models::Providers;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let billing: Agent = Agent::new("Billing")
//!     .handoff_description("Bills, charges and refunds.")
//!     .knowledge(Knowledge::new("Charged twice", "A second charge is reversed in three days."));
//! let triage = Agent::new("Triage").handoff(billing);
//!
//! // `openai/…`, `chat/…`, `offline`, or what you register.
//! let model = Providers::new().model("offline")?;
//! let result = Runner::new(&triage).model(model).run("I was charged twice").await?;
//! assert_eq!(result.last_agent().name(), "Billing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! What these models read they read leniently: items, events and fields they do not know survive.
//! What they send is what the official API accepts, also of a conversation that other providers have
//! had a part in. A [`ModelError`] says what went wrong, and what to do about it; a key is in nothing
//! that is printed.
//!
//! The feature `http`, on by default, is everything over the wire; without it only the offline model
//! is here.

mod offline;
mod providers;
#[cfg(feature = "http")]
mod wire;

pub use offline::OfflineModel;
pub use providers::{ModelNotFound, Providers};
#[cfg(all(fuzzing, feature = "http"))]
pub use wire::fuzzing;
#[cfg(feature = "http")]
pub use wire::{
    ChatModel, Client, Endpoint, ModelError, ModelErrorKind, RateLimits, ResponsesModel,
};

/// What the workspace's other crates share of the wire. Not part of the public API.
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod __private {
    pub use crate::wire::trusting_system;
}
