#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| switchboard_models::fuzzing::head(bytes));
