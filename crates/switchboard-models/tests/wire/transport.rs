//! Connections, retries, timeouts and limits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_provider::Reply;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_core::model::{ServerState, Usage};
use switchboard_core::{Item, ModelRequest, ModelSettings};
use switchboard_models::{Endpoint, ModelError, ModelErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::tunnel::Tunnel;
use crate::{BOTH, PROVIDER, Protocol, Script, ask, failure, hello, model, run_text, text_of};

fn error_status(status: u16, code: &str) -> Reply {
    Reply::status(status, json!({"error": {"message": "No.", "code": code}}))
}

#[tokio::test]
async fn only_failures_that_a_retry_may_help_are_retried() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([
                error_status(503, "overloaded").header("retry-after-ms", "1"),
                Reply::disconnect(),
                Reply::raw("{oops", "application/json"),
                Reply::text("Hi."),
            ]);
            let model_with_retries = model(&script.endpoint().retries(3), protocol);
            let answer = ask(&model_with_retries, hello(), streamed).await.unwrap();
            assert_eq!(text_of(&answer), "Hi.", "{protocol:?} {streamed}");
            assert_eq!(script.requests().len(), 4);

            for reply in [
                error_status(400, "invalid_value"),
                error_status(401, "invalid_api_key"),
                error_status(404, "model_not_found"),
                error_status(429, "insufficient_quota"),
                error_status(429, "").header("retry-after", "3600"),
                error_status(503, "").header("x-should-retry", "false"),
            ] {
                let script = Script::new([reply, Reply::text("Hi.")]);
                let error =
                    failure(&model(&script.endpoint().retries(3), protocol), streamed).await;
                assert_eq!(
                    (script.requests().len(), error.attempts()),
                    (1, 1),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_stateful_request_is_retried_only_if_it_was_not_processed() {
    let mut request = hello();
    request.server = Some(ServerState::Conversation("conv_1".into()));
    let script = Script::new([Reply::disconnect(), Reply::text("Hi.")]);
    let model_with_retries = model(&script.endpoint().retries(3), Protocol::Responses);
    ask(&model_with_retries, request.clone(), false)
        .await
        .unwrap_err();
    assert_eq!(script.requests().len(), 1);

    for (reply, is_retried) in [
        (error_status(400, "conversation_locked"), true),
        (error_status(409, ""), true),
        (error_status(429, ""), true),
        (error_status(503, ""), true),
        (error_status(500, ""), false),
        (error_status(502, ""), false),
        (error_status(504, ""), false),
        (error_status(408, ""), false),
        (
            error_status(500, "").header("x-should-retry", "true"),
            false,
        ),
        (
            error_status(503, "").header("x-should-retry", "false"),
            false,
        ),
        (Reply::raw("{oops", "application/json"), false),
    ] {
        let reply = reply.header("retry-after-ms", "1");
        let script = Script::new([reply, Reply::text("Hi.")]);
        let model_with_retries = model(&script.endpoint().retries(3), Protocol::Responses);
        let answer = ask(&model_with_retries, request.clone(), false).await;
        let shown = answer.as_ref().err().map(ToString::to_string);
        assert_eq!(answer.is_ok(), is_retried, "{shown:?}");
        assert_eq!(script.requests().len(), 1 + usize::from(is_retried));
    }
    // A 503 without `Retry-After` may come after the work was done.
    let script = Script::new([error_status(503, ""), Reply::text("Hi.")]);
    let model_with_retries = model(&script.endpoint().retries(3), Protocol::Responses);
    ask(&model_with_retries, request.clone(), false)
        .await
        .unwrap_err();
    // A request that could not be sent was not processed.
    let nowhere = Endpoint::at("http://127.0.0.1:1/v1").retries(1);
    let error = ask(&model(&nowhere, Protocol::Responses), request, false).await;
    let error = error.unwrap_err().downcast::<ModelError>().unwrap();
    assert_eq!(error.attempts(), 2, "{error}");
}

#[tokio::test]
async fn errors_have_details_and_no_secrets() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([]);
            let quoted = format!("Incorrect API key provided: {}", script.key);
            PROVIDER.script(
                &script.key,
                [Reply::status(
                    401,
                    json!({"error": {"message": quoted, "code": "invalid_api_key"}}),
                )
                .header("x-request-id", "req_7")
                .header("x-ratelimit-remaining-tokens", "12")
                .header("x-ratelimit-reset-requests", "6m0s")],
            );
            let model_handle = script.model(protocol);
            let error = failure(&model_handle, streamed).await;
            assert_eq!(error.kind(), ModelErrorKind::Authentication);
            assert_eq!(error.request_id(), Some("req_7"));
            assert_eq!(error.rate_limits().remaining_tokens, Some(12));
            let reset = error.rate_limits().reset_requests;
            assert_eq!(reset, Some(Duration::from_secs(360)));
            let shown = format!("{error} {error:?} {model_handle:?}");
            assert!(!shown.contains(&script.key), "{shown}");
            assert!(
                shown.contains("check the key and its permissions"),
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_and_not_retried() {
    for protocol in BOTH {
        let places = match protocol {
            // After its first event, which is long.
            Protocol::Responses => [1200, 1500, 2000],
            Protocol::Chat => [300, 500, 700],
        };
        for bytes in places {
            for cut in [Reply::cut_after, Reply::end_after] {
                let text = "a rather long answer that will not arrive in full";
                let whole = Reply::text(text).pieces(3);
                let script = Script::new([cut(whole, bytes), Reply::text("again")]);
                let model = model(&script.endpoint().retries(3), protocol);
                let error = failure(&model, true).await;
                assert_eq!(
                    error.kind(),
                    ModelErrorKind::Interrupted,
                    "{bytes}: {error}"
                );
                assert_eq!(script.requests().len(), 1);
            }
        }
        let script = Script::new([Reply::text("Hi.").cut_after(20)]);
        let error = failure(&script.model(protocol), false).await;
        assert_eq!(error.kind(), ModelErrorKind::Interrupted);
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([Reply::hang()]);
            let hasty = script.endpoint().read_timeout(Duration::from_millis(50));
            let error = failure(&model(&hasty, protocol), streamed).await;
            assert_eq!(error.kind(), ModelErrorKind::Timeout, "{error}");

            let slow = Reply::text("a long answer")
                .pieces(1)
                .pace(Duration::from_millis(20));
            let script = Script::new([slow]);
            let hasty = script.endpoint().total_timeout(Duration::from_millis(60));
            if streamed {
                let error = failure(&model(&hasty, protocol), streamed).await;
                assert_eq!(error.kind(), ModelErrorKind::Timeout, "{error}");
            }
        }
    }
    // A port that nothing listens on.
    let nowhere = Endpoint::at("http://127.0.0.1:1/v1").retries(0);
    let error = failure(&model(&nowhere, Protocol::Chat), false).await;
    assert_eq!(error.kind(), ModelErrorKind::Connection);
    let message = error.to_string();
    assert!(
        message.starts_with("http://127.0.0.1:1/v1/chat/completions: "),
        "{message}"
    );
    assert!(message.contains("check the address"), "{message}");
}

#[tokio::test]
async fn an_endless_answer_is_too_large() {
    for protocol in BOTH {
        for (streamed, reply) in [
            (false, Reply::endless()),
            (true, Reply::endless()),
            (true, Reply::endless_line()),
        ] {
            let script = Script::new([reply]);
            let small = script.endpoint().max_response_bytes(100_000);
            let error = failure(&model(&small, protocol), streamed).await;
            assert_eq!(error.kind(), ModelErrorKind::TooLarge, "{error}");
        }
    }
}

#[tokio::test]
async fn a_line_or_an_event_over_the_limit_is_an_error() {
    for sent in ["x".repeat(101), "data: 0123456789\n".repeat(20)] {
        let script = Script::new([Reply::raw(sent, "text/event-stream")]);
        let small = script.endpoint().max_response_bytes(100);
        let error = failure(&model(&small, Protocol::Chat), true).await;
        assert_eq!(error.kind(), ModelErrorKind::TooLarge, "{error}");
    }
}

#[tokio::test]
async fn dropping_a_stream_or_a_future_closes_the_connection() {
    for protocol in BOTH {
        let script = Script::new([Reply::endless(), Reply::hang()]);
        let model = script.model(protocol);
        {
            let mut events = model.stream(hello());
            events.next().await.unwrap().unwrap();
        }
        let whole = tokio::time::timeout(Duration::from_millis(50), model.respond(hello()));
        whole.await.unwrap_err();
        for _ in 0..200 {
            if script
                .requests()
                .iter()
                .filter(|request| request.closed_early)
                .count()
                == 2
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let closed: Vec<bool> = script.requests().iter().map(|r| r.closed_early).collect();
        assert_eq!(closed, [true, true], "{protocol:?}");
    }
}

#[tokio::test]
async fn connections_are_reused() {
    let tunnel = Tunnel::open(&PROVIDER.url(), None).await;
    let script = Script::new((0..10).map(|_| Reply::text("Hi.")));
    let near = Endpoint::at(format!("http://127.0.0.1:{}/v1", tunnel.port)).key(&script.key);
    let client = near.connect().unwrap();
    for turn in 0..10 {
        let model = switchboard_models::ResponsesModel::new(&client, "m").into();
        ask(&model, hello(), turn % 2 == 0).await.unwrap();
    }
    // The rest of a stream is read in the background, so the next request may need a second one.
    assert!(tunnel.connections() <= 2, "{}", tunnel.connections());
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let tunnel = Tunnel::open(&PROVIDER.url(), None).await;
    let script = Script::new([Reply::text("Hi.")]);
    let proxy = format!("http://127.0.0.1:{}", tunnel.port);
    let far = Endpoint::at("http://provider.invalid/v1")
        .key(&script.key)
        .proxy(proxy);
    assert_eq!(run_text(model(&far, Protocol::Chat)).await, "Hi.");
    let line = &tunnel.first_lines()[0];
    assert!(
        line.starts_with("POST http://provider.invalid/v1/chat/completions"),
        "{line}"
    );
}

/// TLS for `localhost`, and a file with its certificate.
pub(crate) fn tls() -> (TlsAcceptor, tempfile::NamedTempFile) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.try_into().unwrap())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.cert.pem()).unwrap();
    (TlsAcceptor::from(Arc::new(tls)), file)
}

#[tokio::test]
async fn only_certificates_of_the_endpoint_or_the_system_are_trusted() {
    let (tls, certificate) = tls();
    let tunnel = Tunnel::open(&PROVIDER.url(), Some(tls)).await;
    let script = Script::new([Reply::text("Hi.")]);
    let far = Endpoint::at(format!("https://localhost:{}/v1", tunnel.port));
    let far = far.key(&script.key).retries(0);
    let error = failure(&model(&far, Protocol::Chat), false).await;
    assert_eq!(error.kind(), ModelErrorKind::Connection);
    assert!(error.to_string().contains("ertificate"), "{error}");

    let trusted = far.certificates(certificate.path());
    assert_eq!(run_text(model(&trusted, Protocol::Chat)).await, "Hi.");
}

/// A proxy that answers each `CONNECT` with this status, and then passes bytes on to `to`. Returns its port
/// and the requests for tunnels.
async fn connect_proxy(
    status: &'static str,
    to: u16,
    tls: Option<TlsAcceptor>,
) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((caller, _)) = listener.accept().await {
            let mut caller: Box<dyn Duplex> = match &tls {
                Some(tls) => Box::new(tls.accept(caller).await.unwrap()),
                None => Box::new(caller),
            };
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(caller.read_u8().await.unwrap());
            }
            log.lock()
                .unwrap()
                .push(String::from_utf8(request).unwrap());
            let answer = format!("HTTP/1.1 {status}\r\n\r\n");
            caller.write_all(answer.as_bytes()).await.unwrap();
            if status.starts_with("200") {
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
            }
        }
    });
    (port, asked)
}

trait Duplex: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}

impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Duplex for T {}

#[tokio::test]
async fn encrypted_requests_go_through_a_tunnel_that_only_the_proxy_gets_credentials_for() {
    for is_proxy_encrypted in [false, true] {
        let (tls, certificate) = tls();
        let server = Tunnel::open(&PROVIDER.url(), Some(tls.clone())).await;
        let proxy_tls = is_proxy_encrypted.then_some(tls);
        let (port, asked) = connect_proxy("200 OK", server.port, proxy_tls).await;
        let scheme = if is_proxy_encrypted { "https" } else { "http" };
        let script = Script::new([Reply::text("Hi.")]);
        let far = Endpoint::at(format!("https://localhost:{}/v1", server.port))
            .key(&script.key)
            .certificates(certificate.path())
            .proxy(format!("{scheme}://ann:s3cret@localhost:{port}"));
        assert_eq!(run_text(model(&far, Protocol::Chat)).await, "Hi.");
        let asked = asked.lock().unwrap().join("");
        let line = format!("CONNECT localhost:{} HTTP/1.1\r\n", server.port);
        assert!(asked.starts_with(&line), "{asked}");
        // ann:s3cret
        let credentials = "proxy-authorization: basic yw5uonmzy3jlda==\r\n";
        assert!(asked.to_lowercase().contains(credentials), "{asked}");
        assert!(!asked.contains(&script.key), "{asked}");
        assert_eq!(script.requests()[0].header("proxy-authorization"), None);
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_a_tunnel_is_an_error_of_the_connection() {
    let (port, _) = connect_proxy("407 Proxy Authentication Required", 1, None).await;
    let far = Endpoint::at("https://provider.invalid/v1")
        .key("k")
        .retries(0)
        .proxy(format!("http://ann:s3cret@127.0.0.1:{port}"));
    let error = failure(&model(&far, Protocol::Responses), false).await;
    assert_eq!(error.kind(), ModelErrorKind::Connection, "{error}");
    let message = error.to_string();
    assert!(
        message.contains("proxy authorization required"),
        "{message}"
    );
    assert!(!message.contains("s3cret"), "{message}");
}

#[tokio::test]
async fn credentials_in_addresses_become_headers() {
    let tunnel = Tunnel::open(&PROVIDER.url(), None).await;
    let script = Script::new([Reply::text("Hi.")]);
    let proxy = format!("http://bob:proxy%2Dpass@127.0.0.1:{}", tunnel.port);
    let far = Endpoint::at("http://provider.invalid/v1").key(&script.key);
    let far = far.proxy(proxy);
    assert_eq!(run_text(model(&far, Protocol::Chat)).await, "Hi.");
    let sent = &script.requests()[0];
    // bob:proxy-pass
    let credentials = Some("Basic Ym9iOnByb3h5LXBhc3M=");
    assert_eq!(sent.header("proxy-authorization"), credentials);
    assert_eq!(sent.header("host"), Some("provider.invalid"));
    let agent = sent.header("user-agent").unwrap_or_default();
    assert!(agent.starts_with("switchboard/"), "{agent}");

    // The provider of these tests would not know whom to answer without a key.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let near = Endpoint::at(format!("http://ann:p%40ss@127.0.0.1:{port}/v1")).retries(0);
    let asked = tokio::spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(caller.read_u8().await.unwrap());
        }
        String::from_utf8(request).unwrap()
    });
    failure(&model(&near, Protocol::Chat), false).await;
    let asked = asked.await.unwrap();
    let line = "POST /v1/chat/completions HTTP/1.1\r\n";
    assert!(asked.starts_with(line), "{asked}");
    // ann:p@ss
    assert!(
        asked.contains("authorization: Basic YW5uOnBAc3M=\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains(&format!("host: 127.0.0.1:{port}\r\n")),
        "{asked}"
    );
}

#[tokio::test]
async fn extra_headers_and_body_fields_are_sent() {
    for protocol in BOTH {
        let script = Script::new([Reply::text("Hi.")]);
        let endpoint = script
            .endpoint()
            .organization("org_1")
            .project("proj_1")
            .header("x-team", "blue")
            .body_field("service_tier", "flex")
            .body_field("store", true);
        let mut request = hello();
        let mut settings = (*request.settings).clone();
        settings.extra_body.insert("store".to_owned(), json!(false));
        settings
            .extra_headers
            .insert("x-team".to_owned(), "red".to_owned());
        request.settings = settings.into();
        ask(&model(&endpoint, protocol), request, false)
            .await
            .unwrap();
        let sent = &script.requests()[0];
        assert_eq!(sent.header("openai-organization"), Some("org_1"));
        assert_eq!(sent.header("openai-project"), Some("proj_1"));
        assert_eq!(sent.header("x-team"), Some("red"));
        let body = &script.bodies()[0];
        assert_eq!(
            (&body["service_tier"], &body["store"]),
            (&json!("flex"), &json!(false))
        );
    }
}

#[tokio::test]
async fn usage_is_counted() {
    let cost = fake_provider::Usage {
        input: 10,
        cached: 4,
        cache_write: 3,
        output: 7,
        reasoning: 2,
    };
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([Reply::text("Hi.").usage(cost).header("x-request-id", "r9")]);
            let answer = ask(&script.model(protocol), hello(), streamed)
                .await
                .unwrap();
            let expected = Usage {
                requests: 1,
                input_tokens: 10,
                cached_tokens: 4,
                cache_write_tokens: 3,
                output_tokens: 7,
                reasoning_tokens: 2,
            };
            assert_eq!(answer.usage, expected, "{protocol:?} {streamed}");
            assert_eq!(answer.request_id.as_deref(), Some("r9"));
        }
    }
}

#[tokio::test]
async fn usage_is_kept_as_the_server_sent_it_on_request() {
    let cost = fake_provider::Usage {
        input: 10,
        cache_write: 3,
        ..fake_provider::Usage::default()
    };
    for (protocol, input) in [
        (Protocol::Responses, "input_tokens"),
        (Protocol::Chat, "prompt_tokens"),
    ] {
        for streamed in [false, true] {
            for preserve in [None, Some(false), Some(true)] {
                let script = Script::new([Reply::text("Hi.").usage(cost)]);
                let mut request = hello();
                request.settings = Arc::new(ModelSettings {
                    preserve_raw_usage: preserve,
                    ..ModelSettings::default()
                });
                let model = script.model(protocol);
                let answer = ask(&model, request, streamed).await.unwrap();
                assert_eq!(answer.usage.cache_write_tokens, 3);
                let Some(raw) = answer.raw_usage else {
                    assert_ne!(preserve, Some(true), "{protocol:?} {streamed}");
                    continue;
                };
                assert_eq!(preserve, Some(true), "{protocol:?} {streamed}");
                assert_eq!(raw[input], 10);
                assert_eq!(raw["total_tokens"], 10);
            }
        }
    }
}

#[tokio::test]
async fn a_large_conversation_is_sent_with_its_length_and_retried() {
    let text = "Ünïcode \"quoted\" \\ and long. ".repeat(60);
    let usual: Vec<Item> = (0..300)
        .map(|at| Item::user(format!("{at} {text}")))
        .collect();
    let mut odd = usual.clone();
    odd.insert(
        7,
        Item::user("Noted.")
            .with_json_field("provider_data", "{}")
            .unwrap(),
    );
    for protocol in BOTH {
        for items in [&usual, &odd] {
            let script = Script::new([
                error_status(503, "overloaded").header("retry-after-ms", "1"),
                Reply::text("Hi."),
            ]);
            let model_with_retries = model(&script.endpoint().retries(1), protocol);
            let request = ModelRequest::new(items.clone());
            let answer = ask(&model_with_retries, request, false).await.unwrap();
            assert_eq!(text_of(&answer), "Hi.");
            let requests = script.requests();
            assert_eq!(requests.len(), 2);
            for request in requests {
                let list = match protocol {
                    Protocol::Responses => &request.body["input"],
                    Protocol::Chat => &request.body["messages"],
                };
                let sent = list.as_array().unwrap().iter();
                let sent: Vec<&str> = sent.map(|item| item["content"].as_str().unwrap()).collect();
                let expected: Vec<_> = items.iter().map(|item| item.text().unwrap()).collect();
                assert_eq!(sent, expected);
                let length: usize = request.header("content-length").unwrap().parse().unwrap();
                assert!(length > 300 * text.len(), "{length}");
                assert_eq!(request.header("transfer-encoding"), None);
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_was_interrupted_is_retried_in_full() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut sent = vec![0; 200_000];
        let (mut first, _) = listener.accept().await.unwrap();
        first.read_exact(&mut sent).await.unwrap();
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        sent.clear();
        // The end of the body.
        while !sent.ends_with(b"}]}") {
            assert_ne!(second.read_buf(&mut sent).await.unwrap(), 0);
        }
        let answer = r#"{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        second.write_all(head.as_bytes()).await.unwrap();
        second.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(sent).unwrap()
    });
    let endpoint = Endpoint::at(format!("http://{address}/v1")).retries(1);
    let texts: Vec<String> = (0..4_000)
        .map(|at| format!("{at} {}", "x".repeat(600)))
        .collect();
    let request = ModelRequest::new(texts.iter().map(Item::user).collect::<Vec<_>>());
    let answer = ask(&model(&endpoint, Protocol::Chat), request, false).await;
    assert_eq!(text_of(&answer.unwrap()), "Hi.");
    let sent = server.await.unwrap();
    let (_, body) = sent.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let sent = body["messages"].as_array().unwrap().iter();
    assert!(
        sent.map(|message| message["content"].as_str().unwrap())
            .eq(&texts)
    );
}
