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
    assert!(told.contains(r#""a" cannot begin with - or @"#), "{told}");
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

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    // One that holds the output open, one that does not.
    for redirect in ["", ">/dev/null 2>&1"] {
        let script = format!(
            "(sleep 2; touch {0}) {redirect} & echo done",
            mark.display()
        );
        let text = with_tool(&format!(
            "{ONE}command = {{ run = [\"sh\", \"-c\", {script:?}] }}\ntimeout_seconds = 60"
        ));
        assert_eq!(output(&text, "{}").await, "done\n");
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_program_beside_the_team_file_is_started_from_wherever_one_is() {
    use std::os::unix::fs::PermissionsExt as _;

    let here = std::env::current_dir().unwrap();
    let folder = tempfile::tempdir_in(&here).unwrap();
    let script = folder.path().join("here.sh");
    std::fs::write(&script, "#!/bin/sh\necho \"$1 in $(basename \"$PWD\")\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = command(r#"run = ["./here.sh", "{a}"]"#);
    // A path that is not absolute, as people write it.
    let relative = folder.path().strip_prefix(&here).unwrap();
    let file = switchboard_teamfile::TeamFile::parse(&text, relative.join("team.toml")).unwrap();
    let model = switchboard_core::testing::ScriptedModel::new()
        .call("t", r#"{"a":"run"}"#)
        .say("Done.");
    let team = file.opening().model_handle(model).open().unwrap();
    let result = team.runner().run("Go").await.unwrap();
    let told: Vec<_> = result
        .new_items()
        .iter()
        .filter_map(|item| Some(item.item().output()?.into_owned()))
        .collect();
    assert_eq!(told, [format!("run in {}\n", relative.display())]);
}

#[tokio::test]
async fn input_whose_argument_is_absent_is_not_left_out() {
    let text = command(r#"run = ["cat"], stdin = "refund because {a}""#);
    let told = output(&text, "{}").await;
    assert!(told.contains(r#""a" is missing"#), "{told}");
}

#[test]
fn what_a_model_sends_is_no_code() {
    let wrong = |command: &str| {
        let text = format!(
            "[commands]\nallow = ['sh', 'env', 'python3.12', 'ssh', 'awk', 'ls', '/bin/bash', 'node']\n\
             [agents.A]\ntools = ['t']\n[tools.t]\ndescription = 'd'\n{ONE}command = {{ {command} }}"
        );
        match switchboard_teamfile::TeamFile::parse(&text, "team.toml") {
            Ok(_) => None,
            Err(problems) => problems
                .iter()
                .find(|problem| problem.code == "bad-tool")
                .map(|problem| problem.message.clone()),
        }
    };
    for command in [
        r#"run = ["sh", "-c", "echo {a}"]"#,
        r#"run = ["/bin/bash", "-lc", "echo {a}"]"#,
        r#"run = ["env", "X=1", "sh", "-c", "echo {a}"]"#,
        r#"run = ["python3.12", "-c", "print('{a}')"]"#,
        r#"run = ["node", "--eval", "{a}"]"#,
        r#"run = ["node", "--eval={a}"]"#,
        r#"run = ["/bin/bash", "-c", "--", "echo {a}"]"#,
        r#"run = ["python3.12", "-cprint('{a}')"]"#,
        r#"run = ["awk", "/{a}/"]"#,
        r#"run = ["ssh", "host", "ls {a}"]"#,
        r#"run = ["sh"], stdin = "echo {a}""#,
        r#"run = ["python3.12", "-"], stdin = "print({a})""#,
        r#"run = ["ls", "-{a}"]"#,
        r#"run = ["ls", "--{a}"]"#,
        r#"run = ["ls", "-l{a}"]"#,
    ] {
        let told = wrong(command).unwrap_or_default();
        assert!(
            told.starts_with("what a model sends would be part of"),
            "{command}: {told}"
        );
    }
    for command in [
        r#"run = ["sh", "-c", 'echo "$1"', "sh", "{a}"]"#,
        r#"run = ["sh", "./script.sh", "{a}"]"#,
        r#"run = ["python3.12", "script.py", "{a}"], stdin = "{a}""#,
        r#"run = ["ls", "--sort={a}", "--", "x{a}"]"#,
    ] {
        assert_eq!(wrong(command), None, "{command}");
    }
}
