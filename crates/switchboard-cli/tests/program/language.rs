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
        (
            &["serve", "team.toml", "--host", "0.0.0.0", "--port", "0"][..],
            2,
            "错误： 0.0.0.0:0：其他人能访问的地址必须有密钥",
        ),
        (
            &["serve", "team.toml", "--set", "runs=many"][..],
            2,
            "错误： 设置 runs 不能是 \"many\"：它是整数",
        ),
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
  = 帮助: 现有 \"Triage\" 和 \"Billing\"

1 个错误
"
    );
    let ran = folder.run(&["check", "team.toml", "--lang", "zh", "--json"]);
    assert_eq!(ran.events()[0]["message"], "there is no agent \"Biling\"");
}

#[test]
fn rarer_problems_are_in_the_readers_language_as_a_whole() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        "\
max_turn = 3

[context]
tier = \"basic\"

[agents.Triage]
instructions = 3
handoffs = [{ to = \"Desk\", when = \"tier = 'x'\" }]
tools = \"find\"

[agents.Desk]
descripton = \"Bills.\"

[tools.find]
description = \"Finds.\"
http.url = \"ftp://example.com\"
",
    );
    let ran = folder.run(&["check", "team.toml", "--lang", "zh"]);
    let plain_words = |line: &str| {
        let outside: String = line.split(['"', '`', '\'']).step_by(2).collect();
        let outside = outside.split(' ').filter(|word| !word.contains("://"));
        let outside = outside.collect::<Vec<_>>().join(" ");
        let words = outside.split(|c: char| !c.is_ascii_alphabetic());
        words.filter(|word| word.len() > 2).count()
    };
    let told: Vec<&str> = ran.stdout.lines().collect();
    let told = told
        .iter()
        .filter(|line| line.contains("帮助:") || line.starts_with("错误["));
    let told: Vec<_> = told.map(|line| line.split_once(": ").unwrap().1).collect();
    assert!(told.len() >= 8, "{}", ran.stdout);
    let english: Vec<_> = told.iter().filter(|text| plain_words(text) > 3).collect();
    assert!(english.is_empty(), "{english:?}\n{}", ran.stdout);
    // The advice is about the field, not about its agent.
    assert!(!ran.stdout.contains("[agents.Billing]"), "{}", ran.stdout);
}

#[test]
fn results_of_tests_failures_of_quiet_runs_and_warnings_of_replays_are_in_the_readers_language() {
    let folder = Folder::new();
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = \"My bill is wrong\"\nexpect = \"Triage\"\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--lang", "zh"]);
    assert!(
        ran.stdout.contains("期望 Triage，实际 ")
            && ran.stdout.contains("失败: 0 个通过，1 个失败，用时 "),
        "{ran:?}"
    );
    let args = [
        "run",
        "team.toml",
        "My bill is wrong",
        "-q",
        "--max-turns",
        "1",
        "--lang",
        "zh",
    ];
    let ran = folder.run(&args);
    assert!(
        ran.stderr.contains("错误：") && ran.stderr.contains("提示： 请用 --max-turns 提高上限"),
        "{ran:?}"
    );
    folder.write("cut.jsonl", "{\"type\":\"run_started\",\"agent\":\"A\",\"turn\":0,\"at\":0,\"version\":1,\"agents\":[\"A\"]}\n");
    let ran = folder.run(&["replay", "cut.jsonl", "--lang", "zh"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("警告： cut.jsonl 不完整：最后一次运行没有结束"),
        "{ran:?}"
    );
    let ran = folder.run(&["chat", "team.toml", "--timeout", "0", "--lang", "zh"]);
    assert!(ran.stderr.contains("请写大于 0 的时间"), "{ran:?}");
    let help = folder.run(&["sessions", "--lang", "zh", "-h"]).stdout;
    assert!(
        help.contains("示例：") && help.contains("对话记录，包括交接"),
        "{help}"
    );
}
