//! The test kit: scripted models, reports and recorders.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::run::HandoffOutcome;
use switchboard_core::testing::{Recorder, Recording, Report, ScriptedModel};
use switchboard_core::{
    Agent, Item, Model, ModelRequest, ModelResponse, Runner, filters, handoff, tool,
};

use crate::{described, stored};

fn desk() -> Agent {
    let billing = Agent::new("Billing").tool(tool("refund").run(|_ctx, (): ()| "done"));
    Agent::new("Desk").handoff(handoff(&billing))
}

fn script() -> ScriptedModel {
    ScriptedModel::new()
        .expect("offer a way to billing", |request| {
            request
                .handoffs
                .iter()
                .any(|handoff| &*handoff.to == "Billing")
        })
        .call("transfer_to_billing", r#"{"why": "refund"}"#)
        .call("refund", r#"{"amount": 5}"#)
        .say("You have your money back.")
}

#[tokio::test]
async fn a_report_lists_agents_handoffs_tools_and_messages() {
    let result = Runner::new(&desk())
        .model(script())
        .run("Money back!")
        .await
        .unwrap();
    let report = Report::of(&result);
    assert_eq!(report.agents(), ["Desk", "Billing"]);
    let [taken] = &report.handoffs()[..] else {
        panic!("{:?}", report.handoffs());
    };
    assert_eq!((&*taken.from, &*taken.to), ("Desk", "Billing"));
    assert_eq!(taken.payload, json!({"why": "refund"}));
    let [used] = &report.tools()[..] else {
        panic!("{:?}", report.tools());
    };
    assert_eq!((&*used.agent, &*used.tool), ("Billing", "refund"));
    assert_eq!(
        (&used.arguments, &used.output),
        (&json!({"amount": 5}), &Some(json!("done")))
    );
    assert_eq!(report.said_by("Billing"), ["You have your money back."]);
    insta::assert_snapshot!(report, @r#"
    Desk calls transfer_to_billing {"why": "refund"}
    Desk → Billing
    Billing calls refund {"amount": 5}
    Billing is told done
    Billing: You have your money back.
    "#);
}

#[tokio::test]
async fn a_report_includes_handoffs_that_filters_removed_from_the_items() {
    let billing: Agent = Agent::new("Billing");
    let desk = Agent::new("Desk").handoff(handoff(&billing).filter(filters::remove_all_tools()));
    let model = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"why": "refund"}"#)
        .say("Done.");
    let result = Runner::new(&desk).model(model).run("x").await.unwrap();
    let run = stored(result.run());
    assert_eq!(run.handoffs(), result.handoffs());
    assert_eq!(run.first_agent(), "Desk");
    Report::of_run(&run)
        .assert_agents(["Desk", "Billing"])
        .assert_payload("Desk", "Billing", json!({"why": "refund"}));
}

#[tokio::test]
async fn a_refused_handoff_is_in_the_report() {
    let billing: Agent = Agent::new("Billing");
    let closed = handoff(&billing)
        .tool_name("bill")
        .on_handoff(|_ctx| HandoffDecision::refuse("Closed."));
    let desk = Agent::new("Desk").handoff(closed);
    let model = ScriptedModel::new().call("bill", "").say("Try tomorrow.");
    let result = Runner::new(&desk).model(model).run("x").await.unwrap();
    let [asked] = result.handoffs() else {
        panic!("{:?}", result.handoffs());
    };
    assert_eq!(
        (&*asked.from, &*asked.to, &*asked.tool_name, &asked.payload),
        ("Desk", "Billing", "bill", &json!({}))
    );
    assert_eq!(asked.outcome, HandoffOutcome::Refused("Closed.".to_owned()));
    let report = Report::of(&result);
    report
        .assert_agents(["Desk"])
        .assert_refused("Desk", "Billing");
    assert_eq!(report.handoffs(), []);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        _ = report.assert_refused("Billing", "Desk")
    }));
    let message = failed.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.starts_with("no handoff from Billing to Desk was refused\n"),
        "{message}"
    );
}

#[tokio::test]
async fn a_transcript_has_one_line_per_step() {
    let desk: Agent = Agent::new("Desk").tool(tool("t").run(|_ctx, (): ()| "1\r\n2"));
    let model = ScriptedModel::new().call("t", "{\n}").say("a\nb\u{2028}c");
    let result = Runner::new(&desk).model(model).run("x").await.unwrap();
    insta::assert_snapshot!(Report::of(&result), @r#"
    Desk calls t {\n}
    Desk is told 1\r\n2
    Desk: a\nb\u{2028}c
    "#);
}

#[tokio::test]
async fn an_expectation_that_does_not_hold_fails_the_call() {
    let lonely: Agent = Agent::new("Desk");
    let error = Runner::new(&lonely)
        .model(script())
        .run("x")
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("call 1: the request must offer a way to billing"),
        "{message}"
    );
    assert_eq!(Report::of_run(error.run().unwrap()).agents(), ["Desk"]);
}

#[tokio::test]
async fn a_live_run_can_be_replayed() {
    for streamed in [false, true] {
        let recorder = Recorder::new(script().fail("overloaded"));
        let desk = desk();
        let runner = Runner::new(&desk).model(recorder.clone());
        let first = if streamed {
            runner.stream("Money back!").finish().await.unwrap()
        } else {
            runner.run("Money back!").await.unwrap()
        };
        runner.run("More!").await.unwrap_err();
        let stored = serde_json::to_string(&recorder.recording()).unwrap();
        let recording: Recording = serde_json::from_str(&stored).unwrap();
        assert_eq!(recording.len(), 4);
        let again = Runner::new(&desk).model(recording.script());
        let second = again.run("Money back!").await.unwrap();
        assert_eq!(second.to_input_list(), first.to_input_list());
        assert!(
            again
                .run("More!")
                .await
                .unwrap_err()
                .to_string()
                .contains("overloaded")
        );
    }
}

async fn report() -> Report {
    let model = script();
    let result = Runner::new(&desk()).model(model.clone());
    let result = result.run("Money back!").await.unwrap();
    Report::of(&result).with_requests(model.requests())
}

#[tokio::test]
async fn assertions_that_hold_can_be_chained() {
    let report = self::report().await;
    report
        .assert_agents(["Desk", "Billing"])
        .assert_handoff("Desk", "Billing")
        .assert_payload("Desk", "Billing", json!({"why": "refund"}))
        .assert_tool("Billing", "refund")
        .assert_said("Billing", "You have your money back.")
        .assert_shown("Desk", ["user: Money back!"])
        .assert_shown(
            "Billing",
            [
                "user: Money back!",
                r#"call transfer_to_billing {"why": "refund"}"#,
                r#"output {"assistant": "Billing"}"#,
            ],
        )
        .assert_output("You have your money back.");
    assert_eq!(
        report.shown_to("Billing")[1][3..],
        [r#"call refund {"amount": 5}"#, "output done"]
    );
}

#[tokio::test]
async fn an_assertion_that_fails_prints_what_was_found() {
    type Assertion = dyn Fn(&Report);
    let report = self::report().await;
    let failure = |assertion: &Assertion| {
        let panic = catch_unwind(AssertUnwindSafe(|| assertion(&report))).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    insta::assert_snapshot!(failure(&|r| _ = r.assert_agents(["Desk"])), @r#"
    not as expected: the agents that had the conversation
    expected: [
        "Desk",
    ]
    found: [
        "Desk",
        "Billing",
    ]
    In the run:
    Desk calls transfer_to_billing {"why": "refund"}
    Desk → Billing
    Billing calls refund {"amount": 5}
    Billing is told done
    Billing: You have your money back.
    "#);
    let failures: [(&Assertion, &str); 7] = [
        (
            &|r| _ = r.assert_handoff("Billing", "Desk"),
            "Billing did not hand the conversation to Desk\n",
        ),
        (
            &|r| _ = r.assert_payload("Desk", "Billing", json!({})),
            "expected: {}\nfound: {\"why\":\"refund\"}\n",
        ),
        (&|r| _ = r.assert_tool("Desk", "refund"), "refund"),
        (&|r| _ = r.assert_said("Billing", "No."), "No."),
        (&|r| _ = r.assert_shown("Desk", []), "Desk was shown"),
        (
            &|r| _ = r.assert_shown("Nobody", []),
            "no request for Nobody",
        ),
        (&|r| _ = r.assert_output("No."), "final output"),
    ];
    for (assertion, expected) in failures {
        let message = failure(assertion);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("\nDesk → Billing\n"), "{message}");
    }
}

#[tokio::test]
async fn a_request_names_its_agent() {
    let model = script();
    let expert: Agent = Agent::new("Expert");
    let desk = desk().tool(expert.as_tool("ask"));
    let runner = Runner::new(&desk).model(model.clone());
    // Also if a filter replaces the request.
    let runner = runner.model_filter(|_ctx, _agent, request| {
        let mut other = ModelRequest::new(request.input);
        other.handoffs = request.handoffs;
        other
    });
    runner.run("Money back!").await.unwrap();
    let asked = model.requests().into_iter().map(|request| request.agent);
    let asked: Vec<_> = asked.flatten().collect();
    assert_eq!(
        asked.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["Desk", "Billing", "Billing"]
    );
    assert_eq!(model.requests_of("Billing").len(), 2);
    assert_eq!(
        described(&model.requests_of("Desk")[0].input),
        ["user: Money back!"]
    );
    assert_eq!(ModelRequest::new(vec![Item::user("x")]).agent, None);
}

/// A model that answers slowly for one agent.
struct Late;

impl Model for Late {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let agent = request.agent.as_deref().unwrap_or_default();
        if agent == "Slow" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let is_first = agent == "Desk" && request.input.len() == 1;
        Ok(ModelResponse::new(if is_first {
            vec![
                Item::function_call("c1", "ask_slow", r#"{"input": "x"}"#),
                Item::function_call("c2", "ask_quick", r#"{"input": "y"}"#),
            ]
        } else {
            vec![Item::output_message("m", &format!("{agent} says so."))]
        }))
    }
}

#[tokio::test]
async fn answers_are_replayed_in_the_order_of_the_requests() {
    let (slow, quick): (Agent, Agent) = (Agent::new("Slow"), Agent::new("Quick"));
    let desk = Agent::new("Desk")
        .tool(slow.as_tool("ask_slow"))
        .tool(quick.as_tool("ask_quick"));
    let recorder = Recorder::new(Late);
    let first = Runner::new(&desk).model(recorder.clone());
    let first = first.run("Ask them.").await.unwrap();
    let script = recorder.recording().script();
    let second = Runner::new(&desk).model(script.clone());
    let second = second.run("Ask them.").await.unwrap();
    assert_eq!(second.to_input_list(), first.to_input_list());
    assert_eq!(
        described(&first.to_input_list())[3],
        "output of c1: Slow says so."
    );

    let agents = |requests: Vec<ModelRequest>| -> Vec<String> {
        let agents = requests.into_iter().filter_map(|request| request.agent);
        agents.map(|agent| agent.to_string()).collect()
    };
    assert_eq!(
        agents(recorder.requests()),
        ["Desk", "Slow", "Quick", "Desk"]
    );
    assert_eq!(agents(recorder.requests()), agents(script.requests()));
    assert_eq!(
        described(&recorder.requests_of("Quick")[0].input),
        ["user: y"]
    );
}

#[tokio::test]
async fn a_cancelled_call_is_part_of_the_recording() {
    let no_swearing =
        InputGuardrail::beside_model("no_swearing", |_ctx, _agent, input| async move {
            // The model is called in the meantime.
            tokio::task::yield_now().await;
            let swears = |item: &Item| item.text().as_deref() == Some("Damn!");
            InputVerdict::trip_if(input.items().iter().any(swears), Value::Null)
        });
    let slow: Agent = Agent::new("Slow").input_guardrail(no_swearing);
    let recorder = Recorder::new(Late);
    let live = Runner::new(&slow).model(recorder.clone());
    live.run("Damn!").await.unwrap_err();
    live.run("Hello!").await.unwrap();
    assert_eq!(recorder.recording().len(), 2);

    let again = Runner::new(&slow).model(recorder.recording().script());
    assert!(again.run("Damn!").await.unwrap_err().is_guardrail());
    assert_eq!(
        again.run("Hello!").await.unwrap().final_text(),
        "Slow says so."
    );
}
