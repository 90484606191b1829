//! `--lang`, and the language of the environment.

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

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

/// Names in small letters of programs, commands, fields and values, which are typed as they are.
#[rustfmt::skip]
const TYPED: [&str; 74] = [
    "switchboard", "mysql", "shell", "demo", "init", "run", "chat", "talk", "sessions", "resume", "runs", "worker", "serve", "studio",
    "key", "check", "graph", "test", "replay", "schema", "completions", "help", "list", "show", "export", "import",
    "delete", "prune", "search", "fork", "attach", "cancel", "auto", "always", "never", "en", "zh", "type", "models", "context",
    "sqlite", "offline", "ask", "all", "none", "embedded", "restate", "dbos", "flite", "pocketsphinx", "memory", "text",
    "svg", "mermaid", "dot", "bash", "elvish", "fish", "powershell", "zsh", "message", "payload", "cases", "expect", "path",
    "forbidden", "says", "tools", "guardrail", "turns", "decision", "speech", "realtime", "provider",
];

/// The words of English in a text, other than names and what is typed.
fn english_words(text: &str) -> Vec<String> {
    let outside: String = text.split(['"', '`', '\'']).step_by(2).collect();
    let is_word_end = |c: char| c.is_whitespace() || !c.is_ascii();
    let words = outside.split(is_word_end).filter(|word| {
        let word = word.trim_matches(['[', ']', '<', '>', '(', ')', ',', ':', ';', '?']);
        let word = word.trim_end_matches('.');
        let is_lower = word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
        is_lower && !TYPED.contains(&word) || ["OPTIONS", "COMMAND", "Usage"].contains(&word)
    });
    words.map(str::to_owned).collect()
}

#[test]
fn all_of_the_help_is_in_the_readers_language() {
    let folder = Folder::new();
    let help = folder.run(&["--lang", "zh", "--help"]).stdout;
    for expected in [
        "显示本帮助，或指定子命令的帮助",
        "可选值：",
        "- zh：中文",
        "[默认：auto]",
    ] {
        assert!(help.contains(expected), "{expected}\n{help}");
    }
    let short = folder.run(&["--lang", "zh", "-h"]).stdout;
    assert!(
        short.contains("[默认：auto] [可选值：auto、always、never]"),
        "{short}"
    );
    let commands = [
        "demo",
        "init",
        "run",
        "chat",
        "talk",
        "sessions",
        "resume",
        "runs",
        "worker",
        "serve",
        "studio",
        "key",
        "check",
        "graph",
        "test",
        "replay",
        "schema",
        "completions",
        "help",
    ];
    for command in commands {
        let forms = [
            &["help", command][..],
            &[command, "--help"],
            &[command, "-h"],
        ];
        // `help` takes the name of a command only.
        let number = if command == "help" { 1 } else { 3 };
        for form in &forms[..number] {
            let ran = folder.run(&[&["--lang", "zh"], *form].concat());
            assert_eq!(ran.code, Some(0), "{form:?} {ran:?}");
            // Examples hold commands and their messages.
            let help = ran.stdout.split("示例：").next().unwrap();
            assert!(help.contains("用法："), "{form:?}\n{help}");
            assert_eq!(english_words(help), [""; 0], "{form:?}\n{help}");
            // Examples have remarks.
            for line in ran
                .stdout
                .lines()
                .filter(|line| line.starts_with("  switchboard "))
            {
                if let Some((_, remark)) = line.trim().rsplit_once("  ") {
                    assert_eq!(english_words(remark), [""; 0], "{form:?}\n{line}");
                }
            }
        }
    }
    // The values and the defaults are taken as before.
    let ran = folder.run(&["graph", "team.toml", "--lang", "zh", "--format", "dot"]);
    assert!(ran.stdout.starts_with("digraph"), "{ran:?}");
    let ran = folder.run(&["graph", "team.toml", "--lang", "zh", "--format", "png"]);
    assert!(ran.stderr.contains("不能是 png"), "{ran:?}");
}

#[test]
fn the_clauses_of_an_error_are_all_in_the_readers_language() {
    let folder = Folder::new();
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = \"Hi\"\nexpct = \"Triage\"\n\n[[cases]]\nmessage = \"Hi\"\nexpect = \"Nobody\"\n\n\
         [[cases]]\nmessage = \"Hi\"\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--lang", "zh"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stdout
            .contains("第 3 行：用例 没有字段 \"expct\"；您是不是想写 \"expect\"？"),
        "{}",
        ran.stdout
    );
    let failures = ran.stdout.lines().filter(|line| line.contains('行'));
    let failures: Vec<&str> = failures.collect();
    assert_eq!(failures.len(), 3, "{}", ran.stdout);
    for failure in failures {
        assert_eq!(english_words(failure), [""; 0], "{failure}");
    }
    for (store, expected) in [
        ("mysql:x", "地址可以是 `memory:`、`sqlite:路径`"),
        ("sqlite:typo.db", "没有这个文件；请检查路径"),
    ] {
        let ran = folder.run(&["sessions", "list", "--store", store, "--lang", "zh"]);
        let told: String = ran.stderr.split_whitespace().collect();
        let expected: String = expected.split_whitespace().collect();
        assert!(told.contains(&expected), "{expected}\n{}", ran.stderr);
        assert_eq!(english_words(&ran.stderr), [""; 0], "{}", ran.stderr);
    }
}

#[test]
fn the_first_variable_that_is_set_chooses_the_language() {
    let folder = Folder::new();
    let shown = |vars: &[(&str, &str)]| {
        let mut command = folder.command(&["sessions", "list"]);
        command.envs(vars.iter().copied());
        Ran::of(command.spawn().unwrap()).stdout
    };
    let (all, messages, lang) = ("LC_ALL", "LC_MESSAGES", "LANG");
    let (en, zh) = ("en_US.UTF-8", "zh_CN.UTF-8");
    for (vars, is_chinese) in [
        (&[(all, en), (messages, zh), (lang, zh)][..], false),
        (&[(all, zh), (messages, en), (lang, en)], true),
        (&[(all, ""), (messages, zh), (lang, en)], true),
        (&[(messages, en), (lang, zh)], false),
        (&[(all, "C"), (lang, zh)], false),
        (&[(lang, zh)], true),
    ] {
        assert_eq!(
            shown(vars).starts_with("还没有会话"),
            is_chinese,
            "{vars:?}"
        );
    }
}

#[test]
fn what_a_server_says_is_not_translated() {
    let folder = Folder::new();
    for message in [
        "bad value for SQL \"select 1; try again; drop table\"",
        "there are no agents; try again",
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let body = json!({"error": {"message": message, "code": "model_not_found"}});
        provider.script("", [Reply::status(400, body)]);
        let url = provider.url();
        let args = [
            "run",
            "team.toml",
            "Hi",
            "-m",
            "chat/x",
            "--base-url",
            &url,
            "--lang",
            "zh",
        ];
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains(&format!("：{message}；请求编号 req_0；请检查模型的名称")),
            "{told}"
        );
    }
}

#[test]
fn rarer_errors_are_in_the_readers_language() {
    let folder = Folder::new();
    folder.run(&["run", "team.toml", "Hi", "--session", "tuesday"]);
    let told = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = folder.command(args);
        command
            .envs(variables.iter().copied())
            .env("LANG", "zh_CN.UTF-8");
        Ran::of(command.spawn().unwrap())
    };
    for command in ["show", "cancel", "attach"] {
        let ran = told(&[], &["runs", command, "nope"]);
        assert!(ran.stderr.contains("没有运行“nope”"), "{ran:?}");
        assert_eq!(english_words(&ran.stderr.replace("nope", "")), [""; 0]);
    }
    let ran = told(&[("SWITCHBOARD_STORE_KEY", "bad")], &["sessions", "list"]);
    assert!(ran.stderr.contains("32 个随机字节"), "{ran:?}");
    assert_eq!(english_words(&ran.stderr), [""; 0], "{ran:?}");
    for (json, expected) in [
        ("[]", "类型不对：列表，应为对象（第 1 行第 2 列）"),
        ("7", "类型不对：整数 `7`，应为对象（第 1 行第 1 列）"),
    ] {
        folder.write("export.json", json);
        let ran = told(&[], &["sessions", "import", "export.json"]);
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
    folder.write("rules.toml", "[[rules]]\ndecison = \"approve\"\n");
    let ran = told(&[], &["run", "team.toml", "Hi", "--approve", "rules.toml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("帮助"))
        .collect();
    assert!(!told.is_empty(), "{ran:?}");
    for line in told {
        assert_eq!(english_words(line), [""; 0], "{ran:?}");
    }
}

#[test]
fn failures_beside_events_are_in_the_readers_language() {
    let folder = Folder::new();
    let provider = FakeProvider::on_thread().unwrap();
    provider.script("", [Reply::hang()]);
    let url = provider.url();
    let ran = folder.run(&[
        "run",
        "team.toml",
        "Hi",
        "-m",
        "chat/x",
        "--base-url",
        &url,
        "--json",
        "--timeout",
        "1",
        "--lang",
        "zh",
    ]);
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert!(ran.stderr.starts_with("错误："), "{ran:?}");
    assert_eq!(english_words(&ran.stderr), [""; 0], "{ran:?}");
}
