#![no_main]

libfuzzer_sys::fuzz_target!(|input: (Vec<u8>, Vec<u16>)| {
    switchboard_models::fuzzing::sse(&input.0, &input.1);
});
