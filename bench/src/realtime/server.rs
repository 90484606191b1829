//! The server of realtime sessions under load. It speaks for half of the time, hands the call over, speaks for
//! the other half, and hears the caller all the time.

use std::borrow::Cow;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cpu_time::ProcessTime;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::Failed;
use super::stamp::{note_base64_frame, stamped_frame};
use crate::ages::Ages;

/// The frames of audio for each piece of the transcript.
const FRAMES_PER_WORD: u64 = 10;

/// A server of realtime sessions, on a port of its own.
pub struct RealtimeLoadServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Runtime,
}

struct Shared {
    frame: Duration,
    /// The frames of each of the two answers.
    frames: u64,
    heard: Ages,
    sent: AtomicU64,
}

impl RealtimeLoadServer {
    /// Starts a server whose two agents speak for `seconds` together, in frames of this length.
    ///
    /// # Errors
    /// Returns an error if the runtime cannot start or no port is free.
    pub fn start(frame: Duration, seconds: f64) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of frames is small"
        )]
        let frames = (seconds / 2.0 / frame.as_secs_f64()) as u64;
        let shared = Arc::new(Shared {
            frame,
            frames,
            heard: Ages::new(),
            sent: AtomicU64::new(0),
        });
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(listen(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            runtime,
        })
    }

    /// The address: `ws://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Stops the server, and returns what it has heard and sent.
    pub fn stop(self) -> Value {
        self.runtime.shutdown_background();
        let cpu = ProcessTime::try_now().map_or(0.0, |cpu| cpu.as_duration().as_secs_f64());
        json!({
            "cpu_s": cpu,
            "frames_sent": self.shared.sent.load(Ordering::Relaxed),
            "frames_received": self.shared.heard.count(),
            "heard": self.shared.heard.to_json(),
        })
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &shared).await {
                eprintln!("a call failed: {error}");
            }
        });
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> Result<(), Failed> {
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(16 << 10);
    let socket = tokio_tungstenite::accept_async_with_config(stream, Some(config)).await?;
    let (sink, mut stream) = socket.split();
    let mut call = Call {
        sink,
        shared,
        instructions: String::new(),
        answers: 0,
        speech: None,
    };
    call.send(
        &json!({"type": "session.created", "event_id": "e", "session": {"type": "realtime"}}),
    )
    .await?;
    loop {
        tokio::select! {
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => call.hear(&text).await?,
                Some(Ok(_)) => {}
                // The caller is gone.
                Some(Err(_)) | None => return Ok(()),
            },
            () = next_frame(&mut call.speech) => call.speak().await?,
        }
    }
}

/// Waits until the next frame of an answer is due.
async fn next_frame(speech: &mut Option<Speech>) {
    match speech {
        Some(speech) => {
            speech.ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// A call.
struct Call<'a> {
    sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    shared: &'a Shared,
    instructions: String,
    /// The answers so far.
    answers: u32,
    speech: Option<Speech>,
}

/// An answer that is being spoken.
struct Speech {
    ticks: Interval,
    spoken: u64,
}

/// The fields of a client event that matter here.
#[derive(Deserialize)]
struct ClientEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    audio: Option<Cow<'a, str>>,
    session: Option<Session>,
    item: Option<Value>,
}

#[derive(Deserialize)]
struct Session {
    instructions: Option<String>,
}

impl Call<'_> {
    async fn send(&mut self, event: &Value) -> Result<(), Failed> {
        let text: Utf8Bytes = event.to_string().into();
        self.sink.send(Message::Text(text)).await?;
        Ok(())
    }

    async fn hear(&mut self, text: &str) -> Result<(), Failed> {
        let event: ClientEvent<'_> = serde_json::from_str(text)?;
        match &*event.kind {
            "input_audio_buffer.append" => {
                note_base64_frame(&self.shared.heard, &event.audio.unwrap_or_default());
                Ok(())
            }
            "session.update" => {
                if let Some(instructions) = event.session.and_then(|session| session.instructions) {
                    self.instructions = instructions;
                }
                let session = json!({"type": "realtime", "instructions": self.instructions});
                self.send(&json!({"type": "session.updated", "event_id": "e", "session": session}))
                    .await
            }
            "conversation.item.create" => {
                let mut item = event.item.unwrap_or_default();
                item["id"] = format!("item_{}", self.answers).into();
                self.send(&json!({
                    "type": "conversation.item.added", "event_id": "e", "previous_item_id": null, "item": item,
                }))
                .await
            }
            "response.create" => self.begin_answer().await,
            _ => Ok(()),
        }
    }

    async fn begin_answer(&mut self) -> Result<(), Failed> {
        self.answers += 1;
        let response = json!({"id": self.response_id(), "status": "in_progress"});
        self.send(&json!({"type": "response.created", "event_id": "e", "response": response}))
            .await?;
        let mut ticks = tokio::time::interval(self.shared.frame);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        self.speech = Some(Speech { ticks, spoken: 0 });
        Ok(())
    }

    fn response_id(&self) -> String {
        format!("resp_{}", self.answers)
    }

    /// Sends a frame of the answer, or its end.
    async fn speak(&mut self) -> Result<(), Failed> {
        let Some(speech) = &mut self.speech else {
            return Ok(());
        };
        if speech.spoken == self.shared.frames {
            self.speech = None;
            return self.end_answer().await;
        }
        speech.spoken += 1;
        let has_word = speech.spoken % FRAMES_PER_WORD == 0;
        let place = format!(
            r#""event_id":"e","response_id":"resp_{0}","item_id":"speech_{0}","output_index":0,"content_index":0"#,
            self.answers
        );
        let audio = STANDARD.encode(stamped_frame(self.shared.frame));
        let text = format!(r#"{{"type":"response.output_audio.delta",{place},"delta":"{audio}"}}"#);
        self.sink.send(Message::text(text)).await?;
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        if has_word {
            let text = format!(
                r#"{{"type":"response.output_audio_transcript.delta",{place},"delta":"word "}}"#
            );
            self.sink.send(Message::text(text)).await?;
        }
        Ok(())
    }

    /// Ends an answer; the first with the call of the handoff.
    async fn end_answer(&mut self) -> Result<(), Failed> {
        let response_id = self.response_id();
        if self.answers == 1 {
            let item = json!({
                "type": "function_call", "id": "item_call", "status": "completed", "call_id": "call_1",
                "name": "transfer_to_billing", "arguments": "{}",
            });
            self.send(&json!({
                "type": "response.output_item.done", "event_id": "e", "response_id": response_id, "output_index": 1,
                "item": item,
            }))
            .await?;
        }
        let response = json!({"id": response_id, "status": "completed"});
        self.send(&json!({"type": "response.done", "event_id": "e", "response": response}))
            .await
    }
}
