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

/// Asserts that the program is told this once, with these texts and without those of `absent`.
#[track_caller]
fn assert_told(ran: &Ran, present: &[&str], absent: &[&str]) {
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for text in present {
        assert!(ran.stderr.contains(text), "{text}: {ran:?}");
    }
    for text in absent {
        assert!(!ran.stderr.contains(text), "{text}: {ran:?}");
    }
}

#[test]
fn a_spent_quota_is_known_by_what_the_provider_says() {
    for (status, body) in [
        (
            429,
            json!({"error": {"message": "You exceeded your current quota, please check your plan and billing details."}}),
        ),
        (
            429,
            json!({"error": {"message": "Suspended", "type": "exceeded_current_quota_error"}}),
        ),
        (
            402,
            json!({"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}),
        ),
        (
            400,
            json!({"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}),
        ),
        (
            400,
            json!({"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}}),
        ),
        (
            403,
            json!({"error": {"code": "AllocationQuota.FreeTierOnly", "message": "The free tier of the model has been exhausted."}}),
        ),
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let ran = ask(&provider, vec![Reply::status(status, body); 3]);
        assert_told(
            &ran,
            &[
                "waiting does not help",
                "help: look at the plan and the bills",
            ],
            &["wait a little", "model's name", "the key", "sent 3 times"],
        );
        assert_eq!(provider.requests().len(), 1, "{ran:?}");
    }
}

#[test]
fn words_of_a_quota_that_are_quoted_are_no_spent_quota() {
    for (status, message, requests, help) in [
        (
            500,
            "Tool said: insufficient funds on account 12",
            3,
            "help: try again",
        ),
        (503, "The balance is too low to go on", 3, "help: try again"),
        (
            400,
            "Invalid content: \"insufficient balance\"",
            1,
            "help: check the model's name",
        ),
        (
            400,
            "In messages[2]: Your credit balance is too low to access the API.",
            1,
            "help: check the model's name",
        ),
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let body = json!({"error": {"message": message}});
        let reply = Reply::status(status, body).header("retry-after-ms", "1");
        let ran = ask(&provider, vec![reply; 3]);
        assert_told(&ran, &[help], &["quota", "the plan and the bills"]);
        assert_eq!(provider.requests().len(), requests, "{ran:?}");
    }
}

#[test]
fn a_failure_of_a_server_in_a_stream_is_no_spent_quota() {
    let provider = FakeProvider::on_thread().unwrap();
    let failed = Reply::failed("server_error", "Tool said: insufficient funds");
    let ran = ask(&provider, [failed]);
    assert_told(
        &ran,
        &["help: try again"],
        &["quota", "the plan and the bills"],
    );
}

#[test]
fn a_quota_that_comes_back_soon_is_waited_for() {
    let provider = FakeProvider::on_thread().unwrap();
    let body =
        json!({"error": {"message": "You exceeded your current quota. Please retry in 0.2s."}});
    let soon = Reply::status(429, body).header("retry-after-ms", "1");
    let ran = ask(&provider, vec![soon; 3]);
    assert_told(&ran, &["help: wait a little"], &["waiting does not help"]);
    assert_eq!(provider.requests().len(), 3);
}

#[test]
fn a_conversation_that_is_too_long_is_not_a_wrong_model() {
    for reply in [
        Reply::status(
            400,
            json!({"error": {"message": "Too long.", "code": "context_length_exceeded"}}),
        ),
        Reply::status(
            400,
            json!({"error": {"message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "code": 400}}),
        ),
        Reply::status(
            413,
            json!({"error": {"message": "Request too large", "type": "request_too_large"}}),
        ),
        Reply::raw(
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
            "text/html",
        )
        .with_status(413),
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let ran = ask(&provider, [reply]);
        assert_told(
            &ran,
            &[
                "is too long for the model",
                "help: begin a new conversation",
            ],
            &["model's name", "check the address"],
        );
    }
}

#[test]
fn a_wrong_path_is_told_as_a_wrong_address() {
    for reply in [
        Reply::raw("404 page not found\n", "text/plain").with_status(404),
        Reply::status(404, json!({"detail": "Not Found"})),
        Reply::status(
            404,
            json!({"error": {"message": "Resource not found", "code": "404"}}),
        ),
        Reply::status(
            404,
            json!({"error": {"message": "Invalid URL (POST /chat/completions)", "type": "invalid_request_error"}}),
        ),
        Reply::raw(
            "<!DOCTYPE html><html><head><title>404\nNot Found</title></head></html>",
            "text/html",
        )
        .with_status(404),
        Reply::raw("Ollama is running", "text/plain"),
        Reply::raw("Method Not Allowed", "text/plain").with_status(405),
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let ran = ask(&provider, vec![reply; 3]);
        let address = format!("{}/chat/completions", provider.url());
        assert_told(
            &ran,
            &[&address, "help: check the address and its path (--base-url"],
            &["model's name", "<!DOCTYPE", "sent 3 times"],
        );
        assert_eq!(provider.requests().len(), 1, "{ran:?}");
    }
}

#[test]
fn a_web_page_is_never_printed_raw() {
    let page = "<!DOCTYPE html>\n<html><head><title>Service Unavailable</title></head></html>";
    for (status, help) in [
        (401, "help: check the key"),
        (403, "help: check the address and its path"),
        (503, "help: try again"),
    ] {
        let provider = FakeProvider::on_thread().unwrap();
        let reply = Reply::raw(page, "text/html").with_status(status);
        let ran = ask(&provider, vec![reply.header("retry-after-ms", "1"); 3]);
        assert_told(
            &ran,
            &["a web page (\"Service Unavailable\")", help],
            &["<!DOCTYPE", "<html", "model's name"],
        );
    }
}

#[test]
fn a_refused_key_is_named_by_its_variable() {
    let refused = json!({"error": {"message": "Bad key", "code": "invalid_api_key"}});
    let provider = FakeProvider::on_thread().unwrap();
    let ran = ask(&provider, [Reply::status(401, refused.clone())]);
    assert_told(
        &ran,
        &["help: check the key in OPENAI_API_KEY"],
        &["team file"],
    );

    let folder = Folder::new();
    let provider = FakeProvider::on_thread().unwrap();
    provider.script("key", [Reply::status(401, refused)]);
    let team = format!(
        "[models.m]\napi = \"chat\"\nname = \"m\"\nbase_url = \"{}\"\nkey = {{ env = \"MY_KEY\" }}\n\
         [agents.A]\nmodel = \"m\"\n",
        provider.url()
    );
    folder.write("own.toml", &team);
    let mut command = folder.command(&["run", "own.toml", "Hi"]);
    command.env("MY_KEY", "key");
    let mut ran = Ran::of(command.spawn().unwrap());
    ran.stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_told(
        &ran,
        &["help: check the key in MY_KEY"],
        &["OPENAI_API_KEY"],
    );
}

#[test]
fn a_request_that_took_too_long_is_no_wrong_model() {
    for status in [408, 409] {
        let provider = FakeProvider::on_thread().unwrap();
        let body = json!({"error": {"message": "Later."}});
        let reply = Reply::status(status, body).header("retry-after-ms", "1");
        let ran = ask(&provider, vec![reply; 3]);
        assert_told(
            &ran,
            &["sent 3 times", "help: try again"],
            &["model's name", "--base-url"],
        );
    }
}

#[test]
fn a_timeout_that_is_reported_in_a_stream_is_that_of_a_server_that_runs() {
    let provider = FakeProvider::on_thread().unwrap();
    let reply = Reply::failed("408", "Later.").header("retry-after-ms", "1");
    let ran = ask(&provider, vec![reply; 3]);
    assert_told(&ran, &["help: try again"], &["model's name", "--base-url"]);
}

#[test]
fn the_advice_on_a_model_names_the_option_that_chose_it() {
    let provider = FakeProvider::on_thread().unwrap();
    let body =
        json!({"error": {"message": "The model `x` does not exist", "code": "model_not_found"}});
    let ran = ask(&provider, [Reply::status(404, body)]);
    assert_told(
        &ran,
        &["help: check the model's name (--model, or the team file)"],
        &[],
    );
}
