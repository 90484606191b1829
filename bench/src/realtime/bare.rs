//! A caller with nothing but a WebSocket: the frames of a session, ready-made, and no more work on the answers than
//! decoding their audio.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::Failed;
use super::load::{Call, Caller};
use super::stamp::note_frame;

type Socket = WebSocketStream<TcpStream>;

/// A caller with nothing but a WebSocket.
pub(super) struct BareCaller {
    sink: Arc<Mutex<SplitSink<Socket, Message>>>,
    stream: SplitStream<Socket>,
}

/// The fields of an event that matter here.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
    item: Option<Item>,
}

#[derive(Deserialize)]
struct Item {
    call_id: Option<String>,
}

impl BareCaller {
    pub(super) async fn connect(url: &str) -> Result<Self, Failed> {
        let address = url.trim_start_matches("ws://");
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .write_buffer_size(16 << 10);
        let url = format!("{url}/v1/realtime");
        let connected = tokio_tungstenite::client_async_with_config(url, stream, Some(config));
        let (sink, stream) = connected.await?.0.split();
        let caller = Self {
            sink: Arc::new(Mutex::new(sink)),
            stream,
        };
        caller.update("Greet the caller.").await?;
        Ok(caller)
    }

    async fn send(&self, text: String) -> Result<(), Failed> {
        self.sink.lock().await.send(Message::text(text)).await?;
        Ok(())
    }

    async fn update(&self, instructions: &str) -> Result<(), Failed> {
        let session = format!(r#"{{"type":"realtime","instructions":"{instructions}"}}"#);
        self.send(format!(
            r#"{{"type":"session.update","session":{session}}}"#
        ))
        .await
    }

    /// Adds an item and asks for a response.
    async fn ask(&self, item: &str) -> Result<(), Failed> {
        self.send(format!(
            r#"{{"type":"conversation.item.create","item":{item}}}"#
        ))
        .await?;
        self.send(r#"{"type":"response.create"}"#.to_owned()).await
    }
}

impl Caller for BareCaller {
    async fn talk(mut self, call: Call) -> Result<(), Failed> {
        self.ask(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]}"#,
        )
        .await?;
        let sink = self.sink.clone();
        let speaking = tokio::spawn(call.speaking(move |frame| {
            let sink = sink.clone();
            async move {
                let audio = STANDARD.encode(frame);
                let text = format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#);
                sink.lock().await.send(Message::text(text)).await?;
                Ok(())
            }
        }));
        let mut responses = 0;
        while let Some(message) = self.stream.next().await {
            let Message::Text(text) = message? else {
                continue;
            };
            let event: Event<'_> = serde_json::from_str(&text)?;
            match &*event.kind {
                "response.output_audio.delta" => {
                    let audio = STANDARD.decode(event.delta.unwrap_or_default().as_bytes())?;
                    note_frame(&call.counts.heard, &audio);
                }
                "response.output_item.done" => {
                    let Some(call_id) = event.item.and_then(|item| item.call_id) else {
                        continue;
                    };
                    self.update("You handle bills.").await?;
                    let output = r#""output":"{\"assistant\": \"Billing\"}""#;
                    let item = format!(
                        r#"{{"type":"function_call_output","call_id":"{call_id}",{output}}}"#
                    );
                    self.ask(&item).await?;
                    call.counts.handoffs.fetch_add(1, Ordering::Relaxed);
                }
                "response.done" => {
                    responses += 1;
                    if responses == 2 {
                        break;
                    }
                }
                _ => {}
            }
        }
        call.end();
        speaking.await??;
        self.sink.lock().await.close().await?;
        // The server has read everything when it answers the close.
        while let Some(Ok(_)) = self.stream.next().await {}
        Ok(())
    }
}
