//! Tests of which data is redacted, and of which items are searched again.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::context::RunContext;
use crate::handoff::HandoffInputData;

thread_local! {
    pub(super) static SEARCHED_ITEMS: Cell<usize> = const { Cell::new(0) };
    pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the items that are searched while `work` runs.
fn count_searches(work: impl FnOnce()) -> usize {
    let before = SEARCHED_ITEMS.get();
    work();
    SEARCHED_ITEMS.get() - before
}

fn only_patterns() -> Redaction {
    Redaction::new().only([])
}

fn emails() -> Redaction {
    Redaction::new().only([Pii::Email])
}

fn all() -> Redaction {
    Redaction::new()
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

#[rustfmt::skip]
const PHONE_NUMBERS: [&str; 28] = [
    "+44 20 7946 0958", "+1 (415) 555-2671", "(415) 555-2671", "415.555.2671",
    "415\u{a0}555\u{a0}2671", "１-415-555-2671", "4155552671", "415-5552671", "415 5552671",
    "(415) 5552671", "1-415-5552671", "14155552671", "12125552671", "020 7946 0958",
    "(020) 7946 0958", "01632 960 001", "01 23 45 67 89", "03-1234-5678", "0755-12345678",
    "010-8888 8888", "0044 20 7946 0958", "07700900123", "13812345678", "138 1234 5678",
    "138-1234-5678", "１３８１２３４５６７８", "8613812345678", "\u{202a}+86 138 1234 5678\u{202c}",
];

#[test]
fn phone_numbers_are_found() {
    for number in PHONE_NUMBERS {
        let redacted = all().text(number).replace('\u{202a}', "");
        assert_eq!(redacted, "[PHONE]", "of {number:?}");
    }
    becomes("手机13812345678，谢谢", "手机[PHONE]，谢谢");
    becomes("415-555-2671,415-555-2672", "[PHONE],[PHONE]");
    becomes("tel-4155552671", "tel-[PHONE]");
    becomes("+1 415 555 2671 415 555 2672", "[PHONE] [PHONE]");
    becomes("Call me at 4155552671.", "Call me at [PHONE].");
    becomes("order 7, phone #4155552671", "order 7, phone #[PHONE]");
}

#[rustfmt::skip]
const OTHER_NUMBERS: [&str; 31] = [
    "card 4111-1111-1111-1112", "order 12345, 3 items, 2026-11-15", "order 1234567890",
    "order 4155552671", "order 415-5552671", "ORD-415-5552671", "112-4155552-6711234",
    "415.5552671", "Order no. 4155552671", "invoice_id=4155552671", "订单号4155552671",
    "/orders/4155552671", "ORD-4155552671", "ticket #4155552671",
    "ISBN 0306406152 or 978-0-306-40615-7", "$4155552671", "4155552671.50", "0.4155552671",
    "0.30000000000000004", "52.52000659999999", "1,234,567,890.00", "1763200000 and 1763200000000",
    "01.02.2026 10.30", "2026-11-15 10-30-45", "20261115-103045", "15-11-2026 20 30",
    "version 1.2.3.4 at 192.168.100.200", "550e8400-e29b-41d4-a716-446655440000",
    "41111111-1111-1111-4155-552671415555", "call_4155552671 and rs_020794609580", "fc4155552671ab",
];

#[test]
fn other_numbers_stay() {
    OTHER_NUMBERS.into_iter().for_each(stays);
}

#[test]
fn a_key_tells_what_a_number_is() {
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
fn the_key_around_a_number_tells_what_it_is() {
    let redacted = |arguments: &str| {
        let call = Item::function_call("c", "f", arguments);
        let redacted = all().item(&call).unwrap_or(call);
        redacted.arguments().unwrap().into_owned()
    };
    assert_eq!(
        redacted(r#"{"passport":{"number":"GA302922"},"phones":[{"value":5550132}]}"#),
        r#"{"passport":{"number":"[PASSPORT]"},"phones":[{"value":"[PHONE]"}]}"#
    );
    assert_eq!(
        redacted(r#"{"payment":{"number":4111111111111111}}"#),
        r#"{"payment":{"number":"[CARD]"}}"#
    );
    let other = r#"{"passport":{"issued":"20261118"},"order":{"number":"4155552671"}}"#;
    assert_eq!(redacted(other), other);
}

#[test]
fn a_word_before_an_identifier_names_all_of_it() {
    stays("doi:10.1000/182.2026.1118");
    stays("10.1000/182.2026.1118");
    stays("invoice 2026-A/4155552671");
    becomes("030-1234567/0171-1234567", "[PHONE]/[PHONE]");
    becomes("home 4155552671/4155552672", "home [PHONE]/[PHONE]");
    becomes("415-555-2671(h)/415-555-2672(w)", "[PHONE](h)/[PHONE](w)");
}

#[test]
fn the_second_of_two_phones_is_no_path() {
    becomes("Tel:030-1234567/0171-1234567", "Tel:[PHONE]/[PHONE]");
    becomes("Tel.030-1234567/0171-1234567", "Tel.[PHONE]/[PHONE]");
    becomes("电话:13800138000/13900139000", "电话:[PHONE]/[PHONE]");
    becomes("电话13800138000/13900139000", "电话[PHONE]/[PHONE]");
    stays("doi:10.1000/4155552671");
    stays("invoice:A-2026/4155552671");
    stays("GET /пользователи/4155552671");
}

#[test]
fn a_compound_with_a_word_for_phone_means_a_phone() {
    for words in [
        "휴대전화번호: ",
        "집전화번호 ",
        "비상연락번호: ",
        "사무실번호 ",
        "自宅電話番号 ",
        "固定電話番号：",
        "勤務先電話番号 ",
        "緊急連絡先電話番号 ",
        "ファックス番号 ",
        "Diensttelefonnummer: ",
        "Privathandynummer ",
        "Telefaxnummer ",
        "Notfallnummer: ",
    ] {
        for number in ["010-1234-5678", "03-1234-5678", "030 1234567", "5550132"] {
            becomes(&format!("{words}{number}"), &format!("{words}[PHONE]"));
        }
    }
    stays("Immobiliennummer: 0171234567");
    stays("Automobilnummer: 0171234567");
    stays("緊急注文番号 0312345678");
}

#[test]
fn a_compound_with_a_word_for_card_hides_a_number_of_json() {
    for key in [
        "카드번호",
        "신용카드번호",
        "クレジットカード番号",
        "信用卡番號",
        "Kreditkartennummer",
        "kredittkortnummer",
        "kontokortsnummer",
    ] {
        let call = |number: &str| Item::function_call("c", "f", &format!("{{\"{key}\":{number}}}"));
        assert_eq!(
            all().item(&call("4111111111111111")),
            Some(call("\"[CARD]\"")),
            "of {key:?}"
        );
    }
    let other = Item::function_call("c", "f", r#"{"Vorgangsnummer":4111111111111111}"#);
    assert_eq!(all().item(&other), None);
}

#[test]
fn the_codes_of_currencies_that_are_words_count_in_capitals_only() {
    for code in ["TRY", "PHP", "COP", "RON", "ILS"] {
        stays(&format!("415-555-2671 {code}"));
    }
    stays("4155552671 eur");
    becomes(
        "call me on 415-555-2671 try after five",
        "call me on [PHONE] try after five",
    );
    becomes("415-555-2671 Ron will answer", "[PHONE] Ron will answer");
    becomes(
        "appelez 0612345678 ils sont là",
        "appelez [PHONE] ils sont là",
    );
}

#[test]
fn a_name_may_have_an_ampersand() {
    becomes("smith&jones@example.com", "[EMAIL]");
    becomes("/leave?a=1&ann@example.com", "/leave?a=1&[EMAIL]");
    becomes("a=1&ann@example.com", "a=1&[EMAIL]");
}

#[test]
fn a_number_that_counts_something_is_no_phone() {
    stays("7 of 4155552671");
    stays("1073741824 of 4294967296");
    stays("more than 4155552671");
    stays("is greater  than 4155552671");
    becomes(
        "ask Ann rather than 4155552671",
        "ask Ann rather than [PHONE]",
    );
    becomes("<b>4155552671</b>", "<b>[PHONE]</b>");
    becomes("a friend of 4155552671", "a friend of [PHONE]");
}

#[test]
fn some_words_name_a_number_only_right_before_it() {
    stays("reservation 4155552671");
    stays("Vorgangsnummer: 0171234567");
    stays("チケット番号 0312345678");
    stays("예약번호 01012345678");
    stays("提货码 13800138000");
    stays("error 4155552671 at line 33");
    stays("GET /users/4155552671");
    becomes(
        "a reservation for Ann, 4155552671",
        "a reservation for Ann, [PHONE]",
    );
    becomes("I got an error, 4155552671", "I got an error, [PHONE]");
    becomes("send requests to 4155552671", "send requests to [PHONE]");
    becomes("Rufnummer 01712345678", "Rufnummer [PHONE]");
    becomes("電話番号 0312345678", "電話番号 [PHONE]");
    becomes("手机号码13800138000", "手机号码[PHONE]");
    becomes(
        "passport, document number B1234567",
        "passport, document number [PASSPORT]",
    );
}

#[test]
fn resident_ids_are_found_in_any_groups() {
    for id in [
        "110105 19491231 002X",
        "110105-1949-1231-002X",
        "110 105 1949 1231 002x",
        "1101 0519 4912 3100 2X",
    ] {
        becomes(id, "[RESIDENT_ID]");
    }
    stays("110105 19491231 0021");
    stays("110105, 19491231, 002X");
}

#[test]
fn the_at_sign_has_names_in_many_languages() {
    becomes("luis arroba example.es", "[EMAIL]");
    becomes("pierre [arobase] example [point] fr", "[EMAIL]");
    becomes("mario chiocciola example punto it", "[EMAIL]");
    becomes("ann&#x40;example.com", "[EMAIL]");
    stays("an arroba of wheat, ann at example.com");
    stays("I will at some point email you, at some point online");
    becomes("ANN DOT LEE AT EXAMPLE DOT COM", "[EMAIL]");
}

#[test]
fn words_for_passport_are_known_in_many_languages() {
    for words in [
        "Paß-Nr.",
        "hộ chiếu số",
        "číslo pasu",
        "პასპორტის ნომერი",
        "vegabréf",
    ] {
        let text = format!("{words} B1234567");
        becomes(&text, &format!("{words} [PASSPORT]"));
    }
}

#[test]
fn the_address_of_a_page_is_no_part_of_an_email_address() {
    becomes(
        "https://shop.example/leave?list=7&user=ann@example.com&x=1",
        "https://shop.example/leave?list=7&user=[EMAIL]&x=1",
    );
    becomes("/leave?ann@example.com", "/leave?[EMAIL]");
}

#[test]
fn a_pattern_sees_the_value_without_its_key() {
    let redaction = only_patterns().pattern("^[0-9]+$", "[N]").unwrap();
    let call = redaction.item(&Item::function_call("c", "f", r#"{"n":"12"}"#));
    assert_eq!(call.unwrap().arguments().unwrap(), r#"{"n":"[N]"}"#);
}

#[test]
fn text_is_found_in_every_part_of_an_item() {
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
    let number = Item::function_call("c", "f", r#"{"card":4111111111111111}"#);
    let redacted = all().item(&number).unwrap();
    assert_eq!(redacted.arguments().unwrap(), r#"{"card":"[CARD]"}"#);
}

#[test]
fn records_of_a_summary_are_redacted_one_by_one() {
    let item = Item::user("my card:\n4111111111111111\nann@x.com");
    let record = item.as_json();
    let text = format!("For context:\n<H>\n1. {record}\n2. user: ann@x.com\n</H>");
    let redacted = all().item(&Item::assistant(text)).unwrap();
    assert_eq!(
        redacted.text().unwrap(),
        "For context:\n<H>\n1. {\"role\":\"user\",\"content\":\"my card:\\n[CARD]\\n[EMAIL]\"}\n\
         2. user: [EMAIL]\n</H>"
    );
}

#[test]
fn the_name_of_a_tool_stays_and_the_name_of_a_person_does_not() {
    let redacted = |json: &str| all().item(&Item::from_json(json).unwrap());
    let redacted_message = redacted(r#"{"role":"user","name":"ann@x.com","content":"Hi"}"#);
    assert_eq!(
        redacted_message.unwrap().as_json(),
        r#"{"role":"user","name":"[EMAIL]","content":"Hi"}"#
    );
    let call = r#"{"type":"mcp_call","name":"ann@x.com"}"#;
    assert_eq!(redacted(call), None);
}

#[test]
fn keys_inside_a_field_are_redacted_and_field_names_are_not() {
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
        550e8400-|{\"a\":|call |订单 1|电话";
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
