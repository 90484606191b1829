//! Asking a person, and the answers.

use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::guardrail::{InputGuardrail, OutputGuardrail, Verdict};
use switchboard_core::hooks::AgentHooks;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{Budget, Budgets, RunStatus};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, FinalOutput, Item, RunContext, Runner, StreamEvent, handoff, tool,
};

use super::{answered, asked, runner, triage};
use crate::approvals::Ran;
use crate::{described, kinds};

#[tokio::test]
async fn a_run_waits_for_the_person_with_who_why_and_what_may_be_done() {
    let model = ScriptedModel::new().reply([Item::function_call(
        "c1",
        "transfer_to_ann",
        r#"{"reason":"angry"}"#,
    )]);
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"]
    });
    let billing: Agent = Agent::new("Billing");
    let to_ann = handoff(super::ann(&billing)).payload_schema(schema);
    let triage = Agent::new("Triage").handoff(to_ann);

    let result = runner(&triage, &model).run("Hello?").await.unwrap();

    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_eq!(result.last_agent().name(), "Ann");
    let asked = asked(result.run());
    assert_eq!(
        serde_json::to_value(&asked).unwrap(),
        serde_json::json!({
            "kind": {"person": {"from": "Triage", "may_hand_to": ["Billing", "Triage"]}},
            "agent": "Ann",
            "tool": "transfer_to_ann",
            "call_id": "c1",
            "arguments": r#"{"reason":"angry"}"#,
        })
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_reply_is_the_final_output_and_an_item_of_the_person() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let result = runner.run("Hello?").await.unwrap();

    let result = answered(&runner, result, PersonAnswer::reply("Hello, I am Ann.")).await;

    assert_eq!(result.status(), RunStatus::Completed);
    assert_eq!(result.final_text(), "Hello, I am Ann.");
    assert_eq!(result.last_agent().name(), "Ann");
    assert_eq!(
        kinds(result.new_items()),
        [
            "Triage handoff_call_item",
            "Triage handoff_output_item",
            "Ann message_output_item"
        ]
    );
    assert_eq!(model.left(), 0);
    // The run is over: another answer is refused, and resuming asks nobody.
    let mut run = result.into_run();
    assert!(run.interruptions().is_empty());
    let again = runner.resume(run.clone()).await.unwrap();
    assert_eq!(again.final_text(), "Hello, I am Ann.");
    let old = switchboard_core::approval::Interruption::clone(&asked_by_ann());
    assert!(run.answer(&old, PersonAnswer::reply("x")).is_err());
}

fn asked_by_ann() -> switchboard_core::approval::Interruption {
    serde_json::from_value(serde_json::json!({
        "kind": {"person": {}}, "agent": "Ann", "tool": "", "call_id": "call_1", "arguments": ""
    }))
    .unwrap()
}

#[tokio::test]
async fn a_person_may_be_the_first_agent() {
    let ann: Agent = Agent::person("Ann");
    let runner = Runner::new(&ann);
    let result = runner.run("Hello?").await.unwrap();
    assert_eq!(
        asked(result.run()).kind,
        serde_json::from_str::<InterruptionKind>(r#"{"person":{}}"#).unwrap()
    );
    let mut run = result.run().clone();
    let waiting = asked(&run);
    for answer in [PersonAnswer::hand_back(), PersonAnswer::hand_to("Triage")] {
        let error = run.answer(&waiting, answer).unwrap_err().to_string();
        assert!(error.contains("nobody"), "{error}");
    }

    let result = answered(&runner, result, PersonAnswer::reply("Hello.")).await;

    assert_eq!(
        described(&result.to_input_list()),
        ["user: Hello?", "assistant: Hello."]
    );
}

#[tokio::test]
async fn answers_that_cannot_be_taken_are_refused_and_the_last_one_counts() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let mut run = runner.run("Hello?").await.unwrap().into_run();
    let waiting = asked(&run);

    let error = run.answer(&waiting, PersonAnswer::reply(" ")).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    let to = PersonAnswer::hand_to("Shipping");
    let error = run.answer(&waiting, to).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("\"Shipping\", only to Billing, Triage"),
        "{error}"
    );
    let error = run.decide(&waiting, Decision::approve()).unwrap_err();
    assert!(error.to_string().contains("Run::answer"), "{error}");
    let mut other = waiting.clone();
    other.agent = "Bob".into();
    let error = run.answer(&other, PersonAnswer::reply("x")).unwrap_err();
    assert!(error.to_string().contains("\"Bob\""), "{error}");
    let mut inside = waiting.clone();
    inside.inside = vec!["c9".into()];
    assert!(run.answer(&inside, PersonAnswer::reply("x")).is_err());

    run.answer(&waiting, PersonAnswer::hand_back()).unwrap();
    run.answer(&waiting, PersonAnswer::reply("Hello.")).unwrap();
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "Hello.");
}

#[tokio::test]
async fn an_answer_to_a_call_that_waits_for_a_decision_is_refused() {
    let refund = tool("refund").needs_approval().run(|_ctx, (): ()| "done");
    let desk: Agent = Agent::new("Desk").tool(refund);
    let model = ScriptedModel::new().call("refund", "{}");
    let mut run = runner(&desk, &model).run("Hi").await.unwrap().into_run();
    let waiting = run.interruptions().remove(0);
    let error = run.answer(&waiting, PersonAnswer::reply("x")).unwrap_err();
    assert!(error.to_string().contains("Run::decide"), "{error}");
}

#[tokio::test]
async fn a_state_is_resumed_once_and_a_fork_again() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let mut run = runner.run("Hello?").await.unwrap().into_run();
    let fork = run.fork();
    run.answer(&asked(&run), PersonAnswer::reply("One."))
        .unwrap();
    runner.resume(run.clone()).await.unwrap();

    let error = runner.resume(run).await.unwrap_err();
    assert!(error.to_string().contains("resumed before"), "{error}");
    let mut fork = fork;
    fork.answer(&asked(&fork), PersonAnswer::reply("Two."))
        .unwrap();
    assert_eq!(runner.resume(fork).await.unwrap().final_text(), "Two.");
}

#[tokio::test]
async fn a_run_resumed_without_an_answer_waits_on() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let run = runner.run("Hello?").await.unwrap().into_run();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let result = answered(&runner, result, PersonAnswer::reply("Hello.")).await;
    assert_eq!(result.final_text(), "Hello.");
}

#[tokio::test]
async fn input_that_is_added_comes_before_the_answer() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let mut run = runner.run("Hello?").await.unwrap().into_run();
    run.add_input("Are you there?").unwrap();

    // It becomes part of what the person sees, and the run waits on.
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_eq!(
        described(&result.to_input_list()).last().unwrap(),
        "user: Are you there?"
    );

    let mut run = result.into_run();
    run.add_input("Please!").unwrap();
    run.answer(&asked(&run), PersonAnswer::reply("Yes."))
        .unwrap();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(
        described(&result.to_input_list())[3..],
        ["user: Are you there?", "user: Please!", "assistant: Yes."]
    );
}

#[tokio::test]
async fn a_person_gets_no_message_that_a_guardrail_refuses() {
    let trips = |_ctx: RunContext, _agent, input: switchboard_core::Input| {
        let text = input.last_words().unwrap_or_default().into_owned();
        if text.contains("spam") {
            Verdict::trip("spam")
        } else {
            Verdict::Allow
        }
    };
    for guardrail in [
        InputGuardrail::new("spam", trips),
        InputGuardrail::beside_model("spam", trips),
    ] {
        let ann: Agent = Agent::person("Ann").input_guardrail(guardrail);
        let runner = Runner::new(&ann);
        let error = runner.run("spam").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputGuardrail);

        let mut run = runner.run("Hello?").await.unwrap().into_run();
        run.add_input("spam").unwrap();
        let error = runner.resume(run).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    }
}

#[tokio::test]
async fn an_output_guardrail_checks_the_reply_and_the_person_can_give_another() {
    let polite = OutputGuardrail::new("polite", |_ctx, _agent, output: FinalOutput| {
        if output.text().contains("idiot") {
            Verdict::trip("rude")
        } else {
            Verdict::Allow
        }
    });
    let ann: Agent = Agent::person("Ann").output_guardrail(polite);
    let runner = Runner::new(&ann);
    let run = runner.run("Hello?").await.unwrap().into_run();
    let mut rude = run.clone();
    rude.answer(&asked(&rude), PersonAnswer::reply("You idiot"))
        .unwrap();
    let error = runner.resume(rude).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);

    let mut again = run;
    again
        .answer(&asked(&again), PersonAnswer::reply("Hello."))
        .unwrap();
    assert_eq!(runner.resume(again).await.unwrap().final_text(), "Hello.");
}

#[tokio::test]
async fn an_output_guardrail_may_replace_the_reply() {
    let hide = OutputGuardrail::replacing("hide", |_ctx, _agent, output: FinalOutput| {
        let text = output.text().replace("4711", "****");
        Verdict::replace(FinalOutput::Text(text.into()))
    });
    let ann: Agent = Agent::person("Ann").output_guardrail(hide);
    let runner = Runner::new(&ann);
    let result = runner.run("Hello?").await.unwrap();
    let result = answered(&runner, result, PersonAnswer::reply("It is 4711.")).await;
    assert_eq!(result.final_text(), "It is ****.");
    assert_eq!(
        described(&result.to_input_list()),
        ["user: Hello?", "assistant: It is ****."]
    );
}

#[tokio::test]
async fn waiting_counts_for_no_limit() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Which bill?");
    let budgets = Budgets::new().run(Budget::new().turns(2));
    let runner = runner(&triage(), &model).max_turns(2).budgets(budgets);
    let result = runner.run("Hello?").await.unwrap();
    let result = answered(&runner, result, PersonAnswer::hand_to("Billing")).await;
    assert_eq!(result.final_text(), "Which bill?");
    assert_eq!(result.run().turns(), 3);
}

#[tokio::test]
async fn too_few_turns_are_noticed_before_the_answer_is_taken() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let strict = runner(&triage(), &model).max_turns(1);
    let mut run = strict.run("Hello?").await.unwrap().into_run();
    run.answer(&asked(&run), PersonAnswer::hand_to("Billing"))
        .unwrap();
    let error = strict.resume(run.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxTurns);
    let model = ScriptedModel::new().say("Which bill?");
    let result = runner(&triage(), &model).resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Which bill?");
}

/// Notes when the agent starts and ends.
struct Noted(Ran);

impl AgentHooks<()> for Noted {
    async fn on_start(
        &self,
        _ctx: &RunContext<()>,
        agent: &Agent<()>,
    ) -> switchboard_core::hooks::HookResult {
        self.0.add(format!("{} starts", agent.name()));
        Ok(())
    }

    async fn on_end(
        &self,
        _ctx: &RunContext<()>,
        agent: &Agent<()>,
        output: &FinalOutput,
    ) -> switchboard_core::hooks::HookResult {
        self.0
            .add(format!("{} ends: {}", agent.name(), output.text()));
        Ok(())
    }
}

#[tokio::test]
async fn hooks_are_told_once_that_the_person_is_asked_and_has_replied() {
    let ran = Ran::default();
    let ann: Agent = Agent::person("Ann").hooks(Noted(ran.clone()));
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&ann).tracer(tracer.clone());
    let result = runner.run("Hello?").await.unwrap();
    assert_eq!(ran.take(), ["Ann starts"]);
    answered(&runner, result, PersonAnswer::reply("Hello.")).await;
    assert_eq!(ran.take(), ["Ann ends: Hello."]);
    let spans = tracer.spans();
    let is_model = |data: &SpanData| matches!(data, SpanData::Generation { .. });
    assert!(!spans.iter().any(|span| is_model(&span.data)), "{spans:?}");
    let is_ann = |data: &SpanData| matches!(data, SpanData::Agent { name, .. } if &**name == "Ann");
    assert_eq!(spans.iter().filter(|span| is_ann(&span.data)).count(), 2);
}

#[tokio::test]
async fn a_stream_tells_of_the_wait_and_of_the_reply() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model);
    let mut stream = runner.stream("Hello?");
    let mut events: Vec<StreamEvent> = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    let last = events.last().unwrap();
    assert_eq!(&*last.agent, "Ann");
    let EventKind::RunInterrupted { interruptions, .. } = &last.kind else {
        panic!("{last:?}");
    };
    let updated = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::AgentUpdated { model, .. } => Some((event.agent.clone(), model.clone())),
        _ => None,
    });
    assert_eq!(updated, Some(("Ann".into(), "".into())));

    let mut run = stream.finish().await.unwrap().into_run();
    run.answer(&interruptions[0], PersonAnswer::reply("Hello."))
        .unwrap();
    let mut stream = runner.resume_stream(run).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        assert_eq!(&*event.agent, "Ann");
        seen.push(match event.kind {
            EventKind::RunStarted { input, .. } => format!("started {input:?}"),
            EventKind::AgentUpdated { .. } => "agent".to_owned(),
            EventKind::TurnStarted { .. } => format!("turn {}", event.turn),
            EventKind::TextDelta { text, .. } => format!("text {text}"),
            EventKind::Item { .. } => "message".to_owned(),
            EventKind::RunFinished { output, .. } => format!("finished {output}"),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            "started None",
            "agent",
            "turn 2",
            "text Hello.",
            "message",
            "finished \"Hello.\""
        ]
    );
}

#[tokio::test]
async fn a_provider_that_keeps_the_conversation_is_refused() {
    use switchboard_core::run::ServerHistory;
    let ann: Agent = Agent::person("Ann");
    let history = ServerHistory::Conversation("conv_1".into());
    let runner = Runner::new(&ann).server_history(history);
    let error = runner.run("Hello?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("a person says"), "{error}");
}
