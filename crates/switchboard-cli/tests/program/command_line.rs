//! The conventions of command-line programs: help, colours, pipes, completions.

use std::io::Read as _;

use crate::support::{Folder, Ran};

#[test]
fn every_command_has_help_with_examples() {
    let folder = Folder::new();
    let commands = [
        "demo",
        "init",
        "run",
        "chat",
        "serve",
        "key",
        "check",
        "graph",
        "test",
        "replay",
        "schema",
        "completions",
    ];
    for command in commands {
        let ran = folder.run(&[command, "--help"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(
            ran.stdout.contains("Examples:\n  switchboard "),
            "{}",
            ran.stdout
        );
    }
    let ran = folder.run(&["--help"]);
    for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "130 ", "143 "] {
        assert!(
            ran.stdout.contains(&format!("\n  {code}")),
            "{code}: {}",
            ran.stdout
        );
    }
}

#[test]
fn an_invalid_command_line_is_an_error_on_standard_error() {
    let folder = Folder::new();
    for args in [
        &["rnu"][..],
        &["run"],
        &["run", "team.toml", "Hi", "--context", "tier"],
        &["run", "team.toml", "Hi", "--max-turns", "0"],
        &["run", "team.toml", "Hi", "--max-turns", "x"],
        &["replay", "x", "--speed", "-1"],
        &["test", "team.toml", "cases.toml", "--jobs", "0"],
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
}

#[test]
fn nothing_is_coloured_in_a_pipe_unless_requested() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "My bill is wrong"];
    let is_coloured = |more: &[&str], vars: &[(&str, &str)]| {
        let mut command = folder.command(&[&args, more].concat());
        command.envs(vars.iter().copied());
        Ran::of(command.spawn().unwrap()).stdout.contains('\u{1b}')
    };
    assert!(!is_coloured(&[], &[]));
    assert!(is_coloured(&["--color", "always"], &[]));
    assert!(is_coloured(&["--color=always"], &[("NO_COLOR", "1")]));
    assert!(is_coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(
        &["--color", "never"],
        &[("CLICOLOR_FORCE", "1")]
    ));
    assert!(!is_coloured(&["--json", "--color", "always"], &[]));
}

#[test]
fn a_closed_output_is_not_an_error() {
    let folder = Folder::new();
    for args in [
        &["schema"][..],
        &["completions", "zsh"],
        &["demo"],
        &["demo", "--json"],
        &["run", "team.toml", "My bill is wrong"],
        &["graph", "team.toml"],
        &["check", "team.toml"],
    ] {
        let mut child = folder.command(args).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn text_is_wrapped_at_the_variable_columns() {
    let folder = Folder::new();
    let mut command =
        folder.command(&["run", "team.toml", "My bill is wrong, 账单多扣了我一次钱。"]);
    command.env("COLUMNS", "20");
    let ran = Ran::of(command.spawn().unwrap());
    assert_eq!(
        ran.stdout.lines().take(4).collect::<Vec<_>>(),
        ["You", "  My bill is wrong,", "  账单多扣了我一次", "  钱。"]
    );
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Folder::new().run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.contains("switchboard"), "{}", ran.stdout);
    }
}

#[cfg(unix)]
#[test]
fn bash_completes_commands_and_options() {
    let folder = Folder::new();
    folder.write("completions", &folder.run(&["completions", "bash"]).stdout);
    let completed = |words: &str, word: &str| {
        let script = format!(
            "source ./completions; COMP_WORDS=({words} {word}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _switchboard switchboard {word} run; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", &script])
            .current_dir(folder.path(""))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let ran = Ran::of(bash.spawn().unwrap());
        assert_eq!(ran.stderr, "");
        ran.stdout
    };
    assert_eq!(completed("switchboard", "ru"), "run runs\n");
    assert_eq!(completed("switchboard run", "--co"), "--context --color\n");
}
