//! Realtime agents: voice conversations that agents hand to each other on one connection.
//!
//! A [`RealtimeModel`](model::RealtimeModel) is connected once per session; commands go to it, events
//! come from it.
//!
//! With the feature `voice`, `voice` has a pipeline for models without a realtime protocol: speech to text,
//! a text run, text to speech.

mod agent;
mod error;
mod event;
mod handoff;
mod history;
mod policy;
mod session;
mod team;

pub mod conversation;
pub mod items;
pub mod machine;
pub mod model;
pub mod openai;
pub mod testing;
#[cfg(feature = "voice")]
pub mod voice;

pub use agent::{ConversionError, RealtimeAgent};
pub use error::{RealtimeError, RealtimeErrorKind};
pub use event::{RealtimeEvent, SessionProblem, ToolCallEvent};
pub use handoff::{
    IntoRealtimeHandoff, IntoRealtimeTarget, RealtimeHandoff, RealtimeHandoffBuilder,
    realtime_handoff,
};
pub use history::RealtimeHistory;
pub use policy::{
    Failures, FirstWords, OldAudio, RealtimePolicy, Responses, SeveralHandoffs, Switching,
};
pub use session::{RealtimeHandle, RealtimeRunner, RealtimeSession};
pub use team::{BuiltTeam, RealtimeTeam};

/// The code of the guide is compiled and run.
#[cfg(all(doctest, feature = "voice"))]
#[doc = include_str!("../../../docs/voice.md")]
pub struct VoiceGuide;
