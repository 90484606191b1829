//! Runs that are made again from a journal.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::handoff::HandoffContext;
use switchboard_core::journal::{
    Effect, Journal, JournalHandle, Outcome, Repeat, StepKey, StepKind, Stepped, Transient,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Runner, Session as _, Tool, filters, handoff, tool};

/// A journal in memory. Clones share it.
#[derive(Clone, Default)]
struct MemoryJournal(Arc<Mutex<Steps>>);

#[derive(Default)]
struct Steps {
    begun: HashSet<StepKey>,
    outcomes: HashMap<StepKey, Arc<str>>,
    order: Vec<String>,
}

impl MemoryJournal {
    fn handle(&self) -> JournalHandle {
        JournalHandle::new(self.clone())
    }

    fn order(&self) -> Vec<String> {
        self.0.lock().unwrap().order.clone()
    }

    /// Forgets the outcomes of a kind, as if the process had ended before they were recorded.
    fn forget(&self, kind: StepKind) {
        self.0
            .lock()
            .unwrap()
            .outcomes
            .retain(|key, _| key.kind != kind);
    }
}

impl Journal for MemoryJournal {
    async fn step(
        &self,
        key: &StepKey,
        repeat: Repeat,
        effect: Effect<'_>,
    ) -> Result<Stepped, BoxError> {
        {
            let mut steps = self.0.lock().unwrap();
            if let Some(outcome) = steps.outcomes.get(key) {
                return Ok(Stepped::Recorded(outcome.clone()));
            }
            let is_new = steps.begun.insert(key.clone());
            if repeat == Repeat::AtMostOnce && !is_new {
                return Ok(Stepped::Unknown);
            }
        }
        if let Outcome::Value(outcome) = effect.await {
            let mut steps = self.0.lock().unwrap();
            steps.order.push(key.to_string());
            steps.outcomes.insert(key.clone(), outcome);
        }
        Ok(Stepped::Ran)
    }
}

/// A journal that cannot be written.
struct BrokenJournal;

impl Journal for BrokenJournal {
    async fn step(&self, _: &StepKey, _: Repeat, _: Effect<'_>) -> Result<Stepped, BoxError> {
        Err("the disk is full".into())
    }
}

type Effects = Arc<Mutex<Vec<&'static str>>>;

/// A team with a tool, a handoff with a callback and a filter.
fn triage(effects: &Effects, look: fn() -> Result<&'static str, BoxError>) -> Agent {
    let note = |name: &'static str| {
        let effects = effects.clone();
        move || effects.lock().unwrap().push(name)
    };
    let (noted_look, noted_pay, noted_callback) = (note("look"), note("pay"), note("callback"));
    let look: Tool = tool("look").fail_run().run(move |_ctx, (): ()| {
        noted_look();
        look()
    });
    let pay: Tool = tool("pay").at_most_once().run(move |_ctx, (): ()| {
        noted_pay();
        "paid"
    });
    let billing = Agent::new("Billing").tool(pay);
    let to_billing = handoff(&billing)
        .filter(filters::keep_last(6))
        .on_handoff(move |_ctx: HandoffContext| noted_callback());
    Agent::new("Triage").tool(look).handoff(to_billing)
}

fn script() -> ScriptedModel {
    ScriptedModel::new()
        .call("look", "{}")
        .call("transfer_to_billing", "{}")
        .call("pay", "{}")
        .say("Paid.")
}

#[tokio::test]
async fn a_run_made_again_from_its_journal_repeats_no_effect() {
    let (effects, journal, model) = (Effects::default(), MemoryJournal::default(), script());
    let conversations = Conversations::in_memory();
    let session = conversations.get("talk");
    let agent = triage(&effects, || Ok("seen"));
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let run = runner.begin("Pay it");

    let first = runner
        .clone()
        .journal(journal.handle())
        .resume(run.clone())
        .await
        .unwrap();
    assert_eq!(first.final_text(), "Paid.");
    let steps = journal.order();
    assert_eq!(*effects.lock().unwrap(), ["look", "callback", "pay"]);
    let stored = session.load(None).await.unwrap();

    let second = runner.journal(journal.handle()).resume(run).await.unwrap();
    assert_eq!(second.final_text(), "Paid.");
    assert_eq!(second.new_items().len(), first.new_items().len());
    assert_eq!(second.usage(), first.usage());
    assert_eq!(*effects.lock().unwrap(), ["look", "callback", "pay"]);
    assert_eq!(model.requests().len(), 4);
    assert_eq!(journal.order(), steps);
    assert_eq!(session.load(None).await.unwrap(), stored);
    assert!(steps.contains(&"0/model/Triage".to_owned()), "{steps:?}");
}

#[tokio::test]
async fn a_tool_that_may_run_once_and_was_interrupted_is_told_to_the_model() {
    let (effects, journal) = (Effects::default(), MemoryJournal::default());
    let agent = triage(&effects, || Ok("seen"));
    let runner = Runner::new(&agent).model(script());
    let run = runner.begin("Pay it");
    runner
        .clone()
        .journal(journal.handle())
        .resume(run.clone())
        .await
        .unwrap();

    journal.forget(StepKind::Tool);
    let again = runner.journal(journal.handle()).resume(run).await.unwrap();
    assert_eq!(
        *effects.lock().unwrap(),
        ["look", "callback", "pay", "look"]
    );
    let items = again.to_input_list();
    let outputs: Vec<_> = items.iter().filter_map(|item| item.output_text()).collect();
    assert_eq!(
        outputs.last().map(AsRef::as_ref),
        Some(
            "Tool 'pay' was interrupted. Its outcome is unknown: it may have done its work or not, and it is \
             not called again. Find out before you act on it."
        )
    );
}

#[tokio::test]
async fn a_failure_that_may_pass_is_not_recorded_and_a_final_one_is() {
    let (effects, journal) = (Effects::default(), MemoryJournal::default());
    let agent = triage(&effects, || Err(Transient::new("it restarts").into()));
    let runner = Runner::new(&agent).model(script());
    let run = runner.begin("Pay it");
    for calls in 1..=2 {
        let runner = runner.clone().journal(journal.handle());
        let error = runner.resume(run.clone()).await.unwrap_err();
        assert!(error.is_transient());
        assert_eq!(effects.lock().unwrap().len(), calls);
    }

    let (effects, journal) = (Effects::default(), MemoryJournal::default());
    let agent = triage(&effects, || Err("it is broken".into()));
    let runner = Runner::new(&agent).model(script());
    for _ in 1..=2 {
        let runner = runner.clone().journal(journal.handle());
        let error = runner.resume(run.clone()).await.unwrap_err();
        assert!(!error.is_transient());
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert_eq!(
            error.to_string(),
            "agent \"Triage\": the tool \"look\" failed: it is broken"
        );
        assert_eq!(effects.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_run_stops_if_its_journal_cannot_be_written() {
    let model = ScriptedModel::new().say("Hello!");
    let agent: Agent = Agent::new("Greeter");
    let runner = Runner::new(&agent).model(model.clone());
    let error = runner
        .journal(JournalHandle::new(BrokenJournal))
        .run("Hi")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    assert!(error.is_transient());
    assert_eq!(model.requests().len(), 0);
}
