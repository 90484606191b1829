//! The voice pipeline.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod failures;
mod interruptions;
mod openai;
mod pipeline;
mod programs;
mod wav;

use std::time::Duration;

use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::testing::{ScriptedModel, describe_item};
use switchboard_core::{Agent, Runner, Session as _, StreamEvent};
use switchboard_realtime::voice::{VoiceEvent, VoiceEventKind, VoiceSession};

/// A team of two agents with this model, and its conversation.
fn team(model: &ScriptedModel) -> (Runner, Conversation) {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let conversation = Conversations::in_memory().get("call");
    let runner = Runner::new(&triage).model(model).session(&conversation);
    (runner, conversation)
}

/// The items of a conversation, in short.
async fn stored(conversation: &Conversation) -> Vec<String> {
    let items = conversation.load(None).await.unwrap();
    items.iter().map(describe_item).collect()
}

/// All events of a session.
async fn all(mut session: VoiceSession) -> Vec<VoiceEvent> {
    let mut events = Vec::new();
    while let Some(event) = session.next().await {
        events.push(event);
    }
    events
}

/// The next event that `wanted` takes.
async fn next<T>(session: &mut VoiceSession, wanted: impl Fn(&VoiceEvent) -> Option<T>) -> T {
    loop {
        let event = session.next().await.expect("the session goes on");
        if let Some(found) = wanted(&event) {
            return found;
        }
    }
}

/// Events in short, without those of the run and with the audio summed up.
fn short(events: &[VoiceEvent]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let line = match &event.kind {
            VoiceEventKind::Transcript { text, .. } => format!("heard {text:?}"),
            VoiceEventKind::Sentence { text, .. } => format!("{}: {text}", event.agent),
            VoiceEventKind::Interrupted { heard, .. } => format!("interrupted after {heard:?}"),
            VoiceEventKind::Error(error) => error.to_string(),
            VoiceEventKind::Run(_) => continue,
            VoiceEventKind::Audio { .. } if lines.last().is_some_and(|line| line == "audio") => {
                continue;
            }
            kind => kind.name().to_owned(),
        };
        lines.push(line);
    }
    lines
}

/// The length of all audio.
fn spoken(events: &[VoiceEvent]) -> Duration {
    let audio = events.iter().filter_map(|event| match &event.kind {
        VoiceEventKind::Audio { audio, .. } => Some(audio.duration()),
        _ => None,
    });
    audio.sum()
}

/// The events of the run.
fn run_events(events: &[VoiceEvent]) -> impl Iterator<Item = &StreamEvent> {
    events.iter().filter_map(|event| match &event.kind {
        VoiceEventKind::Run(event) => Some(&**event),
        _ => None,
    })
}
