//! Outputs that are held back until guardrails have passed them.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::guardrail::{InputGuardrail, OutputGuardrail, OutputVerdict, Verdict};
use switchboard_core::model::ModelEvent;
use switchboard_core::run::{Fallback, StreamedOutput};
use switchboard_core::stream::StreamEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, EventKind, FinalOutput, Item, ModelResponse, Runner, tool,
};

/// The events of a run as JSON, and their error.
async fn events(runner: &Runner) -> (Vec<String>, Option<ErrorKind>) {
    let mut stream = runner.stream("Hi");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(serde_json::to_string(&event).unwrap());
    }
    let error = stream.finish().await.err();
    (events, error.map(|error| error.kind()))
}

fn types(events: &[String]) -> Vec<String> {
    let name = |event: &String| serde_json::from_str::<Value>(event).unwrap()["type"].clone();
    let names = events.iter().map(name);
    names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn no_falcon() -> OutputGuardrail {
    OutputGuardrail::new("codename", |_ctx, _agent, output: FinalOutput| {
        OutputVerdict::trip_if(output.text().contains("Falcon"), "the codename")
    })
}

/// A model that streams a message in these pieces.
fn pieces(pieces: &[&str]) -> ScriptedModel {
    streaming(ScriptedModel::new(), pieces)
}

fn streaming(model: ScriptedModel, pieces: &[&str]) -> ScriptedModel {
    let text = pieces.concat();
    let deltas = pieces.iter().map(|piece| ModelEvent::TextDelta {
        item: "msg_1".into(),
        text: (*piece).to_owned(),
    });
    let mut response = ModelResponse::default();
    response.output = vec![Item::output_message("msg_1", &text)];
    let events = deltas.chain([ModelEvent::Completed(response)]);
    model.stream_events(events.collect::<Vec<_>>())
}

#[tokio::test]
async fn an_output_that_a_guardrail_refuses_is_never_shown() {
    let agent: Agent = Agent::new("A").output_guardrail(no_falcon());
    let runner = Runner::new(&agent).model(pieces(&["It is ", "Falcon", "."]));
    let (events, error) = events(&runner).await;
    assert_eq!(error, Some(ErrorKind::OutputGuardrail));
    assert!(!events.concat().contains("Falcon"), "{events:#?}");
    assert_eq!(
        types(&events),
        [
            "run_started",
            "agent_updated",
            "turn_started",
            "usage",
            "guardrail",
            "run_failed"
        ]
    );
}

#[tokio::test]
async fn an_output_that_passes_is_shown_in_order() {
    let agent: Agent = Agent::new("A").output_guardrail(no_falcon());
    let runner = Runner::new(&agent).model(pieces(&["It is ", "a hawk", "."]));
    let (held, _) = events(&runner).await;
    let plain = types(&held);
    let expected = "run_started agent_updated turn_started text_delta text_delta text_delta usage \
                    item guardrail run_finished";
    assert_eq!(plain, expected.split_whitespace().collect::<Vec<_>>());
    let runner = Runner::new(&agent)
        .model(pieces(&["It is ", "Falcon", "."]))
        .streamed_output(StreamedOutput::AtOnce);
    let (at_once, _) = events(&runner).await;
    assert_eq!(types(&at_once)[..8], plain[..8]);
    assert!(at_once.concat().contains("Falcon"));
}

#[tokio::test]
async fn a_replaced_output_is_shown_in_place_of_the_one_that_the_model_gave() {
    let masked = OutputGuardrail::replacing("masked", |_ctx, _agent, output: FinalOutput| {
        Some(output.text().replace("Falcon", "[NAME]"))
    });
    let agent: Agent = Agent::new("A").output_guardrail(masked);
    let runner = Runner::new(&agent).model(pieces(&["It is ", "Falcon", "."]));
    let (events, error) = events(&runner).await;
    assert_eq!(error, None);
    assert!(!events.concat().contains("Falcon"), "{events:#?}");
    let deltas: Vec<&String> = events
        .iter()
        .filter(|event| event.contains("text_delta"))
        .collect();
    assert_eq!(deltas.len(), 1);
    assert!(
        deltas[0].contains(r#""text":"It is [NAME].""#),
        "{deltas:?}"
    );
    assert!(
        events
            .iter()
            .any(|event| event.contains("message_output_created"))
    );
}

#[tokio::test]
async fn text_beside_a_call_is_shown_once_it_is_known_not_to_be_the_output() {
    let model = ScriptedModel::new()
        .reply([
            Item::output_message("msg_1", "Let me see."),
            Item::function_call("call_1", "look", "{}"),
        ])
        .say("A hawk.");
    let agent: Agent = Agent::new("A")
        .tool(tool("look").run(|_ctx, (): ()| "a hawk"))
        .output_guardrail(no_falcon());
    let (events, _) = events(&Runner::new(&agent).model(model)).await;
    let position = |what: &str| {
        events
            .iter()
            .position(|event| event.contains(what))
            .unwrap()
    };
    assert!(position("Let me see.") < position("tool_started"));
}

#[tokio::test]
async fn guardrails_that_judge_parts_let_sentences_through_and_stop_the_model() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let parts = seen.clone();
    let agent: Agent = Agent::new("A").output_guardrail(
        OutputGuardrail::new("codename", move |_ctx, _agent, output: FinalOutput| {
            parts.lock().unwrap().push(output.text().into_owned());
            OutputVerdict::trip_if(output.text().contains("Falcon"), "the codename")
        })
        .judging_parts(),
    );
    let model = pieces(&["It is a bird", ". ", "It is ", "Falcon.", " Do not tell."]);
    let runner = Runner::new(&agent).model(model);
    let (events, error) = events(&runner).await;
    assert_eq!(error, Some(ErrorKind::OutputGuardrail));
    assert_eq!(
        *seen.lock().unwrap(),
        ["It is a bird. ", "It is a bird. It is Falcon. "]
    );
    let all = events.concat();
    assert!(all.contains("It is a bird"), "{events:#?}");
    assert!(
        !all.contains("Falcon") && !all.contains("It is \""),
        "{events:#?}"
    );
}

#[tokio::test]
async fn the_beginning_of_a_sentence_waits_until_guardrails_have_judged_all_of_it() {
    let raw = |text: &str| {
        let json = format!(r#"{{"delta":"{text}"}}"#);
        ModelEvent::Raw(switchboard_core::model::RawEvent::from_json(json).unwrap())
    };
    let pieces = [
        "Sure. Your card is 4111",
        " 1111",
        " 1111. 1111 it",
        " is not, 3.",
        "14 or\u{e4}.",
        " Bye. Bye.",
    ];
    let (seen, runs) = (
        Arc::new(Mutex::new(Vec::new())),
        ["1111. 1111 it is", "no such words"],
    );
    for tripping in runs {
        let parts = seen.clone();
        let agent: Agent = Agent::new("A").output_guardrail(
            OutputGuardrail::new("card", move |_ctx, _agent, output: FinalOutput| {
                parts.lock().unwrap().push(output.text().into_owned());
                OutputVerdict::trip_if(output.text().contains(tripping), "the card")
            })
            .judging_parts(),
        );
        let events = pieces.iter().flat_map(|piece| {
            let delta = ModelEvent::TextDelta {
                item: "msg_1".into(),
                text: (*piece).to_owned(),
            };
            [raw(piece), delta]
        });
        let mut response = ModelResponse::default();
        response.output = vec![Item::output_message("msg_1", &pieces.concat())];
        let events = events.chain([ModelEvent::Completed(response)]);
        let model = ScriptedModel::new().stream_events(events.collect::<Vec<_>>());
        let mut stream = Runner::new(&agent).model(model).stream("Hi");
        let (mut deltas, mut whole) = (Vec::new(), Vec::new());
        while let Some(event) = stream.next().await {
            match event.kind {
                EventKind::TextDelta { text, .. } => deltas.push(text),
                EventKind::Raw { event, .. } => whole.push(event.as_json().to_owned()),
                _ => {}
            }
        }
        let parts = std::mem::take(&mut *seen.lock().unwrap());
        let first = [
            "Sure. ",
            "Sure. Your card is 4111 1111 1111. ",
            "Sure. Your card is 4111 1111 1111. 1111 it is not, 3.14 or\u{e4}. Bye. ",
        ];
        assert_eq!(parts[..3], first);
        if tripping == runs[0] {
            assert_eq!(parts.len(), 3);
            assert_eq!(deltas, ["Sure. ", "Your card is 4111", " 1111", " 1111. "]);
            assert_eq!(whole.len(), 2, "{whole:?}");
            stream.finish().await.unwrap_err();
        } else {
            assert_eq!(parts[3..], [pieces.concat()]);
            assert_eq!(deltas.concat(), pieces.concat());
            assert_eq!(deltas.len(), 9, "{deltas:?}");
            assert_eq!(whole.len(), 6);
            stream.finish().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_long_text_without_sentences_is_looked_through_once() {
    let agent: Agent = Agent::new("A").output_guardrail(no_falcon().judging_parts());
    let words = vec!["aaaa"; 100_000];
    let runner = Runner::new(&agent).model(pieces(&words));
    let began = std::time::Instant::now();
    let (events, error) = events(&runner).await;
    assert_eq!(error, None);
    let is_delta = |event: &&String| event.contains("text_delta");
    assert_eq!(events.iter().filter(is_delta).count(), words.len());
    // 20,000,000,000 characters otherwise.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_result_of_a_tool_that_ends_the_run_is_held_back_too() {
    for replaces in [false, true] {
        let guardrail = if replaces {
            OutputGuardrail::replacing("masked", |_ctx, _agent, _output| Some("[NAME]"))
        } else {
            no_falcon()
        };
        let agent: Agent = Agent::new("A")
            .tool(tool("look").run(|_ctx, (): ()| "Falcon"))
            .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
            .output_guardrail(guardrail);
        let model = ScriptedModel::new().call("look", "{}");
        let (events, error) = events(&Runner::new(&agent).model(model)).await;
        assert_eq!(error.is_none(), replaces);
        assert!(!events.concat().contains("Falcon"), "{events:#?}");
        let ended = events.iter().find(|event| event.contains("tool_ended"));
        assert_eq!(ended.unwrap().contains("[NAME]"), replaces, "{ended:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_recovered_from_is_not_shown_where_outputs_are_held_back() {
    let refusal = Item::from_json(
        r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"refusal","refusal":"Falcon"}]}"#,
    );
    let model = ScriptedModel::new().reply([refusal.unwrap()]);
    let agent: Agent = Agent::new("A").output_guardrail(no_falcon());
    let runner = Runner::new(&agent)
        .model(model)
        .recover(|_ctx, _failure| Some(Fallback::from("Sorry.")));
    let (events, error) = events(&runner).await;
    assert_eq!(error, None);
    assert!(!events.concat().contains("Falcon"), "{events:#?}");
    assert!(events.concat().contains("Sorry."));
}

#[tokio::test]
async fn a_run_that_is_stopped_shows_nothing_that_was_held_back() {
    let agent: Agent = Agent::new("A").output_guardrail(no_falcon());
    let slow = ScriptedModel::new().delay(std::time::Duration::from_secs(600));
    let runner = Runner::new(&agent).model(streaming(slow, &["It is ", "a hawk", "."]));
    let mut stream = runner.stream("Hi");
    let mut seen: Vec<StreamEvent> = Vec::new();
    while let Some(event) = stream.next().await {
        if matches!(event.kind, EventKind::TurnStarted { .. }) {
            stream.stop();
        }
        seen.push(event);
    }
    assert!(matches!(
        seen.last().unwrap().kind,
        EventKind::RunStopped { .. }
    ));
}

#[tokio::test]
async fn an_output_stays_held_back_when_the_run_is_resumed() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let down = is_down.clone();
    let flaky = OutputGuardrail::new("codename", move |_ctx, _agent, output: FinalOutput| {
        if down.load(std::sync::atomic::Ordering::Relaxed) {
            return Err("the service is down");
        }
        Ok(OutputVerdict::trip_if(
            output.text().contains("Falcon"),
            "the codename",
        ))
    });
    let agent: Agent = Agent::new("A").output_guardrail(flaky);
    let runner = Runner::new(&agent).model(pieces(&["It is ", "Falcon."]));
    let mut stream = runner.stream("Hi");
    let mut seen = String::new();
    while let Some(event) = stream.next().await {
        seen += &serde_json::to_string(&event).unwrap();
    }
    let error = stream.finish().await.unwrap_err();
    is_down.store(false, std::sync::atomic::Ordering::Relaxed);
    let mut stream = runner.resume_stream(error.into_run().unwrap()).unwrap();
    while let Some(event) = stream.next().await {
        seen += &serde_json::to_string(&event).unwrap();
    }
    let error = stream.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    assert!(!seen.contains("Falcon"), "{seen}");
}

#[tokio::test]
async fn other_tools_keep_their_results_when_one_result_is_replaced() {
    let masked = OutputGuardrail::replacing("masked", |_ctx, _agent, _output| Some("[NAME]"));
    let agent: Agent = Agent::new("A")
        .tool(tool("name").run(|_ctx, (): ()| "Falcon"))
        .tool(tool("weather").run(|_ctx, (): ()| "sunny"))
        .tool_use_behavior(ToolUseBehavior::stop_at(["name"]))
        .output_guardrail(masked);
    let model = ScriptedModel::new().calls([("name", "{}"), ("weather", "{}")]);
    let (events, error) = events(&Runner::new(&agent).model(model)).await;
    assert_eq!(error, None);
    assert!(!events.concat().contains("Falcon"), "{events:#?}");
    let sunny = events
        .iter()
        .filter(|event| event.contains("sunny"))
        .count();
    assert_eq!(sunny, 2, "the end of the tool, and its output: {events:#?}");
}

#[tokio::test]
async fn a_part_that_is_refused_after_a_retry_is_a_refusal_and_not_a_failed_model() {
    use switchboard_core::ModelSettings;
    use switchboard_core::model::{RetryPolicy, RetrySettings};
    let again = RetryPolicy::new(|_failure| true);
    let agent: Agent = Agent::new("A")
        .output_guardrail(no_falcon().judging_parts())
        .model_settings(ModelSettings {
            retry: Some(RetrySettings::new(2).policy(again)),
            ..ModelSettings::default()
        });
    let model = streaming(
        ScriptedModel::new().fail("no route"),
        &["It is Falcon.", " Yes."],
    );
    let (_, error) = events(&Runner::new(&agent).model(model)).await;
    assert_eq!(error, Some(ErrorKind::OutputGuardrail));
}

#[tokio::test]
async fn a_message_that_guardrails_may_refuse_is_in_no_event() {
    let guardrail = InputGuardrail::new("no_secrets", |_ctx, _agent, _input| Verdict::trip("no"));
    for (agent, shown) in [
        (Agent::new("A"), 1),
        (Agent::new("A").input_guardrail(guardrail), 0),
    ] {
        let agent: Agent = agent;
        let model = ScriptedModel::new().say("Hello.");
        let mut stream = Runner::new(&agent).model(model).stream("it is hunter2");
        let mut events = String::new();
        while let Some(event) = stream.next().await {
            events += &serde_json::to_string(&event).unwrap();
        }
        assert_eq!(events.matches("hunter2").count(), shown, "{events}");
    }
}
