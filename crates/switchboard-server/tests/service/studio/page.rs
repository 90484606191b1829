//! The page of the studio: its files, its policy, its token.

use super::*;
use crate::support::{Answer, answer, with_json};

async fn studio() -> (TestServer, Client) {
    let (studio, token) = Studio::with_token().unwrap();
    let server =
        TestServer::with(|builder| builder.studio(studio).hosts(["127.0.0.1", "localhost"])).await;
    let client = server.client_with(&token);
    (server, client)
}

#[tokio::test]
async fn the_page_is_served_with_a_policy_that_lets_nothing_else_run() {
    let (server, _) = studio().await;
    let page = server.client.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    for part in [
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers["x-frame-options"], "DENY");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert!(page.headers.get("access-control-allow-origin").is_none());
    assert!(page.headers.get("set-cookie").is_none());
    let tag = page.headers["etag"].clone();
    let request = server
        .client
        .request("GET", "/")
        .header("if-none-match", tag);
    assert_eq!(answer(request).await.status, 304);
    let script = server.client.get("/assets/studio.js").await;
    assert_eq!(
        script.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
    for path in [
        "/assets/..%2F..%2FCargo.toml",
        "/assets/.env",
        "/assets/none.js",
        "/index.html",
    ] {
        assert!(
            [401, 404].contains(&server.client.get(path).await.status),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_api_of_a_studio_needs_its_token() {
    let (server, client) = studio().await;
    for path in [
        "/api/studio",
        "/api/teams",
        "/api/conversations",
        "/v1/models",
        "/metrics",
    ] {
        assert_eq!(
            server.client.get(path).await.error_code(),
            (401, "unauthorized".to_owned()),
            "{path}"
        );
        assert_eq!(
            server.client_with("wrong").get(path).await.status,
            401,
            "{path}"
        );
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    // Not in the address, where it would be in logs.
    assert_eq!(server.client.get("/api/studio?token=x").await.status, 401);
}

#[tokio::test]
async fn a_name_or_a_page_of_another_site_does_not_reach_the_studio() {
    let (_server, client) = studio().await;
    let body = json!({"input": "hello"});
    let refused = async |request: reqwest::RequestBuilder| -> Answer { answer(request).await };
    for path in ["/", "/assets/studio.js", "/api/studio"] {
        let request = client.request("GET", path).header("host", "evil.example");
        assert_eq!(refused(request).await.status, 403, "{path}");
    }
    for origin in ["http://evil.example", "null", "http://localhost:1"] {
        let request = client.request("POST", "/api/conversations/c/messages");
        let request = with_json(request, &body).header("origin", origin);
        assert_eq!(refused(request).await.status, 403, "{origin}");
    }
    assert_eq!(client.get("/api/conversations/c").await.status, 404);
}
