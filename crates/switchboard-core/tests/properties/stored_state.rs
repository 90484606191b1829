//! A check of any text as a stored run, for the property tests here and for `cargo fuzz` (`fuzz/README.md`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use serde_json::Value;
use switchboard_core::approval::Decision;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Run, RunConfig, Runner, Step, filters, handoff, tool};

/// The number of times that a run is resumed before it must have ended.
const MAX_RESUMPTIONS: usize = 40;

/// A runner whose tool `refund` counts its calls in `paid`.
fn runner(paid: &Arc<AtomicUsize>) -> Runner {
    let refund = || {
        let paid = paid.clone();
        tool::<()>("refund")
            .needs_approval()
            .run(move |_ctx, (): ()| {
                paid.fetch_add(1, Ordering::SeqCst);
                "refunded"
            })
    };
    let inner = ScriptedModel::new()
        .reply([Item::function_call("e1", "refund", "{}")])
        .say("Done.");
    let settings = RunConfig {
        model: Some(inner.into()),
        ..RunConfig::default()
    };
    let expert: Agent = Agent::new("Expert").tool(refund());
    let boss: Agent = Agent::new("Boss");
    let desk = Agent::new("Desk")
        .tool(refund())
        .tool(tool("look").run(|_ctx, (): ()| "found"))
        .tool(expert.as_tool("ask").config(settings))
        .handoff(
            handoff(&boss)
                .filter(filters::keep_last(3))
                .needs_approval(),
        );
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "refund", "{}"),
            Item::function_call("c2", "look", "{}"),
            Item::function_call("c3", "ask", r#"{"input":"x"}"#),
            Item::function_call("c4", "transfer_to_boss", "{}"),
        ])
        .say("Done.")
        .say("Done.");
    Runner::new(&desk).model(model)
}

/// The states of a run at each of its steps, to begin with.
pub(crate) fn states() -> Vec<String> {
    let runner = runner(&Arc::default());
    let mut run = runner.begin("Money!");
    let mut states = Vec::new();
    while !matches!(run.step(), Step::Done(_)) {
        if let Some(waiting) = run.interruptions().first() {
            states.push(serde_json::to_string(&run).unwrap());
            run.decide(waiting, Decision::approve()).unwrap();
        }
        states.push(serde_json::to_string(&run).unwrap());
        let step = runner.step(&mut run).now_or_never();
        step.unwrap().unwrap();
    }
    states.push(serde_json::to_string(&run).unwrap());
    states
}

/// Reads a text as a run, and resumes it until it ends, with every call rejected. There is no panic, the run
/// ends or fails, and nothing runs that the state does not have as approved or as needing no approval.
pub(crate) fn check(text: &str) {
    let Ok(run) = Run::from_json(text) else {
        return;
    };
    let paid = Arc::new(AtomicUsize::new(0));
    let runner = runner(&paid);
    // Each state is resumed once.
    let mut run = run.fork();
    // A changed state may list a call that cannot be decided: it waits for ever.
    let mut is_refused = false;
    for _ in 0..MAX_RESUMPTIONS {
        let _ = run.to_input_list();
        let waiting = run.interruptions();
        for waiting in &waiting {
            is_refused |= run.decide(waiting, Decision::reject()).is_err();
        }
        let _ = runner.check_state(&run);
        let resumed = runner.resume(run).now_or_never();
        // Nothing is waited for.
        let resumed = resumed.unwrap();
        let is_ended = match &resumed {
            Ok(result) => result.interruptions().is_empty(),
            Err(_) => true,
        };
        run = match resumed {
            Ok(result) => result.into_run(),
            Err(error) => error.into_run().unwrap(),
        };
        // Whatever came of it can be stored again.
        let stored = serde_json::to_string(&run).unwrap();
        run = Run::from_json(&stored).unwrap();
        if is_ended {
            break;
        }
    }
    let is_left = run.interruptions().is_empty() || runner.check_state(&run).is_err();
    assert!(is_left || is_refused);
    if !serde_json::from_str(text).is_ok_and(|state| permits(&state)) {
        assert_eq!(paid.load(Ordering::SeqCst), 0, "{text}");
    }
}

/// Returns `true` if a state has a call that was approved or needs no approval.
fn permits(state: &Value) -> bool {
    match state {
        Value::Object(fields) => {
            fields.get("is_approved").is_some_and(|is| *is == true)
                || fields.get("is_needed").is_some_and(|is| *is == false)
                || fields.values().any(permits)
        }
        Value::Array(elements) => elements.iter().any(permits),
        _ => false,
    }
}
