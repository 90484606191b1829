//! `switchboard replay`, and the demo.

use crate::support::Folder;

#[test]
fn a_recorded_run_is_shown_as_the_run_was() {
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
fn a_recording_that_was_cut_is_told_as_such() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "I want a manager", "--json"]);
    let lines: Vec<&str> = recorded.stdout.lines().collect();
    let whole_lines = lines[..lines.len() - 1].join("\n") + "\n";
    let within_line = &recorded.stdout[..recorded.stdout.len() - 20];
    for (text, reason) in [
        (whole_lines.as_str(), "it ends before its last run does"),
        (within_line, "it ends within a line"),
    ] {
        folder.write("run.jsonl", text);
        let ran = folder.run(&["replay", "run.jsonl"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.stderr, format!("warning: run.jsonl is cut: {reason}\n"));
        assert!(ran.stdout.contains("→ Manager"), "{ran:?}");
    }
}

#[test]
fn a_recording_without_its_beginning_is_told_as_such() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "I want a manager", "--json"]);
    let lines: Vec<&str> = recorded.stdout.lines().collect();
    for first in [1, 3, lines.len() - 1] {
        folder.write("run.jsonl", &(lines[first..].join("\n") + "\n"));
        let reason = "run.jsonl is cut: the beginning of a run is missing\n";
        let ran = folder.run(&["replay", "run.jsonl"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.stderr, format!("warning: {reason}"));
        let args = ["test", "team.toml", "cases.toml", "--record", "run.jsonl"];
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&format!("error: {reason}")), "{ran:?}");
        assert!(!ran.stderr.contains("guardrail"), "{ran:?}");
    }
}

#[test]
fn a_recording_that_lacks_its_middle_is_told_as_such() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "I want a manager", "--json"]);
    let begun: Vec<&str> = recorded.stdout.lines().take(8).collect();
    folder.write(
        "run.jsonl",
        &format!("{}\n{}", begun.join("\n"), recorded.stdout),
    );
    let reason = "run.jsonl is cut: the end of a run is missing\n";
    let ran = folder.run(&["replay", "run.jsonl"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stderr, format!("warning: {reason}"));
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--record", "run.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(&format!("error: {reason}")), "{ran:?}");
    assert!(!folder.path("cases.toml").exists());
}

#[test]
fn a_recording_of_a_newer_version_is_an_error() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "Hi", "--json"]).stdout;
    assert!(recorded.contains("\"version\":1"), "{recorded}");
    folder.write(
        "run.jsonl",
        &recorded.replace("\"version\":1", "\"version\":2"),
    );
    for args in [
        &["replay", "run.jsonl"][..],
        &["test", "team.toml", "cases.toml", "--record", "run.jsonl"],
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(
            ran.stderr
                .starts_with("error: run.jsonl was recorded by a newer version of switchboard"),
            "{ran:?}"
        );
    }
}

#[test]
fn an_invalid_line_is_named_and_the_rest_is_shown() {
    let folder = Folder::new();
    let text = r#"{"type":"run_started","agent":"A","turn":0,"version":1,"agents":["A"],"at":0}
{"type":"text_delta","agent":"A","turn":1,"item":"m1","text":"One.","at":0}
{"type":"mess
{"type":"telepathy","agent":"A","turn":1,"at":1}
{"type":"text_delta","agent":"A","turn":1,"item":"m2","text":"Two.","at":2}
{"type":"run_failed","agent":"A","turn":1,"error":"model","message":"no answer","turns":1,"usage":{}}
"#;
    folder.write("run.jsonl", text);
    let ran = folder.run(&["replay", "run.jsonl"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(2), "A    One.\nA    Two.\nerror: no answer\n")
    );
    assert!(
        ran.stderr.starts_with("warning: run.jsonl:3: left out"),
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
fn a_recording_of_an_older_version_is_an_error() {
    let folder = Folder::new();
    let text = r#"{"type":"run_started","team":"team.toml","agents":[],"agent":"A","model":"offline","message":"Hi","at":0}"#;
    folder.write("run.jsonl", text);
    let ran = folder.run(&["replay", "run.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr
            .starts_with("error: run.jsonl was recorded by an older version of switchboard\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_that_is_not_a_recording_has_one_error() {
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
fn the_picture_in_the_readme_shows_the_current_demo() {
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo.svg");
    let picture = std::fs::read_to_string(picture).unwrap();
    let events = Folder::new().run(&["demo", "--json"]).events();
    for event in events {
        let shown = match event["type"].as_str().unwrap() {
            "run_started" | "input_passed" => match event["input"].as_str() {
                Some(input) => input.to_owned(),
                None => continue,
            },
            "handoff" => format!(">{}<", event["to"].as_str().unwrap()),
            "tool_started" => format!("{}(", event["tool"].as_str().unwrap()),
            _ => continue,
        };
        assert!(picture.contains(&shown), "record it again: {shown}");
    }
}
