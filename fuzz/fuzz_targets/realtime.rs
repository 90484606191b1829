#![no_main]

use std::time::Duration;

use switchboard_realtime::model::{
    RealtimeInterrupt, RealtimeModelCommand, RealtimeModelConfig, RealtimeModelPolicy,
};
use switchboard_realtime::openai::{ProtocolOutput, RealtimeProtocol};

// Frames of a server, one a line, with commands of the application between them: nothing panics, the frames
// of the client are those that the official types accept, and no response is asked for twice at once.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for policy in [RealtimeModelPolicy::production(), RealtimeModelPolicy::reference()] {
        let mut config = RealtimeModelConfig::default();
        config.policy = policy;
        let mut protocol = RealtimeProtocol::new(config);
        let mut is_asked = false;
        check(&protocol.open().expect("the settings are valid"), &mut is_asked);
        for (number, line) in text.lines().take(256).enumerate() {
            let now = Duration::from_millis(number as u64);
            if line.contains("\"response.") || line.contains("\"error\"") {
                is_asked = false;
            }
            let command = match line.as_bytes().first() {
                Some(b's') => Some(RealtimeModelCommand::say("hello")),
                Some(b'i') => Some(RealtimeModelCommand::Interrupt(RealtimeInterrupt::default())),
                _ => None,
            };
            let output = match command {
                Some(command) => protocol.command(command, now).expect("the command is valid"),
                None if line == "lost" => {
                    check(&protocol.disconnected(), &mut is_asked);
                    is_asked = false;
                    protocol.open().expect("the settings are valid")
                }
                None => protocol.frame(line, now),
            };
            check(&output, &mut is_asked);
        }
        let stored = serde_json::to_string(&protocol).expect("the state can be stored");
        let _: RealtimeProtocol = serde_json::from_str(&stored).expect("the state can be read");
    }
});

fn check(output: &ProtocolOutput, is_asked: &mut bool) {
    for frame in &output.frames {
        let frame: serde_json::Value = serde_json::from_str(frame).expect("a frame is JSON");
        fake_provider::check_client_event(&frame).expect("a frame is official");
        if frame["type"] == "response.create" {
            assert!(!std::mem::replace(is_asked, true), "two requests at once");
        }
    }
}
