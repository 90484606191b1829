//! The test kit, as somebody who tests their agents would use it.

use serde_json::json;
use switchboard_core::testing::{Recorder, Recording, Report, ScriptedModel};
use switchboard_core::{Agent, Runner, handoff, tool};

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
                .any(|handoff| &*handoff.agent_name == "Billing")
        })
        .call("transfer_to_billing", r#"{"why": "refund"}"#)
        .call("refund", r#"{"amount": 5}"#)
        .say("You have your money back.")
}

#[tokio::test]
async fn a_report_says_who_did_what() {
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
async fn an_expectation_that_does_not_hold_is_told() {
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
async fn a_live_run_becomes_a_script_plain_and_streamed() {
    for streamed in [false, true] {
        let recorder = Recorder::new(script().fail("overloaded"));
        let desk = desk();
        let runner = Runner::new(&desk).model(recorder.clone());
        let first = match streamed {
            true => runner.stream("Money back!").finish().await.unwrap(),
            false => runner.run("Money back!").await.unwrap(),
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
