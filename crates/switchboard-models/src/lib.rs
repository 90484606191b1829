//! Models for [Switchboard](switchboard_core): OpenAI's two APIs at any compatible server, and a
//! model that needs no network.
//!
//! | model | server |
//! | --- | --- |
//! | [`ResponsesModel`] | the Responses API of OpenAI or a compatible server |
//! | [`ChatModel`] | Chat Completions: OpenAI, Ollama, vLLM, llama.cpp, gateways |
//! | [`RemoteAgent`] | an agent of another server, over A2A 1.0 |
//! | [`OfflineModel`] | none: it is part of the program |
//!
//! An [`Endpoint`] holds the address and settings of a server. Connecting it makes a [`Client`], which
//! keeps a pool of connections. [`Providers`] makes models by name and reads the environment:
//!
//! ```
//! use switchboard_core::agent::Knowledge;
//! use switchboard_core::{Agent, Runner};
//! use switchboard_models::Providers;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let billing: Agent = Agent::new("Billing")
//!     .handoff_description("Bills, charges and refunds.")
//!     .knowledge(Knowledge::new("Charged twice", "A second charge is reversed in three days."));
//! let triage = Agent::new("Triage").handoff(billing);
//!
//! // `openai/…`, `chat/…`, `offline`, or a name you register.
//! let model = Providers::new().model("offline")?;
//! let result = Runner::new(&triage).model(model).run("I was charged twice").await?;
//! assert_eq!(result.last_agent().name(), "Billing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! [`WebSearch`], [`FileSearch`], [`CodeInterpreter`], [`ImageGeneration`] and [`HostedMcp`] are tools
//! that OpenAI runs itself, for agents whose model is a [`ResponsesModel`].
//!
//! [`TranscriptionModel`] writes down speech and [`SpeechModel`] speaks texts, for the voice pipeline of
//! `switchboard-realtime` or by themselves.
//!
//! Answers are parsed leniently: unknown items, events and fields are kept. Requests are valid for
//! the official API, also those of a conversation that other providers took part in. A [`ModelError`]
//! says what happened and what to do about it. Keys are in no error, log or `Debug` output.
//!
//! | feature | gives |
//! | --- | --- |
//! | `http` (default) | the models over HTTP |
//! | `offline` (default) | [`OfflineModel`], from the crate `switchboard-offline` |

mod default_settings;
#[cfg(feature = "http")]
mod hosted_tools;
#[cfg(feature = "http")]
mod http_client;
mod providers;
#[cfg(feature = "http")]
mod wire;

pub use default_settings::default_model_settings;
#[cfg(feature = "http")]
pub use hosted_tools::{CodeInterpreter, FileSearch, HostedMcp, ImageGeneration, WebSearch};
pub use providers::{ModelNotFound, Providers};
#[cfg(feature = "offline")]
pub use switchboard_offline::OfflineModel;
#[cfg(all(any(test, fuzzing), feature = "http"))]
pub use wire::fuzzing;
#[cfg(feature = "http")]
pub use wire::{
    AgentCard, ChatModel, Client, Endpoint, ModelError, ModelErrorKind, RateLimits, RemoteAgent,
    ResponsesModel, SpeechModel, TranscriptionModel,
};

/// Items for the workspace's other crates. Not part of the public API.
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod __private {
    pub use crate::http_client::{
        HttpClient, HttpError, HttpResponse, HttpSettings, Proxies, RequestBody, TimeLimits,
        USER_AGENT, body, bytes_body, causes,
    };
    pub use crate::wire::direct_http_settings;
}
