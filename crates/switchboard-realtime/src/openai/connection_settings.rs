//! Limits, times and the reconnection of a connection.

use std::path::PathBuf;
use std::time::Duration;

/// The limits and times of a connection to OpenAI's realtime server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionSettings {
    /// The time for making the connection; 10 seconds.
    pub handshake_timeout: Duration,
    /// The time between pings; 20 seconds. `None` sends none.
    pub ping_interval: Option<Duration>,
    /// The time for the answer to a ping; 20 seconds. `None` waits for ever.
    pub ping_timeout: Option<Duration>,
    /// The time in which the server must send anything after the connection was made or a response was
    /// asked for; a minute. `None` waits for ever.
    pub answer_timeout: Option<Duration>,
    /// The time in which the network must take what is sent; 30 seconds.
    pub write_timeout: Duration,
    /// The time for the server's answer to a close; 5 seconds.
    pub close_timeout: Duration,
    /// The bytes of the largest frame that is accepted; 8 MiB.
    pub max_frame_bytes: usize,
    /// The events that wait for their reader, before nothing more is read from the server; 1,024.
    pub max_waiting_events: usize,
    /// The bytes of the events that wait for their reader, before nothing more is read; 8 MiB.
    pub max_waiting_bytes: usize,
    /// The commands that wait for the network, before senders wait; 64.
    pub max_waiting_commands: usize,
    /// A file of certificates to trust beside the system's.
    pub certificates: Option<PathBuf>,
    /// The reconnection after a lost connection. `None` never connects again.
    pub reconnection: Option<Reconnection>,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            ping_interval: Some(Duration::from_secs(20)),
            ping_timeout: Some(Duration::from_secs(20)),
            answer_timeout: Some(Duration::from_secs(60)),
            write_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
            max_frame_bytes: 8 << 20,
            max_waiting_events: 1_024,
            max_waiting_bytes: 8 << 20,
            max_waiting_commands: 64,
            certificates: None,
            reconnection: Some(Reconnection::default()),
        }
    }
}

/// The reconnection after a lost connection, or after the provider has ended a session that lasted too
/// long (close code 1001).
///
/// The new session gets the settings and the conversation of the lost one. What is not known of it is the
/// sound of it: messages are replayed as their transcripts. Tools that run go on, and none runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnection {
    /// The number of attempts in a row; 6.
    pub max_attempts: u32,
    /// The time before the second attempt; 250 milliseconds. It doubles with each further attempt; the first
    /// is made at once.
    pub first_delay: Duration,
    /// The longest time between attempts; 10 seconds.
    pub max_delay: Duration,
    /// The time that a connection must last for the attempts to be counted anew; 30 seconds.
    pub stable_after: Duration,
}

impl Default for Reconnection {
    fn default() -> Self {
        Self {
            max_attempts: 6,
            first_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(10),
            stable_after: Duration::from_secs(30),
        }
    }
}

impl Reconnection {
    /// The time before an attempt, from 1, without jitter.
    pub(super) fn delay(&self, attempt: u32) -> Duration {
        if attempt <= 1 {
            return Duration::ZERO;
        }
        let doublings = (attempt - 2).min(20);
        let delay = self.first_delay.saturating_mul(1 << doublings);
        delay.min(self.max_delay)
    }

    /// Returns `true` if a connection that the server closed with this code is made again: not one that
    /// it ended on purpose, nor one that it would refuse again.
    pub(super) fn applies_to(code: Option<u16>) -> bool {
        match code {
            None => true,
            Some(code) => matches!(code, 1001 | 1005 | 1006 | 1011..=1014),
        }
    }
}
