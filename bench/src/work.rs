//! Runs in this process, on a model that answers at once.

use std::sync::Arc;

use futures_util::FutureExt as _;
use switchboard_core::{
    Agent, Input, Item, Items, MemoryTracer, ModelHandle, ModelResponse, Runner, filters,
};

use crate::history::{LONG, history};
use crate::models::Replay;

/// One piece of work, ready to be done again and again.
pub struct Work {
    runner: Runner,
    history: Option<Items>,
    reads: Reads,
    forget: Box<dyn Fn()>,
}

/// Whether each run reads its history from JSON.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// All go on with the same items, and with what was found out about them.
    Once,
    Anew,
}

impl Work {
    /// What there is to do.
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

    /// The work of this name.
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
                reads: Reads::Anew,
                ..redacted()
            },
            "history_1000_nested" => {
                over_history().with(|runner| runner.nest_handoff_history(true))
            }
            _ => Self::chain(name.strip_prefix("chain_")?.parse().ok()?, None, false),
        })
    }

    /// `handoffs` handoffs, one agent to the next, and an answer.
    fn chain(handoffs: usize, history: Option<Items>, recorded: bool) -> Self {
        let mut agent: Agent = Agent::new(format!("Agent {handoffs}")).instructions("Answer.");
        let mut answers = Vec::new();
        for n in (0..handoffs).rev() {
            agent = Agent::new(format!("Agent {n}"))
                .instructions("Pass it on.")
                .handoff(&agent);
            let call =
                Item::function_call(&format!("call_{n}"), agent.handoffs()[0].tool_name(), "{}");
            answers.push(ModelResponse::new([call]));
        }
        answers.reverse();
        answers.push(ModelResponse::new([Item::output_message("msg_1", "Done.")]));
        let model = Arc::new(Replay::new(answers, recorded));
        let forgotten = model.clone();
        Self {
            runner: Runner::new(&agent)
                .model(ModelHandle::from(model))
                .max_turns(None)
                .tracing_off(),
            history,
            reads: Reads::Once,
            forget: Box::new(move || forgotten.forget()),
        }
    }

    fn with(mut self, change: impl FnOnce(Runner) -> Runner) -> Self {
        self.runner = change(self.runner);
        self
    }

    /// The same with its spans kept in memory, until the run is over.
    fn traced(self) -> Self {
        let tracer = MemoryTracer::new();
        let mut work = self.with(|runner| runner.tracer(tracer.clone()));
        work.forget = Box::new(move || drop(tracer.take()));
        work
    }

    /// Does the work once.
    ///
    /// # Panics
    /// Where the run fails: then nothing was measured.
    pub fn run(&self) {
        let input: Input = match &self.history {
            Some(history) if self.reads == Reads::Anew => read_anew(history).into(),
            Some(history) => history.into(),
            None => "My bill is wrong".into(),
        };
        let result = self.runner.run(input).now_or_never();
        assert!(matches!(result, Some(Ok(_))), "{result:?}");
        (self.forget)();
    }
}

/// The same items, of which nothing is known yet.
fn read_anew(items: &Items) -> Items {
    let read = |item: &Item| Item::from_json(item.as_json()).unwrap_or_else(|_| item.clone());
    items.iter().map(read).collect()
}
