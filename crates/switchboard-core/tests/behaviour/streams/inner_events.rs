//! Events of runs inside a streamed one: of agents used as tools, and of agents that answer beside others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{OutputGuardrail, Verdict};
use switchboard_core::run::{FanOut, HandoffPolicy, InnerEvents, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Item, Runner, StreamEvent, tool};

use super::{Signal, collect, type_of};
use crate::approvals::decide_all;
use crate::stored;

/// The calls that an event lies inside of, outermost first, with its agent and its type.
fn place(event: &StreamEvent) -> String {
    match &event.kind {
        EventKind::Inner { call_id, event, .. } => format!("{call_id} > {}", place(event)),
        _ => format!("{} {}", event.agent, type_of(event)),
    }
}

fn places(events: &[StreamEvent]) -> Vec<String> {
    let inner = events.iter().filter(|event| is_inner(event));
    inner.map(place).collect()
}

fn is_inner(event: &StreamEvent) -> bool {
    matches!(event.kind, EventKind::Inner { .. })
}

fn ask(id: &str) -> Item {
    Item::function_call(id, "ask", r#"{"input":"?"}"#)
}

/// A desk that asks an expert, who asks a clerk.
fn desk() -> Agent {
    let clerk: Agent = Agent::new("Clerk").model(ScriptedModel::new().say("Four."));
    let expert = Agent::new("Expert")
        .model(ScriptedModel::new().reply([ask("inner")]).say("Five."))
        .tool(clerk.as_tool("ask"));
    Agent::new("Desk")
        .model(ScriptedModel::new().reply([ask("outer")]).say("Six."))
        .tool(expert.as_tool("ask"))
}

#[tokio::test]
async fn a_stream_shows_what_agents_used_as_tools_do_with_the_calls_around_it() {
    let mut stream = Runner::new(&desk()).stream("Hi");
    let events = collect(&mut stream).await;
    assert_eq!(
        places(&events),
        [
            "outer > Expert run_started",
            "outer > Expert agent_updated",
            "outer > Expert turn_started",
            "outer > Expert usage",
            "outer > Expert item",
            "outer > Expert tool_started",
            "outer > inner > Clerk run_started",
            "outer > inner > Clerk agent_updated",
            "outer > inner > Clerk turn_started",
            "outer > inner > Clerk text_delta",
            "outer > inner > Clerk usage",
            "outer > inner > Clerk item",
            "outer > inner > Clerk run_finished",
            "outer > Expert tool_ended",
            "outer > Expert item",
            "outer > Expert turn_started",
            "outer > Expert text_delta",
            "outer > Expert usage",
            "outer > Expert item",
            "outer > Expert run_finished",
        ]
    );
    // Around them are the agent and the turn that made the call, and all of it is JSON.
    for event in events.iter().filter(|event| is_inner(event)) {
        assert_eq!((&*event.agent, event.turn), ("Desk", 1));
        let json = serde_json::to_string(event).unwrap();
        let read: StreamEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&read, serde_json::to_string(&read).unwrap()),
            (event, json)
        );
    }
    assert_eq!(stream.finish().await.unwrap().final_text(), "Six.");
}

#[tokio::test]
async fn without_inner_events_the_stream_has_none() {
    let runner = Runner::new(&desk()).inner_events(InnerEvents::Hidden);
    let events = collect(&mut runner.stream("Hi")).await;
    assert_eq!(places(&events), [""; 0]);
}

fn fan_out(join: FanOut) -> HandoffPolicy {
    HandoffPolicy::production().several(SeveralHandoffs::FanOut(join))
}

fn joined() -> FanOut {
    FanOut::joined(|answers| format!("{} answers", answers.len()))
}

/// Two agents that answer side by side.
fn triage() -> Agent {
    let transfers = [
        Item::function_call("c1", "transfer_to_tax", "{}"),
        Item::function_call("c2", "transfer_to_law", "{}"),
    ];
    let tax: Agent = Agent::new("Tax").model(ScriptedModel::new().say("Tax."));
    let law: Agent = Agent::new("Law").model(ScriptedModel::new().say("Law."));
    Agent::new("Triage")
        .model(ScriptedModel::new().reply(transfers).say("Nothing."))
        .handoff(&tax)
        .handoff(&law)
}

#[tokio::test]
async fn a_stream_shows_agents_that_answer_side_by_side_each_with_its_call() {
    for join in [joined(), FanOut::to_caller()] {
        let runner = Runner::new(&triage()).handoff_policy(fan_out(join));
        let events = collect(&mut runner.stream("Hi")).await;
        let mut branches: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for place in places(&events) {
            let (call, event) = place.split_once(" > ").unwrap();
            branches
                .entry(call.to_owned())
                .or_default()
                .push(event.to_owned());
        }
        let branch = |agent: &str| {
            let kinds = [
                "run_started",
                "agent_updated",
                "turn_started",
                "text_delta",
                "usage",
                "item",
                "run_finished",
            ];
            kinds.map(|kind| format!("{agent} {kind}")).to_vec()
        };
        let expected = [
            ("c1".to_owned(), branch("Tax")),
            ("c2".to_owned(), branch("Law")),
        ];
        assert_eq!(branches, BTreeMap::from(expected));
    }
}

#[tokio::test]
async fn a_listener_of_an_agent_tool_and_the_stream_get_the_same_events() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let expert: Agent = Agent::new("Expert").model(ScriptedModel::new().say("Five."));
    let ask_expert = expert.as_tool("ask").on_event(move |_ctx, event| {
        listener.lock().unwrap().push(event);
    });
    let desk: Agent = Agent::new("Desk")
        .model(ScriptedModel::new().reply([ask("c")]).say("Six."))
        .tool(ask_expert);
    let events = collect(&mut Runner::new(&desk).stream("Hi")).await;
    let inner = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Inner { event, .. } => Some(*event),
        _ => None,
    });
    let inner: Vec<StreamEvent> = inner.collect();
    assert_eq!(inner.len(), 7);
    assert_eq!(inner, *heard.lock().unwrap());
}

#[tokio::test]
async fn an_output_that_guardrails_have_yet_to_pass_is_not_shown_by_the_run_that_makes_it() {
    let guardrail = || OutputGuardrail::<()>::new("g", |_ctx, _agent, _output| Verdict::Allow);
    let expert: Agent = Agent::new("Expert").model(ScriptedModel::new().say("Five."));
    let desk = || {
        Agent::new("Desk")
            .model(ScriptedModel::new().reply([ask("c")]).say("Six."))
            .tool(expert.as_tool("ask"))
    };
    let ends = desk()
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(guardrail());
    assert_eq!(
        places(&collect(&mut Runner::new(&ends).stream("Hi")).await),
        [""; 0]
    );
    // The answers of agents side by side, where code makes the output of them.
    for (join, is_shown) in [(joined(), false), (FanOut::to_caller(), true)] {
        let guarded = triage().output_guardrail(guardrail());
        let runner = Runner::new(&guarded).handoff_policy(fan_out(join));
        let events = collect(&mut runner.stream("Hi")).await;
        assert_eq!(!places(&events).is_empty(), is_shown);
    }
    // An agent inside with guardrails of its own: what they refuse is not shown.
    let refusing = OutputGuardrail::<()>::new("g", |_ctx, _agent, _output| Verdict::trip("no"));
    let expert: Agent = Agent::new("Expert")
        .model(ScriptedModel::new().say("Secret."))
        .output_guardrail(refusing);
    let desk: Agent = Agent::new("Desk")
        .model(ScriptedModel::new().reply([ask("c")]).say("Six."))
        .tool(expert.as_tool("ask"));
    let events = collect(&mut Runner::new(&desk).stream("Hi")).await;
    let json = serde_json::to_string(&events).unwrap();
    assert!(!json.contains("Secret."), "{json}");
    assert_eq!(places(&events).last().unwrap(), "c > Expert run_failed");
}

#[tokio::test]
async fn a_run_inside_goes_on_to_its_end_when_the_stream_stops_after_its_turn() {
    let runner = Runner::new(&desk());
    let mut stream = runner.stream("Hi");
    stream.stop_after_turn();
    let events = collect(&mut stream).await;
    assert_eq!(
        places(&events).last().unwrap(),
        "outer > Expert run_finished"
    );
    assert_eq!(type_of(events.last().unwrap()), "run_stopped");
    let result = runner
        .resume(stream.finish().await.unwrap().into_run())
        .await;
    assert_eq!(result.unwrap().final_text(), "Six.");
}

#[tokio::test]
async fn progress_of_tools_inside_is_shown_with_the_call_around_it() {
    let count = tool::<()>("count").run(|ctx, (): ()| {
        ctx.report_progress(1);
        "counted"
    });
    let expert: Agent = Agent::new("Expert")
        .model(ScriptedModel::new().call("count", "{}").say("Five."))
        .tool(count);
    let desk: Agent = Agent::new("Desk")
        .model(ScriptedModel::new().reply([ask("c")]).say("Six."))
        .tool(expert.as_tool("ask"));
    let events = collect(&mut Runner::new(&desk).stream("Hi")).await;
    let is_progress = |place: &&String| place.contains("tool_progress");
    let places = places(&events);
    let progress: Vec<_> = places.iter().filter(is_progress).collect();
    assert_eq!(progress, ["c > Expert tool_progress"]);
}

#[tokio::test]
async fn a_run_inside_that_waits_says_so_and_goes_on_in_the_next_stream() {
    let pay = tool::<()>("pay")
        .needs_approval()
        .run(|_ctx, (): ()| "paid");
    let expert: Agent = Agent::new("Expert")
        .model(ScriptedModel::new().call("pay", "{}").say("Five."))
        .tool(pay);
    let desk: Agent = Agent::new("Desk")
        .model(ScriptedModel::new().reply([ask("c")]).say("Six."))
        .tool(expert.as_tool("ask"));
    let runner = Runner::new(&desk);
    let mut stream = runner.stream("Hi");
    let events = collect(&mut stream).await;
    assert_eq!(
        places(&events).last().unwrap(),
        "c > Expert run_interrupted"
    );
    let mut run = stored(stream.finish().await.unwrap().run());
    decide_all(&mut run, &Decision::approve());
    let events = collect(&mut runner.resume_stream(run).unwrap()).await;
    let places = places(&events);
    assert_eq!(places[0], "c > Expert run_started");
    assert_eq!(places.last().unwrap(), "c > Expert run_finished");
}

#[tokio::test]
async fn a_run_inside_that_outlives_the_stream_ends_without_it() {
    let (begun, ended) = (Signal::default(), Signal::default());
    let (begin, end) = (begun.clone(), ended.clone());
    // The tool starts a run in another task, and does not wait for it.
    let start = tool::<()>("ask").run(move |ctx, (): ()| {
        let (begin, end) = (begin.clone(), end.clone());
        let wait = tool::<()>("wait").run(move |_ctx, (): ()| {
            let begin = begin.clone();
            async move {
                begin.wait_for(1).await;
                "waited"
            }
        });
        let expert: Agent = Agent::new("Expert")
            .model(ScriptedModel::new().call("wait", "{}").say("Five."))
            .tool(wait);
        let run = Runner::new(&expert).within(&ctx).run("Hi");
        tokio::spawn(async move {
            run.await.unwrap();
            end.increment();
        });
        "started"
    });
    let desk: Agent = Agent::new("Desk")
        .model(ScriptedModel::new().call("ask", "{}").say("Six."))
        .tool(start);
    let mut stream = Runner::new(&desk).stream("Hi");
    let events = collect(&mut stream).await;
    assert_eq!(type_of(events.last().unwrap()), "run_finished");
    drop(stream);
    begun.increment();
    ended.wait_for(1).await;
}
