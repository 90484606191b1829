//! What is found and what stays.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::context::RunContext;

thread_local! {
    /// How many items were looked at.
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// How many items are looked at while something is done.
fn looks(work: impl FnOnce()) -> usize {
    let before = LOOKS.get();
    work();
    LOOKS.get() - before
}

fn all() -> Redaction {
    Redaction::new()
        .card_numbers()
        .social_security_numbers()
        .emails()
        .phone_numbers()
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(all().text(text), expected, "of {text:?}");
}

#[track_caller]
fn stays(text: &str) {
    becomes(text, text);
}

#[test]
fn card_numbers_are_found() {
    becomes("card 4111 1111 1111 1111.", "card [CARD].");
    becomes("5500005555555559", "[CARD]");
    becomes("amex 3782 822463 10005", "amex [CARD]");
    becomes(
        "4111 1111 1111 1111 12/27, cvv 123",
        "[CARD] 12/27, cvv 123",
    );
    becomes("order 12 4111 1111 1111 1111", "order 12 [CARD]");
    becomes("2026-11-15 4111111111111111", "2026-11-15 [CARD]");
    becomes("card4111111111111111", "card[CARD]");
    becomes("4111\u{a0}1111\u{a0}1111\u{a0}1111", "[CARD]");
    becomes("4111.1111.1111.1111", "[CARD]");
    becomes("4111\u{2011}1111\u{2011}1111\u{2011}1111", "[CARD]");
    becomes(
        "卡号４１１１　１１１１　１１１１　１１１１。",
        "卡号[CARD]。",
    );
    becomes("4111\u{200b}1111\u{200b}1111\u{200b}1111", "[CARD]");
}

#[test]
fn social_security_numbers_are_found() {
    becomes("ssn 078-05-1120!", "ssn [SSN]!");
    becomes("078.05.1120", "[SSN]");
    becomes("078\u{a0}05\u{a0}1120", "[SSN]");
    becomes("０７８－０５－１１２０", "[SSN]");
    becomes("SSN: 078051120", "SSN: [SSN]");
    becomes("ＳＳＮ：１２３４５６７８９", "ＳＳＮ：[SSN]");
    becomes("SSN#078-05-1120", "SSN#[SSN]");
    becomes("SSN-078-05-1120", "SSN-[SSN]");
    becomes(
        "my Social Security number is 078051120, ok?",
        "my Social Security number is [SSN], ok?",
    );
    stays("number 078051120");
    stays("lessness 078051120");
    stays("part 123-45-6789-01");
}

#[test]
fn email_addresses_are_found_in_any_script() {
    becomes("mail ann.lee+x@mail.example.co.uk now", "mail [EMAIL] now");
    becomes("josé.müller@exämple.de", "[EMAIL]");
    becomes("пишите на иван@почта.рф.", "пишите на [EMAIL].");
    becomes("अजय@डाटा.भारत", "[EMAIL]");
    becomes("ann@xn--e1afmkfd.xn--p1ai", "[EMAIL]");
    becomes("用户@例子.广告", "[EMAIL]");
    becomes("请发到ann@example.com谢谢", "请发到[EMAIL]谢谢");
    becomes("我的邮箱是123456@qq.com。", "我的邮箱是[EMAIL]。");
    becomes("ann＠example．com", "[EMAIL]");
    becomes("ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", "[EMAIL]");
    stays("lodash@4.17.21, @ann, ann@localhost");
}

#[test]
fn phone_numbers_are_found() {
    for number in [
        "+44 20 7946 0958",
        "+1 (415) 555-2671",
        "(415) 555-2671",
        "415.555.2671",
        "415\u{a0}555\u{a0}2671",
        "１-415-555-2671",
        "4155552671",
        "415-5552671",
        "415 5552671",
        "(415) 5552671",
        "1-415-5552671",
        "14155552671",
        "12125552671",
        "020 7946 0958",
        "(020) 7946 0958",
        "01632 960 001",
        "01 23 45 67 89",
        "03-1234-5678",
        "0755-12345678",
        "010-8888 8888",
        "0044 20 7946 0958",
        "07700900123",
        "13812345678",
        "138 1234 5678",
        "138-1234-5678",
        "１３８１２３４５６７８",
        "8613812345678",
        "\u{202a}+86 138 1234 5678\u{202c}",
    ] {
        let redacted = all().text(number).replace('\u{202a}', "");
        assert_eq!(redacted, "[PHONE]", "of {number:?}");
    }
    becomes("手机13812345678，谢谢", "手机[PHONE]，谢谢");
    becomes("415-555-2671,415-555-2672", "[PHONE],[PHONE]");
    becomes("tel-4155552671", "tel-[PHONE]");
    becomes("+1 415 555 2671 415 555 2672", "+[PHONE] [PHONE]");
    becomes("Call me at 4155552671.", "Call me at [PHONE].");
    becomes("order 7, phone #4155552671", "order 7, phone #[PHONE]");
}

#[test]
fn other_numbers_stay() {
    for text in [
        "card 4111-1111-1111-1112",
        "order 12345, 3 items, 2026-11-15",
        "order 1234567890",
        "order 4155552671",
        "order 415-5552671",
        "ORD-415-5552671",
        "112-4155552-6711234",
        "415.5552671",
        "Order no. 4155552671",
        "invoice_id=4155552671",
        "订单号4155552671",
        "/orders/4155552671",
        "ORD-4155552671",
        "ticket #4155552671",
        "ISBN 0306406152 or 978-0-306-40615-7",
        "$4155552671",
        "4155552671.50",
        "0.4155552671",
        "0.30000000000000004",
        "52.52000659999999",
        "1,234,567,890.00",
        "1763200000 and 1763200000000",
        "01.02.2026 10.30",
        "2026-11-15 10-30-45",
        "20261115-103045",
        "15-11-2026 20 30",
        "version 1.2.3.4 at 192.168.100.200",
        "550e8400-e29b-41d4-a716-446655440000",
        "41111111-1111-1111-4155-552671415555",
        "call_4155552671 and rs_020794609580",
        "fc4155552671ab",
    ] {
        stays(text);
    }
}

#[test]
fn a_key_says_what_a_number_is() {
    let redacted = |arguments: &str| {
        let call = Item::function_call("c", "f", arguments);
        let redacted = all().item(&call).unwrap_or(call);
        redacted.arguments().unwrap().into_owned()
    };
    assert_eq!(redacted(r#"{"ssn":"078051120"}"#), r#"{"ssn":"[SSN]"}"#);
    assert_eq!(
        redacted(r#"{"customer_ssn":178051120,"phone":4155552671}"#),
        r#"{"customer_ssn":"[SSN]","phone":"[PHONE]"}"#
    );
    let other = r#"{"order_id":"4155552671","invoiceId":4155552671,"zip":"078051120"}"#;
    assert_eq!(redacted(other), other);
}

#[test]
fn a_pattern_of_yours_sees_the_value_alone() {
    let redaction = Redaction::new().pattern("^[0-9]+$", "[N]").unwrap();
    let call = redaction.item(&Item::function_call("c", "f", r#"{"n":"12"}"#));
    assert_eq!(call.unwrap().arguments().unwrap(), r#"{"n":"[N]"}"#);
}

#[test]
fn text_is_found_wherever_it_hides() {
    let mail = "ann@example.com";
    for item in [
        format!(r#"{{"role":"user","content":"{mail}"}}"#),
        format!(r#"{{"role":"user","content":[{{"type":"input_text","text":"{mail}"}}]}}"#),
        format!(r#"{{"type":"function_call","call_id":"c","name":"f","arguments":"{{\"to\":\"{mail}\"}}"}}"#),
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{\"to\":\"ann\\u0040example.com\"}"}"#.to_owned(),
        format!(r#"{{"type":"function_call_output","call_id":"c","output":"sent to {mail}"}}"#),
        format!(r#"{{"type":"reasoning","id":"r","summary":[{{"type":"summary_text","text":"{mail}"}}]}}"#),
        format!(r#"{{"type":"unknown","deep":{{"deeper":[["{mail}"]]}}}}"#),
        r#"{"role":"user","content":"ann\u0040example.com"}"#.to_owned(),
    ] {
        let item = Item::from_json(item).unwrap();
        let redacted = all().item(&item).unwrap();
        assert!(redacted.as_json().contains("[EMAIL]"), "{redacted:?}");
        assert!(!redacted.as_json().contains("example.com"), "{redacted:?}");
        assert_eq!(redacted.call_id(), item.call_id());
    }
}

#[test]
fn numbers_and_keys_inside_arguments_are_found_and_the_json_stays_json() {
    let arguments = r#"{"to":"ann@x.com","card":4111111111111111,"ann@x.com":1}"#;
    let redacted = all()
        .item(&Item::function_call("c", "f", arguments))
        .unwrap();
    let inner: serde_json::Value = serde_json::from_str(&redacted.arguments().unwrap()).unwrap();
    assert_eq!(
        inner,
        serde_json::json!({"to": "[EMAIL]", "card": "[CARD]", "[EMAIL]": 1})
    );
    let only = all().item(&Item::function_call(
        "c",
        "f",
        r#"{"card":4111111111111111}"#,
    ));
    assert_eq!(only.unwrap().arguments().unwrap(), r#"{"card":"[CARD]"}"#);
}

#[test]
fn records_of_a_summary_are_redacted_one_by_one() {
    let said = Item::user("my card:\n4111111111111111\nann@x.com");
    let record = said.as_json();
    let text = format!("For context:\n<H>\n1. {record}\n2. user: ann@x.com\n</H>");
    let redacted = all().item(&Item::assistant(text)).unwrap();
    assert_eq!(
        redacted.text().unwrap(),
        "For context:\n<H>\n1. {\"role\":\"user\",\"content\":\"my card:\\n[CARD]\\n[EMAIL]\"}\n\
         2. user: [EMAIL]\n</H>"
    );
}

#[test]
fn a_name_is_a_tool_s_on_a_call_and_somebody_s_elsewhere() {
    let redacted = |json: &str| all().item(&Item::from_json(json).unwrap());
    let said = redacted(r#"{"role":"user","name":"ann@x.com","content":"Hi"}"#);
    assert_eq!(
        said.unwrap().as_json(),
        r#"{"role":"user","name":"[EMAIL]","content":"Hi"}"#
    );
    let call = r#"{"type":"mcp_call","name":"ann@x.com"}"#;
    assert_eq!(redacted(call), None);
}

#[test]
fn keys_inside_an_item_are_data_and_its_own_are_not() {
    let item = Item::from_json(
        r#"{"type":"function_call_output","call_id":"c","output":[{"ann@x.com":{"bob@x.com":1}}],"eve@x.com":2}"#,
    );
    assert_eq!(
        all().item(&item.unwrap()).unwrap().as_json(),
        r#"{"type":"function_call_output","call_id":"c","output":[{"[EMAIL]":{"[EMAIL]":1}}],"eve@x.com":2}"#
    );
}

#[test]
fn identifiers_stay() {
    let item = Item::from_json(
        r#"{"type":"function_call","id":"a@b.com","call_id":"078-05-1120","name":"13812345678","arguments":"{}"}"#,
    )
    .unwrap();
    assert_eq!(all().item(&item), None);
}

#[test]
fn long_text_takes_no_longer_than_it_is_long() {
    // Each of these would take minutes were the time quadratic.
    for piece in [
        "1-",
        "1 415 555 ",
        "+1 415 ",
        "a@",
        "a@b.",
        "ssn ",
        "07 ",
        "４１ ",
        "字@",
    ] {
        let text = piece.repeat(50_000);
        all().text(&text);
    }
}

/// 1,000 items, every tenth of which holds an address.
fn some_items() -> Vec<Item> {
    let said = |n: usize| match n % 10 {
        0 => Item::user("I am ann@example.com, ORD-77"),
        1 => Item::function_call(&format!("c{n}"), "lookup", r#"{"order":"1234567890"}"#),
        2 => Item::function_call_output(&format!("c{}", n - 1), "ORD-77 was sent on 2026-11-15"),
        _ => Item::assistant("It is on its way."),
    };
    (0..1000).map(said).collect()
}

#[test]
fn an_item_without_private_data_is_looked_at_once() {
    let items = some_items();
    let look = |redaction: &Redaction| {
        let redacted = || items.iter().filter_map(|item| redaction.item(item)).count();
        looks(|| assert_eq!(redacted(), 100))
    };
    assert_eq!(look(&all()), 1000);
    // Those that hold some are redacted each time; what was found is the same for all of the known sorts.
    assert_eq!(look(&all()), 100);
    assert_eq!(look(&Redaction::new().emails()), 100);
    assert_eq!(look(&Redaction::new().phone_numbers().emails()), 100);
    let ours = || Redaction::new().emails().pattern("secret", "[S]").unwrap();
    let (one, other) = (ours(), ours());
    assert_eq!((look(&one), look(&other)), (1000, 1000));
    assert_eq!((look(&one), look(&other.clone())), (100, 100));
    assert_eq!(look(&all()), 100);
    assert_eq!(
        looks(|| assert_eq!(Redaction::new().item(&items[0]), None)),
        0
    );
}

#[test]
fn what_one_redaction_found_nothing_in_another_looks_at() {
    let item = Item::user("ORD-77 for 4111 1111 1111 1111, ann@example.com");
    let orders = |redaction: Redaction| redaction.pattern(r"ORD-\d+", "[ORDER]").unwrap();
    let names = Redaction::new().pattern("Bob", "[NAME]").unwrap();
    let said = |redaction: &Redaction| {
        redaction
            .item(&item)
            .map(|item| item.text().unwrap().into_owned())
    };
    for _ in 0..2 {
        assert_eq!(said(&names), None);
        assert_eq!(said(&Redaction::new().social_security_numbers()), None);
        let more = orders(names.clone());
        let found = "[ORDER] for 4111 1111 1111 1111, ann@example.com";
        assert_eq!(said(&more).as_deref(), Some(found));
        let found = "ORD-77 for [CARD], ann@example.com";
        assert_eq!(said(&names.clone().card_numbers()).as_deref(), Some(found));
        let ssn = Redaction::new().social_security_numbers();
        assert_eq!(said(&ssn.card_numbers()).as_deref(), Some(found));
        let found = "[ORDER] for [CARD], [EMAIL]";
        assert_eq!(said(&orders(all())).as_deref(), Some(found));
    }
}

#[test]
fn an_item_that_was_changed_is_looked_at_again() {
    let item = Item::function_call("c", "f", "{}");
    let named = Redaction::new().pattern("Bob", "[NAME]").unwrap();
    for redaction in [all(), named] {
        assert_eq!(redaction.item(&item), None);
        let clone = item.clone();
        assert_eq!(looks(|| assert_eq!(redaction.item(&clone), None)), 0);
        let said = r#"{"to":"Bob, ann\u0040example.com"}"#;
        let quoted = serde_json::to_string(said).unwrap();
        let changed = item.with_json_field("arguments", &quoted).unwrap();
        let redacted = redaction.item(&changed).unwrap();
        assert!(redacted.as_json().contains('['), "{redacted:?}");
        // Without its type it is no call, and the name may be a person's.
        let call = Item::function_call("c", "Bob, ann@example.com", "{}");
        assert_eq!(redaction.item(&call), None);
        let changed = call.without_fields(&["type"]);
        assert!(redaction.item(&changed).is_some(), "{changed:?}");
    }
}

#[test]
fn a_chain_of_handoffs_looks_at_what_is_new() {
    let filter: Filter = all().into_filter();
    let redacted = |history: Vec<Item>| {
        let data = HandoffInputData::new(history, vec![], vec![], RunContext::new(()));
        let done = futures_util::FutureExt::now_or_never(filter.apply(data));
        done.unwrap().unwrap().history_items()
    };
    let mut history: Vec<Item> = some_items();
    let mut looked = Vec::new();
    for _ in 0..4 {
        history.push(Item::user("And then?"));
        looked.push(looks(|| {
            history = redacted(history.clone()).iter().cloned().collect()
        }));
    }
    // What was redacted is another item, and looked at once more.
    assert_eq!(looked, [1001, 101, 1, 1]);
}

/// Redactions that differ in every way there is.
fn redaction_of(rules: &[usize]) -> Redaction {
    rules
        .iter()
        .fold(Redaction::new(), |redaction, rule| match rule {
            0 => redaction.card_numbers(),
            1 => redaction.social_security_numbers(),
            2 => redaction.emails(),
            3 => redaction.phone_numbers(),
            4 => redaction.pattern("a", "b").unwrap(),
            5 => redaction.pattern("b", "a").unwrap(),
            6 => redaction.pattern("[0-9]", "@").unwrap(),
            _ => redaction
                .pattern(r"\[(CARD|SSN)\]", "4111111111111111")
                .unwrap(),
        })
}

proptest! {
    #[test]
    fn what_was_seen_before_changes_nothing(
        said in prop::collection::vec(
            "(4111 1111 1111 1111|078-05-1120|a@b\\.com|\\+14155552671|a|b|ssn |1|\\[CARD\\]|\n|\\{\"k\":1\\}| ){0,6}",
            1..5,
        ),
        redactions in prop::collection::vec(prop::collection::vec(0..8_usize, 0..5), 1..6),
        looks in prop::collection::vec((0..5_usize, 0..6_usize, 0..8_usize), 1..30),
    ) {
        let item = |(at, said): (usize, &String)| match at % 3 {
            0 => Item::user(said),
            1 => Item::function_call("c", "f", said),
            _ => Item::function_call_output("c", said),
        };
        let mut items: Vec<Item> = said.iter().enumerate().map(item).collect();
        let redactions: Vec<Redaction> = redactions.iter().map(|rules| redaction_of(rules)).collect();
        for (at, redaction, change) in looks {
            let mut escaped = String::new();
            json::quote_into(&mut escaped, &said[redaction % said.len()]);
            let said = escaped.replace('4', "\\u0034").replace('@', "\\u0040");
            let at = at % items.len();
            let item = &mut items[at];
            match change {
                0 => *item = item.clone(),
                1 => *item = item.with_json_field("content", &said).unwrap(),
                2 => *item = item.with_json_field("x", &format!("[{{{said}:{said}}}]")).unwrap(),
                3 => *item = item.without_fields(&["type", "arguments"]),
                _ => {}
            }
            let redaction = &redactions[redaction % redactions.len()];
            let fresh = Item::from_json(item.as_json()).unwrap();
            prop_assert_eq!(redaction.item(item), redaction.item(&fresh));
        }
    }

    #[test]
    fn what_a_text_has_no_signs_of_is_not_in_it(
        text in "([0-9]{1,7}|[０-９]{1,4}|[-+. @＠]|\\(|\\)|ssn |a|b\\.com|\u{200b}){0,14}",
    ) {
        let signs = Signs::of(&text);
        for rule in &all().rules {
            if !rule.what.may_be_among(signs) {
                prop_assert!(rule.what.places(&text, 0).is_empty());
            }
        }
    }
}
