//! The OpenAI realtime WebSocket, against a scripted server on a real socket.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod commands;
mod faults;
mod fuzzed_frames;
mod handshake;
mod interruption;
mod protocol;
mod reconnection;
mod responses;
mod session_updates;
mod sessions;
mod support;
