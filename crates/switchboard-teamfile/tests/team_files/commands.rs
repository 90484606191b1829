//! Tools that start programs.

#![cfg(unix)]

use std::time::{Duration, Instant};

use super::{output, with_tool};

const ONE: &str = "parameters = { properties = { a = {} } }\n";

fn command(command: &str) -> String {
    with_tool(&format!("{ONE}command = {{ {command} }}"))
}

#[tokio::test]
async fn what_a_model_sends_stays_within_its_argument() {
    let text = command(r#"run = ["printf", "<%s>", "x{a}y", "{context.customer}"]"#);
    for (a, told) in [
        ("1", "<x1y><C-1>"),
        ("; rm -rf / #", "<x; rm -rf / #y><C-1>"),
        (
            "$(id) `id` && id | id > f",
            "<x$(id) `id` && id | id > fy><C-1>",
        ),
        ("two words\nand a line", "<xtwo words\nand a liney><C-1>"),
        ("--option", "<x--optiony><C-1>"),
        ("{context.customer}", "<x{context.customer}y><C-1>"),
    ] {
        let arguments = serde_json::json!({ "a": a }).to_string();
        assert_eq!(output(&text, &arguments).await, told);
    }
}

#[tokio::test]
async fn what_a_model_sends_is_no_option() {
    let text = command(r#"run = ["printf", "{a}"]"#);
    let told = output(&text, r#"{"a":"--help"}"#).await;
    assert!(told.contains(r#""a" cannot begin with -"#), "{told}");
    let told = output(&text, r#"{"a":"a\u0000b"}"#).await;
    assert!(told.contains(r#""a" cannot hold a zero byte"#), "{told}");
    let told = output(&text, "{}").await;
    assert!(told.contains(r#""a" is missing"#), "{told}");
}

#[tokio::test]
async fn a_program_reads_what_it_is_given_and_gets_only_the_variables_named() {
    let text = command(r#"run = ["cat"], stdin = "for {a}""#);
    assert_eq!(output(&text, r#"{"a":"you"}"#).await, "for you");
    let text = command(r#"run = ["env"], env = ["TOKEN", "NOT_SET"]"#);
    let told = output(&text, "{}").await;
    let mut names: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["PATH", "TOKEN"]);
}

#[tokio::test]
async fn failures_are_told_with_what_the_program_said() {
    let text = command(r#"run = ["sh", "-c", "echo out; echo no such account >&2; exit 3"]"#);
    let told = output(&text, "{}").await;
    assert!(
        told.contains("sh failed with exit status: 3: no such account"),
        "{told}"
    );
    let text = command(r#"run = ["./missing"]"#);
    let told = output(&text, "{}").await;
    assert!(told.contains("./missing cannot be started: "), "{told}");
}

#[tokio::test]
async fn more_than_may_be_shown_is_cut_and_the_program_ended() {
    // Both pipes are flooded; a program that nobody reads from would wait for ever.
    let flood = r#"run = ["sh", "-c", "yes é >&2 & yes 界"]"#;
    let text = with_tool(&format!(
        "{ONE}command = {{ {flood} }}\nmax_output_bytes = 10\ntimeout_seconds = 60"
    ));
    let told = output(&text, "{}").await;
    assert_eq!(told, "界\n界\n\n[cut after 10 bytes]");
}

#[tokio::test]
async fn time_ends_a_program_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!("(sleep 2; touch {0}) & sleep 60", mark.display());
    let text = with_tool(&format!(
        "{ONE}command = {{ run = [\"sh\", \"-c\", {script:?}] }}\ntimeout_seconds = 0.3"
    ));
    let started = Instant::now();
    let told = output(&text, "{}").await;
    assert!(told.contains("timed out"), "{told}");
    assert!(started.elapsed() < Duration::from_secs(50));
    // Were the inner program alive, it would leave its mark.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!mark.exists());
}
