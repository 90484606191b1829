//! `switchboard replay`, and the demonstration.

use crate::support::Folder;

#[test]
fn what_json_printed_is_shown_as_the_run_was() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "I want a manager", "--json"]);
    folder.write("run.jsonl", &recorded.stdout);
    let run = folder.run(&["run", "team.toml", "I want a manager"]);
    let replayed = folder.run(&["replay", "run.jsonl"]);
    assert_eq!(replayed.without_times(), run.without_times());
    let again = folder.run(&["replay", "run.jsonl", "--json"]);
    assert_eq!(again.stdout, recorded.stdout);
    let piped = folder.run_with_input(&["replay", "-"], &recorded.stdout);
    assert_eq!(piped.stdout, replayed.stdout);
    let in_time = folder.run(&["replay", "run.jsonl", "--speed", "1000"]);
    assert_eq!(in_time.stdout, replayed.stdout);
}

#[test]
fn a_broken_line_is_named_and_the_rest_is_shown() {
    let folder = Folder::new();
    let text = "\
{\"type\":\"message\",\"agent\":\"A\",\"text\":\"One.\",\"at\":0}
{\"type\":\"mess
{\"type\":\"telepathy\",\"at\":1}
{\"type\":\"message\",\"agent\":\"A\",\"text\":\"Two.\",\"at\":2}
";
    folder.write("run.jsonl", text);
    let ran = folder.run(&["replay", "run.jsonl"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(2), "A    One.\nA    Two.\n")
    );
    assert!(
        ran.stderr.starts_with("warning: run.jsonl:2: left out"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("help: mend or delete the line"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_that_is_no_recording_is_not_taken_apart_line_by_line() {
    let folder = Folder::new();
    let ran = folder.run(&["replay", "team.toml"]);
    assert_eq!(
        (ran.code, ran.stderr.lines().count()),
        (Some(2), 2),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("team.toml holds no events of a run"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_command_a_conversation_with_three_handoffs_is_shown() {
    for lang in ["en", "zh"] {
        let folder = Folder::new();
        let ran = folder.run(&["--lang", lang]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(
            folder.run(&["demo", "--lang", lang]).without_times(),
            ran.without_times()
        );
        let events = folder.run(&["demo", "--lang", lang, "--json"]).events();
        let handoffs = events.iter().filter(|event| event["type"] == "handoff");
        assert!(handoffs.count() >= 3);
    }
}

#[test]
fn the_picture_in_the_readme_shows_the_demonstration_as_it_is() {
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo.svg");
    let picture = std::fs::read_to_string(picture).unwrap();
    let events = Folder::new().run(&["demo", "--json"]).events();
    for event in events {
        let shown = match event["type"].as_str().unwrap() {
            "run_started" => event["message"].as_str().unwrap().to_owned(),
            "handoff" => format!(">{}<", event["to"].as_str().unwrap()),
            "tool_called" => format!("{}(", event["tool"].as_str().unwrap()),
            _ => continue,
        };
        assert!(picture.contains(&shown), "record it again: {shown}");
    }
}
