#![no_main]

mod realtime_frames;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| realtime_frames::check(bytes));
