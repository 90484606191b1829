//! Tools that look up records.

use super::call_output;

#[tokio::test]
async fn a_record_is_found_by_name_without_suggesting_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("invoices.json"),
        r#"{ "INV-7": "Paid.", "INV-8": { "due": "5 May", "amount": 3 } }"#,
    )
    .unwrap();
    let file = folder.path().join("invoices.json");
    let text = super::with_tool(&format!(
        "parameters = {{ properties = {{ number = {{ type = 'string' }} }} }}\n\
         records = {{ file = {:?}, by = 'number', outside = true }}",
        file.display().to_string()
    ));
    for (arguments, expected) in [
        (r#"{"number":"INV-7"}"#, "Paid."),
        (r#"{"number":" inv-7 "}"#, "Paid."),
        (r#"{"number":"INV-8"}"#, r#"{"due":"5 May","amount":3}"#),
        (r#"{"number":"INV-9"}"#, r#"There is no record "INV-9"."#),
    ] {
        assert_eq!(call_output(&text, arguments).await, expected);
    }
    let missing = call_output(&text, "{}").await;
    assert!(missing.contains(r#""number" is missing"#), "{missing}");
}
