use proptest::prelude::*;

use super::summary::RECORDS_PARSED;
use super::*;
use crate::context::RunContext;
use crate::items::Items;

/// Returns the history after a turn that made these items, and the number of records parsed for it.
fn nest(history: Items, made: &[Item], markers: &HistoryMarkers) -> (Items, usize) {
    nest_after(history, &[], made, markers)
}

/// Like [`nest`], in a run that had made items before that turn.
fn nest_after(
    history: Items,
    before: &[Item],
    made: &[Item],
    markers: &HistoryMarkers,
) -> (Items, usize) {
    let run_items = |items: &[Item]| -> Vec<RunItem> {
        items
            .iter()
            .map(|item| RunItem::new(RunItem::kind_of(item), "A", item.clone()))
            .collect()
    };
    let (before, made) = (run_items(before), run_items(made));
    let data = HandoffInputData::new(history, before, made, RunContext::new(()));
    let parsed_before = RECORDS_PARSED.get();
    let history = nest_handoff_history(data, None, markers).history_items();
    (history, RECORDS_PARSED.get() - parsed_before)
}

/// Returns the items without their metadata, as if they came from elsewhere.
fn without_metadata(items: &Items) -> Items {
    let parse = |item: &Item| Item::from_json(item.as_json()).unwrap();
    items.iter().map(parse).collect()
}

fn handoff(n: usize) -> [Item; 2] {
    let id = format!("c{n}");
    [
        Item::function_call(&id, "transfer", "{}"),
        Item::function_call_output(&id, r#"{"assistant":"B"}"#),
    ]
}

#[test]
fn a_summary_is_continued_by_copying_its_records() {
    let markers = HistoryMarkers::default();
    // Parsing strips white space around a message.
    let message = |n: usize| match n % 3 {
        0 => Item::user(format!(" \t\u{a0}This is number {n}.")),
        1 => Item::user(format!("This is number {n}. \t")),
        _ => Item::user(format!("This is number {n}.")),
    };
    let mut history: Items = (0..1000).map(message).collect();
    for n in 0..5 {
        let (expected, parsed) = nest(without_metadata(&history), &handoff(n), &markers);
        assert_eq!(parsed, if n == 0 { 0 } else { 1000 + 2 * n });
        let next = nest(history, &handoff(n), &markers);
        assert_eq!(next, (expected, 0));
        history = next.0;
    }
    let text = history.iter().next().unwrap().text().unwrap().into_owned();
    assert!(
        text.contains("\n1000. user: This is number 999.\n1001. {"),
        "{text}"
    );
    let unchanged = nest(history.clone(), &[Item::assistant("Hm.")], &markers).0;
    assert!(
        unchanged
            .iter()
            .next()
            .unwrap()
            .ptr_eq(history.iter().next().unwrap())
    );
}

#[test]
fn a_summary_between_other_markers_is_parsed() {
    let outer = HistoryMarkers {
        start: "<H>\n1. user: x".into(),
        end: "2. user: y\n</H>".into(),
    };
    let inner = HistoryMarkers {
        start: "<H>".into(),
        end: "</H>".into(),
    };
    let history = nest(Items::from(vec![Item::user("Hi")]), &handoff(1), &outer).0;
    let expected = nest(without_metadata(&history), &handoff(2), &inner).0;
    assert_eq!(nest(history, &handoff(2), &inner), (expected, 5));
}

#[test]
fn a_record_that_would_be_written_differently_is_parsed() {
    let named = |name| Item::named_message("user", name, "x");
    let json = |json: &str| Item::from_json(json).unwrap();
    let copied = [
        named("A"),
        named(")"),
        named("A b) \u{e9}\"\\"),
        Item::user("1. user (A): {x}"),
        Item::user(" \t\u{1f}\u{3000}"),
        json(r#"{"role":"user","content":"\ud800\n"}"#),
        json(r#"{"role":"user","content":[1], "created_by":1,"provider_data":2}"#),
        json(r#"{"type":"x","y":"\ud800\u2028"}"#),
    ];
    let parsed = [
        named("A:b"),
        named("A(b"),
        named(" A"),
        named("A\u{a0}"),
        named("A\u{b}b"),
        named("A\u{2028}b"),
        Item::user("a\u{85}b"),
        Item::user("a\u{1c}"),
        Item::message("tool", "{}"),
        Item::message("user ", "x"),
        json("{\"type\":\"x\",\n\"y\":1}"),
        json(r#"{"type":"x","y":"\u2028"}"#),
        // A `Value` cannot hold this lone surrogate, so the JSON is kept.
        json("{\"type\":\"x\",\"y\":\"\\ud800\u{2028}\"}"),
    ];
    let markers = HistoryMarkers::default();
    let copied = copied.into_iter().map(|item| (item, true));
    let parsed = parsed.into_iter().map(|item| (item, false));
    for (item, is_copied) in copied.chain(parsed) {
        let history = vec![item.clone(), Item::user("Hi")];
        let history = nest(history.into(), &handoff(1), &markers).0;
        let expected = nest(without_metadata(&history), &handoff(2), &markers).0;
        let (next, parsed) = nest(history, &handoff(2), &markers);
        assert_eq!((next, parsed == 0), (expected, is_copied), "{item:?}");
    }
}

/// Returns markers; most of them are ambiguous.
fn odd_markers(which: usize) -> HistoryMarkers {
    let markers = |start: &'static str, end: &'static str| HistoryMarkers {
        start: start.into(),
        end: end.into(),
    };
    match which {
        0..4 => HistoryMarkers::default(),
        4 => markers("", ""),
        5 => markers("\n", "\n"),
        6 => markers("<H>", "<H>"),
        7 => markers("<H>\n1. user: x", "2. user: y\n<H>"),
        _ => markers(" \u{2028}1. \"\\\u{1}\r", "\r3. \u{85}"),
    }
}

/// Returns an item with this text in one of many forms.
fn item_of(text: &str, form: usize) -> Item {
    let quoted = serde_json::to_string(text).unwrap();
    let inside = &quoted[1..quoted.len() - 1];
    let json = |json: String| Item::from_json(json).unwrap();
    match form {
        0 => Item::user(text),
        1 => Item::named_message("user", text, "x"),
        2 => Item::function_call("c", "f", text),
        3 => Item::output_message("m", text),
        4 => json(format!("{{\n \"type\": \"x\",\r\n \"y\": {quoted}}}")),
        5 => json(format!(
            r#"{{"type":"x","created_by":1,"provider_data":{quoted}}}"#
        )),
        6 => json(format!(r#"{{"role":"user","content":"\u2028\/{inside}"}}"#)),
        7 => json(format!(r#"{{"type":"x","y":"\u2028\u00e9","z":{quoted}}}"#)),
        8 => Item::message(text, "x"),
        9 => Item::message("tool", text),
        10 => json(format!(
            r#"{{"role":"developer","provider_data":{quoted},"x":2}}"#
        )),
        11 => json(format!(
            r#"{{"role":"user","content":[{quoted}],"provider_data":{quoted}, "created_by":{quoted}}}"#
        )),
        12 => json(format!(
            r#"{{"role":"user","content":"\ud800{inside}\udfff"}}"#
        )),
        13 => json(format!(
            r#"{{"role":"user","content":[1],"c\u006fntent":{quoted},"provider_data":1}}"#
        )),
        14 => json(format!(
            r#"{{"type":"x","\u0063reated_by":1,"provider_dat\u0061":2,"\u0072ole":[{quoted}]}}"#
        )),
        15 => json(format!(
            r#"{{"type":"x","\ud800":{quoted},"provider_data":1}}"#
        )),
        _ => Item::message("system", text.trim()),
    }
}

proptest! {
    #[test]
    fn copying_records_gives_the_same_as_parsing_and_writing_them(
        texts in prop::collection::vec(
            "([ -~]{0,20}|[\n\r\t\"\\\\\u{1}\u{b}\u{1c}\u{1f}\u{85}\u{a0}\u{2028}é账“ :().{}]|1\\. |٣\\.){0,4}", 1..12,
        ),
        forms in prop::collection::vec(0..17_usize, 12),
        // A summary with an odd item can rarely be copied, so all, one or none are odd.
        odd in prop::sample::select(vec![12, 1, 0]),
        turns in prop::collection::vec((0..4_usize, 0..3_usize, 0..9_usize, any::<bool>()), 1..5),
    ) {
        let item = |(index, (text, form)): (usize, (&String, &usize))| match form % 3 {
            _ if index < odd => item_of(text, *form),
            0 => item_of("\"{x}\") 1. é\\", 1),
            1 => Item::function_call_output("c", "{\"said\":\"\\n\"}"),
            _ => item_of(&text.replace(|c: char| c.is_control() || c == '\u{2028}', " "), 0),
        };
        let items: Vec<Item> = texts.iter().zip(&forms).enumerate().map(item).collect();
        let mut made = items.iter();
        let mut history: Items = made.by_ref().take(items.len() / 2).cloned().collect();
        let mut expected = history.clone();
        let mut markers = HistoryMarkers::default();
        for (now, before, which, is_stored) in turns {
            let before: Vec<Item> = made.by_ref().take(before).cloned().collect();
            let new: Vec<Item> = made.by_ref().take(now).cloned().chain(handoff(now)).collect();
            if which > 0 {
                markers = odd_markers(which);
            }
            if is_stored && now == 0 {
                history = without_metadata(&history);
            }
            history = nest_after(history, &before, &new, &markers).0;
            expected = nest_after(without_metadata(&expected), &before, &new, &markers).0;
            prop_assert_eq!(&history, &expected);
        }
    }
}
