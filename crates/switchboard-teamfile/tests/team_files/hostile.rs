//! Malicious and malformed files.

use proptest::prelude::*;
use switchboard_teamfile::TeamFile;

proptest! {
    #[test]
    fn parsing_text_never_panics(text in ".{0,200}", json: bool) {
        let name = if json { "t.json" } else { "t.toml" };
        if let Err(problems) = TeamFile::parse(&text, name) {
            let _ = (problems.to_string(), format!("{problems:#}"));
        }
    }

    #[test]
    fn parsing_a_corrupted_team_never_panics(cut in 0..2000usize, with in ".{0,6}") {
        let whole = include_str!("../../../switchboard-cli/src/teams/en/team.toml");
        let at = whole.char_indices().map(|(at, _)| at).nth(cut % whole.chars().count()).unwrap();
        let text = format!("{}{with}{}", &whole[..at], &whole[at..]);
        match TeamFile::parse(&text, "t.toml") {
            Ok(_) => {}
            Err(problems) => prop_assert!(!problems.to_string().is_empty()),
        }
    }
}

#[test]
fn deep_and_wide_files_are_refused_or_read_in_time() {
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(TeamFile::parse(&deep, "t.toml").is_err());
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(TeamFile::parse(&deep, "t.json").is_err());
    let wide: String = (0..5_000)
        .map(|at| {
            format!(
                "[agents.a{at}]\ndescription = 'x'\nhandoffs = ['a{}']\n",
                (at + 1) % 5_000
            )
        })
        .collect();
    let team = TeamFile::parse(&wide, "t.toml").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(team.team().agents().len(), 5_000);
    let wrong: String = (0..5_000)
        .map(|at| format!("[agents.a{at}]\nhandofs = 1\n"))
        .collect();
    let problems = TeamFile::parse(&wrong, "t.toml").unwrap_err();
    assert_eq!(problems.iter().count() + problems.more(), 5_000);
    assert!(problems.to_string().ends_with("and 4800 more\n"));
}

#[test]
fn escape_sequences_of_a_file_do_not_reach_the_terminal() {
    let text = "[agents.\"\\u001b[31mred\"]\nhandoffs = [\"\\u001b]0;x\\u0007\"]\n\"a\\u001b[2J\" = 1 # \u{1b}[2J\n";
    let text = text.replace(" # \u{1b}[2J", "");
    let problems = TeamFile::parse(&text, "t.toml").unwrap_err();
    assert!(!problems.to_string().contains('\u{1b}'), "{problems:?}");
    let raw = "[agents.A]\nhandoffs = [\"\u{9b}2J\"] \n";
    let problems = TeamFile::parse(raw, "t.toml").unwrap_err();
    assert!(!problems.to_string().contains('\u{9b}'), "{problems:?}");
}

#[test]
fn unreadable_files_are_reported_with_help() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("bytes.toml"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::write(path("large.toml"), vec![b'#'; 9 << 20]).unwrap();
    for (name, expected) in [
        ("missing.toml", "switchboard init"),
        ("", "is a folder"),
        ("bytes.toml", "is not text in UTF-8"),
        ("large.toml", "is larger than 8 MiB"),
    ] {
        let problems = TeamFile::read(path(name)).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}");
    }
    std::fs::write(path("team.toml"), "").unwrap();
    let problems = TeamFile::read(folder.path()).unwrap_err().to_string();
    let expected = format!("did you mean {}?", path("team.toml").display());
    assert!(problems.contains(&expected), "{problems}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    let problems = TeamFile::read(&pipe).unwrap_err().to_string();
    assert!(problems.contains("is not a file"), "{problems}");
    let text = format!(
        "[agents.A]\ninstructions = {{ file = {:?}, outside = true }}\n",
        pipe.display().to_string()
    );
    let problems = TeamFile::parse(&text, "team.toml").unwrap_err().to_string();
    assert!(problems.contains("is not a file"), "{problems}");
}

/// The code and the message of the only problem of a team whose instructions are this file.
#[cfg(unix)]
fn file_problem(folder: &std::path::Path, reference: &str) -> Option<(&'static str, String)> {
    let text = format!("[agents.A]\ninstructions = {{ {reference} }}\n");
    let problems = TeamFile::parse(&text, folder.join("team.toml")).err()?;
    let problem = problems.iter().next()?;
    Some((problem.code, problem.message.clone()))
}

#[cfg(unix)]
#[test]
fn named_files_stay_below_the_folder_of_the_team_file() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("team");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(parent.path().join("secret.md"), "secret").unwrap();
    std::fs::write(folder.join("inside.md"), "inside").unwrap();
    std::os::unix::fs::symlink("../secret.md", folder.join("link.md")).unwrap();
    std::os::unix::fs::symlink("inside.md", folder.join("alias.md")).unwrap();
    let absolute = parent.path().join("secret.md").display().to_string();
    for inside in ["inside.md", "./inside.md", "alias.md"] {
        let reference = format!("file = {inside:?}");
        assert_eq!(file_problem(&folder, &reference), None);
    }
    for outside in ["../secret.md", "link.md", &absolute, "../team/inside.md"] {
        let reference = format!("file = {outside:?}");
        let (code, message) = file_problem(&folder, &reference).unwrap();
        assert_eq!(code, "outside-file", "{message}");
        let allowed = format!("{reference}, outside = true");
        assert_eq!(file_problem(&folder, &allowed), None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_the_system_makes_up_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/proc/self/environ", folder.path().join("link.md")).unwrap();
    for name in ["/proc/self/environ", "/proc/kmsg", "/dev/stdin", "link.md"] {
        let reference = format!("file = {name:?}, outside = true");
        let (code, message) = file_problem(folder.path(), &reference).unwrap();
        assert_eq!(code, "unreadable-file", "{message}");
    }
}

#[tokio::test]
async fn a_deny_list_may_have_ten_thousand_words() {
    let words: Vec<String> = (0..10_000).map(|at| format!("wörd{at}")).collect();
    let text = format!(
        "[guardrails.g]\ndeny = {words:?}\nthen = 'redact'\n[agents.A]\ninput_guardrails = ['g']\n"
    );
    let file = TeamFile::parse(&text, "t.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let model = switchboard_core::testing::ScriptedModel::new().say("Hi.");
    let team = file
        .open_options()
        .model_handle(model.clone())
        .open()
        .unwrap();
    team.runner()
        .run("a WÖRD9999, wörd99 and wörd99x")
        .await
        .unwrap();
    let request = &model.requests()[0];
    let seen = request
        .input
        .iter()
        .next()
        .and_then(|item| Some(item.text()?.into_owned()));
    assert_eq!(seen.as_deref(), Some("a [removed], [removed] and wörd99x"));
}

#[test]
fn a_schema_that_takes_too_much_work_is_refused() {
    let mut levels = String::new();
    for level in 0..12 {
        let choices = format!("{{ '$ref' = '#/$defs/l{}' }}, ", level + 1).repeat(10);
        levels += &format!("l{level} = {{ anyOf = [{choices}] }}, ");
    }
    let schema = format!(
        "{{ properties = {{ x = {{ '$ref' = '#/$defs/l0' }} }}, '$defs' = {{ {levels} l12 = {{ type = 'integer' }} }} }}"
    );
    for text in [
        format!(
            "[tools.t]\ndescription = 'd'\nparameters = {schema}\ncommand = {{ run = ['true'] }}\n[agents.A]\ntools = ['t']\n"
        ),
        format!("[agents.A]\noutput = {schema}\n"),
        format!("[agents.A]\nhandoffs = [{{ to = 'B', payload = {schema} }}]\n[agents.B]\n"),
    ] {
        let problems = TeamFile::parse(&text, "t.toml").unwrap_err().to_string();
        assert!(
            problems.contains("takes more than 1000000 steps"),
            "{problems}"
        );
    }
}
