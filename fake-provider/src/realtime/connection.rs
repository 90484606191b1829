//! A WebSocket of a client.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::Shared;

/// A WebSocket of a client. Dropping the handle leaves the socket open until the client closes it.
pub struct RealtimeConnection {
    orders: mpsc::UnboundedSender<Order>,
    record: Arc<Record>,
}

/// An order of the test.
enum Order {
    Send(Message),
    Drop,
    Pause(bool),
}

#[derive(Default)]
struct Record {
    state: Mutex<Recorded>,
    changed: Notify,
}

#[derive(Default)]
struct Recorded {
    frames: Vec<Value>,
    /// The frames that [`RealtimeConnection::next_frame`] has not returned.
    unread: VecDeque<Value>,
    pongs: u64,
    pings: u64,
    close_code: Option<u16>,
    is_paused: bool,
    is_over: bool,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Recorded)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }
}

impl RealtimeConnection {
    /// Sends an event.
    pub fn send(&self, event: &Value) {
        self.order(Order::Send(Message::text(event.to_string())));
    }

    /// Sends a text frame.
    pub fn send_text(&self, text: &str) {
        self.order(Order::Send(Message::text(text)));
    }

    /// Sends a binary frame.
    pub fn send_binary(&self, bytes: impl Into<Bytes>) {
        self.order(Order::Send(Message::binary(bytes)));
    }

    /// Closes the connection with a code and a reason.
    pub fn close(&self, code: u16, reason: &str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.into(),
        };
        self.order(Order::Send(Message::Close(Some(frame))));
    }

    /// Breaks the connection without a word.
    pub fn break_off(&self) {
        self.order(Order::Drop);
    }

    /// Stops reading what the client sends, or goes on with it.
    pub fn pause_reading(&self, is_paused: bool) {
        self.order(Order::Pause(is_paused));
    }

    /// Sends a ping, and waits for the client's answer. Returns `false` if the connection has ended, or
    /// after two seconds: then the client does not read.
    pub async fn ping(&self) -> bool {
        let goal = {
            let mut state = self.record.lock();
            state.pings += 1;
            state.pings
        };
        self.order(Order::Send(Message::Ping(Bytes::new())));
        let answered =
            self.wait(|state| (state.pongs >= goal || state.is_over).then_some(!state.is_over));
        let answered = tokio::time::timeout(Duration::from_secs(2), answered).await;
        answered.unwrap_or(false)
    }

    /// Waits for the next frame of the client. `None` once the connection has ended.
    pub async fn next_frame(&self) -> Option<Value> {
        self.wait(|state| match state.unread.pop_front() {
            Some(frame) => Some(Some(frame)),
            None => state.is_over.then_some(None),
        })
        .await
    }

    /// Waits for the next frame of a type, and skips others. `None` once the connection has ended.
    pub async fn next_frame_of(&self, kind: &str) -> Option<Value> {
        loop {
            let frame = self.next_frame().await?;
            if frame["type"] == kind {
                return Some(frame);
            }
        }
    }

    /// Every frame of the client so far.
    pub fn frames(&self) -> Vec<Value> {
        self.record.lock().frames.clone()
    }

    /// The code with which the connection ended; 1006 if it was broken off. `None` while it is open.
    pub fn close_code(&self) -> Option<u16> {
        let state = self.record.lock();
        state.is_over.then_some(state.close_code.unwrap_or(1006))
    }

    /// Waits for the end of the connection, and returns its code.
    pub async fn ended(&self) -> u16 {
        self.wait(|state| state.is_over.then_some(state.close_code.unwrap_or(1006)))
            .await
    }

    async fn wait<T>(&self, mut ready: impl FnMut(&mut Recorded) -> Option<T>) -> T {
        loop {
            let changed = self.record.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the state is looked at, so that no change is missed.
            changed.as_mut().enable();
            let outcome = ready(&mut self.record.lock());
            if let Some(outcome) = outcome {
                return outcome;
            }
            changed.await;
        }
    }

    fn order(&self, order: Order) {
        // The connection may have ended; the test sees that by other means.
        let _ = self.orders.send(order);
    }
}

impl fmt::Debug for RealtimeConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeConnection")
            .field("frames", &self.record.lock().frames.len())
            .finish_non_exhaustive()
    }
}

/// The handle of a socket, and the future that serves it.
pub(super) fn serve(
    socket: WebSocketStream<TcpStream>,
    shared: Arc<Shared>,
) -> (RealtimeConnection, impl Future<Output = ()> + Send) {
    let (orders, receiver) = mpsc::unbounded_channel();
    let record = Arc::new(Record::default());
    let connection = RealtimeConnection {
        orders,
        record: record.clone(),
    };
    let serving = async move {
        run(socket, receiver, &shared, &record).await;
        record.change(|state| state.is_over = true);
    };
    (connection, serving)
}

async fn run(
    socket: WebSocketStream<TcpStream>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    shared: &Shared,
    record: &Record,
) {
    let (mut sink, mut stream) = socket.split();
    let writing = async {
        // Without orders the socket stays open: the reading side tells its end.
        while let Some(order) = orders.recv().await {
            match order {
                Order::Send(message) => {
                    let is_close = message.is_close();
                    if let (true, Message::Close(Some(frame))) = (is_close, &message) {
                        let code = frame.code.into();
                        record.change(|state| state.close_code = Some(code));
                    }
                    if sink.send(message).await.is_err() {
                        break;
                    }
                }
                Order::Drop => return true,
                Order::Pause(is_paused) => record.change(|state| state.is_paused = is_paused),
            }
        }
        std::future::pending().await
    };
    let reading = async {
        loop {
            while record.lock().is_paused {
                record.changed.notified().await;
            }
            let Some(message) = stream.next().await else {
                return;
            };
            match message {
                Ok(Message::Text(text)) => {
                    let frame = serde_json::from_str(&text).unwrap_or(Value::Null);
                    shared.check(&frame);
                    record.change(|state| {
                        state.frames.push(frame.clone());
                        state.unread.push_back(frame);
                    });
                }
                Ok(Message::Pong(_)) => record.change(|state| state.pongs += 1),
                Ok(Message::Close(frame)) => {
                    let code = frame.map_or(1005, |frame| frame.code.into());
                    record.change(|state| state.close_code = state.close_code.or(Some(code)));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    };
    tokio::select! {
        _ = writing => {}
        () = reading => {}
    }
}
