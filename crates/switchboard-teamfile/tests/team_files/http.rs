//! Tools that ask a server.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{call_traced, output, with_tool};

/// A server that gives every request the same answer, and the requests it got.
async fn server(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            // Requests here are small: head and body come at once, or the body right after.
            while let Ok(read) = stream.read(&mut chunk).await {
                request.extend_from_slice(&chunk[..read]);
                if read == 0 || is_whole(&request) {
                    break;
                }
            }
            kept.lock()
                .unwrap()
                .push(String::from_utf8(request).unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, requests)
}

fn is_whole(request: &[u8]) -> bool {
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

fn head(request: &str, name: &str) -> Option<String> {
    request.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

#[tokio::test]
async fn arguments_are_put_where_the_file_says_and_escaped_there() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        r#"
        parameters = {{ properties = {{ a = {{ type = "string" }}, n = {{ type = "integer" }} }} }}
        http.url = "{address}/customers/{{context.customer}}/invoices/{{a}}"
        http.query = {{ limit = "{{n}}", of = "x {{a}}" }}
        http.headers = {{ Authorization = {{ env = "TOKEN", prefix = "Bearer " }}, X-Note = "for {{context.customer}}" }}
        "#
    ));
    assert_eq!(output(&text, r#"{"a":"_/1?x&y","n":3}"#).await, "found");
    assert_eq!(output(&text, r#"{"a":"7"}"#).await, "found");
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
        head(&requests[0], "authorization").unwrap(),
        "Bearer s3cret"
    );
    assert_eq!(head(&requests[0], "x-note").unwrap(), "for C-1");
}

#[tokio::test]
async fn bodies_are_json_with_the_values_as_they_are() {
    let (address, requests) = server(OK).await;
    let parameters = r#"parameters = { properties = { a = {}, n = {} } }"#;
    let own = with_tool(&format!(
        r#"
        {parameters}
        http = {{ url = "{address}/", method = "POST", body = {{ note = "about {{a}}", n = "{{n}}", left_out = "{{n}}!", fixed = [1, "{{{{x}}}}"] }} }}
        "#
    ));
    assert_eq!(
        output(&own, r#"{"a":"\",\"admin\":true","n":[1]}"#).await,
        "found"
    );
    assert_eq!(output(&own, r#"{"a":"b"}"#).await, "found");
    let all = with_tool(&format!(
        "{parameters}\nhttp = {{ url = \"{address}/x\", method = \"PUT\" }}"
    ));
    assert_eq!(output(&all, r#"{"a":1,"n":null}"#).await, "found");
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
        head(&requests[0], "content-type").unwrap(),
        "application/json"
    );
    assert!(requests[2].starts_with("PUT /x "));
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_not_sent() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        r#"
        parameters = {{ properties = {{ a = {{ type = "integer" }} }}, required = ["a"] }}
        http.url = "{address}/{{a}}"
        "#
    ));
    for arguments in [r#"{"a":"x"}"#, "{}", "[]", "not json", r#"{"a":null}"#] {
        let told = output(&text, arguments).await;
        assert!(told.contains("The tool failed: "), "{told}");
    }
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn refusals_redirects_and_floods_are_told() {
    let ask =
        |address: &str| with_tool(&format!("http.url = \"{address}/\"\nmax_output_bytes = 8"));
    let (address, _) = server("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone").await;
    let told = output(&ask(&address), "{}").await;
    assert!(
        told.contains("the server answered 404 Not Found: none"),
        "{told}"
    );
    let (other, reached) = server(OK).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {other}\r\ncontent-length: 0\r\n\r\n");
    let (address, _) = server(Box::leak(redirect.into_boxed_str())).await;
    let told = output(&ask(&address), "{}").await;
    assert!(told.contains("redirects are not followed"), "{told}");
    assert_eq!(*reached.lock().unwrap(), Vec::<String>::new());
    let (address, _) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n0123456789012345").await;
    assert_eq!(
        output(&ask(&address), "{}").await,
        "01234567\n[cut after 8 bytes]"
    );
}

#[tokio::test]
async fn a_dead_server_is_told_without_its_address_and_a_slow_one_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{}} }} }}\nhttp.url = \"http://{address}/secret/{{a}}\""
    ));
    let told = output(&text, r#"{"a":1}"#).await;
    assert!(told.contains("refused"), "{told}");
    assert!(!told.contains("secret"), "{told}");
    // Nobody accepts.
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = with_tool(&format!(
        "http.url = \"http://{}/\"\ntimeout_seconds = 0.2",
        slow.local_addr().unwrap()
    ));
    let told = output(&text, "{}").await;
    assert!(told.contains("timed out"), "{told}");
}

#[tokio::test]
async fn secrets_are_in_nothing_that_is_told() {
    // Nothing of the request is in what is told, whatever went wrong with it.
    let (address, requests) = server("HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nsad!").await;
    let text = with_tool(&format!(
        "http = {{ url = \"{address}/\", headers = {{ X-Key = {{ env = \"TOKEN\" }} }} }}"
    ));
    let tracer = switchboard_core::MemoryTracer::new();
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
async fn a_model_adds_no_fields_of_its_own() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{ type = 'string' }} }} }}\nhttp = {{ url = \"{address}/\", method = 'POST' }}"
    ));
    let told = output(&text, r#"{"a":"1","admin":true}"#).await;
    assert!(told.contains("The tool failed"), "{told}");
    assert_eq!(output(&text, r#"{"a":"1"}"#).await, "found");
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_header_whose_argument_is_absent_is_not_left_out() {
    let (address, requests) = server(OK).await;
    let text = with_tool(&format!(
        "parameters = {{ properties = {{ a = {{}} }} }}\nhttp = {{ url = \"{address}/\", headers = {{ X-Scope = '{{a}}' }} }}"
    ));
    let told = output(&text, "{}").await;
    assert!(told.contains(r#""a" is missing"#), "{told}");
    let told = output(&text, r#"{"a":"x\r\nX-Admin: 1"}"#).await;
    assert!(told.contains("cannot hold line breaks"), "{told}");
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}
