//! Handoffs that conditions on the context take, without a model call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict, InputGuardrail, Verdict};
use switchboard_core::handoff::EdgeDecision;
use switchboard_core::run::{
    AtLoopLimit, Budget, Budgets, HandoffOutcome, HandoffPolicy, HandoffTrigger, LoopLimits,
    RunStatus,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{HandoffDecider, MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, Item, RunContext, RunResult, Runner, Session, Step, Team, filters,
    handoff, tool,
};

use crate::approvals::Ran;
use crate::stored_runs::assert_fits_schema;
use crate::{described, stored};

#[derive(Default)]
struct App {
    is_blocked: AtomicBool,
    calls: AtomicU32,
}

impl App {
    fn blocked() -> Arc<Self> {
        let app = Self::default();
        app.is_blocked.store(true, Ordering::Relaxed);
        Arc::new(app)
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }
}

/// An agent with a tool that blocks the user, and the desk that gets who is blocked.
fn triage(edge: impl Fn(&Agent<App>) -> switchboard_core::Handoff<App>) -> Agent<App> {
    let desk = Agent::<App>::new("Desk");
    let block = tool::<App>("block").run(|ctx, (): ()| {
        ctx.is_blocked.store(true, Ordering::Relaxed);
        "blocked"
    });
    Agent::new("Triage").tool(block).handoff(edge(&desk))
}

fn before(desk: &Agent<App>) -> switchboard_core::Handoff<App> {
    handoff(desk)
        .before_turn_if(|ctx, _agent| ctx.is_blocked())
        .hidden()
        .build()
}

fn after(desk: &Agent<App>) -> switchboard_core::Handoff<App> {
    handoff(desk)
        .after_turn_if(|ctx, _agent| async move { ctx.is_blocked() })
        .hidden()
        .build()
}

fn triggers<C>(result: &RunResult<C>) -> Vec<(HandoffTrigger, HandoffOutcome)> {
    let handoffs = result.handoffs().iter();
    handoffs
        .map(|made| (made.trigger, made.outcome.clone()))
        .collect()
}

#[tokio::test]
async fn a_condition_that_holds_before_the_first_turn_hands_off_without_a_model_call() {
    let model = ScriptedModel::new().say("You are blocked.");
    let runner = Runner::new(&triage(before)).model(model.clone());
    let result = runner.context(App::blocked()).run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
    assert_eq!(result.run().turns(), 1);
    assert_eq!(model.requests_of("Triage").len(), 0);
    assert_eq!(described(&model.requests()[0].input), ["user: Hi"]);
    assert_eq!(
        triggers(&result),
        [(HandoffTrigger::BeforeTurn, HandoffOutcome::Taken)]
    );
    assert_eq!(
        described(&result.to_input_list()),
        ["user: Hi", "assistant: You are blocked."]
    );

    // Where it does not hold, the model is asked, and never offered what is hidden.
    let model = ScriptedModel::new().say("Hello.");
    let runner = Runner::new(&triage(before)).model(model.clone());
    let result = runner.context(App::default()).run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(model.requests()[0].handoffs.len(), 0);
}

#[tokio::test]
async fn after_tools_and_after_an_answer_the_next_agent_goes_on() {
    for edge in [before, after] {
        let model = ScriptedModel::new()
            .call("block", "{}")
            .say("You are blocked.");
        let runner = Runner::new(&triage(edge)).model(model.clone());
        let result = runner.context(App::default()).run("Hi").await.unwrap();
        assert_eq!(result.last_agent().name(), "Desk");
        assert_eq!(model.requests_of("Triage").len(), 1);
        assert_eq!(
            described(&model.requests_of("Desk")[0].input),
            ["user: Hi", "call block", "output of call_1: blocked"]
        );
    }
    // An answer ends the run before the next turn, and goes on after this one.
    let model = || ScriptedModel::new().say("One moment.").say("Desk here.");
    let app = Arc::new(App::default());
    let answers = |edge: fn(&Agent<App>) -> switchboard_core::Handoff<App>| {
        let agent = triage(edge);
        let blocking = InputGuardrail::new("block", |ctx: RunContext<App>, _agent, _input| {
            ctx.is_blocked.store(true, Ordering::Relaxed);
            Verdict::Allow
        });
        let runner = Runner::new(&agent.input_guardrail(blocking)).model(model());
        let app = app.clone();
        app.is_blocked.store(false, Ordering::Relaxed);
        async move { runner.context(app).run("Hi").await.unwrap() }
    };
    let result = answers(after).await;
    assert_eq!(result.final_text(), "Desk here.");
    assert_eq!(
        described(&result.to_input_list()),
        [
            "user: Hi",
            "assistant: One moment.",
            "assistant: Desk here."
        ]
    );
    assert_eq!(
        triggers(&result),
        [(HandoffTrigger::AfterTurn, HandoffOutcome::Taken)]
    );
}

#[tokio::test]
async fn input_guardrails_look_at_the_message_before_a_condition_hands_off() {
    for beside in [false, true] {
        let guardrail = if beside {
            InputGuardrail::beside_model("no", |_ctx, _agent, _input| Verdict::trip("no"))
        } else {
            InputGuardrail::new("no", |_ctx, _agent, _input| Verdict::trip("no"))
        };
        let agent = triage(before).input_guardrail(guardrail);
        let model = ScriptedModel::new().say("Never.");
        let runner = Runner::new(&agent).model(model.clone());
        let error = runner.context(App::blocked()).run("Hi").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputGuardrail);
        assert_eq!(error.run().unwrap().handoffs().len(), 0);
        assert_eq!(model.requests().len(), 0);
    }
}

#[tokio::test]
async fn the_first_condition_that_holds_counts() {
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let a = Agent::new("A")
        .handoff(handoff(&b).before_turn_if(|_ctx, _agent| false))
        .handoff(
            handoff(&b)
                .before_turn_if(|_ctx, _agent| true)
                .enabled(false),
        )
        .handoff(handoff(&c).before_turn_if(|_ctx, _agent| Ok::<_, String>(true)))
        .handoff(handoff(&b).before_turn_if(|_ctx, _agent| true));
    let model = ScriptedModel::new().say("Hi.");
    let result = Runner::new(&a).model(model).run("x").await.unwrap();
    assert_eq!(result.last_agent().name(), "C");
}

#[derive(Deserialize, JsonSchema)]
struct Reason {
    reason: String,
}

#[tokio::test]
async fn it_goes_through_the_stages_of_any_other_handoff() {
    let ran = Ran::default();
    let (of_guardrail, of_callback) = (ran.clone(), ran.clone());
    let desk: Agent = Agent::new("Desk");
    let a = Agent::new("A").handoff(
        handoff(&desk)
            .payload::<Reason>()
            .on_handoff(move |ctx, reason| {
                of_callback.add(format!("callback {} {}", ctx.call_id(), reason.reason));
            })
            .guardrail(HandoffGuardrail::new("look", move |request| {
                of_guardrail.add(format!("guardrail {:?}", request.payload));
                HandoffVerdict::Allow
            }))
            .filter(filters::keep_last(1).then(filters::payload()))
            .before_turn_if(|_ctx, _agent| EdgeDecision::hand_off_with(json!({"reason": "late"}))),
    );
    let (model, tracer) = (ScriptedModel::new().say("Hi."), MemoryTracer::new());
    let runner = Runner::new(&a).model(model.clone()).tracer(tracer.clone());
    let mut stream = runner.stream(vec![Item::user("old"), Item::user("x")]);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::Handoff(handoff) = event.kind {
            events.push((event.agent.to_string(), handoff.trigger, handoff.payload));
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(
        ran.take(),
        [
            "guardrail Some(Object {\"reason\": String(\"late\")})",
            "callback edge_0_0 late"
        ]
    );
    assert_eq!(
        described(&model.requests()[0].input),
        [
            "developer: A has handed the conversation over with this: {\"reason\":\"late\"}",
            "user: x"
        ]
    );
    assert_eq!(
        events,
        [(
            "A".to_owned(),
            HandoffTrigger::BeforeTurn,
            json!({"reason": "late"})
        )]
    );
    assert_eq!(&*result.handoffs()[0].tool_name, "transfer_to_desk");
    let spans = tracer.spans();
    let handoffs: Vec<_> = spans
        .iter()
        .filter_map(|span| match &span.data {
            SpanData::Handoff { details, .. } => Some((details, span.parent)),
            _ => None,
        })
        .collect();
    let [(details, Some(parent))] = &*handoffs else {
        panic!("{spans:?}");
    };
    assert_eq!(
        (details.trigger, details.decided_by),
        (HandoffTrigger::BeforeTurn, Some(HandoffDecider::Condition))
    );
    let parent = spans.iter().find(|span| span.id == *parent).unwrap();
    assert!(matches!(&parent.data, SpanData::Agent { name, .. } if **name == *"A"));
}

#[tokio::test]
async fn a_payload_that_does_not_fit_and_code_that_fails_end_the_run_where_it_was() {
    let desk: Agent = Agent::new("Desk");
    let without = handoff(&desk)
        .payload::<Reason>()
        .on_handoff(|_ctx, reason| drop(reason.reason))
        .before_turn_if(|_ctx, _agent| true)
        .build();
    let failing = handoff(&desk)
        .before_turn_if(|_ctx, _agent| Err::<bool, _>("broken"))
        .build();
    let called_back = handoff(&desk)
        .on_handoff(|_ctx| Err::<(), _>("broken"))
        .before_turn_if(|_ctx, _agent| true)
        .build();
    for (edge, kind) in [
        (without, ErrorKind::Configuration),
        (failing, ErrorKind::UserCode),
        (called_back, ErrorKind::UserCode),
    ] {
        let a = Agent::new("A").handoff(edge);
        let model = ScriptedModel::new().say("Hi.");
        let runner = Runner::new(&a).model(model.clone());
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("transfer_to_desk"), "{error}");
        assert_eq!(model.requests().len(), 0);
        assert_eq!(error.run().unwrap().agent(), "A");
    }
}

/// An edge that is refused, by a guardrail.
fn refused(edge: fn(&Agent<App>) -> switchboard_core::Handoff<App>) -> Agent<App> {
    triage(|desk| {
        edge(desk)
            .to_builder()
            .guardrail(HandoffGuardrail::new("no", |_request| {
                HandoffVerdict::refuse("not now")
            }))
            .build()
    })
}

#[tokio::test]
async fn a_refused_one_leaves_the_conversation_where_it_is_until_the_next_turn() {
    let app = App::blocked();
    let model = ScriptedModel::new().call("block", "{}").say("Hello.");
    let runner = Runner::new(&refused(before)).model(model.clone());
    let result = runner.context(app.clone()).run("Hi").await.unwrap();
    let no = HandoffOutcome::Refused("not now".to_owned());
    assert_eq!(result.final_text(), "Hello.");
    assert_eq!(
        triggers(&result),
        [
            (HandoffTrigger::BeforeTurn, no.clone()),
            (HandoffTrigger::BeforeTurn, no.clone())
        ]
    );
    assert_eq!(
        described(&result.to_input_list()),
        [
            "user: Hi",
            "call block",
            "output of call_1: blocked",
            "assistant: Hello."
        ]
    );

    // An answer is then final.
    let model = ScriptedModel::new().say("Hello.");
    let runner = Runner::new(&refused(after)).model(model.clone());
    let result = runner.context(app).run("Hi").await.unwrap();
    assert_eq!(result.final_text(), "Hello.");
    assert_eq!(triggers(&result), [(HandoffTrigger::AfterTurn, no)]);
}

#[tokio::test]
async fn a_person_can_be_asked_first() {
    for approves in [true, false] {
        for (edge, trigger) in [
            (before as fn(&Agent<App>) -> _, "edge_0_0"),
            (after, "edge_1_0"),
        ] {
            let agent = triage(|desk| edge(desk).to_builder().needs_approval().build());
            let model = ScriptedModel::new().say("One.").say("Two.");
            let runner = Runner::new(&agent).model(model).context(App::blocked());
            let result = runner.run("Hi").await.unwrap();
            assert_eq!(result.status(), RunStatus::Interrupted);
            let mut run = stored(result.run());
            let waiting = run.interruptions();
            assert_eq!(&*waiting[0].call_id, trigger);
            let decision = if approves {
                Decision::approve()
            } else {
                Decision::reject()
            };
            run.decide(&waiting[0], decision).unwrap();
            let result = runner.resume(run).await.unwrap();
            let expected = match (approves, trigger) {
                (true, "edge_0_0") => ("Desk", "One."),
                (true, _) => ("Desk", "Two."),
                (false, _) => ("Triage", "One."),
            };
            assert_eq!(
                (result.last_agent().name(), &*result.final_text()),
                expected,
                "{approves} {trigger}"
            );
        }
    }
}

/// Agents whose conditions hand the conversation around.
fn around() -> Team {
    let edge = |to: &str| {
        handoff::<()>(to)
            .before_turn_if(|_ctx, _agent| true)
            .hidden()
            .build()
    };
    Team::new()
        .agent(Agent::new("A").handoff(edge("B")).handoff("D"))
        .agent(Agent::new("B").handoff(edge("C")))
        .agent(Agent::new("C").handoff(edge("A")))
        .agent(Agent::new("D"))
        .build()
        .unwrap()
}

#[tokio::test]
async fn conditions_that_hand_the_conversation_around_are_stopped_under_any_policy() {
    for policy in [HandoffPolicy::production(), HandoffPolicy::reference()] {
        let model = ScriptedModel::new().say("Never.");
        let runner = Runner::new(&around()["A"]).model(model.clone());
        let error = runner.handoff_policy(policy).run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HandoffLoop);
        assert!(error.to_string().contains("B → C → A → B"), "{error}");
        assert_eq!(error.run().unwrap().handoffs().len(), 3);
        assert_eq!(model.requests().len(), 0);
    }
    let run = |at_limit: AtLoopLimit| {
        let limits = LoopLimits::none().at_limit(at_limit);
        let model = ScriptedModel::new().say("Hi.");
        let runner = Runner::new(&around()["A"])
            .model(model)
            .handoff_policy(HandoffPolicy::production().loops(limits));
        async move { runner.run("x").await }
    };
    let result = run(AtLoopLimit::Refuse).await.unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("A", "Hi.")
    );
    let result = run(AtLoopLimit::Redirect("D".into())).await.unwrap();
    assert_eq!(result.last_agent().name(), "D");
    let result = run(AtLoopLimit::Answer("Call us.".into())).await.unwrap();
    assert_eq!(result.final_text(), "Call us.");
    // A redirect into the circle does not go on for ever.
    let error = run(AtLoopLimit::Redirect("C".into())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffLoop);
}

#[tokio::test]
async fn limits_of_turns_and_budgets_come_before_the_side_effects_of_a_condition() {
    let app = App::blocked();
    let called = |edge: fn(&Agent<App>) -> switchboard_core::Handoff<App>| {
        triage(|desk| {
            let desk = edge(desk).to_builder().target(desk);
            desk.before_turn_if(|ctx, _agent| {
                ctx.calls.fetch_add(1, Ordering::Relaxed);
                true
            })
            .build()
        })
    };
    let runner = Runner::new(&called(before))
        .model(ScriptedModel::new().say("Never."))
        .context(app.clone());
    let error = runner.clone().max_turns(0).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxTurns);
    let none = Budgets::new().run(Budget::new().turns(0));
    let error = runner.budgets(none).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert_eq!(app.calls.load(Ordering::Relaxed), 0);

    // An answer that has to go on is no output.
    let runner = Runner::new(&triage(after))
        .model(ScriptedModel::new().say("One."))
        .context(app)
        .max_turns(1);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxTurns);
    assert_eq!(error.run().unwrap().handoffs().len(), 0);
}

#[tokio::test]
async fn a_conversation_stores_whole_turns_and_the_agent_that_has_it() {
    let app = Arc::new(App::default());
    let session = Conversations::in_memory().get("c");
    let run = |text: &'static str, model: ScriptedModel| {
        let runner = Runner::new(&triage(before)).model(model).session(&session);
        let app = app.clone();
        async move { runner.context(app).run(text).await }
    };
    run("One", ScriptedModel::new().say("1")).await.unwrap();
    app.is_blocked.store(true, Ordering::Relaxed);
    // The model of the next agent fails: nothing is stored of the message.
    run("Two", ScriptedModel::new().fail("overloaded"))
        .await
        .unwrap_err();
    assert_eq!(session.load(None).await.unwrap().len(), 2);
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    run("Three", ScriptedModel::new().say("3")).await.unwrap();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Desk"));
    assert_eq!(
        described(&session.view().await.unwrap()),
        ["user: One", "assistant: 1", "user: Three", "assistant: 3"]
    );
}

/// The team, with all the kinds of edges, and what its code did.
fn steps(ran: &Ran) -> Runner {
    let effect = |name: &'static str, ran: &Ran| {
        let ran = ran.clone();
        move |ctx: switchboard_core::handoff::HandoffContext| {
            ran.add(format!("{name} {}", ctx.call_id()));
        }
    };
    let model = (0..9).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(|request| {
            let outputs = request.input.iter().filter(|item| item.output().is_some());
            let has_tool = !request.tools.is_empty() && outputs.count() == 0;
            Ok(switchboard_core::ModelResponse::new(if has_tool {
                vec![Item::function_call("c1", "look", "{}")]
            } else {
                vec![Item::output_message(
                    "m",
                    &format!("by {:?}", request.agent),
                )]
            }))
        })
    });
    let last: Agent = Agent::new("Last");
    let middle: Agent = Agent::new("Middle").handoff(
        handoff(&last)
            .on_handoff(effect("answered", ran))
            .filter(filters::remove_all_tools())
            .after_turn_if(|_ctx, _agent| true)
            .needs_approval()
            .hidden(),
    );
    let worker = Agent::new("Worker")
        .tool(tool("look").run(|_ctx, (): ()| "found"))
        .handoff(
            handoff(&middle)
                .on_handoff(effect("worked", ran))
                .after_turn_if(|_ctx, _agent| true)
                .hidden(),
        );
    let first = Agent::new("First").handoff(
        handoff(&worker)
            .on_handoff(effect("began", ran))
            .before_turn_if(|_ctx, _agent| true)
            .hidden(),
    );
    Runner::new(&first).model(model)
}

#[tokio::test]
async fn a_run_restored_after_each_step_ends_the_same_with_each_side_effect_once() {
    let mut outcomes = Vec::new();
    for is_killed in [false, true] {
        let ran = Ran::default();
        let mut runner = steps(&ran);
        let mut run = runner.begin("x");
        let mut count = 0;
        while !matches!(run.step(), Step::Done(_)) {
            for waiting in run.interruptions() {
                run.decide(&waiting, Decision::approve()).unwrap();
            }
            runner.step(&mut run).await.unwrap();
            count += 1;
            assert!(count < 30, "the run does not end");
            assert_fits_schema(&run);
            if is_killed {
                runner = steps(&ran);
                run = stored(&run);
            }
        }
        assert_eq!(run.agent(), "Last");
        assert_eq!(
            ran.take(),
            ["began edge_0_0", "worked edge_1_1", "answered edge_2_2"]
        );
        outcomes.push((
            described(&run.to_input_list()),
            run.handoffs().to_vec(),
            count,
        ));
    }
    assert_eq!(outcomes[0], outcomes[1]);
}

#[tokio::test]
async fn a_stream_shows_an_answer_that_goes_on_although_no_guardrail_has_passed_it() {
    let guardrail = switchboard_core::guardrail::OutputGuardrail::new(
        "last words",
        |_ctx, agent: Agent<App>, _output| {
            if agent.name() == "Desk" {
                Verdict::Allow
            } else {
                Verdict::trip("not the output")
            }
        },
    );
    let runner = Runner::new(&triage(after))
        .model(ScriptedModel::new().say("One moment.").say("Desk here."))
        .output_guardrail(guardrail)
        .context(App::blocked());
    let mut stream = runner.stream("Hi");
    let mut texts: Vec<(String, String)> = Vec::new();
    while let Some(event) = stream.next().await {
        let EventKind::TextDelta { text, .. } = event.kind else {
            continue;
        };
        match texts.last_mut() {
            Some((agent, said)) if *agent == *event.agent => said.push_str(&text),
            _ => texts.push((event.agent.to_string(), text)),
        }
    }
    stream.finish().await.unwrap();
    let texts: Vec<_> = texts
        .iter()
        .map(|(agent, said)| (&**agent, &**said))
        .collect();
    assert_eq!(texts, [("Triage", "One moment."), ("Desk", "Desk here.")]);
}
