use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    GuardrailVerdict, HandoffGuardrail, HandoffVerdict, InputGuardrail, OutputGuardrail,
    OutputVerdict, tool,
};

use super::*;
use crate::conversation::Desk;
use crate::test_support::{desk, desk_on, told};

fn handoff(from: &str, to: &str, payload: Value, items: usize, of: usize) -> Event {
    let kinds = [
        ("function_call", 1),
        ("function_call_output", 1),
        ("user_message", 1),
    ];
    Event::Handoff {
        from: from.to_owned(),
        to: to.to_owned(),
        tool: format!("transfer_to_{}", to.to_lowercase()),
        payload,
        carried: Some(Carried {
            items,
            of,
            kinds: BTreeMap::from(kinds.map(|(kind, count)| (kind.to_owned(), count))),
        }),
    }
}

fn updated(agent: &str, model: &str) -> Event {
    Event::AgentUpdated {
        agent: agent.to_owned(),
        model: model.to_owned(),
    }
}

fn without_ends(events: Vec<Event>) -> Vec<Event> {
    let is_between = |event: &Event| {
        !matches!(
            event,
            Event::RunStarted { .. } | Event::TextDelta { .. } | Event::Finished { .. }
        )
    };
    events.into_iter().filter(is_between).collect()
}

#[tokio::test]
async fn a_run_is_told_from_its_message_to_its_output() {
    let model = ScriptedModel::new()
        .call("transfer_to_manager", r#"{"reason": "angry"}"#)
        .say("I call you back.");
    let events = told(desk_on(model), &["I want a manager"]).await;
    let Some(Event::Finished { cost, .. }) = events.last() else {
        panic!("{events:?}");
    };
    let expected = [
        Event::RunStarted {
            team: "team.toml".to_owned(),
            agents: ["Triage", "Billing", "Shipping", "Manager"]
                .map(str::to_owned)
                .to_vec(),
            agent: "Triage".to_owned(),
            model: "scripted".to_owned(),
            message: "I want a manager".to_owned(),
        },
        handoff("Triage", "Manager", json!({"reason": "angry"}), 3, 3),
        updated("Manager", "scripted"),
        Event::Message {
            agent: "Manager".to_owned(),
            text: "I call you back.".to_owned(),
        },
        Event::Finished {
            agent: "Manager".to_owned(),
            output: json!("I call you back."),
            cost: *cost,
        },
    ];
    let events: Vec<Event> = events
        .into_iter()
        .filter(|event| !matches!(event, Event::TextDelta { .. }))
        .collect();
    assert_eq!(events, expected);
}

#[tokio::test]
async fn the_pieces_of_an_answer_make_up_the_message() {
    let events = told(desk(), &["you took the money from my card twice!"]).await;
    let mut pieces = String::new();
    let mut whole = String::new();
    for event in events {
        match event {
            Event::TextDelta { text, agent } if agent == "Billing" => pieces.push_str(&text),
            Event::Message { text, agent } if agent == "Billing" => whole = text,
            _ => {}
        }
    }
    assert!(whole.contains("A second charge is reversed"), "{whole}");
    assert_eq!(pieces, whole);
}

#[tokio::test]
async fn what_a_filter_leaves_out_is_not_carried() {
    let model = ScriptedModel::new()
        .call("track", "{}")
        .call("transfer_to_billing", "{}")
        .say("Done.");
    let mut desk = desk_on(model);
    desk.start = desk
        .start
        .tool(tool::<Context>("track").run_raw(&json!({}), |_| "sent"));
    desk.config.handoff_input_filter = Some(switchboard_core::filters::keep_last(3));
    let events = told(desk, &["Hi"]).await;
    let carried = events.into_iter().find_map(|event| match event {
        Event::Handoff { carried, .. } => carried,
        _ => None,
    });
    let carried = carried.unwrap();
    assert_eq!(carried.of, 5);
    assert!(carried.items < 5, "{carried:?}");
    assert_eq!(carried.items, carried.kinds.values().sum::<usize>());
}

#[tokio::test]
async fn tools_that_failed_are_told_apart_from_those_that_did_not() {
    let model = ScriptedModel::new()
        .calls([("good", "{}"), ("bad", r#"{"a":1}"#)])
        .say("Done.");
    let mut desk = desk_on(model);
    desk.start = desk
        .start
        .tool(tool::<Context>("good").run_raw(&json!({}), |_| "fine"))
        .tool(
            tool::<Context>("bad")
                .failure_text(|_, error| format!("it broke: {error}"))
                .run_raw(&json!({}), |_| Err::<String, _>("no disk")),
        );
    let events = without_ends(told(desk, &["Hi"]).await);
    let outputs: Vec<(String, Value, bool)> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::ToolOutput {
                tool,
                output,
                failed,
                ..
            } => Some((tool, output, failed)),
            _ => None,
        })
        .collect();
    assert_eq!(
        outputs,
        [
            ("good".to_owned(), json!("fine"), false),
            ("bad".to_owned(), json!("it broke: no disk"), true),
        ]
    );
}

#[tokio::test]
async fn a_handoff_that_a_guardrail_refuses_is_told_with_the_reason() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Then not.");
    let mut desk = desk_on(model);
    let closed = HandoffGuardrail::new("hours", |_| HandoffVerdict::refuse("closed on Sundays"));
    desk.config.handoff_guardrails.push(closed);
    assert_eq!(
        without_ends(told(desk, &["Hi"]).await),
        [
            Event::Guardrail {
                guardrail: "hours".to_owned(),
                agent: "Triage".to_owned(),
                outcome: GuardrailOutcome::Refused,
                info: Value::Null,
            },
            Event::HandoffRefused {
                from: "Triage".to_owned(),
                to: "Billing".to_owned(),
                tool: "transfer_to_billing".to_owned(),
                payload: json!({}),
                reason: "closed on Sundays".to_owned(),
            },
            Event::Message {
                agent: "Triage".to_owned(),
                text: "Then not.".to_owned(),
            },
        ]
    );
}

#[tokio::test]
async fn a_guardrail_that_trips_is_told_with_what_it_found_and_ends_the_run() {
    let mut desk = desk_on(ScriptedModel::new().say("never asked"));
    let tripping = InputGuardrail::new("no cards", |_, _, _| {
        GuardrailVerdict::trip().info("a card number")
    });
    desk.config.input_guardrails.push(tripping);
    let events = without_ends(told(desk, &["4111 1111 1111 1111"]).await);
    let [
        guardrail,
        Event::Error {
            kind,
            help: Some(_),
            exit_code: 3,
            ..
        },
    ] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!(kind, "input_guardrail");
    assert_eq!(
        *guardrail,
        Event::Guardrail {
            guardrail: "no cards".to_owned(),
            agent: "Triage".to_owned(),
            outcome: GuardrailOutcome::Tripped,
            info: json!("a card number"),
        }
    );
}

#[tokio::test]
async fn an_output_that_a_guardrail_replaced_is_the_output() {
    let mut desk = desk_on(ScriptedModel::new().say("the secret is 42"));
    let hiding = OutputGuardrail::replacing("hide", |_, _, _| OutputVerdict::replace("(withheld)"));
    desk.config.output_guardrails.push(hiding);
    let events = told(desk, &["Hi"]).await;
    let guarded = Event::Guardrail {
        guardrail: "hide".to_owned(),
        agent: "Triage".to_owned(),
        outcome: GuardrailOutcome::Replaced,
        info: Value::Null,
    };
    assert!(events.contains(&guarded), "{events:?}");
    let Some(Event::Finished { output, .. }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(*output, json!("(withheld)"));
}

#[tokio::test]
async fn a_model_that_fails_ends_the_run_and_the_handoff_before_it_is_told() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .fail("no route to host");
    let events = without_ends(told(desk_on(model), &["Hi"]).await);
    let [
        handed,
        moved,
        Event::Error {
            kind, exit_code: 4, ..
        },
    ] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!(*handed, handoff("Triage", "Billing", json!({}), 3, 3));
    assert_eq!(
        (moved, kind.as_str()),
        (&updated("Billing", "scripted"), "model")
    );
}

#[tokio::test]
async fn a_handoff_at_the_limit_of_turns_is_told_though_nobody_saw_what_it_carries() {
    let mut desk: Desk = desk_on(ScriptedModel::new().call("transfer_to_billing", "{}"));
    desk.config.max_turns = Some(1);
    let events = without_ends(told(desk, &["Hi"]).await);
    let [
        Event::Handoff {
            to, carried: None, ..
        },
        _,
        Event::Error {
            kind, exit_code: 1, ..
        },
    ] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!((to.as_str(), kind.as_str()), ("Billing", "max_turns"));
}

#[tokio::test]
async fn the_next_message_goes_to_the_agent_that_has_the_conversation() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .say("That one is paid.");
    let events = told(desk_on(model), &["My bill", "The one of May"]).await;
    let agents: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::RunStarted { agent, .. } => Some(agent.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(agents, ["Triage", "Billing"]);
}
