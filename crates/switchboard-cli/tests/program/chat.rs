//! `switchboard chat` without a terminal: a line is a message.

use crate::support::Folder;

#[test]
fn lines_are_messages_and_commands() {
    let folder = Folder::new();
    let lines =
        "My bill is wrong\n/agents\n/histroy\n/history\n/reset\n/history\n/quit\nnever said\n";
    let ran = folder.run_with_input(&["chat", "team.toml"], lines);
    assert_eq!(
        ran.without_times(),
        "\
You        My bill is wrong
Triage     → Billing
             carried 3 of 3 items
Billing    A second charge is reversed.

           (offline model)
  Triage     Finds the right colleague. [offline]
* Billing    Bills, invoices, charges and refunds. [offline]
  Manager    A manager, for complaints. [offline]
  Concierge  Flowers, restaurants, theatre tickets. [offline]
there is no command /histroy: did you mean /history?
You      My bill is wrong
Triage   → Billing
Billing  A second charge is reversed.
Forgotten; a new conversation begins.
Nothing has been said yet.
"
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_saved_chat_is_shown_again_as_it_was() {
    let folder = Folder::new();
    let lines = "My bill is wrong\nAnd now?\n/save chat.jsonl\n";
    let chat = folder.run_with_input(&["chat", "team.toml"], lines);
    let replayed = folder.run(&["replay", "chat.jsonl"]);
    let saved = chat.stdout.find("events are in chat.jsonl").unwrap();
    let shown = &chat.stdout[..chat.stdout[..saved].rfind('\n').unwrap() + 1];
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), shown));
}

#[test]
fn saving_overwrites_only_files_of_the_same_chat() {
    let folder = Folder::new();
    let before = folder.read("team.toml");
    let lines = "/save team.toml\n/save my chat.jsonl\nHi\n/save my chat.jsonl\n/save\n";
    let ran = folder.run_with_input(&["chat", "team.toml"], lines);
    assert!(
        ran.stdout.contains("team.toml is there already"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("say where to, as in /save chat.jsonl"),
        "{}",
        ran.stdout
    );
    assert_eq!(folder.read("team.toml"), before);
    assert!(folder.read("my chat.jsonl").contains("run_started"));
    assert!(
        ran.stdout.contains("switchboard replay 'my chat.jsonl'\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_chat_without_a_message_is_not_saved() {
    let folder = Folder::new();
    let lines = "/save a.jsonl\nHi\n/undo\n/save a.jsonl\n";
    let ran = folder.run_with_input(&["chat", "team.toml"], lines);
    let told = ran.stdout.matches("There is nothing to save yet.").count();
    assert_eq!(told, 2, "{ran:?}");
    assert!(!folder.path("a.jsonl").exists());
}

#[test]
fn a_run_that_fails_does_not_end_the_chat_and_sets_its_exit_code() {
    let folder = Folder::new();
    let args = ["chat", "team.toml", "--max-turns", "1"];
    let ran = folder.run_with_input(&args, "My bill is wrong\n/agents\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("* Billing"), "{}", ran.stdout);
}

#[test]
fn a_chat_in_chinese_answers_commands_in_chinese() {
    let folder = Folder::new();
    let lines =
        "/histroy\n/xyzzy\n/save\n/save team.toml\n/save a.jsonl\n/history\n/reset\n/help\n";
    let ran = folder.run_with_input(&["chat", "team.toml", "--lang", "zh"], lines);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "没有命令 /histroy：您是不是想输入 /history？",
            "没有命令 /xyzzy：/help 查看命令；以 / 开头的消息请写成 //",
            "请写明文件名，例如 /save chat.jsonl",
            "team.toml 已经存在，没有改动；请换一个文件名",
            "还没有可以保存的内容。",
            "还没有对话。",
            "已清除，开始新的对话。",
            "/agents       团队成员，以及现在由谁回答（*）",
        ]
    );
}

#[test]
fn the_team_is_drawn() {
    let ran = Folder::new().run_with_input(&["chat", "team.toml"], "/graph\n");
    assert!(
        ran.stdout.starts_with("Triage\n├─▶ Billing\n"),
        "{}",
        ran.stdout
    );
}
