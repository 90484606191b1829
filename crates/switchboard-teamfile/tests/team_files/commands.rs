//! Tools that run commands.

#![cfg(unix)]

use std::time::{Duration, Instant};

use super::{call_output, with_tool};

const ONE: &str = "parameters = { properties = { a = {} } }\n";

fn command(command: &str) -> String {
    with_tool(&format!("{ONE}command = {{ {command} }}"))
}

#[tokio::test]
async fn values_stay_within_their_argument() {
    let text = command(r#"run = ["printf", "<%s>", "x{a}y", "{context.customer}"]"#);
    for (a, expected) in [
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
        assert_eq!(call_output(&text, &arguments).await, expected);
    }
}

#[tokio::test]
async fn a_value_within_a_path_cannot_lead_to_another_folder() {
    let refused = |argument: &str, value: &str| {
        let text = command(&format!(r#"run = ["printf", "%s", "{argument}"]"#));
        let arguments = serde_json::json!({ "a": value }).to_string();
        async move { call_output(&text, &arguments).await }
    };
    for (argument, value, problem) in [
        (
            "notes/{a}.txt",
            "../../etc/passwd",
            "cannot lead to another folder",
        ),
        ("notes/{a}.txt", "b/c", "cannot hold / or \\ within a path"),
        ("notes/{a}", "..", "cannot lead to another folder"),
        ("notes/{a}", "", "is empty"),
        ("{a}.txt", "/etc/passwd", "cannot lead to another folder"),
        ("--file=notes/{a}", "..", "cannot lead to another folder"),
        ("a={a}", "../x", "cannot lead to another folder"),
        ("a={a}", "/etc/passwd", "cannot lead to another folder"),
        ("a={a}", "", "is empty"),
        ("notes/.{a}", ".", "cannot lead to another folder"),
        ("notes/{a}{a}", ".", "cannot lead to another folder"),
        ("notes/{a}", "%2e%2E", "cannot lead to another folder"),
        ("notes/{a}", "b%2Fc", "cannot hold / or \\ within a path"),
        ("http://h/{a}", "..", "cannot lead to another folder"),
        ("http://h/{a}", "", "is empty"),
        (
            "s3://b/{a}",
            "x?y",
            "can hold only letters, digits and -._~ within an address",
        ),
        (
            "http://h/#{a}",
            "x/y",
            "can hold only letters, digits and -._~ within an address",
        ),
    ] {
        let output = refused(argument, value).await;
        assert!(output.contains(problem), "{argument} {value}: {output}");
    }
    for (argument, value, expected) in [
        ("notes/{a}.txt", "monday", "notes/monday.txt"),
        ("{a}", "../any", "../any"),
        ("--file={a}", "../any", "--file=../any"),
        ("chat: {a}", "and/or", "chat: and/or"),
        ("chat: {a}", "/start", "chat: /start"),
        ("http://h/{a}", "a?b#c", "http://h/a%3Fb%23c"),
        (
            "--url=HTTP://h/x?q={a}&l=1",
            "1&l=2",
            "--url=http://h/x?q=1%26l%3D2&l=1",
        ),
        ("http://h/{a}", "%2e%2e", "http://h/%252e%252e"),
        ("../notes/{a}", "x", "../notes/x"),
    ] {
        assert_eq!(refused(argument, value).await, expected);
    }
}

#[tokio::test]
async fn values_cannot_be_options() {
    let text = command(r#"run = ["printf", "{a}"]"#);
    let output = call_output(&text, r#"{"a":"--help"}"#).await;
    assert!(
        output.contains(r#""a" cannot begin with - or @"#),
        "{output}"
    );
    let output = call_output(&text, r#"{"a":"a\u0000b"}"#).await;
    assert!(
        output.contains(r#""a" cannot hold a zero byte"#),
        "{output}"
    );
    let output = call_output(&text, "{}").await;
    assert!(output.contains(r#""a" is missing"#), "{output}");
}

#[tokio::test]
async fn a_program_gets_its_input_and_only_the_listed_variables() {
    let text = command(r#"run = ["cat"], stdin = "for {a}""#);
    assert_eq!(call_output(&text, r#"{"a":"you"}"#).await, "for you");
    let text = command(r#"run = ["env"], env = ["TOKEN", "NOT_SET"]"#);
    let output = call_output(&text, "{}").await;
    let mut names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["PATH", "TOKEN"]);
}

#[tokio::test]
async fn failures_include_the_standard_error() {
    let text = command(r#"run = ["sh", "-c", "echo out; echo no such account >&2; exit 3"]"#);
    let output = call_output(&text, "{}").await;
    assert!(
        output.contains("sh failed with exit status: 3: no such account"),
        "{output}"
    );
    let text = command(r#"run = ["./missing"]"#);
    let output = call_output(&text, "{}").await;
    assert!(output.contains("./missing cannot be started: "), "{output}");
}

#[tokio::test]
async fn too_long_an_output_is_cut_and_the_program_killed() {
    // Both pipes are flooded: the program blocks unless both are read.
    let flood = r#"run = ["sh", "-c", "yes é >&2 & yes 界"]"#;
    let text = with_tool(&format!(
        "{ONE}command = {{ {flood} }}\nmax_output_bytes = 10\ntimeout_seconds = 60"
    ));
    let output = call_output(&text, "{}").await;
    assert_eq!(output, "界\n界\n\n[cut after 10 bytes]");
}

#[tokio::test]
async fn a_timeout_kills_the_program_and_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!("(sleep 2; touch {0}) & sleep 60", mark.display());
    let text = with_tool(&format!(
        "{ONE}command = {{ run = [\"sh\", \"-c\", {script:?}] }}\ntimeout_seconds = 0.3"
    ));
    let started = Instant::now();
    let output = call_output(&text, "{}").await;
    assert!(output.contains("timed out"), "{output}");
    assert!(started.elapsed() < Duration::from_secs(50));
    // The inner program would create the file if it were alive.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn children_are_killed_when_the_program_ends() {
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
        assert_eq!(call_output(&text, "{}").await, "done\n");
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_program_is_found_relative_to_the_team_file() {
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
    let team = file.open_options().model_handle(model).open().unwrap();
    let result = team.runner().run("Go").await.unwrap();
    let output: Vec<_> = result
        .new_items()
        .iter()
        .filter_map(|item| Some(item.item().output()?.into_owned()))
        .collect();
    assert_eq!(output, [format!("run in {}\n", relative.display())]);
}

#[tokio::test]
async fn input_with_a_missing_argument_fails() {
    let text = command(r#"run = ["cat"], stdin = "refund because {a}""#);
    let output = call_output(&text, "{}").await;
    assert!(output.contains(r#""a" is missing"#), "{output}");
}

/// The problem of this code that a team with such a command has.
fn problem(code: &str, command: &str) -> Option<String> {
    let text = format!(
        "[commands]\nallow = ['sh', 'env', 'python3.12', 'ssh', 'awk', 'ls', '/bin/bash', 'node', 'curl']\n\
         [agents.A]\ntools = ['t']\n[tools.t]\ndescription = 'd'\n{ONE}command = {{ {command} }}"
    );
    let problems = switchboard_teamfile::TeamFile::parse(&text, "team.toml").err()?;
    let mut of_code = problems.iter().filter(|problem| problem.code == code);
    of_code.next().map(|problem| problem.message.clone())
}

#[test]
fn no_value_chooses_the_server_of_an_address() {
    for argument in [
        "http://{a}/",
        "https://{a}.example.com/",
        "http://h{a}/",
        "http://h:{a}/",
        "http://{a}@h/",
        "http:{a}",
        "http:/{a}/x",
        "http:///{a}/x",
        "http:\\\\\\\\{a}",
        "HTTP://{a}/",
        "http{a}://h/",
        "{a}://h/",
        " http://{a}/",
        "http://{a}/x y",
        "see 'http://{a}/'",
        "url:http://{a}/",
        "x,http://{a}/",
        "ftp://{a}/x",
        "s3://{a}/x",
        "--url=http://{a}/",
        "-H=Referer: http://{a}/",
    ] {
        let command = format!("run = [\"curl\", \"{argument}\"]");
        let told = problem("bad-url", &command).unwrap_or_default();
        assert!(told.starts_with("the server's name"), "{argument}: {told}");
    }
    for argument in [
        "http://h/{a}",
        "http://h?q={a}",
        "http://h#{a}",
        "see http://h {a}",
        "see \\\"http://h\\\" or {a}",
        "file:///data/{a}",
        "sftp:{a}",
        "http: {a}",
        "--url={a}",
        "{a}",
    ] {
        let command = format!("run = [\"curl\", \"{argument}\"]");
        assert_eq!(problem("bad-url", &command), None, "{argument}");
    }
    // It would be a part of the option as well.
    for argument in ["-uhttp://{a}/", "-uhttp://h/{a}", "-o./{a}", "--x y{a}"] {
        let command = format!("run = [\"curl\", \"{argument}\"]");
        assert!(problem("bad-tool", &command).is_some(), "{argument}");
    }
}

#[test]
fn values_cannot_be_code() {
    let wrong = |command: &str| problem("bad-tool", command);
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
        let output = wrong(command).unwrap_or_default();
        assert!(
            output.starts_with("an argument of the model would be part of"),
            "{command}: {output}"
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
