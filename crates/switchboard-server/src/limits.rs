//! The bounds of a service.

use std::time::Duration;

/// The bounds of a service. Everything that a client can make grow has one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The bytes of a request's body.
    pub body_bytes: usize,
    /// The number of runs at once, over all keys. More are refused with 503.
    pub runs: usize,
    /// The number of requests at once. More are refused with 503.
    pub requests: usize,
    /// The number of connections at once. More wait in the system's queue.
    pub connections: usize,
    /// The bytes of a request's head.
    pub header_bytes: usize,
    /// The time in which a request's head must arrive.
    pub header_time: Duration,
    /// The time in which a request's body must arrive.
    pub body_time: Duration,
    /// The time of a run. It is then stopped after its turn.
    pub run_time: Duration,
    /// The time that such a turn has to end. The run is then stopped at once.
    pub stop_time: Duration,
    /// The time for which a client may read nothing while there is something to be sent.
    pub write_time: Duration,
    /// The time for which a message waits for other runs of its conversation.
    pub conversation_wait: Duration,
    /// The number of events of a run that are kept for clients that come back.
    pub events: usize,
    /// The bytes of these events.
    pub event_bytes: usize,
    /// The time for which the events of a run that has ended are kept.
    pub keep_ended: Duration,
    /// The number of runs that have ended whose events are kept.
    pub ended_runs: usize,
    /// The time that a stored response of the Responses protocol, or a task of A2A, is kept.
    pub keep_responses: Duration,
    /// The number of realtime sessions at once. More are refused with 503.
    pub realtime_sessions: usize,
    /// The time of a realtime session. It is then ended.
    pub realtime_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            runs: 1024,
            requests: 4096,
            connections: 8192,
            header_bytes: 32 << 10,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            run_time: Duration::from_secs(600),
            stop_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            conversation_wait: Duration::from_secs(30),
            events: 20_000,
            event_bytes: 4 << 20,
            keep_ended: Duration::from_secs(300),
            ended_runs: 4096,
            keep_responses: Duration::from_secs(30 * 24 * 60 * 60),
            realtime_sessions: 256,
            realtime_time: Duration::from_secs(3600),
        }
    }
}
