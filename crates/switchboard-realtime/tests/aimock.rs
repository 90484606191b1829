//! A realtime session against a third-party server: npm's `@copilotkit/aimock`, which `./test` installs.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fake_provider::{RealtimeConnection, RealtimeServer};
use futures_util::{SinkExt as _, StreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::tool;
use switchboard_realtime::openai::OpenAiRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner};
use tokio_tungstenite::tungstenite::Message;

/// A server for one test.
struct Aimock {
    process: Child,
    address: String,
}

impl Aimock {
    fn start() -> Self {
        let program = std::env::var("SWITCHBOARD_AIMOCK").unwrap();
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aimock/fixtures.json");
        let mut process = Command::new(program)
            .args(["-p", "0", "-f", fixtures, "--log-level", "info"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some((_, url)) = line.split_once("http://") {
                let address = url.split_whitespace().next().unwrap();
                break address.trim_end_matches('/').to_owned();
            }
        };
        // Drained, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Passes the frames of a client on to the server, and the server's back, until one of them ends.
async fn relay(client: RealtimeConnection, address: String, target: String) {
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let url = format!("ws://{address}{target}");
    let (mut server, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    loop {
        tokio::select! {
            frame = client.next_frame() => match frame {
                Some(frame) => server.send(Message::text(frame.to_string())).await.unwrap(),
                None => return,
            },
            message = server.next() => match message {
                Some(Ok(Message::Text(text))) => client.send_text(&text),
                Some(Ok(_)) => {}
                _ => return client.break_off(),
            },
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    id: String,
}

#[tokio::test]
#[ignore = "needs aimock: `./test` installs it and sets SWITCHBOARD_AIMOCK"]
async fn a_call_is_handed_over_on_one_socket() {
    let aimock = Aimock::start();
    // Checks every frame on its way.
    let tap = RealtimeServer::start().await.unwrap();
    let shipping: RealtimeAgent = RealtimeAgent::new("shipping").instructions("You are shipping.");
    let desk = RealtimeAgent::new("desk")
        .instructions("You are the desk.")
        .tool(
            tool("lookup_order")
                .description("Looks an order up.")
                .run(|_ctx, order: Order| format!("order {} is packed", order.id)),
        )
        .handoff(&shipping);
    let model = OpenAiRealtimeModel::new()
        .api_key("sk-test")
        .base_url(tap.url());
    let connecting = RealtimeRunner::new(&desk).model(model).connect();
    let mut session = connecting.await.unwrap();
    let client = tap.connection().await;
    let handshake = &tap.handshakes()[0];
    let target = format!("{}?{}", handshake.path, handshake.query);
    tokio::spawn(relay(client, aimock.address.clone(), target));

    session.send_message("Where is my order?").await.unwrap();
    let mut told = Vec::new();
    let talking = async {
        while let Some(event) = session.next().await {
            match event.unwrap() {
                RealtimeEvent::ToolStart(call) => {
                    told.push(format!("{} calls {}", call.agent, call.tool))
                }
                RealtimeEvent::ToolEnd { output, .. } => told.push(format!("output {output}")),
                RealtimeEvent::Handoff { from, to } => told.push(format!("{from} → {to}")),
                RealtimeEvent::Error(problem) => panic!("{}", problem.message()),
                RealtimeEvent::AgentEnd { agent } if *agent == *"shipping" => break,
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), talking)
        .await
        .expect("the conversation ends");

    assert_eq!(
        told,
        [
            "desk calls lookup_order",
            "output \"order A1 is packed\"",
            "desk → shipping"
        ]
    );
    assert_eq!(&*session.agent(), "shipping");
    let history = session.history();
    let last = history.messages().last().map(|(_, text)| text);
    assert_eq!(last.as_deref(), Some("Your order ships today. 今天发货。"));
    assert_eq!(tap.handshakes().len(), 1, "one socket");
    tap.assert_valid();

    session.send_message("hello").await.unwrap();
    let answering = async {
        while let Some(event) = session.next().await {
            if let RealtimeEvent::AgentEnd { agent } = event.unwrap() {
                assert_eq!(&*agent, "shipping");
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), answering)
        .await
        .expect("the answer ends");
    let last = session.history().messages().last().map(|(_, text)| text);
    assert_eq!(last.as_deref(), Some("Good morning!"));
    session.close().await.unwrap();
    tap.assert_valid();
}
