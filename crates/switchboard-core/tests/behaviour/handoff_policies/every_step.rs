//! A run that is killed after any of its steps ends like one that was not.

use std::collections::BTreeMap;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, ModelRequest, ModelResponse, Run, RunConfig, Runner, Step, Tool, filters, handoff,
    tool,
};

use crate::approvals::Ran;
use crate::described;

/// The answers of the model, by what it is shown, so that a process that begins anew goes on where the
/// last one was.
fn answer(request: &ModelRequest) -> ModelResponse {
    let call = |id: &str, name: &str| Item::function_call(id, name, "{}");
    let outputs = request
        .input
        .iter()
        .filter(|item| item.output().is_some())
        .count();
    let knows = |tool: &str| request.tools.iter().any(|spec| *spec.name == *tool);
    ModelResponse::new(match (knows("close"), outputs) {
        (true, 0) => vec![call("c8", "close"), call("c9", "look")],
        (true, _) => vec![Item::output_message("m2", "Closed.")],
        (false, 0) => vec![
            call("c1", "look"),
            call("c2", "pay"),
            Item::function_call("c3", "ask", r#"{"input":"refund"}"#),
        ],
        (false, 3) => vec![call("c4", "pay"), call("c5", "transfer_to_closing")],
        (false, _) => vec![Item::output_message("m1", "Nothing more.")],
    })
}

/// The answers of the model of the agent used as a tool.
fn expert_answer(request: &ModelRequest) -> ModelResponse {
    ModelResponse::new(match request.input.len() {
        1 => vec![Item::function_call("e1", "pay", "{}")],
        _ => vec![Item::output_message("em", "Paid.")],
    })
}

fn model(answer: fn(&ModelRequest) -> ModelResponse) -> ScriptedModel {
    (0..20).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(move |request| Ok(answer(request)))
    })
}

/// The team as each process builds it. `effects` is the world outside.
fn runner(effects: &Ran, session: Option<&Conversation>) -> Runner {
    let effect = |name: &'static str, needs_approval: bool| -> Tool {
        let effects = effects.clone();
        let builder = if needs_approval {
            tool::<()>(name).needs_approval()
        } else {
            tool::<()>(name)
        };
        builder.run(move |ctx, (): ()| {
            effects.add(format!("{name} {}", ctx.call_id()));
            "done"
        })
    };
    let expert: Agent = Agent::new("Expert").tool(effect("pay", true));
    let settings = RunConfig {
        model: Some(model(expert_answer).into()),
        ..RunConfig::default()
    };
    let called = effects.clone();
    let closing: Agent = Agent::new("Closing")
        .tool(effect("close", true))
        .tool(effect("look", false));
    let desk = Agent::new("Desk")
        .tool(effect("look", false))
        .tool(effect("pay", true))
        .tool(expert.as_tool("ask").config(settings).needs_approval())
        .handoff(
            handoff(&closing)
                .on_handoff(move |ctx| called.add(format!("callback {}", ctx.call_id())))
                .filter(filters::remove_all_tools())
                .needs_approval(),
        );
    let runner = Runner::new(&desk).model(model(answer)).max_turns(20);
    match session {
        Some(session) => runner.session(session),
        None => runner,
    }
}

/// Approves the first call that waits, or takes a step.
async fn advance(runner: &Runner, run: &mut Run) {
    if let Some(waiting) = run.interruptions().first() {
        run.decide(waiting, Decision::approve()).unwrap();
    }
    runner.step(run).await.unwrap();
}

/// Runs to the end, with a new process and the stored run after each of the steps in `kills`.
async fn run_with(kills: &[usize], session: Option<&Conversation>) -> (Vec<String>, String, Ran) {
    let effects = Ran::default();
    let mut process = runner(&effects, session);
    let mut run = process.begin("Close my account");
    let mut steps = 0;
    while !matches!(run.step(), Step::Done(_)) {
        advance(&process, &mut run).await;
        steps += 1;
        assert!(steps < 60, "the run does not end");
        if kills.contains(&steps) {
            let stored = serde_json::to_string(&run).unwrap();
            process = runner(&effects, session);
            run = serde_json::from_str(&stored).unwrap();
        }
    }
    let Step::Done(output) = run.step() else {
        unreachable!()
    };
    let history = described(&run.to_input_list());
    (history, format!("{} after {steps}", output.text()), effects)
}

/// The side effects, each with the number of times that it happened.
fn counted(effects: &Ran) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for effect in effects.take() {
        *counts.entry(effect).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn a_run_killed_after_any_step_has_the_same_history_and_each_side_effect_once() {
    let (history, output, effects) = run_with(&[], None).await;
    let effects = counted(&effects);
    let expected = [
        "callback c5",
        "close c8",
        "look c1",
        "look c9",
        "pay c2",
        "pay c4",
        "pay e1",
    ];
    assert_eq!(effects.keys().collect::<Vec<_>>(), expected);
    assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    let steps: usize = output.rsplit(' ').next().unwrap().parse().unwrap();

    for kill in 1..steps {
        let killed = run_with(&[kill], None).await;
        assert_eq!(
            (&killed.0, &killed.1),
            (&history, &output),
            "after step {kill}"
        );
        assert_eq!(counted(&killed.2), effects, "after step {kill}");
    }
    let all: Vec<usize> = (1..steps).collect();
    let killed = run_with(&all, None).await;
    assert_eq!((&killed.0, &killed.1), (&history, &output));
    assert_eq!(counted(&killed.2), effects);
}

#[tokio::test]
async fn the_conversation_is_the_same_whenever_the_process_is_killed() {
    let recorded = |kills: Vec<usize>| async move {
        let session = Conversations::in_memory().get("c");
        let (_, output, effects) = run_with(&kills, Some(&session)).await;
        let record = session.record(None).await.unwrap();
        let items: Vec<String> = record
            .iter()
            .filter_map(|entry| entry.content.item().map(|item| item.as_json().to_owned()))
            .collect();
        let view = described(&session.view().await.unwrap());
        (items, view, output, counted(&effects))
    };
    let whole = recorded(Vec::new()).await;
    let steps: usize = whole.2.rsplit(' ').next().unwrap().parse().unwrap();
    for kill in 1..steps {
        assert_eq!(recorded(vec![kill]).await, whole, "after step {kill}");
    }
    assert_eq!(recorded((1..steps).collect()).await, whole);
    assert_eq!(
        whole.1,
        [
            "user: Close my account",
            "call close",
            "call look",
            "output of c9: done",
            "output of c8: done",
            "assistant: Closed."
        ]
    );
}
