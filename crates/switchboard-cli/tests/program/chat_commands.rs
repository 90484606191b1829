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
    let ran = chat(&folder, &["--json"], "{\"text\": \"Hi\"}\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("has no text in \"message\""), "{ran:?}");
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
