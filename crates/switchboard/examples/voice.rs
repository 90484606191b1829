//! `cargo run --example voice`
//!
//! A spoken conversation: the caller's speech is written down, handed over, answered and spoken, and the caller
//! interrupts. Speech to text and text to speech follow a script here; `docs/voice.md` has those of OpenAI, and
//! programs that need no network.

use std::time::Duration;

use switchboard::agent::Knowledge;
use switchboard::models::OfflineModel;
use switchboard::{Agent, EventKind, MemorySession, Runner};
use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech, speech};
use switchboard_realtime::voice::{Playback, VoiceEventKind, VoicePipeline};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let billing: Agent = Agent::new("Billing")
        .handoff_description("Bills, charges and refunds.")
        .knowledge(Knowledge::new(
            "wrong bill",
            "I am sorry about the bill. The money comes back in three days. You need not do anything.",
        ));
    let triage = Agent::new("Triage").handoff(&billing);

    let conversation = MemorySession::new();
    let runner = Runner::new(&triage)
        .model(OfflineModel::new())
        .session(&conversation);
    let hears = ScriptedSpeechToText::new(["my bill is wrong"]);
    let speaks = ScriptedTextToSpeech::new();
    let pipeline = VoicePipeline::new(runner, hears, speaks)
        .voice("Billing", "coral")
        .playback(Playback::Reported);
    let (handle, mut session) = pipeline.open();

    handle.send_audio(speech(16_000)).await?;
    let mut answers = 0;
    while let Some(event) = session.next().await {
        match event.kind {
            VoiceEventKind::Transcript { text, .. } => println!("caller: {text}"),
            VoiceEventKind::Run(run) => {
                if let EventKind::Handoff(handoff) = run.kind {
                    println!("{} -> {}", handoff.from, handoff.to);
                }
            }
            VoiceEventKind::Sentence { text, .. } => {
                println!("{}: {text}", event.agent);
                answers += 1;
                if answers == 3 {
                    // The loudspeaker has played the first sentence and a part of the second.
                    handle.played(Duration::from_millis(2_600));
                    handle.interrupt().await?;
                    handle.close().await;
                }
            }
            VoiceEventKind::Interrupted { heard, .. } => println!("(interrupted; heard: {heard})"),
            _ => {}
        }
    }

    println!("\nThe conversation:");
    for item in &conversation.items() {
        println!("{}", switchboard::testing::describe_item(item));
    }
    Ok(())
}
