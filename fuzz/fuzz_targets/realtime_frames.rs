//! Frames of a realtime server, one a line, with commands of the application between them: `s` says something,
//! `i` interrupts, `lost` breaks the connection. A test of switchboard-realtime runs this as well.

use std::time::Duration;

use switchboard_realtime::model::{
    RealtimeInterrupt, RealtimeModelCommand, RealtimeModelConfig, RealtimeModelPolicy,
};
use switchboard_realtime::openai::{ProtocolOutput, RealtimeProtocol};

/// Checks that nothing panics, that the official types accept every frame of the client, that no response is asked
/// for twice at once, and that the state can be stored and read.
pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for policy in [
        RealtimeModelPolicy::production(),
        RealtimeModelPolicy::reference(),
    ] {
        let mut config = RealtimeModelConfig::default();
        config.policy = policy;
        let mut protocol = RealtimeProtocol::new(config);
        let mut is_asked = false;
        check_output(
            &protocol.open().expect("the settings are valid"),
            &mut is_asked,
        );
        for (number, line) in text.lines().take(256).enumerate() {
            let now = Duration::from_millis(number as u64);
            if line.contains("\"response.") || line.contains("\"error\"") {
                is_asked = false;
            }
            let command = match line {
                "s" => Some(RealtimeModelCommand::say("hello")),
                "i" => Some(RealtimeModelCommand::Interrupt(RealtimeInterrupt::default())),
                _ => None,
            };
            let output = match command {
                Some(command) => protocol
                    .command(command, now)
                    .expect("the command is valid"),
                None if line == "lost" => {
                    check_output(&protocol.disconnected(), &mut is_asked);
                    is_asked = false;
                    protocol.open().expect("the settings are valid")
                }
                None => protocol.frame(line, now),
            };
            check_output(&output, &mut is_asked);
        }
        let stored = serde_json::to_string(&protocol).expect("the state can be stored");
        let _: RealtimeProtocol = serde_json::from_str(&stored).expect("the state can be read");
    }
}

fn check_output(output: &ProtocolOutput, is_asked: &mut bool) {
    for frame in &output.frames {
        let frame: serde_json::Value = serde_json::from_str(frame).expect("a frame is JSON");
        fake_provider::check_client_event(&frame).expect("a frame is official");
        if frame["type"] == "response.create" {
            assert!(!std::mem::replace(is_asked, true), "two requests at once");
        }
    }
}
