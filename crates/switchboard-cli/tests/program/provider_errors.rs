//! Errors of providers that refuse, and of servers that are no providers.

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

use crate::support::{Folder, Ran};

fn ask(provider: &FakeProvider, replies: impl IntoIterator<Item = Reply>) -> Ran {
    let folder = Folder::new();
    provider.script("key", replies);
    let url = provider.url();
    let args = [
        "run",
        "team.toml",
        "Hi",
        "-m",
        "chat/llama",
        "--base-url",
        &url,
    ];
    let mut command = folder.command(&args);
    command.env("OPENAI_API_KEY", "key");
    let mut ran = Ran::of(command.spawn().unwrap());
    // The text may be wrapped.
    ran.stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    ran
}

#[test]
fn errors_name_the_address_with_its_path() {
    let provider = FakeProvider::on_thread().unwrap();
    let refused = json!({"error": {"message": "No such model"}});
    let ran = ask(&provider, [Reply::status(404, refused)]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let address = format!("{}/chat/completions", provider.url());
    assert!(ran.stderr.contains(&address), "{ran:?}");
}

#[test]
fn a_spent_quota_is_not_a_reason_to_wait() {
    let provider = FakeProvider::on_thread().unwrap();
    let spent =
        json!({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}});
    let ran = ask(&provider, [Reply::status(429, spent)]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("waiting does not help"), "{ran:?}");
    assert!(
        ran.stderr.contains("help: look at the plan and the bills"),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("wait a little"), "{ran:?}");
}

#[test]
fn a_web_page_is_told_as_such_and_asked_for_once() {
    let provider = FakeProvider::on_thread().unwrap();
    let page = "<!doctype html><html><body>Sign in</body></html>";
    let ran = ask(&provider, vec![Reply::raw(page, "text/html"); 3]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.stderr
            .contains("answered 200 with a web page (text/html), not as a model"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("help: check the address and its path"),
        "{ran:?}"
    );
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn a_redirect_is_told_with_its_target_and_not_followed() {
    let provider = FakeProvider::on_thread().unwrap();
    let moved = Reply::status(302, json!({})).header(
        "location",
        "https://ann:pw@new.example/llm/v2/chat?token=s3cr3t",
    );
    let ran = ask(&provider, [moved]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for text in [
        "status 302: the server redirects to https://new.example/llm/v2/chat, which is not followed",
        "help: if the server that it names is the right one, write its address where the redirecting one is",
    ] {
        assert!(ran.stderr.contains(text), "{ran:?}");
    }
    for text in ["s3cr3t", "pw@", "model's name"] {
        assert!(!ran.stderr.contains(text), "{ran:?}");
    }
    assert_eq!(provider.requests().len(), 1);
}
