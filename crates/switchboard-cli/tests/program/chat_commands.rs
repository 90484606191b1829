//! Commands of a chat that change the conversation, and `chat --json`.

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};

use crate::support::{Folder, Ran};

/// The lines of a chat without costs and answers of the model.
fn chat(folder: &Folder, args: &[&str], lines: &str) -> Ran {
    folder.run_with_input(&[&["chat", "team.toml"], args].concat(), lines)
}

#[test]
fn the_last_message_is_taken_back_or_sent_again() {
    let folder = Folder::new();
    let ran = chat(
        &folder,
        &[],
        "/undo\n/retry\nMy bill is wrong\n/undo\n/history\nI want a manager\n/retry\n/history\n",
    );
    let text = &ran.stdout;
    assert!(text.starts_with("There is nothing to take back.\nThere is nothing to send again.\n"));
    assert!(
        text.contains("Taken back: My bill is wrong\nNothing has been said yet.\n"),
        "{text}"
    );
    let again = text.find("Again: I want a manager\n").unwrap();
    let history = text.rfind("You      I want a manager\n").unwrap();
    assert!(again < history, "{text}");
    assert!(!text[history..].contains("My bill"), "{text}");
    assert_eq!(text[history..].matches("→ Manager").count(), 1, "{text}");
}

#[test]
fn a_message_that_could_not_be_answered_is_sent_again_and_the_one_before_is_kept() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let refused = json!({"error": {"message": "No such model"}});
    provider.script(
        "key",
        [
            Reply::text("One."),
            Reply::status(404, refused),
            Reply::text("Two."),
        ],
    );
    let url = provider.url();
    let args = [
        "chat",
        "team.toml",
        "-m",
        "chat/llama",
        "--base-url",
        &url,
        "-s",
        "s",
    ];
    let mut command = folder.command(&args);
    command
        .env("OPENAI_API_KEY", "key")
        .stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = b"First\nSecond\n/retry\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines).unwrap();
    let ran = Ran::of(child);
    assert!(ran.stdout.contains("Again: Second\n"), "{ran:?}");
    let shown = folder.run(&["sessions", "show", "s"]).stdout;
    assert_eq!(
        shown,
        "You     First\nTriage  One.\nYou     Second\nTriage  Two.\n"
    );
}

#[test]
fn a_chat_goes_on_in_a_copy_of_its_session() {
    let folder = Folder::new();
    let ran = chat(
        &folder,
        &["-s", "a"],
        "Hello\n/fork\n/fork b\nMy bill is wrong\n",
    );
    assert!(
        ran.stdout.contains("say what the copy is called"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("This is b now"), "{ran:?}");
    let show = |name: &str| folder.run(&["sessions", "show", name]).stdout;
    assert!(!show("a").contains("My bill") && show("b").contains("My bill"));
    let ran = chat(&folder, &[], "Hello\n/fork c\n");
    assert!(
        ran.stdout.contains("begin it with --session NAME"),
        "{ran:?}"
    );
}

#[test]
fn agents_models_and_the_context_are_changed_within_a_chat() {
    let folder = Folder::new();
    let ran = chat(
        &folder,
        &[],
        "/agent Biling\n/agent Billing\n/agents\n/context\n/context tier=premium\n/context teer=x\n\
         /context tier\n/model gpt-5.2\n/model offline\n/agent Triage\ntheatre tickets\n",
    );
    let text = &ran.stdout;
    for expected in [
        "error: there is no agent \"Biling\"\n  help: did you mean \"Billing\"?\n",
        "Billing has the conversation now.\n",
        "* Billing ",
        "tier = \"standard\"\n",
        "tier = \"premium\"\n",
        "the context has no \"teer\": did you mean \"tier\"?",
        "write it as KEY=VALUE",
        "did you mean \"openai/gpt-5.2\" or \"chat/gpt-5.2\"?",
        "All agents have the model offline now.\n",
        // The condition of this handoff is over the context that was set.
        "Triage     → Concierge",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn what_the_model_was_last_sent_is_shown() {
    let folder = Folder::new();
    let ran = chat(&folder, &[], "/sent\nMy bill is wrong\n/sent\n");
    let text = &ran.stdout;
    assert!(
        text.starts_with("Nothing has been sent to a model yet.\n"),
        "{text}"
    );
    let sent = &text[text.rfind("agent\n").unwrap()..];
    assert_eq!(
        sent,
        "agent\n  Billing\n\
         knowledge\n  Charged twice, wrong bill: A second charge is reversed.\n\
         items\n  user: My bill is wrong\n  call transfer_to_billing {}\n  \
         output {\"assistant\": \"Billing\"}\n"
    );
}

#[test]
fn a_chat_of_machines_reads_and_writes_lines_of_json() {
    let folder = Folder::new();
    let lines = "\"My bill\\nis wrong\"\n{\"message\": \"And now?\"}\nplain text\n/agents\n";
    let ran = chat(&folder, &["--json"], lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let started = ran.events_of("run_started");
    let inputs: Vec<&Value> = started.iter().map(|event| &event["input"]).collect();
    assert_eq!(inputs, ["My bill\nis wrong", "And now?", "plain text"]);
    assert!(ran.stderr.contains("* Billing"), "{ran:?}");
}

#[test]
fn a_line_of_json_that_cannot_be_read_does_not_end_the_chat() {
    let folder = Folder::new();
    let lines = "Hi\n{\"x\":1}\n\"\"\n{\"message\":\" \"}\n{\nafter\n";
    let ran = chat(&folder, &["--json"], lines);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let errors = ran.events_of("input_error");
    assert_eq!(
        errors[0],
        json!({"type": "input_error", "agent": "Triage", "turn": 0, "line": 2,
            "message": "the line has no text in \"message\""})
    );
    let numbers: Vec<&Value> = errors.iter().map(|error| &error["line"]).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    assert_eq!(errors[1]["message"], "the line has an empty message");
    let started = ran.events_of("run_started");
    let inputs: Vec<&Value> = started.iter().map(|event| &event["input"]).collect();
    assert_eq!(inputs, ["Hi", "after"]);
    folder.write("chat.jsonl", &ran.stdout);
    assert_eq!(folder.run(&["replay", "chat.jsonl"]).code, Some(0));
}

#[test]
fn an_empty_message_of_a_file_is_not_sent() {
    let folder = Folder::new();
    folder.write("in.jsonl", "\"Hi\"\n\"\"\n");
    let ran = folder.run(&["run", "team.toml", "--input", "in.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("in.jsonl:2: the line has an empty message")
    );
}

#[test]
fn a_refused_message_is_what_is_taken_back_and_it_is_not_sent_again() {
    let folder = Folder::new();
    folder.run(&["init", ".", "--force"]);
    let secret = "my password is 1234";
    let ran = chat(
        &folder,
        &[],
        &format!("hello\n{secret}\n/undo\n/history\n/retry\n"),
    );
    let (before, after) = ran.stdout.split_once("Taken back: ").unwrap();
    assert!(before.contains("hello"), "{ran:?}");
    assert!(after.starts_with(&format!("{secret}\n")), "{ran:?}");
    assert!(after.contains("Again: hello\n"), "{ran:?}");
    assert_eq!(after.matches(secret).count(), 1, "{ran:?}");
    assert!(!after.contains("no_passwords"), "{ran:?}");

    let lines =
        format!("hello\n{secret}\n{secret} 5\n/undo\n/undo\n/undo\n/undo\n/agent Sales\n/retry\n");
    let ran = chat(&folder, &["-s", "s"], &lines);
    let (_, after) = ran.stdout.split_once("Taken back: ").unwrap();
    assert_eq!(
        after,
        format!(
            "{secret} 5\nTaken back: {secret}\nTaken back: hello\nThere is nothing to take back.\n\
             Sales has the conversation now.\nThere is nothing to send again.\n"
        )
    );
    let ran = chat(&folder, &[], &format!("{secret}\n/retry\n/save a.jsonl\n"));
    assert!(
        ran.stdout.contains(&format!("Again: {secret}\n")),
        "{ran:?}"
    );
    assert_eq!(folder.read("a.jsonl").matches("\"run_started\"").count(), 1);
}

#[test]
fn a_message_that_is_sent_again_goes_to_the_agent_that_was_chosen_since() {
    let folder = Folder::new();
    let ran = chat(
        &folder,
        &[],
        "Hello\n/agent Billing\n/retry\n/save a.jsonl\n",
    );
    let saved = folder.read("a.jsonl");
    let first: Value = serde_json::from_str(saved.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["agent"], &first["input"]),
        (&json!("Billing"), &json!("Hello")),
        "{ran:?}"
    );
    let ran = chat(&folder, &[], "Hello\n/agent Billing\n/undo\n");
    assert!(
        ran.stdout
            .ends_with("Taken back: Hello\nTriage has the conversation again.\n"),
        "{ran:?}"
    );
}

#[test]
fn a_chat_with_a_server_changes_to_the_offline_model_and_back() {
    let folder = Folder::new();
    let args = ["-m", "chat/x", "--base-url", "http://127.0.0.1:1/v1"];
    let ran = chat(
        &folder,
        &args,
        "/model offline\nMy bill is wrong\n/model chat/y\n/agents\n",
    );
    assert!(
        ran.stdout
            .contains("All agents have the model offline now.\n"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("A second charge is reversed."),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("All agents have the model chat/y now.\n"),
        "{ran:?}"
    );
}

#[test]
fn words_after_a_command_that_takes_none_are_not_ignored() {
    let folder = Folder::new();
    for command in ["undo", "retry", "history", "reset"] {
        let ran = chat(&folder, &[], &format!("Hello\n/{command} 5\n/undo\n"));
        assert!(
            ran.stdout.ends_with(&format!(
                "/{command} takes nothing after it; a message that begins with / is written with //\n\
                 Taken back: Hello\n"
            )),
            "{ran:?}"
        );
    }
}

#[test]
fn a_copy_that_cannot_be_made_is_told_with_advice_that_fits() {
    let folder = Folder::new();
    let ran = chat(&folder, &["-s", "a"], "Hello\n/fork a\n");
    assert!(
        ran.stdout.ends_with(
            "error: there is a session \"a\" already\n  \
             help: choose another name, or delete that one first\n"
        ),
        "{ran:?}"
    );
}

#[test]
fn an_undone_message_is_not_in_the_saved_recording() {
    let folder = Folder::new();
    chat(
        &folder,
        &[],
        "Hello\nMy bill is wrong\n/undo\n/save chat.jsonl\n",
    );
    let saved = folder.read("chat.jsonl");
    assert!(
        saved.contains("Hello") && !saved.contains("My bill"),
        "{saved}"
    );
}

#[test]
fn a_message_from_before_a_reset_is_not_sent_again() {
    let folder = Folder::new();
    let args = [
        "chat",
        "team.toml",
        "-m",
        "chat/x",
        "--base-url",
        "http://127.0.0.1:1/v1",
    ];
    let mut command = folder.command(&args);
    command
        .env("OPENAI_API_KEY", "key")
        .stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = b"Hi\n/reset\n/retry\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines).unwrap();
    let ran = Ran::of(child);
    assert!(
        ran.stdout.ends_with("There is nothing to send again.\n"),
        "{ran:?}"
    );
}

#[test]
fn failures_within_a_chat_are_in_its_language() {
    let folder = Folder::new();
    let lines = "/agent Nobody\n/context foo=1\n/model nope\n";
    let ran = folder.run_with_input(&["chat", "team.toml", "--lang", "zh"], lines);
    for text in [
        "没有成员“Nobody”",
        "context 中没有 \"foo\"；",
        "没有模型 \"nope\"",
    ] {
        assert!(ran.stdout.contains(text), "{ran:?}");
    }
    assert!(!ran.stdout.contains("there is no"), "{ran:?}");
}
