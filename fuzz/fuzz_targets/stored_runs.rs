#![no_main]

#[path = "../../crates/switchboard-core/tests/properties/stored_state.rs"]
mod stored_state;

libfuzzer_sys::fuzz_target!(|text: &str| stored_state::check(text));
