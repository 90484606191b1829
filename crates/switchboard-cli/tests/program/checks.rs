//! `switchboard check`, `init`, and the files of a team.

use crate::support::Folder;

#[test]
fn a_team_file_that_is_missing_cannot_be_checked() {
    let folder = Folder::new();
    let ran = folder.run(&["check", "nowhere.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr.contains("nowhere.toml cannot be read"),
        "{ran:?}"
    );
    let ran = folder.run(&["check", "nowhere.toml", "--json"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.events()[0]["code"], "unreadable-file");
}

#[test]
fn the_team_of_init_has_its_guardrails_on_every_agent() {
    for lang in ["en", "zh"] {
        let folder = Folder::new();
        folder.run(&["init", "new", "--lang", lang]);
        let ran = folder.run(&["check", "new/team.toml", "--strict"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let secret = ["my password is hunter2", "我的密码是 hunter2"];
        let secret = secret[usize::from(lang == "zh")];
        for agent in ["Triage", "Billing"] {
            let ran = folder.run(&["run", "new/team.toml", secret, "--agent", agent]);
            if lang == "en" {
                assert_eq!(ran.code, Some(3), "{agent} {ran:?}");
            }
        }
    }
}

#[test]
fn a_guardrail_on_some_agents_and_a_missing_program_are_warnings() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        r#"
[commands]
allow = ["no-such-program-here"]
[agents.Triage]
instructions = "x"
handoffs = ["Billing"]
input_guardrails = ["polite"]
[agents.Billing]
description = "Bills."
tools = ["look"]
[tools.look]
description = "Looks."
command.run = ["no-such-program-here"]
[guardrails.polite]
deny = ["blast"]
"#,
    );
    let ran = folder.run(&["check", "team.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("warning[partial-guardrail]"), "{ran:?}");
    assert!(ran.stdout.contains("warning[no-program]"), "{ran:?}");
    assert_eq!(
        folder.run(&["check", "team.toml", "--strict"]).code,
        Some(1)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_filter_that_does_nothing_is_a_warning() {
    let folder = Folder::new();
    let team = |filter: &str| {
        let text = format!(
            "[agents.Triage]\nhandoffs = [{{ to = \"Desk\", filters = [{filter}] }}]\n\
             [agents.Desk]\ndescription = \"A desk.\"\n"
        );
        folder.write("team.toml", &text);
        folder.run(&["check", "team.toml", "--strict"])
    };
    for (filter, message) in [
        ("{ redact_pii = { only = [] } }", "this hides nothing"),
        (
            "{ redact_pii = { only = [\"card\"], without = [\"card\"] } }",
            "this hides nothing",
        ),
        ("{ redact = { patterns = {} } }", "this hides nothing"),
        (
            "{ redact_pii = { only = [\"card\"], placeholders = { email = \"x\" } } }",
            "this has no effect: \"email\" is not hidden",
        ),
        (
            "\"payload\"",
            "this has no effect: the handoff has no payload",
        ),
    ] {
        let ran = team(filter);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let warning = format!("warning[no-effect]: {message}");
        assert!(ran.stdout.contains(&warning), "{ran:?}");
    }
    let ran = team("{ redact_pii = { without = [\"card\"], placeholders = { email = \"x\" } } }");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_summary_before_a_redaction_is_a_warning() {
    let folder = Folder::new();
    let check = |place: &str, filters: &str| {
        let text = format!(
            "[agents.Triage]\nhandoffs = [{{ to = \"Desk\"{} }}]\n\
             [agents.Desk]\ndescription = \"A desk.\"\n{}",
            if place == "run" {
                String::new()
            } else {
                format!(", {place} = [{filters}]")
            },
            if place == "run" {
                format!("[run]\nfilters = [{filters}]\n")
            } else {
                String::new()
            },
        );
        folder.write("team.toml", &text);
        folder.run(&["check", "team.toml"])
    };
    let summary = "{ summarize = { model = \"offline\", keep_last = 2 } }";
    let warning =
        "warning[late-redaction]: the model of this summary gets what a later filter hides";
    for redaction in [
        "\"redact_pii\"",
        "{ redact_pii = { only = [\"card\"] } }",
        "{ redact = { patterns = { 'C-[0-9]+' = \"x\" } } }",
    ] {
        for place in ["filters", "run"] {
            let ran = check(place, &format!("{summary}, \"nest_history\", {redaction}"));
            assert!(ran.stdout.contains(warning), "{ran:?}");
            let ran = check(place, &format!("{redaction}, {summary}"));
            assert!(!ran.stdout.contains("late-redaction"), "{ran:?}");
        }
    }
}

#[test]
fn files_outside_the_folder_and_of_the_system_are_not_read() {
    let folder = Folder::new();
    for (reference, code) in [
        ("file = '/etc/passwd'", "outside-file"),
        ("file = '../secret.md'", "outside-file"),
        (
            "file = '/proc/self/environ', outside = true",
            "unreadable-file",
        ),
        ("file = '/proc/kmsg', outside = true", "unreadable-file"),
    ] {
        folder.write(
            "team.toml",
            &format!("[agents.A]\ninstructions = {{ {reference} }}\n"),
        );
        let ran = folder.run(&["check", "team.toml"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stdout.contains(&format!("error[{code}]")), "{ran:?}");
    }
    folder.write("tone.md", "Be kind.");
    std::fs::create_dir(folder.path("teams")).unwrap();
    let team = |reference: &str| {
        let text = format!("[agents.A]\ninstructions = {{ {reference} }}\n");
        folder.write("teams/team.toml", &text);
        folder.run(&["check", "teams/team.toml"])
    };
    let allowed = team("file = '../tone.md', outside = true");
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../tone.md", folder.path("teams/link.md")).unwrap();
        let ran = team("file = 'link.md'");
        assert!(ran.stdout.contains("error[outside-file]"), "{ran:?}");
    }
    let large = std::fs::File::create(folder.path("teams/large.md")).unwrap();
    large.set_len(9 << 20).unwrap();
    let ran = team("file = 'large.md'");
    assert!(ran.stdout.contains("error[unreadable-file]"), "{ran:?}");
}

#[test]
fn a_session_of_another_team_is_refused_unless_forced() {
    let folder = Folder::new();
    folder.run(&["run", "team.toml", "Hi", "-s", "tuesday"]);
    folder.write("other.toml", "[agents.Desk]\ninstructions = 'x'\n");
    let args = ["run", "other.toml", "Hi", "-s", "tuesday"];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("with --force"), "{ran:?}");
    assert!(!ran.stderr.contains("::"), "{ran:?}");
    let ran = folder.run(&[&args[..], &["--force"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_model_that_does_not_exist_is_never_asked() {
    let folder = Folder::new();
    let run = |model: &str, more: &[&str]| {
        let args = ["run", "team.toml", "Hi", "--model", model];
        let mut command = folder.command(&[&args, more].concat());
        command.env("OPENAI_API_KEY", "key");
        crate::support::Ran::of(command.spawn().unwrap())
    };
    for (model, suggestion) in [
        ("ofline", "did you mean \"offline\"?"),
        (
            "gpt-5.2",
            "did you mean \"openai/gpt-5.2\" or \"chat/gpt-5.2\"?",
        ),
        (
            "anthropic/claude-3",
            "did you mean \"openai/claude-3\" or \"chat/claude-3\"?",
        ),
    ] {
        let ran = run(model, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(suggestion), "{ran:?}");
    }
    let ran = run("offline", &["--base-url", "http://localhost:1/v1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("--base-url does not apply to the model offline"),
        "{ran:?}"
    );
}
