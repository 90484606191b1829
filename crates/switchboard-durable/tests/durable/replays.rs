//! Runs that lose their process at each of their writes, in one process: everything after the crash never returns.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Team, Tool, filters, handoff, tool};
use switchboard_durable::{DurableRunner, Embedded};

use crate::fault_store::{FaultStore, Moment};
use crate::world::{LEASE, Note, check_effects, decide_until_ended, outcome, runner, undisturbed};

/// Runs a conversation whose process ends at a write, and goes on in another one. Returns the outcome and the side effects.
async fn interrupted(seed: u64, write: usize, moment: Moment) -> (Vec<String>, Vec<String>) {
    let store = Conversations::in_memory();
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let faults = FaultStore::new(store.clone(), Some((write, moment)), None);
    let note: Note = {
        let (notes, faults) = (notes.clone(), faults.clone());
        Arc::new(move |effect: &str| {
            if !faults.is_gone() {
                notes.lock().unwrap().push(effect.to_owned());
            }
        })
    };
    let engine = Embedded::new(Conversations::new(faults.clone())).lease(LEASE);
    let first = DurableRunner::new(engine, runner(seed, &note));
    let ended = async {
        let run = first.start("talk", "m1", "Hello").await.unwrap();
        decide_until_ended(&run).await
    };
    let gone = async {
        while !faults.is_gone() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = gone => {}
        _ = ended => {}
    }
    let note: Note = {
        let notes = notes.clone();
        Arc::new(move |effect: &str| notes.lock().unwrap().push(effect.to_owned()))
    };
    let engine = Embedded::new(store.clone()).lease(LEASE);
    let second = DurableRunner::new(engine, runner(seed, &note));
    let work = second.work();
    let run = second.start("talk", "m1", "Hello").await.unwrap();
    let record = tokio::select! {
        () = work => unreachable!("nobody drains the runner"),
        record = decide_until_ended(&run) => record,
    };
    let lines = outcome(&store, &record).await;
    let notes = notes.lock().unwrap().clone();
    (lines, notes)
}

#[tokio::test]
async fn a_run_that_loses_its_process_at_any_write_ends_as_one_that_does_not() {
    for seed in [0, 2] {
        let (expected, writes) = undisturbed(seed).await;
        for write in 1..=writes {
            for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
                let (lines, notes) = interrupted(seed, write, moment).await;
                assert_eq!(lines, expected, "seed {seed}, write {write}, {moment:?}");
                check_effects(&notes);
            }
        }
    }
}

/// A writer that keeps the log.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A team whose first agent has a tool under a condition, and a handoff with a filter that keeps this number of items.
fn team(model: &ScriptedModel, has_tool: bool, kept: usize) -> Runner {
    let look: Tool = tool("look")
        .enabled_if(move |_ctx, _agent: Agent| has_tool)
        .run(|_ctx, (): ()| "There are 7.");
    let to_billing = handoff("Billing").filter(filters::keep_last(kept));
    let team: Team = Team::new()
        .agent(Agent::new("Triage").tool(look).handoff(to_billing))
        .agent(Agent::new("Billing"))
        .build()
        .unwrap();
    Runner::new(&team["Triage"]).model(model.clone())
}

/// The warnings of making a run again, which began with a tool and a filter that keeps nine items, with another team.
async fn warnings(has_tool: bool, kept: usize) -> Vec<String> {
    let store = Conversations::in_memory();
    let model = ScriptedModel::new()
        .call("look", "{}")
        .call("transfer_to_billing", "{}")
        .say("It is 7.");
    let durable = DurableRunner::new(Embedded::new(store.clone()), team(&model, true, 9));
    let run = durable.start("talk", "m1", "How many?").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("It is 7."), "{ended:?}");

    let changed = DurableRunner::new(Embedded::new(store), team(&model, has_tool, kept));
    let again = changed.attach(run.id()).await.unwrap();
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let result = again.result().await.unwrap().unwrap();
    drop(guard);
    // What was recorded counts.
    assert_eq!(result.final_text(), "It is 7.");
    let logged = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    logged.lines().map(|line| line.trim().to_owned()).collect()
}

#[tokio::test]
async fn a_condition_or_a_filter_that_answers_differently_on_a_replay_is_a_warning_with_its_name() {
    assert_eq!(warnings(true, 9).await, [""; 0]);

    let condition = warnings(false, 9).await;
    let differs = condition
        .iter()
        .find(|line| line.contains("a condition answers differently"));
    let differs = differs.unwrap_or_else(|| panic!("{condition:?}"));
    assert!(differs.contains("step=0/condition/tools"), "{differs}");
    assert!(!condition.iter().any(|line| line.contains("the filter of")));

    let filter = warnings(true, 1).await;
    let differs = filter
        .iter()
        .find(|line| line.contains("the filter of a handoff leaves something else"));
    let differs = differs.unwrap_or_else(|| panic!("{filter:?}"));
    assert!(
        differs.contains("handoff=\"transfer_to_billing\""),
        "{differs}"
    );
    assert!(!filter.iter().any(|line| line.contains("a condition")));
}
