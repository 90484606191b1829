//! Commands about files: `init`, `check`, `graph`, `schema`.

use serde_json::Value;

use crate::support::Folder;

#[test]
fn the_team_that_init_writes_runs_and_passes_its_tests() {
    for (lang, agents) in [("en", 5), ("zh", 5)] {
        let folder = Folder::new();
        let ran = folder.run(&["init", "my-team", "--lang", lang]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let checked = folder.run(&["check", "my-team/team.toml", "--strict"]);
        assert_eq!(checked.code, Some(0), "{}", checked.stdout);
        let tested = folder.run(&["test", "my-team/team.toml", "my-team/cases.toml"]);
        assert_eq!(tested.code, Some(0), "{}", tested.stdout);
        let run = folder.run(&["run", "my-team/team.toml", "Hi", "--json"]);
        assert_eq!(run.events()[0]["agents"].as_array().unwrap().len(), agents);
    }
}

#[test]
fn the_commands_that_init_proposes_work() {
    let folder = Folder::new();
    let ran = folder.run(&["init", "my-team"]);
    let proposed = ran
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  switchboard "));
    let mut count = 0;
    for line in proposed {
        let args = line.replace("\"My bill is wrong\"", "bill");
        let args: Vec<&str> = args.split(' ').collect();
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn init_overwrites_nothing_without_force() {
    let folder = Folder::new();
    let ran = folder.run(&["init"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.stderr.lines().next().unwrap(),
        "error: already there: ./team.toml; nothing was written"
    );
    assert!(!folder.path("cases.toml").exists());
    let ran = folder.run(&["init", "--force"]);
    assert_eq!(ran.code, Some(0));
    assert_ne!(folder.read("team.toml"), crate::support::TEAM);
}

#[test]
fn check_reports_problems_with_positions_and_strict_counts_warnings() {
    let folder = Folder::new();
    folder.write(
        "bad.toml",
        "[agents.A]\nhandoffs = [\"BB\"]\nmodle = \"x\"\n[agents.B]\n",
    );
    let ran = folder.run(&["check", "bad.toml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    assert!(ran.stdout.contains("bad.toml:3:1"), "{}", ran.stdout);
    let ran = folder.run(&["check", "bad.toml", "--json"]);
    assert_eq!(ran.code, Some(1));
    for line in ran.stdout.lines() {
        let problem: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&problem["severity"], &problem["file"]),
            (&"error".into(), &"bad.toml".into())
        );
    }
    let unused = "[agents.A]\n[agents.B]\n";
    folder.write("unused.toml", unused);
    assert_eq!(folder.run(&["check", "unused.toml"]).code, Some(0));
    assert_eq!(
        folder.run(&["check", "unused.toml", "--strict"]).code,
        Some(1)
    );
}

#[test]
fn a_team_is_drawn_without_models_and_secrets() {
    let folder = Folder::new();
    let secret = "
        model = \"openai/gpt-5.2\"
        [agents.A]
        handoffs = [\"B\"]
        [agents.B]
    ";
    folder.write("secret.toml", secret);
    let ran = folder.run(&["graph", "secret.toml"]);
    let mermaid = "flowchart LR\n    a0([\"A\"])\n    a1([\"B\"])\n    a0 --> a1\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), mermaid));
    let ran = folder.run(&["graph", "secret.toml", "--format", "dot"]);
    assert!(ran.stdout.starts_with("digraph team {\n"), "{}", ran.stdout);
}

#[test]
fn the_schema_is_json() {
    let ran = Folder::new().run(&["schema"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(schema["properties"]["agents"].is_object(), "{schema}");
}
