//! Counts and times, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, HandoffStatus, StreamEvent};

use crate::realtime::Direction;

/// The metrics of a service. No label has a value that clients choose, so their number is bounded.
pub(crate) struct Metrics {
    registry: Registry,
    runs: Family<RunLabels, Counter>,
    running: Gauge<i64, AtomicI64>,
    run_seconds: Family<TeamLabels, Histogram, fn() -> Histogram>,
    turns: Family<TeamLabels, Counter>,
    handoffs: Family<HandoffLabels, Counter>,
    tools: Family<ToolLabels, Counter>,
    tool_seconds: Family<TeamLabels, Histogram, fn() -> Histogram>,
    tokens: Family<TokenLabels, Counter>,
    cost: Counter<f64, AtomicU64>,
    retries: Family<TeamLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    refused: Family<ReasonLabels, Counter>,
    sessions: Family<SessionLabels, Counter>,
    sessions_open: Gauge<i64, AtomicI64>,
    session_seconds: Family<TeamLabels, Histogram, fn() -> Histogram>,
    dropped_audio_seconds: Family<DirectionLabels, Counter<f64, AtomicU64>>,
}

macro_rules! labels {
    ($($name:ident { $($field:ident),* })*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
            struct $name { $($field: String),* }
        )*
    };
}

labels! {
    TeamLabels { team }
    RunLabels { team, status }
    HandoffLabels { team, from, to, status }
    ToolLabels { team, tool, status }
    TokenLabels { team, kind }
    ErrorLabels { team, kind }
    RequestLabels { method, route, status }
    RouteLabels { route }
    ReasonLabels { reason }
    SessionLabels { team, reason }
    DirectionLabels { direction }
}

fn histogram() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    ])
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let histograms = || Family::new_with_constructor(histogram as fn() -> Histogram);
        let mut metrics = Self {
            registry: Registry::with_prefix("switchboard"),
            runs: Family::default(),
            running: Gauge::default(),
            run_seconds: histograms(),
            turns: Family::default(),
            handoffs: Family::default(),
            tools: Family::default(),
            tool_seconds: Family::new_with_constructor(histogram),
            tokens: Family::default(),
            cost: Counter::default(),
            retries: Family::default(),
            errors: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(histogram),
            refused: Family::default(),
            sessions: Family::default(),
            sessions_open: Gauge::default(),
            session_seconds: Family::new_with_constructor(histogram),
            dropped_audio_seconds: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("runs", "Runs that ended, by status", metrics.runs.clone());
        registry.register("runs_running", "Runs under way", metrics.running.clone());
        registry.register("run_seconds", "Time of runs", metrics.run_seconds.clone());
        registry.register("turns", "Turns begun", metrics.turns.clone());
        registry.register(
            "handoffs",
            "Handoffs by edge and outcome",
            metrics.handoffs.clone(),
        );
        registry.register(
            "tool_calls",
            "Tool calls, by outcome",
            metrics.tools.clone(),
        );
        registry.register(
            "tool_seconds",
            "Time of tool calls",
            metrics.tool_seconds.clone(),
        );
        registry.register("tokens", "Tokens of models", metrics.tokens.clone());
        registry.register(
            "cost",
            "Cost of models, in the currency of the prices",
            metrics.cost.clone(),
        );
        registry.register(
            "model_retries",
            "Model requests sent again",
            metrics.retries.clone(),
        );
        registry.register(
            "run_errors",
            "Runs that failed, by kind of error",
            metrics.errors.clone(),
        );
        registry.register(
            "http_requests",
            "Requests by route and status",
            metrics.requests.clone(),
        );
        registry.register(
            "http_request_seconds",
            "Time until the head of a response",
            metrics.request_seconds.clone(),
        );
        registry.register(
            "refused",
            "Requests refused by a limit",
            metrics.refused.clone(),
        );
        registry.register(
            "realtime_sessions",
            "Realtime sessions that ended, by reason",
            metrics.sessions.clone(),
        );
        registry.register(
            "realtime_sessions_open",
            "Realtime sessions that are open",
            metrics.sessions_open.clone(),
        );
        registry.register(
            "realtime_session_seconds",
            "Time of realtime sessions",
            metrics.session_seconds.clone(),
        );
        registry.register(
            "realtime_dropped_audio_seconds",
            "Audio that was dropped in realtime sessions",
            metrics.dropped_audio_seconds.clone(),
        );
        metrics
    }

    /// The metrics as text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            let _ = writeln!(text, "# EOF");
        }
        text
    }

    pub(crate) fn run_started(&self) {
        self.running.inc();
    }

    /// Counts the end of a run.
    pub(crate) fn run_ended(
        &self,
        team: &str,
        status: &str,
        time: Duration,
        usage: &Usage,
        cost: f64,
    ) {
        let team = team.to_owned();
        self.running.dec();
        let labels = RunLabels {
            team: team.clone(),
            status: status.to_owned(),
        };
        self.runs.get_or_create(&labels).inc();
        let labels = TeamLabels { team: team.clone() };
        self.run_seconds
            .get_or_create(&labels)
            .observe(time.as_secs_f64());
        self.add_tokens(&team, usage);
        self.cost.inc_by(cost);
    }

    /// Counts tokens.
    pub(crate) fn add_tokens(&self, team: &str, usage: &Usage) {
        let kinds = [
            ("input", usage.input_tokens),
            ("cached", usage.cached_tokens),
            ("output", usage.output_tokens),
            ("reasoning", usage.reasoning_tokens),
        ];
        for (kind, tokens) in kinds {
            let labels = TokenLabels {
                team: team.to_owned(),
                kind: kind.to_owned(),
            };
            self.tokens.get_or_create(&labels).inc_by(tokens);
        }
    }

    pub(crate) fn session_started(&self) {
        self.sessions_open.inc();
    }

    /// Counts the end of a realtime session.
    pub(crate) fn session_ended(&self, team: &str, reason: &str, time: Duration) {
        self.sessions_open.dec();
        let team = team.to_owned();
        let labels = SessionLabels {
            team: team.clone(),
            reason: reason.to_owned(),
        };
        self.sessions.get_or_create(&labels).inc();
        self.session_seconds
            .get_or_create(&TeamLabels { team })
            .observe(time.as_secs_f64());
    }

    /// Counts audio that was dropped.
    pub(crate) fn audio_dropped(&self, direction: Direction, ms: u64) {
        let labels = DirectionLabels {
            direction: json_name(&direction),
        };
        self.dropped_audio_seconds
            .get_or_create(&labels)
            .inc_by(ms as f64 / 1000.0);
    }

    /// Counts a handoff.
    pub(crate) fn handoff(&self, team: &str, from: &str, to: &str, status: HandoffStatus) {
        let labels = HandoffLabels {
            team: team.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            status: json_name(&status),
        };
        self.handoffs.get_or_create(&labels).inc();
    }

    /// Counts an event of a run. Tools of clients are counted under one name.
    pub(crate) fn observe(
        &self,
        team: &str,
        event: &StreamEvent,
        is_own_tool: impl FnOnce(&str) -> bool,
    ) {
        let team = team.to_owned();
        match &event.kind {
            EventKind::TurnStarted { .. } => {
                self.turns.get_or_create(&TeamLabels { team }).inc();
            }
            EventKind::ModelRetry { .. } => {
                self.retries.get_or_create(&TeamLabels { team }).inc();
            }
            EventKind::Handoff(handoff) => {
                self.handoff(&team, &handoff.from, &handoff.to, handoff.status);
            }
            EventKind::ToolEnded {
                tool,
                failed,
                seconds,
                ..
            } => {
                let name = if is_own_tool(tool) { tool } else { "(other)" };
                let labels = ToolLabels {
                    team: team.clone(),
                    tool: name.to_owned(),
                    status: (if *failed { "failed" } else { "ok" }).to_owned(),
                };
                self.tools.get_or_create(&labels).inc();
                self.tool_seconds
                    .get_or_create(&TeamLabels { team })
                    .observe(*seconds);
            }
            EventKind::RunFailed { error, .. } => {
                let labels = ErrorLabels {
                    team,
                    kind: json_name(error),
                };
                self.errors.get_or_create(&labels).inc();
            }
            _ => {}
        }
    }

    /// Counts a request.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, time: Duration) {
        let labels = RequestLabels {
            method: method.to_owned(),
            route: route.to_owned(),
            status: status.to_string(),
        };
        self.requests.get_or_create(&labels).inc();
        let labels = RouteLabels {
            route: route.to_owned(),
        };
        self.request_seconds
            .get_or_create(&labels)
            .observe(time.as_secs_f64());
    }

    /// Counts a request that a limit has refused.
    pub(crate) fn refused(&self, reason: &str) {
        let labels = ReasonLabels {
            reason: reason.to_owned(),
        };
        self.refused.get_or_create(&labels).inc();
    }
}

/// The name of a status or a kind in JSON.
fn json_name(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    let name = value.and_then(|value| Some(value.as_str()?.to_owned()));
    name.unwrap_or_default()
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}
