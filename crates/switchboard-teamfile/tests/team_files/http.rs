//! Tools that send HTTP requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{call_output, call_traced, with_tool};

/// Starts a server that answers every request alike. Returns its URL and the requests it gets.
async fn server(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(read) = stream.read(&mut chunk).await {
                request.extend_from_slice(&chunk[..read]);
                if read == 0 || is_complete(&request) {
                    break;
                }
            }
            received
                .lock()
                .unwrap()
                .push(String::from_utf8(request).unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, requests)
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim().parse::<usize>().ok()?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    });
    body.len() >= length.unwrap_or(0)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfound";

fn header(request: &str, name: &str) -> Option<String> {
    request.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

#[tokio::test]
async fn arguments_are_escaped_for_their_position() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        r#"
        parameters = {{ properties = {{ a = {{ type = "string" }}, n = {{ type = "integer" }} }} }}
        http.url = "{address}/customers/{{context.customer}}/invoices/{{a}}"
        http.query = {{ limit = "{{n}}", of = "x {{a}}" }}
        http.headers = {{ Authorization = {{ env = "TOKEN", prefix = "Bearer " }}, X-Note = "for {{context.customer}}" }}
        "#
    ));
    assert_eq!(
        call_output(&text, r#"{"a":"_/1?x&y","n":3}"#).await,
        "found"
    );
    assert_eq!(call_output(&text, r#"{"a":"7"}"#).await, "found");
    let requests = requests.lock().unwrap().clone();
    let lines: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.lines().next())
        .collect();
    assert_eq!(
        lines,
        [
            "GET /customers/C-1/invoices/_%2F1%3Fx%26y?limit=3&of=x+_%2F1%3Fx%26y HTTP/1.1",
            "GET /customers/C-1/invoices/7?of=x+7 HTTP/1.1",
        ]
    );
    assert_eq!(
        header(&requests[0], "authorization").unwrap(),
        "Bearer s3cret"
    );
    assert_eq!(header(&requests[0], "x-note").unwrap(), "for C-1");
}

#[tokio::test]
async fn bodies_are_json_with_typed_values() {
    let (address, requests) = server(OK).await;
    let parameters = r#"parameters = { properties = { a = {}, n = {} } }"#;
    let own = with_tool(&format!(
        r#"
        {parameters}
        http = {{ url = "{address}/", method = "POST", body = {{ note = "about {{a}}", n = "{{n}}", left_out = "{{n}}!", fixed = [1, "{{{{x}}}}"] }} }}
        "#
    ));
    assert_eq!(
        call_output(&own, r#"{"a":"\",\"admin\":true","n":[1]}"#).await,
        "found"
    );
    assert_eq!(call_output(&own, r#"{"a":"b"}"#).await, "found");
    let all = with_tool(&format!(
        "{parameters}\nhttp = {{ url = \"{address}/x\", method = \"PUT\" }}"
    ));
    assert_eq!(call_output(&all, r#"{"a":1,"n":null}"#).await, "found");
    let requests = requests.lock().unwrap().clone();
    let bodies: Vec<&str> = requests
        .iter()
        .filter_map(|request| Some(request.split_once("\r\n\r\n")?.1))
        .collect();
    assert_eq!(
        bodies,
        [
            r#"{"note":"about \",\"admin\":true","n":[1],"left_out":"[1]!","fixed":[1,"{x}"]}"#,
            r#"{"note":"about b","fixed":[1,"{x}"]}"#,
            r#"{"a":1,"n":null}"#,
        ]
    );
    assert_eq!(
        header(&requests[0], "content-type").unwrap(),
        "application/json"
    );
    assert!(requests[2].starts_with("PUT /x "));
}

#[tokio::test]
async fn arguments_that_violate_the_schema_are_not_sent() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        r#"
        parameters = {{ properties = {{ a = {{ type = "integer" }} }}, required = ["a"] }}
        http.url = "{address}/{{a}}"
        "#
    ));
    for arguments in [r#"{"a":"x"}"#, "{}", "[]", "not json", r#"{"a":null}"#] {
        let output = call_output(&text, arguments).await;
        assert!(output.contains("The tool failed: "), "{output}");
    }
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn error_statuses_redirects_and_long_answers_are_reported() {
    let ask =
        |address: &str| with_tool(&format!("http.url = \"{address}/\"\nmax_output_bytes = 8"));
    let (address, _) = server("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone").await;
    let output = call_output(&ask(&address), "{}").await;
    assert!(
        output.contains("the server answered 404 Not Found: none"),
        "{output}"
    );
    let (other, reached) = server(OK).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {other}\r\ncontent-length: 0\r\n\r\n");
    let (address, _) = server(Box::leak(redirect.into_boxed_str())).await;
    let output = call_output(&ask(&address), "{}").await;
    assert!(output.contains("redirects are not followed"), "{output}");
    assert_eq!(*reached.lock().unwrap(), Vec::<String>::new());
    let (address, _) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n0123456789012345").await;
    assert_eq!(
        call_output(&ask(&address), "{}").await,
        "01234567\n[cut after 8 bytes]"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_reported_without_its_url_and_a_slow_one_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{}} }} }}\nhttp.url = \"http://{address}/secret/{{a}}\""
    ));
    let output = call_output(&text, r#"{"a":1}"#).await;
    assert!(output.contains("refused"), "{output}");
    assert!(!output.contains("secret"), "{output}");
    // The connection is never accepted.
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = with_tool(&format!(
        "http.url = \"http://{}/\"\ntimeout_seconds = 0.2",
        slow.local_addr().unwrap()
    ));
    let output = call_output(&text, "{}").await;
    assert!(output.contains("timed out"), "{output}");
}

#[tokio::test]
async fn secrets_are_neither_traced_nor_shown_to_the_model() {
    let (address, requests) = server("HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nsad!").await;
    let text = with_tool(&format!(
        "http = {{ url = \"{address}/\", headers = {{ X-Key = {{ env = \"TOKEN\" }} }} }}"
    ));
    let tracer = switchboard_core::trace::MemoryTracer::new();
    let result = call_traced(&text, "{}", tracer.clone()).await.unwrap();
    assert!(requests.lock().unwrap()[0].contains("s3cret"));
    let spans = serde_json::to_string(&tracer.spans()).unwrap();
    assert!(
        spans.contains("sad!") && !spans.contains("s3cret"),
        "{spans}"
    );
    for item in result.new_items() {
        assert!(!item.item().as_json().contains("s3cret"));
    }
}

#[tokio::test]
async fn fields_outside_the_schema_are_rejected() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{ type = 'string' }} }} }}\nhttp = {{ url = \"{address}/\", method = 'POST' }}"
    ));
    let output = call_output(&text, r#"{"a":"1","admin":true}"#).await;
    assert!(output.contains("The tool failed"), "{output}");
    assert_eq!(call_output(&text, r#"{"a":"1"}"#).await, "found");
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_header_with_a_missing_argument_fails() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{}} }} }}\nhttp = {{ url = \"{address}/\", headers = {{ X-Scope = '{{a}}' }} }}"
    ));
    let output = call_output(&text, "{}").await;
    assert!(output.contains(r#""a" is missing"#), "{output}");
    let output = call_output(&text, r#"{"a":"x\r\nX-Admin: 1"}"#).await;
    assert!(output.contains("cannot hold line breaks"), "{output}");
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}
