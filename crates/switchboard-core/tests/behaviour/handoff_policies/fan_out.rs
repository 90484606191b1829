//! Several handoffs of one response, made side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict, OutputGuardrail, Verdict};
use switchboard_core::handoff::PayloadDelivery;
use switchboard_core::model::Usage;
use switchboard_core::run::{
    BranchAnswer, BranchFailures, Budget, Budgets, FanOut, HandoffOutcome, HandoffPolicy,
    HandoffTrigger, RunStatus, ServerHistory, SeveralHandoffs,
};
use switchboard_core::stream::HandoffStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, Item, Model, ModelRequest, ModelResponse, Runner, Session, Step,
    filters, handoff, tool,
};
use tokio::sync::Barrier;

use crate::approvals::Ran;
use crate::stored_runs::assert_fits_schema;
use crate::{described, kinds, stored};

fn policy(fan_out: FanOut) -> HandoffPolicy {
    HandoffPolicy::production().several(SeveralHandoffs::FanOut(fan_out))
}

fn lines(answers: &[BranchAnswer]) -> String {
    let line = |made: &BranchAnswer| match &made.outcome {
        Ok(_) => format!("{}: {}", made.agent, made.text()),
        Err(problem) => format!("{}! {problem}", made.agent),
    };
    answers.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn by_code() -> FanOut {
    FanOut::joined(|answers| async move { lines(&answers) })
}

fn calls() -> Vec<Item> {
    vec![
        Item::output_message("m0", "One moment."),
        Item::function_call("c1", "transfer_to_tax", "{}"),
        Item::function_call("c2", "transfer_to_law", "{}"),
    ]
}

/// The answers of the model, by the agent that asks and what it is shown.
fn answer(request: &ModelRequest) -> ModelResponse {
    let outputs = request.input.iter().filter(|item| item.output().is_some());
    let outputs = outputs.count();
    let agent = request.agent.as_deref().unwrap_or_default();
    let items = match (agent, outputs) {
        ("Triage", 0) => calls(),
        ("Triage", _) => vec![Item::output_message("mt", "Both say yes.")],
        ("Editor", _) => vec![Item::output_message("me", "In short: yes.")],
        ("Tax", 1) => vec![Item::function_call("t1", "look", "{}")],
        ("Tax", _) => vec![Item::output_message("mx", "Taxes: yes.")],
        _ => vec![Item::output_message("ml", "Law: yes.")],
    };
    ModelResponse::new(items).usage(Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: 5,
        ..Usage::default()
    })
}

fn model() -> ScriptedModel {
    (0..20).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(|request| Ok(answer(request)))
    })
}

fn look(ran: &Ran, needs_approval: bool) -> switchboard_core::Tool {
    let ran = ran.clone();
    let builder = if needs_approval {
        tool::<()>("look").needs_approval()
    } else {
        tool::<()>("look")
    };
    builder.run(move |ctx, (): ()| {
        ran.add(format!("look {}", ctx.call_id()));
        "found"
    })
}

fn tax(ran: &Ran) -> Agent {
    Agent::new("Tax").tool(look(ran, false))
}

fn law() -> Agent {
    Agent::new("Law")
}

fn triage(tax: &Agent, law: &Agent) -> Agent {
    let editor: Agent = Agent::new("Editor");
    Agent::new("Triage")
        .handoff(tax)
        .handoff(law)
        .handoff(&editor)
}

fn runner(fan_out: FanOut, model: &ScriptedModel) -> Runner {
    Runner::new(&triage(&tax(&Ran::default()), &law()))
        .model(model.clone())
        .handoff_policy(policy(fan_out))
}

#[tokio::test]
async fn the_answers_are_joined_by_code_the_caller_or_another_agent() {
    let outputs = [
        "user: Can I?",
        "assistant: One moment.",
        "call transfer_to_tax",
        "call transfer_to_law",
        "output of c1: Taxes: yes.",
        "output of c2: Law: yes.",
    ];
    for (fan_out, last, text, requests) in [
        (by_code(), "Triage", "Tax: Taxes: yes.\nLaw: Law: yes.", 4),
        (FanOut::to_caller(), "Triage", "Both say yes.", 5),
        (FanOut::to_agent("Triage"), "Triage", "Both say yes.", 5),
        (FanOut::to_agent("Editor"), "Editor", "In short: yes.", 5),
    ] {
        let model = model();
        let result = runner(fan_out.clone(), &model).run("Can I?").await.unwrap();
        assert_eq!(
            (result.last_agent().name(), &*result.final_text()),
            (last, text)
        );
        let mut history: Vec<String> = outputs.map(str::to_owned).to_vec();
        history.push(format!("assistant: {text}"));
        assert_eq!(described(&result.to_input_list()), history, "{fan_out:?}");
        assert_eq!(model.requests().len(), requests);
        // Everything that was used is counted, each request with its agent.
        let usage = result.run().usage();
        assert_eq!(usage.requests, requests as u64);
        let mut by_agent = BTreeMap::new();
        for used in result.run().request_usage() {
            *by_agent.entry(used.agent.clone().unwrap()).or_insert(0) += 1;
        }
        assert_eq!((by_agent["Tax"], by_agent["Law"]), (2, 1));
        assert_eq!(result.run().turns(), requests as u32);
    }
}

#[tokio::test]
async fn each_agent_sees_the_conversation_as_if_it_alone_had_been_called() {
    let ran = Ran::default();
    let (tax, law) = (tax(&ran), law());
    let triage = Agent::new("Triage").handoff(&tax).handoff(
        handoff(&law)
            .filter(filters::remove_all_tools())
            .transfer_message("Over to law."),
    );
    let model = model();
    let runner = Runner::new(&triage)
        .model(model.clone())
        .handoff_policy(policy(FanOut::to_caller()));
    let result = runner.run("Can I?").await.unwrap();
    assert_eq!(
        described(&model.requests_of("Tax")[0].input),
        [
            "user: Can I?",
            "assistant: One moment.",
            "call transfer_to_tax",
            "output of c1: {\"assistant\": \"Tax\"}"
        ]
    );
    assert_eq!(
        described(&model.requests_of("Law")[0].input),
        ["user: Can I?", "assistant: One moment."]
    );
    let records: Vec<_> = result.handoffs().iter().map(|made| &made.outcome).collect();
    assert_eq!(
        records,
        [&HandoffOutcome::FannedOut, &HandoffOutcome::FannedOut]
    );
    assert_eq!(ran.take(), ["look t1"]);
    assert_eq!(
        kinds(result.new_items()),
        [
            "Triage message_output_item",
            "Triage handoff_call_item",
            "Triage handoff_call_item",
            "Triage tool_call_output_item",
            "Triage tool_call_output_item",
            "Triage message_output_item"
        ]
    );
}

/// A model that answers once all that share the barrier were asked.
struct Waiting(Arc<Barrier>, &'static str);

impl Model for Waiting {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.0.wait().await;
        Ok(ModelResponse::new([Item::output_message("m", self.1)]))
    }
}

#[tokio::test]
async fn the_agents_run_at_the_same_time() {
    let both = Arc::new(Barrier::new(2));
    let (tax, law): (Agent, Agent) = (
        Agent::new("Tax").model(Waiting(both.clone(), "a")),
        Agent::new("Law").model(Waiting(both, "b")),
    );
    let triage = triage(&tax, &law).model(ScriptedModel::new().reply(calls()));
    let runner = Runner::new(&triage).handoff_policy(policy(by_code()));
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "Tax: a\nLaw: b");
}

#[derive(Deserialize, JsonSchema)]
struct Case {
    number: u32,
}

#[tokio::test]
async fn each_handoff_goes_through_its_own_stages() {
    let ran = Ran::default();
    let callback = |name: &'static str| {
        let ran = ran.clone();
        move |ctx: switchboard_core::handoff::HandoffContext, case: Case| {
            ran.add(format!("{name} {} {}", ctx.call_id(), case.number));
        }
    };
    let tax: Agent = Agent::new("Tax").instructions("Tax.");
    let law: Agent = Agent::new("Law");
    let triage = Agent::new("Triage")
        .handoff(
            handoff(&tax)
                .payload::<Case>()
                .on_handoff(callback("tax"))
                .deliver(PayloadDelivery::Instructions),
        )
        .handoff(
            handoff(&law)
                .payload::<Case>()
                .on_handoff(callback("law"))
                .guardrail(HandoffGuardrail::new("no", |request| {
                    if request.payload == Some(json!({"number": 2})) {
                        HandoffVerdict::refuse("not that case")
                    } else {
                        HandoffVerdict::Allow
                    }
                })),
        );
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "transfer_to_tax", r#"{"number": 1}"#),
            Item::function_call("c2", "transfer_to_law", r#"{"number": 2}"#),
            Item::function_call("c3", "transfer_to_law", r#"{"number": "?"}"#),
        ])
        .say("Yes.");
    let runner = Runner::new(&triage)
        .model(model.clone())
        .handoff_policy(policy(by_code()));
    let mut stream = runner.stream("x");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::Handoff(made) = event.kind {
            events.push((made.to.to_string(), made.status));
        }
    }
    let result = stream.finish().await.unwrap();
    let wrong = "The handoff was not made: its arguments are invalid: at /number: expected integer, \
                 got string. Correct them and call transfer_to_law again.";
    assert_eq!(
        result.final_text(),
        format!("Tax: Yes.\nLaw! not that case\nLaw! {wrong}")
    );
    assert_eq!(ran.take(), ["tax c1 1"]);
    assert_eq!(
        events,
        [
            ("Tax".to_owned(), HandoffStatus::FannedOut),
            ("Law".to_owned(), HandoffStatus::Refused),
            ("Law".to_owned(), HandoffStatus::Failed)
        ]
    );
    assert_eq!(
        model.requests()[1].instructions.as_deref(),
        Some("Tax.\n\nTriage has handed the conversation over with this: {\"number\":1}")
    );
}

#[tokio::test]
async fn calls_inside_wait_outside_and_nothing_is_repeated() {
    let ran = Ran::default();
    let (tax, law) = (Agent::new("Tax").tool(look(&ran, true)), law());
    let called = ran.clone();
    let triage = Agent::new("Triage")
        .handoff(handoff(&tax).needs_approval())
        .handoff(handoff(&law).on_handoff(move |_ctx| called.add("callback")));
    let model = model();
    let runner = Runner::new(&triage)
        .model(model.clone())
        .handoff_policy(policy(by_code()));
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = stored(result.run());
    // First the handoff itself, then the call inside it.
    let waiting = run.interruptions();
    assert_eq!(
        waiting
            .iter()
            .map(|made| (&*made.tool, made.inside.len()))
            .collect::<Vec<_>>(),
        [("transfer_to_tax", 0)]
    );
    run.decide(&waiting[0], Decision::approve()).unwrap();
    let result = runner.resume(run).await.unwrap();
    let mut run = stored(result.run());
    let waiting = run.interruptions();
    assert_eq!((&*waiting[0].tool, &*waiting[0].agent), ("look", "Tax"));
    assert_eq!(waiting[0].inside, ["c1".into()]);
    assert_eq!(ran.take(), ["callback"]);
    assert_eq!(model.requests_of("Law").len(), 1);
    run.decide(&waiting[0], Decision::approve()).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.final_text(), "Tax: Taxes: yes.\nLaw: Law: yes.");
    assert_eq!(ran.take(), ["look t1"]);
    assert_eq!(model.requests_of("Law").len(), 1);
    assert_eq!(model.requests_of("Tax").len(), 2);
    assert_eq!(result.run().turns(), 4);
}

#[tokio::test]
async fn an_agent_that_fails_is_told_to_the_join_or_ends_the_run() {
    let law: Agent = Agent::new("Law").model(ScriptedModel::new().fail("secret").say("Law: yes."));
    let ran = Ran::default();
    let triage = triage(&tax(&ran).model(model()), &law).model(model());
    let run = |fan_out: FanOut| {
        let runner = Runner::new(&triage).handoff_policy(policy(fan_out));
        async move { (runner.run("x").await, runner) }
    };
    let (result, _) = run(by_code()).await;
    assert_eq!(
        result.unwrap().final_text(),
        "Tax: Taxes: yes.\nLaw! Law could not answer: an error occurred."
    );
    // Its model has answered by now.
    let law: Agent = Agent::new("Law").model(ScriptedModel::new().fail("secret").say("Law: yes."));
    let triage = self::triage(&tax(&ran).model(model()), &law).model(model());
    ran.take();
    let failing = by_code().failures(BranchFailures::FailRun);
    let runner = Runner::new(&triage).handoff_policy(policy(failing));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert!(
        error
            .to_string()
            .contains("\"Law\", which answers beside others"),
        "{error}"
    );
    assert_eq!(ran.take(), ["look t1"]);
    let run = stored(error.run().unwrap());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Tax: Taxes: yes.\nLaw: Law: yes.");
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn a_join_that_fails_is_repeated_and_the_agents_are_not() {
    let ran = Ran::default();
    let attempts = ran.clone();
    let failing_once = FanOut::joined(move |answers| {
        attempts.add("join");
        let seen = attempts.take();
        let is_first = !seen.contains(&"failed".to_owned());
        attempts.add("failed");
        if is_first {
            return Err("broken".to_owned());
        }
        Ok(lines(&answers))
    });
    let model = model();
    let runner = runner(failing_once, &model);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    let result = runner.resume(stored(error.run().unwrap())).await.unwrap();
    assert_eq!(result.final_text(), "Tax: Taxes: yes.\nLaw: Law: yes.");
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn turns_and_budgets_hold_over_all_of_them() {
    // Triage has one turn, Tax needs two and Law one.
    for max in 1..=4 {
        let model = model();
        let runner = runner(by_code(), &model).max_turns(max);
        let result = runner.run("x").await.unwrap();
        assert!(model.requests().len() <= max as usize, "{max}");
        let is_done = !result
            .final_text()
            .contains("could not answer: there were no turns left");
        assert_eq!(is_done, max == 4, "{}", result.final_text());
    }
    for tokens in [1, 16, 31, 46, 61] {
        let model = model();
        let budgets = Budgets::new().run(Budget::new().tokens(tokens));
        let runner = runner(by_code(), &model).budgets(budgets);
        let result = runner.run("x").await.unwrap();
        let used = result.run().usage().total_tokens();
        // Requests that are under way at the same time may exceed it by what they use themselves.
        assert!(used <= tokens + 2 * 15, "{used} of {tokens}");
        let is_done = !result.final_text().contains("a budget is used up");
        assert_eq!(is_done, tokens >= 46, "{tokens}: {}", result.final_text());
    }
    let of_tax = Budgets::new().edge("Triage", "Tax", Budget::new().turns(1));
    let result = runner(by_code(), &model()).budgets(of_tax).run("x").await;
    assert_eq!(
        result.unwrap().final_text(),
        "Tax! Tax could not answer: a budget is used up.\nLaw: Law: yes."
    );
}

#[tokio::test]
async fn output_guardrails_look_at_the_joined_output() {
    let guardrail = OutputGuardrail::new("no", |_ctx, agent: Agent, _output| {
        if agent.name() == "Triage" {
            Verdict::trip("no")
        } else {
            Verdict::Allow
        }
    });
    let runner = runner(by_code(), &model()).output_guardrail(guardrail);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
}

#[tokio::test]
async fn a_session_gets_the_calls_with_the_answers() {
    let session = Conversations::in_memory().get("c");
    let runner = runner(FanOut::to_agent("Editor"), &model()).session(&session);
    let result = runner.run("Can I?").await.unwrap();
    assert_eq!(result.handoffs()[2].trigger, HandoffTrigger::FanOut);
    let stored = described(&session.load(None).await.unwrap());
    assert_eq!(stored, described(&result.to_input_list()));
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Editor"));
}

#[tokio::test]
async fn what_cannot_work_is_an_error_before_anything_is_done() {
    let ran = Ran::default();
    let called = ran.clone();
    let edge = handoff(tax(&ran)).on_handoff(move |_ctx| called.add("callback"));
    let triage = Agent::new("Triage").handoff(edge).handoff(law());
    let runner = |fan_out: FanOut| {
        Runner::new(&triage)
            .model(model())
            .handoff_policy(policy(fan_out))
    };
    let kept = ServerHistory::Conversation("conv".into());
    for runner in [
        runner(FanOut::to_agent("Nobody")),
        runner(by_code()).server_history(kept),
        runner(by_code()).max_agent_depth(0),
    ] {
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
        assert_eq!(ran.take(), [""; 0]);
    }
}

#[tokio::test]
async fn spans_of_the_agents_lie_under_the_turn() {
    let tracer = MemoryTracer::new();
    let runner = runner(by_code(), &model()).tracer(tracer.clone());
    runner.run("x").await.unwrap();
    let spans = tracer.spans();
    let turn = spans
        .iter()
        .find(|span| span.data.kind() == "turn")
        .unwrap();
    let tasks = spans.iter().filter(|span| span.data.kind() == "task");
    let inside: Vec<_> = tasks.filter(|span| span.parent.is_some()).collect();
    assert_eq!(inside.len(), 2);
    assert!(inside.iter().all(|span| span.parent == Some(turn.id)));
    let details = spans.iter().filter_map(|span| match &span.data {
        SpanData::Handoff { details, .. } => Some(details),
        _ => None,
    });
    for made in details {
        assert_eq!(made.policy.as_deref(), Some("several.fan_out"));
        assert_eq!(made.outcome, Some(HandoffStatus::FannedOut));
        assert!(made.carried_tokens.is_some() && made.caused_by.is_some());
    }
}

/// The team as each process builds it, with agents that fan out again.
fn nested(ran: &Ran, session: Option<&switchboard_core::conversation::Conversation>) -> Runner {
    let model = (0..40).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(|request| {
            let knows = |to: &str| request.handoffs.iter().any(|spec| *spec.to == *to);
            let outputs = request.input.iter().filter(|item| item.output().is_some());
            let (outputs, agent) = (outputs.count(), request.agent.as_deref());
            let call = |id: &str, name: &str| Item::function_call(id, name, "{}");
            let items = match (agent, outputs) {
                (_, 0) if knows("Tax") => {
                    vec![call("c1", "transfer_to_tax"), call("c2", "transfer_to_law")]
                }
                (_, 1) if knows("Vat") => {
                    vec![
                        call("v1", "transfer_to_vat"),
                        call("v2", "transfer_to_duty"),
                    ]
                }
                (Some("Law"), 1) => vec![call("l1", "look")],
                (Some("Vat"), 2) => vec![call("l2", "look")],
                _ => vec![Item::output_message("m", agent.unwrap_or_default())],
            };
            Ok(ModelResponse::new(items))
        })
    });
    let vat: Agent = Agent::new("Vat").tool(look(ran, true));
    let duty: Agent = Agent::new("Duty");
    let tax: Agent = Agent::new("Tax").handoff(&vat).handoff(&duty);
    let law: Agent = Agent::new("Law").tool(look(ran, true));
    let called = ran.clone();
    let triage = Agent::new("Triage")
        .handoff(handoff(&tax).on_handoff(move |ctx| called.add(ctx.call_id())))
        .handoff(handoff(&law).needs_approval());
    let runner = Runner::new(&triage)
        .model(model)
        .max_turns(30)
        .handoff_policy(policy(FanOut::to_caller()));
    match session {
        Some(session) => runner.session(session),
        None => runner,
    }
}

#[tokio::test]
async fn a_run_restored_after_any_step_ends_the_same_with_each_side_effect_once() {
    let run_with = |kills: Vec<usize>, stores: bool| async move {
        let ran = Ran::default();
        let session = stores.then(|| Conversations::in_memory().get("c"));
        let mut process = nested(&ran, session.as_ref());
        let mut run = process.begin("x");
        let mut steps = 0;
        while !matches!(run.step(), Step::Done(_)) {
            if let Some(waiting) = run.interruptions().first() {
                run.decide(waiting, Decision::approve()).unwrap();
            }
            process.step(&mut run).await.unwrap();
            steps += 1;
            assert!(steps < 40, "the run does not end: {:?}", run.step());
            if kills.contains(&steps) {
                process = nested(&ran, session.as_ref());
                run = stored(&run);
            }
            assert_fits_schema(&run);
        }
        let mut effects = ran.take();
        effects.sort();
        let view = match &session {
            Some(session) => described(&session.view().await.unwrap()),
            None => Vec::new(),
        };
        (
            described(&run.to_input_list()),
            view,
            effects,
            run.turns(),
            steps,
        )
    };
    for stores in [false, true] {
        let whole = run_with(Vec::new(), stores).await;
        assert_eq!(whole.2, ["c1", "look l1", "look l2"]);
        for kill in 1..whole.4 {
            assert_eq!(
                run_with(vec![kill], stores).await,
                whole,
                "after step {kill}"
            );
        }
        assert_eq!(run_with((1..whole.4).collect(), stores).await, whole);
    }
}
