//! Tests of the work that a search takes.

use proptest::prelude::*;

use super::*;

/// Counts the work of searching a text.
fn steps_of(text: &str) -> usize {
    let before = STEPS.get();
    all().text(text);
    STEPS.get() - before
}

#[test]
fn numbers_without_end_are_no_data() {
    for start in [
        "",
        "+",
        "+1",
        "00",
        "0",
        "(",
        "tel ",
        "4111",
        "DE89",
        "passport ",
        "a@",
    ] {
        let text = format!("{start}{}", "1".repeat(5000));
        stays(&text);
        stays(&format!("{text} {text} ({text}) +{text}"));
    }
}

#[test]
fn the_time_is_linear_in_the_length_of_the_text() {
    let pieces = "1-|1 |1 415 555 |+1 415 |+49 |(0|a@|a@b.|@|a at b dot |a.|ssn |07 |４１ |字@|passport |passport a1|DE89 |\
        DE89-3704-|110105 19491231 |4111|4111 |4111 1111 1111 |tel 1|order 4155552671 |0|0.|00 |1\u{336}|\u{200b}|[at]|[dot]|\
        550e8400-|{\"a\":|call |订单 1|电话|DE12 5001 |DE12 |iban 1 |/a/0612345|example.com/0612345 |รหัส|เลข 1|4155552671 B";
    for piece in pieces.split('|') {
        let [once, twice, four_times] =
            [1000, 2000, 4000].map(|times| steps_of(&piece.repeat(times)).max(1));
        let is_linear = twice <= 2 * once + 5000 && four_times <= 4 * once + 20_000;
        assert!(is_linear, "of {piece:?}: {once}, {twice}, {four_times}");
        // No text takes more than a bounded amount of work for each of its bytes.
        let bytes = piece.len() * 4000;
        assert!(
            four_times <= 120 * bytes,
            "of {piece:?}: {four_times} for {bytes} bytes"
        );
    }
}

/// Checks that the work is linear in the length of JSON with a long key around many times `value`.
#[track_caller]
fn a_long_key_takes_linear_time(value: &str) {
    let steps_of = |key: &str, size: usize| {
        let (key, values) = (key.repeat(size), value.repeat(size));
        let json = format!("{{\"{key}\":[{values}0]}}");
        let output = Item::function_call_output("c", &json);
        let before = STEPS.get();
        all().item(&output);
        STEPS.get() - before
    };
    for key in ["key", "키", r"\u30ad", r"\\", r#"\""#, "phone "] {
        let [once, twice, four_times] = [250, 500, 1000].map(|size| steps_of(key, size));
        let is_linear = twice <= 2 * once + 5000 && four_times <= 4 * once + 20_000;
        assert!(
            once > 1000 && is_linear,
            "of {key:?}: {once}, {twice}, {four_times}"
        );
    }
}

#[test]
fn the_time_is_linear_with_a_long_key_of_many_numbers() {
    a_long_key_takes_linear_time("4155552,");
}

#[test]
fn the_time_is_linear_with_a_long_key_around_many_keys() {
    a_long_key_takes_linear_time(r#"{"number":4155552},"#);
}

#[test]
fn the_end_of_a_long_key_tells_what_a_number_is() {
    for start in ["a ", "키", r"\\", r#"\""#, r"\u00e9", r"\n"] {
        for shift in ["", "x", "xx", "xxx", "xxxx", "xxxxx"] {
            let key = format!("{} phone{shift}", start.repeat(300));
            let json = |value: &str| format!("{{\"{key}\":{value}}}");
            let call = |value: &str| Item::function_call_output("c", &json(value));
            let expected = Some(call("\"[PHONE]\""));
            assert_eq!(
                all().item(&call("4155552")),
                expected,
                "of {start:?}{shift}"
            );
        }
    }
}

proptest! {
    #[test]
    fn the_work_is_bounded_by_the_length_of_the_text(
        pieces in prop::collection::vec("[0-9]{1,5}|[-+. ()/@]|ssn |tel |order |passport |[a-z]{1,3}|DE|at |\\[dot\\]|\n", 1..8),
    ) {
        let text = pieces.concat().repeat(100);
        prop_assert!(steps_of(&text) <= 150 * text.len() + 1000, "{} for {}", steps_of(&text), text.len());
    }
}
