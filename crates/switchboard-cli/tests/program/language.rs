//! `--lang`, and the language of the environment.

use crate::support::{Folder, Ran};

/// Runs the program with this `LANG`.
fn run_in(folder: &Folder, lang: &str, args: &[&str]) -> Ran {
    let mut command = folder.command(args);
    Ran::of(command.env("LANG", lang).spawn().unwrap())
}

#[test]
fn the_language_is_that_of_the_environment_unless_it_is_given() {
    let folder = Folder::new();
    let shown = |lang: &str, more: &[&str]| {
        let args = [&["run", "team.toml", "Hi", "--max-turns", "1"], more].concat();
        run_in(&folder, lang, &args).stdout
    };
    assert!(shown("zh_CN.UTF-8", &[]).starts_with("用户"));
    assert!(shown("zh_CN.UTF-8", &["--lang", "en"]).starts_with("You"));
    assert!(shown("en_US.UTF-8", &[]).starts_with("You"));
    assert!(shown("en_US.UTF-8", &["--lang", "zh"]).starts_with("用户"));
}

#[test]
fn help_is_in_the_readers_language() {
    let folder = Folder::new();
    let help = run_in(&folder, "zh_CN.UTF-8", &["--help"]).stdout;
    for expected in [
        "用法：",
        "命令:",
        "选项:",
        "与文件中描述的智能体团队对话",
        "检查团队文件",
        "示例：",
    ] {
        assert!(help.contains(expected), "{expected}\n{help}");
    }
    let help = folder.run(&["chat", "--lang", "zh", "-h"]).stdout;
    assert!(
        help.contains("以此名称保存对话") && !help.contains("Keep the conversation"),
        "{help}"
    );
}

#[test]
fn errors_of_the_command_line_and_of_files_are_in_the_readers_language() {
    let folder = Folder::new();
    for (args, code, expected) in [
        (
            &["chat", "team.toml", "--sesion", "x"][..],
            2,
            "错误：没有参数 --sesion\n\n  提示：您是不是想写 --session？",
        ),
        (
            &["chekc"][..],
            2,
            "错误：没有命令 chekc\n\n  提示：您是不是想写 schema、check？",
        ),
        (&["check"][..], 2, "错误：缺少参数：<TEAM>"),
        (
            &["check", "nowhere.toml"][..],
            2,
            "无法读取 nowhere.toml：没有这个文件",
        ),
        (
            &["run", "team.toml", "Hi", "--agent", "Biling"][..],
            2,
            "错误： 没有成员“Biling”\n  提示： 您是不是想写 \"Billing\"？",
        ),
        (&["sessions", "show", "x"][..], 2, "错误： 没有会话“x”"),
    ] {
        let ran = folder.run(&[args, &["--lang", "zh"]].concat());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{expected}\n{}", ran.stderr);
    }
}

#[test]
fn checks_are_in_the_readers_language_and_json_is_not() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        "[agents.Triage]\nhandoffs = [\"Biling\"]\n[agents.Billing]\n",
    );
    let ran = folder.run(&["check", "team.toml", "--lang", "zh"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "\
错误[unknown-agent]: 没有成员“Biling”
 --> team.toml:2:13
  |
2 | handoffs = [\"Biling\"]
  |             ^^^^^^^^ 您是不是想写 \"Billing\"？
  |
  = 帮助: 现有 \"Triage\" and \"Billing\"

1 个错误
"
    );
    let ran = folder.run(&["check", "team.toml", "--lang", "zh", "--json"]);
    assert_eq!(ran.events()[0]["message"], "there is no agent \"Biling\"");
}
