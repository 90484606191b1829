//! The callers: each has a conversation and a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Failed, Pace};
use crate::ages::Ages;

/// The messages after which a caller begins another conversation. A run holds what its model is shown for as long as it is
/// answered, so with ever longer conversations memory would grow.
const MESSAGES: usize = 10;

/// The longest mark of a piece: `@`, the time, `;`.
const MARK: usize = 24;

/// Callers that send messages and read the streamed answers.
#[derive(Debug, Clone, Copy)]
pub struct ServiceLoad {
    /// The number of callers, each with a conversation.
    pub conversations: usize,
    /// The time in which new messages are sent.
    pub seconds: f64,
    /// The pace of the answers.
    pub pace: Pace,
}

/// The counts of all callers.
struct Counts {
    ages: Ages,
    answered: AtomicU64,
    failed: AtomicU64,
    incomplete: AtomicU64,
    handoffs: AtomicU64,
}

impl ServiceLoad {
    /// Sends messages to the server at `url`, and returns the counts and the ages of the pieces.
    ///
    /// # Errors
    /// Returns an error if a connection is lost or an answer is not that of a service.
    pub fn run(self, url: &str) -> Result<Value, Failed> {
        let address = url
            .strip_prefix("http://")
            .ok_or("not an http:// address")?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let counts = Arc::new(Counts {
            ages: Ages::new(),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            handoffs: AtomicU64::new(0),
        });
        let started = Instant::now();
        runtime.block_on(self.call(address, &counts, started))?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(json!({
            "conversations": self.conversations,
            "seconds": started.elapsed().as_secs_f64(),
            "pieces": counts.ages.count(),
            "answered": count(&counts.answered),
            "failed": count(&counts.failed),
            "incomplete": count(&counts.incomplete),
            "handoffs": count(&counts.handoffs),
            "ages": counts.ages.to_json(),
        }))
    }

    async fn call(
        self,
        address: &str,
        counts: &Arc<Counts>,
        started: Instant,
    ) -> Result<(), Failed> {
        let answer_time = self.pace.pause.mul_f64(self.pace.pieces as f64);
        let mut callers = JoinSet::new();
        for number in 0..self.conversations {
            let (address, counts) = (address.to_owned(), counts.clone());
            // Spread over the time of an answer, so that as many begin as end.
            let share = number as f64 / self.conversations as f64;
            let delay = answer_time.mul_f64(share);
            callers.spawn(async move {
                tokio::time::sleep(delay).await;
                let mut caller = Caller::connect(&address).await?;
                for message in 0.. {
                    let conversation = format!("caller-{number}-{}", message / MESSAGES);
                    let pieces = self.pace.pieces as u64;
                    caller.send_message(&conversation, &counts, pieces).await?;
                    if started.elapsed() >= Duration::from_secs_f64(self.seconds) {
                        break;
                    }
                }
                Ok::<_, Failed>(())
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

struct Caller {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
}

impl Caller {
    async fn connect(address: &str) -> Result<Self, Failed> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            address: address.to_owned(),
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends a message and reads its answer to the end.
    async fn send_message(
        &mut self,
        conversation: &str,
        counts: &Counts,
        expected: u64,
    ) -> Result<(), Failed> {
        let body = r#"{"input":"My bill is wrong","stream":true}"#;
        let request = format!(
            "POST /api/conversations/{conversation}/messages HTTP/1.1\r\nhost: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        let mut answer = Answer::default();
        while !answer.has_ended {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let end = memchr::memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1);
            for line in self.buffer[..end].split_inclusive(|byte| *byte == b'\n') {
                answer.read_line(line.trim_ascii(), &counts.ages)?;
            }
            self.buffer.drain(..end);
        }
        counts
            .handoffs
            .fetch_add(answer.handoffs, Ordering::Relaxed);
        let counter = if answer.has_failed {
            &counts.failed
        } else if answer.has_finished && answer.pieces == expected {
            &counts.answered
        } else {
            &counts.incomplete
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The lines of a response that have been read.
#[derive(Default)]
struct Answer {
    has_begun: bool,
    has_finished: bool,
    has_failed: bool,
    handoffs: u64,
    pieces: u64,
    /// Set after the chunk of no bytes, which one more line follows.
    is_last_chunk: bool,
    has_ended: bool,
}

impl Answer {
    fn read_line(&mut self, line: &[u8], ages: &Ages) -> Result<(), Failed> {
        if !self.has_begun {
            self.has_begun = true;
            if !line.starts_with(b"HTTP/1.1 200") {
                return Err(String::from_utf8_lossy(line).into());
            }
        }
        self.has_ended = self.is_last_chunk;
        match line {
            b"0" => self.is_last_chunk = true,
            b"event: run_finished" => self.has_finished = true,
            b"event: run_failed" => self.has_failed = true,
            b"event: handoff" => self.handoffs += 1,
            _ if line.starts_with(b"data:") => self.pieces += note_pieces(line, ages),
            _ => {}
        }
        Ok(())
    }
}

/// Notes the ages of the pieces of a line. Returns their number.
fn note_pieces(bytes: &[u8], ages: &Ages) -> u64 {
    let mut pieces = 0;
    for at in memchr::memchr_iter(b'@', bytes) {
        let mark = &bytes[at + 1..];
        let Some(end) = memchr::memchr(b';', &mark[..mark.len().min(MARK)]) else {
            continue;
        };
        let time = std::str::from_utf8(&mark[..end]).ok();
        if let Some(time) = time.and_then(|time| time.parse().ok()) {
            ages.note(time);
            pieces += 1;
        }
    }
    pieces
}
