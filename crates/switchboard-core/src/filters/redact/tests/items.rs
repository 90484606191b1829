//! Tests of the parts of items that are searched, and of JSON.

use super::*;

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
        redacted(r#"{"phones":{"home":"5550132"},"orders":{"first":"4155552671"}}"#),
        r#"{"phones":{"home":"[PHONE]"},"orders":{"first":"4155552671"}}"#
    );
    assert_eq!(
        redacted(r#"{"payment":{"number":4111111111111111}}"#),
        r#"{"payment":{"number":"[CARD]"}}"#
    );
    let other = r#"{"passport":{"issued":"20261118"},"order":{"number":"4155552671"}}"#;
    assert_eq!(redacted(other), other);
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

#[test]
fn a_card_of_an_order_is_a_card() {
    let call =
        |value: &str| Item::function_call("c", "f", &format!("{{\"order_card_number\":{value}}}"));
    assert_eq!(
        all().item(&call("4111111111111111")),
        Some(call("\"[CARD]\""))
    );
    let order = Item::function_call("c", "f", r#"{"card_order":4111111111111111}"#);
    assert_eq!(all().item(&order), None);
}
