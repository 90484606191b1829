//! The work that is measured.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use switchboard_core::{
    Agent, BoxError, Input, Item, Items, Model, ModelHandle, ModelRequest, ModelResponse, Runner,
    filters,
};

/// One piece of work, ready to be done again and again.
pub(crate) struct Work {
    runner: Runner,
    history: Option<Items>,
    forget: Box<dyn Fn()>,
}

impl Work {
    pub(crate) const NAMES: [&str; 10] = [
        "triage",
        "chain_10",
        "chain_50",
        "chain_100",
        "chain_200",
        "chain_200_recorded",
        "history_1000",
        "history_1000_without_tools",
        "history_1000_nested",
        "history_1000_recorded",
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let history_of = || Some(history(1000, 500));
        Some(match name {
            "triage" => Self::chain(1, None, false),
            "chain_200_recorded" => Self::chain(200, None, true),
            "history_1000" => Self::chain(1, history_of(), false),
            "history_1000_recorded" => Self::chain(1, history_of(), true),
            "history_1000_without_tools" => {
                let mut work = Self::chain(1, history_of(), false);
                work.runner = work
                    .runner
                    .handoff_input_filter(filters::remove_all_tools());
                work
            }
            "history_1000_nested" => {
                let mut work = Self::chain(1, history_of(), false);
                work.runner = work.runner.nest_handoff_history(true);
                work
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
        let model = std::sync::Arc::new(Replay {
            answers,
            next: AtomicUsize::new(0),
            kept: recorded.then(Mutex::default),
        });
        let forgotten = model.clone();
        Self {
            runner: Runner::new(&agent)
                .model(ModelHandle::from(model))
                .max_turns(None)
                .tracing_off(),
            history,
            forget: Box::new(move || forgotten.forget()),
        }
    }

    /// Does the work once.
    pub(crate) fn run(&self) {
        let input: Input = match &self.history {
            Some(history) => history.into(),
            None => "My bill is wrong".into(),
        };
        let result = self.runner.run(input).now_or_never();
        assert!(matches!(result, Some(Ok(_))), "{result:?}");
        (self.forget)();
    }
}

/// A model that answers the same again and again, and may keep what it is asked.
struct Replay {
    answers: Vec<ModelResponse>,
    next: AtomicUsize,
    kept: Option<Mutex<Vec<ModelRequest>>>,
}

impl Replay {
    fn forget(&self) {
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Model for Replay {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        if let Some(kept) = &self.kept {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.answers.len();
        Ok(self.answers[at].clone())
    }
}

/// A conversation of `items` items of about `size` bytes: messages, calls and their outputs.
pub(crate) fn history(items: usize, size: usize) -> Items {
    let text = "All work and no play makes for a long history. ".repeat(size / 47 + 1);
    let item = |n: usize| {
        let call_id = format!("history_{}", n / 4);
        match n % 4 {
            0 => Item::user(&text[..size - 30]),
            1 => Item::function_call(
                &call_id,
                "lookup",
                &format!("{{\"q\":\"{}\"}}", &text[..size - 100]),
            ),
            2 => Item::function_call_output(&call_id, &text[..size - 70]),
            _ => Item::output_message(&format!("msg_{n}"), &text[..size - 130]),
        }
    };
    (0..items).map(item).collect()
}

/// A model that never answers.
pub(crate) struct Parked;

impl Model for Parked {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let first = !request.handoffs.is_empty();
        if first {
            let call = Item::function_call("call_1", &request.handoffs[0].tool_name, "{}");
            return Ok(ModelResponse::new([call]));
        }
        std::future::pending().await
    }
}
