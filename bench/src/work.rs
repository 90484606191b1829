//! Runs in this process, on a model that responds immediately.

use std::sync::Arc;

use futures_util::FutureExt as _;
use switchboard_core::items::Items;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Agent, Input, Item, ModelResponse, Runner, filters};

use crate::history::{LONG, history};
use crate::models::Replay;

/// A run to repeat.
pub struct Work {
    runner: Runner,
    history: Option<Items>,
    parse: Parse,
    /// Drops what the run recorded.
    clear: Box<dyn Fn()>,
}

/// The moment at which the history is parsed from JSON.
#[derive(Clone, Copy, PartialEq)]
enum Parse {
    /// All runs share the same items, and what is cached in them.
    Once,
    EachRun,
}

impl Work {
    /// The names of all cases.
    pub const NAMES: [&str; 14] = [
        "triage",
        "triage_traced",
        "chain_10",
        "chain_50",
        "chain_100",
        "chain_200",
        "chain_1000",
        "chain_200_recorded",
        "history_1000",
        "history_1000_without_tools",
        "history_1000_redacted",
        "history_1000_redacted_first",
        "history_1000_nested",
        "history_1000_recorded",
    ];

    /// Returns the case of this name.
    pub fn named(name: &str) -> Option<Self> {
        let over_history = || Self::chain(1, Some(history(LONG)), false);
        let redacted =
            || over_history().with(|runner| runner.handoff_input_filter(filters::redact_pii()));
        Some(match name {
            "triage" => Self::chain(1, None, false),
            "triage_traced" => Self::chain(1, None, false).traced(),
            "chain_200_recorded" => Self::chain(200, None, true),
            "history_1000" => over_history(),
            "history_1000_recorded" => Self::chain(1, Some(history(LONG)), true),
            "history_1000_without_tools" => over_history()
                .with(|runner| runner.handoff_input_filter(filters::remove_all_tools())),
            "history_1000_redacted" => redacted(),
            "history_1000_redacted_first" => Self {
                parse: Parse::EachRun,
                ..redacted()
            },
            "history_1000_nested" => {
                over_history().with(|runner| runner.nest_handoff_history(true))
            }
            _ => Self::chain(name.strip_prefix("chain_")?.parse().ok()?, None, false),
        })
    }

    /// A chain of `handoffs` handoffs from one agent to the next, and a final message.
    fn chain(handoffs: usize, history: Option<Items>, records_requests: bool) -> Self {
        let mut agent: Agent = Agent::new(format!("Agent {handoffs}")).instructions("Answer.");
        let mut responses = Vec::new();
        for n in (0..handoffs).rev() {
            agent = Agent::new(format!("Agent {n}"))
                .instructions("Pass it on.")
                .handoff(&agent);
            let call =
                Item::function_call(&format!("call_{n}"), agent.handoffs()[0].tool_name(), "{}");
            responses.push(ModelResponse::new([call]));
        }
        responses.reverse();
        responses.push(ModelResponse::new([Item::output_message("msg_1", "Done.")]));
        let model = Arc::new(Replay::new(responses, records_requests));
        let recorder = model.clone();
        Self {
            runner: Runner::new(&agent)
                .model(model)
                .max_turns(None)
                .tracing_off(),
            history,
            parse: Parse::Once,
            clear: Box::new(move || recorder.clear()),
        }
    }

    fn with(mut self, change: impl FnOnce(Runner) -> Runner) -> Self {
        self.runner = change(self.runner);
        self
    }

    /// Records the spans of each run in memory.
    fn traced(self) -> Self {
        let tracer = MemoryTracer::new();
        let mut work = self.with(|runner| runner.tracer(tracer.clone()));
        work.clear = Box::new(move || drop(tracer.take()));
        work
    }

    /// Runs it once.
    ///
    /// # Panics
    /// Panics if the run fails.
    pub fn run(&self) {
        let input: Input = match &self.history {
            Some(history) if self.parse == Parse::EachRun => parse_again(history).into(),
            Some(history) => history.into(),
            None => "My bill is wrong".into(),
        };
        let result = self.runner.run(input).now_or_never();
        assert!(matches!(result, Some(Ok(_))), "{result:?}");
        (self.clear)();
    }
}

/// Parses the items again, so that nothing is cached in them.
fn parse_again(items: &Items) -> Items {
    let parse = |item: &Item| Item::from_json(item.as_json()).unwrap_or_else(|_| item.clone());
    items.iter().map(parse).collect()
}
