//! Tests of which items are searched again.

use proptest::prelude::*;

use super::*;

/// Returns 1,000 items, every tenth of which holds an address.
fn some_items() -> Vec<Item> {
    let item = |n: usize| match n % 10 {
        0 => Item::user("I am ann@example.com, ORD-77"),
        1 => Item::function_call(&format!("c{n}"), "lookup", r#"{"order":"1234567890"}"#),
        2 => Item::function_call_output(&format!("c{}", n - 1), "ORD-77 was sent on 2026-11-15"),
        _ => Item::assistant("It is on its way."),
    };
    (0..1000).map(item).collect()
}

#[test]
fn an_item_without_private_data_is_searched_once() {
    let items = some_items();
    let searches = |redaction: &Redaction| {
        let redacted = || items.iter().filter_map(|item| redaction.item(item)).count();
        count_searches(|| assert_eq!(redacted(), 100))
    };
    assert_eq!(searches(&all()), 1000);
    // Items with private data are redacted each time; the detectors share one record of clean items.
    assert_eq!(searches(&all()), 100);
    assert_eq!(searches(&emails()), 100);
    assert_eq!(
        searches(&Redaction::new().only([Pii::Phone, Pii::Email])),
        100
    );
    let with_pattern = || emails().pattern("secret", "[S]").unwrap();
    let (one, other) = (with_pattern(), with_pattern());
    assert_eq!((searches(&one), searches(&other)), (1000, 1000));
    assert_eq!((searches(&one), searches(&other.clone())), (100, 100));
    assert_eq!(searches(&all()), 100);
    let without_rules = || assert_eq!(only_patterns().item(&items[0]), None);
    assert_eq!(count_searches(without_rules), 0);
}

#[test]
fn an_item_is_searched_by_every_redaction_with_other_rules() {
    let item = Item::user("ORD-77 for 4111 1111 1111 1111, ann@example.com");
    let orders = |redaction: Redaction| redaction.pattern(r"ORD-\d+", "[ORDER]").unwrap();
    let names = only_patterns().pattern("Bob", "[NAME]").unwrap();
    let ssn = || Redaction::new().only([Pii::Ssn]);
    let without_card = "ORD-77 for [CARD], ann@example.com";
    for _ in 0..2 {
        for (redaction, expected) in [
            (names.clone(), None),
            (ssn(), None),
            (
                orders(names.clone()),
                Some("[ORDER] for 4111 1111 1111 1111, ann@example.com"),
            ),
            (names.clone().only([Pii::Card]), Some(without_card)),
            (ssn().only([Pii::Ssn, Pii::Card]), Some(without_card)),
            (orders(all()), Some("[ORDER] for [CARD], [EMAIL]")),
        ] {
            assert_eq!(redaction.item(&item), expected.map(Item::user));
        }
    }
}

#[test]
fn a_changed_item_is_searched_again() {
    let item = Item::function_call("c", "f", "{}");
    let named = only_patterns().pattern("Bob", "[NAME]").unwrap();
    for redaction in [all(), named] {
        assert_eq!(redaction.item(&item), None);
        let clone = item.clone();
        let search_clone = || assert_eq!(redaction.item(&clone), None);
        assert_eq!(count_searches(search_clone), 0);
        let arguments = r#"{"to":"Bob, ann\u0040example.com"}"#;
        let quoted = serde_json::to_string(arguments).unwrap();
        let changed = item.with_json_field("arguments", &quoted).unwrap();
        let redacted = redaction.item(&changed).unwrap();
        assert!(redacted.as_json().contains('['), "{redacted:?}");
        // Without its type it is no call, and its name may be a person's.
        let call = Item::function_call("c", "Bob, ann@example.com", "{}");
        assert_eq!(redaction.item(&call), None);
        let changed = call.without_fields(&["type"]);
        assert!(redaction.item(&changed).is_some(), "{changed:?}");
    }
}

#[test]
fn a_chain_of_handoffs_searches_only_new_items() {
    let filter: Filter = all().into_filter();
    let redacted = |history: Vec<Item>| {
        let data = HandoffInputData::new(history, vec![], vec![], RunContext::new(()));
        let filtered = futures_util::FutureExt::now_or_never(filter.apply(data));
        filtered.unwrap().unwrap().history_items()
    };
    let mut history = some_items();
    let searches = [(); 4].map(|()| {
        history.push(Item::user("And then?"));
        count_searches(|| history = redacted(history.clone()).iter().cloned().collect())
    });
    // A redacted item is a new item, and searched once more.
    assert_eq!(searches, [1001, 101, 1, 1]);
}

fn redaction_of(rules: &[usize]) -> Redaction {
    let class = |rule: &usize| Pii::ALL.get(*rule).copied();
    let redaction = Redaction::new().only(rules.iter().filter_map(class));
    rules.iter().fold(redaction, |redaction, rule| match rule {
        0..7 => redaction,
        7 => redaction.pattern("a", "b").unwrap(),
        8 => redaction.pattern("b", "a").unwrap(),
        9 => redaction.pattern("[0-9]", "@").unwrap(),
        10 => redaction.placeholder(Pii::Email, "a@b.com"),
        _ => redaction
            .pattern(r"\[(CARD|SSN)\]", "4111111111111111")
            .unwrap(),
    })
}

proptest! {
    #[test]
    fn earlier_searches_do_not_change_the_result(
        texts in prop::collection::vec(
            "(4111 1111 1111 1111|078-05-1120|a@b\\.com|\\+14155552671|a|b|ssn |1|\\[CARD\\]|\n|\\{\"k\":1\\}| ){0,6}",
            1..5,
        ),
        redactions in prop::collection::vec(prop::collection::vec(0..12_usize, 0..5), 1..6),
        searches in prop::collection::vec((0..5_usize, 0..6_usize, 0..8_usize), 1..30),
    ) {
        let item = |(index, text): (usize, &String)| match index % 3 {
            0 => Item::user(text),
            1 => Item::function_call("c", "f", text),
            _ => Item::function_call_output("c", text),
        };
        let mut items: Vec<Item> = texts.iter().enumerate().map(item).collect();
        let redactions: Vec<Redaction> = redactions.iter().map(|rules| redaction_of(rules)).collect();
        for (index, redaction, change) in searches {
            let mut quoted = String::new();
            json::quote_into(&mut quoted, &texts[redaction % texts.len()]);
            let text = quoted.replace('4', "\\u0034").replace('@', "\\u0040");
            let index = index % items.len();
            let item = &mut items[index];
            match change {
                0 => *item = item.clone(),
                1 => *item = item.with_json_field("content", &text).unwrap(),
                2 => *item = item.with_json_field("x", &format!("[{{{text}:{text}}}]")).unwrap(),
                3 => *item = item.without_fields(&["type", "arguments"]),
                _ => {}
            }
            let redaction = &redactions[redaction % redactions.len()];
            let fresh = Item::from_json(item.as_json()).unwrap();
            prop_assert_eq!(redaction.item(item), redaction.item(&fresh));
        }
    }

    #[test]
    fn the_prefilter_rules_out_nothing_that_matches(
        text in "([0-9]{1,7}|[０-９]{1,4}|[٠-٩]{1,4}|[-+. @＠]|\\(|\\)|ssn |tel |passport |a| at |b\\.com|b dot com|\u{200b}){0,14}",
    ) {
        let counts = CharCounts::of(&text);
        for class in Pii::ALL {
            let redaction = Redaction::new().only([class]);
            // A key before it keeps the prefilter of the text itself out of the search.
            let searched = format!("a@b.com 4111111111111111, {text}");
            let prefix_len = searched.len() - text.len();
            let found = redaction.matches(&searched, prefix_len, Source::Text);
            prop_assert!(redaction.may_match(counts) || found.is_empty(), "{class} in {text:?}");
        }
    }

    #[test]
    fn numbers_in_json_stay_json(
        arguments in "\\{\"(phone|card|count|text)\":(\\[?)([0-9]{1,19})",
        tail in "[0-9]{1,8}",
    ) {
        let list = if arguments.contains('[') { "]" } else { "" };
        let call = Item::function_call("c", "f", &format!("{arguments}{list},\"n\":{tail}}}"));
        let Ok(_) = serde_json::from_str::<serde_json::Value>(&call.arguments().unwrap()) else {
            return Ok(());
        };
        let redacted = all().item(&call).unwrap_or(call);
        let inner = serde_json::from_str::<serde_json::Value>(&redacted.arguments().unwrap());
        prop_assert!(inner.is_ok(), "{:?}", redacted.arguments());
    }
}
