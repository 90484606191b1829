//! The fuzz target of server frames, on frames of the corpus in any order, repeated, cut and damaged.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

#[path = "../../../../fuzz/fuzz_targets/realtime_frames.rs"]
mod realtime_frames;

/// The server's frames of the corpus, each once.
static FRAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let corpus = include_str!("../../../../conformance/cases/realtime_wire.json");
    let cases: Vec<Value> = serde_json::from_str(corpus).unwrap();
    let steps = cases
        .iter()
        .flat_map(|case| case["script"].as_array().unwrap());
    let frames = steps.filter_map(|step| step.get("server"));
    let mut frames: Vec<String> = frames.map(Value::to_string).collect();
    frames.sort();
    frames.dedup();
    frames
});

/// A line of the target's input.
fn line() -> impl Strategy<Value = String> {
    let frame = || any::<Index>().prop_map(|index| index.get(&FRAMES).clone());
    prop_oneof![
        8 => frame(),
        1 => (frame(), any::<Index>()).prop_map(|(frame, at)| {
            let ends: Vec<usize> = frame.char_indices().map(|(at, _)| at).collect();
            frame[..*at.get(&ends)].to_owned()
        }),
        1 => (frame(), any::<Index>(), any::<char>()).prop_map(|(frame, at, damage)| {
            let mut chars: Vec<char> = frame.chars().collect();
            *at.get_mut(&mut chars) = damage;
            chars.into_iter().collect()
        }),
        1 => "\\PC*",
        2 => Just("s".to_owned()),
        1 => Just("i".to_owned()),
        1 => Just("lost".to_owned()),
    ]
}

#[test]
fn the_corpus_has_frames_of_many_types() {
    let types: std::collections::BTreeSet<String> = FRAMES
        .iter()
        .map(|frame| serde_json::from_str::<Value>(frame).unwrap()["type"].to_string())
        .collect();
    assert!(FRAMES.len() > 100 && types.len() > 20, "{types:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn frames_in_any_order_repeated_cut_and_damaged_keep_the_protocol(
        lines in prop::collection::vec((line(), 1..3_usize), 0..40),
    ) {
        let lines: Vec<String> = lines
            .into_iter()
            .flat_map(|(line, times)| std::iter::repeat_n(line, times))
            .collect();
        realtime_frames::check(lines.join("\n").as_bytes());
    }
}
