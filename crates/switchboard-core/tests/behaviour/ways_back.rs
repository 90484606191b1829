//! Ways back: `hand_back`, and handoffs to the previous and the first agent.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::conversation::Conversations;
use switchboard_core::handoff::{HandoffContext, HandoffDecision};
use switchboard_core::run::{HandoffOutcome, HandoffPolicy, LoopLimits};
use switchboard_core::team::FindingCode;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, Handoff, Item, Run, Runner, Step, Team, filters, handoff, tool,
};

use crate::approvals::Ran;
use crate::{described, stored};

#[derive(Debug, Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

/// The names of the handoffs that the model was offered in each request.
fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests().into_iter();
    let names = requests.map(|request| {
        let handoffs = request.handoffs.iter();
        handoffs.map(|spec| spec.tool_name.to_string()).collect()
    });
    names.collect()
}

/// Triage and Billing, which hands back a refund.
fn refunding(ran: &Ran) -> Agent {
    let ran = ran.clone();
    let billing: Agent = Agent::new("Billing").tool(tool("pay").run(|_ctx, (): ()| "paid"));
    Agent::new("Triage").handoff(handoff(&billing).returns::<Refund>().on_return(
        move |ctx: HandoffContext, refund: Refund| {
            let (from, to) = (ctx.from().name(), ctx.to().name());
            ran.add(format!("{} from {from} to {to}", refund.amount));
        },
    ))
}

#[tokio::test]
async fn the_target_hands_back_a_typed_result() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("pay", "{}")
        .call("hand_back", r#"{"amount": 20}"#)
        .say("You get 20.");
    let runner = Runner::new(&refunding(&ran)).model(model.clone());

    let result = runner.run("My bill is wrong").await.unwrap();

    assert_eq!(result.final_text(), "You get 20.");
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(ran.take(), ["20 from Billing to Triage"]);
    assert_eq!(
        offered(&model),
        [
            vec!["transfer_to_billing"],
            vec!["hand_back"],
            vec!["hand_back"],
            vec!["transfer_to_billing"]
        ]
    );
    let spec = &model.requests()[1].handoffs[0];
    assert_eq!(&*spec.to, "Triage");
    assert!(spec.tool_description.contains("Triage"), "{spec:?}");
    assert!(spec.strict && spec.input_json_schema.get().contains("amount"));
    let seen = described(&model.requests()[3].input);
    assert_eq!(
        seen[5..],
        [
            "call hand_back",
            r#"output of call_3: {"assistant": "Triage", "result": {"amount":20}}"#
        ]
    );
    let record = &result.handoffs()[1];
    assert_eq!(
        (&*record.from, &*record.to, &*record.tool_name),
        ("Billing", "Triage", "hand_back")
    );
    assert_eq!(record.payload, json!({"amount": 20}));
}

#[tokio::test]
async fn a_result_that_is_not_what_was_asked_for_is_told_to_the_model() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("hand_back", r#"{"amount": "a lot"}"#)
        .call("hand_back", r#"{"amount": 5}"#)
        .say("You get 5.");
    let runner = Runner::new(&refunding(&ran)).model(model.clone());
    let result = runner.run("My bill is wrong").await.unwrap();
    assert_eq!(result.final_text(), "You get 5.");
    assert_eq!(ran.take(), ["5 from Billing to Triage"]);
    let seen = described(&model.requests()[2].input);
    assert!(seen.last().unwrap().contains("amount"), "{seen:?}");
    assert!(matches!(
        result.handoffs()[1].outcome,
        HandoffOutcome::Failed(_)
    ));
}

#[tokio::test]
async fn the_callback_may_refuse_the_result() {
    let billing: Agent = Agent::new("Billing");
    let triage =
        Agent::new("Triage").handoff(handoff(&billing).on_return(|_ctx, refund: Refund| {
            if refund.amount > 100 {
                HandoffDecision::refuse("At most 100.")
            } else {
                HandoffDecision::Proceed
            }
        }));
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("hand_back", r#"{"amount": 500}"#)
        .call("hand_back", r#"{"amount": 50}"#)
        .say("You get 50.");
    let result = Runner::new(&triage).model(model.clone()).run("Hi").await;
    assert_eq!(result.unwrap().final_text(), "You get 50.");
    let seen = described(&model.requests()[2].input);
    assert!(seen.last().unwrap().ends_with("At most 100."), "{seen:?}");
}

#[tokio::test]
async fn a_filter_says_what_the_caller_sees_and_the_result_stays() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(
        handoff(&billing)
            .returns::<Refund>()
            .return_tool_name("report")
            .return_tool_description("Report the refund.")
            .return_filter(filters::remove_all_tools()),
    );
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .reply([
            Item::output_message("m1", "Let me see."),
            Item::function_call("c2", "report", r#"{"amount":7}"#),
        ])
        .say("You get 7.")
        .say("Bye.");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("My bill is wrong").await.unwrap();
    assert_eq!(
        &*model.requests()[1].handoffs[0].tool_description,
        "Report the refund."
    );
    let seen = [
        r#"developer: Billing has handed the conversation back with this result: {"amount":7}"#,
        "user: My bill is wrong",
        "assistant: Let me see.",
    ];
    assert_eq!(described(&model.requests()[2].input), seen);
    // The stored conversation goes on with what the filter left.
    runner.run("Thanks").await.unwrap();
    assert_eq!(described(&model.requests()[3].input)[..3], seen);
}

#[tokio::test]
async fn ways_back_nest() {
    let c: Agent = Agent::new("C");
    let b = Agent::new("B").handoff(handoff(&c).returns::<Refund>());
    let a = Agent::new("A").handoff(handoff(&b).returns::<Refund>());
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .call("hand_back", r#"{"amount": 1}"#)
        .call("hand_back", r#"{"amount": 2}"#)
        .say("2 in all.");
    let result = Runner::new(&a)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(result.last_agent().name(), "A");
    let path: Vec<&str> = result.handoffs().iter().map(|made| &*made.to).collect();
    assert_eq!(path, ["B", "C", "B", "A"]);
    assert_eq!(
        offered(&model),
        [
            vec!["transfer_to_b"],
            vec!["transfer_to_c", "hand_back"],
            vec!["hand_back"],
            vec!["transfer_to_c", "hand_back"],
            vec!["transfer_to_b"]
        ]
    );
}

#[tokio::test]
async fn an_agent_reached_by_another_handoff_has_no_way_to_hand_back() {
    let c: Agent = Agent::new("C");
    let b = Agent::new("B").handoff(&c);
    let a = Agent::new("A").handoff(handoff(&b).returns::<Refund>());
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .say("Done.");
    Runner::new(&a)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(offered(&model)[2], [""; 0]);
    // Nor one that the conversation begins with.
    let model = ScriptedModel::new().say("Done.");
    Runner::new(&b)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(offered(&model), [["transfer_to_c"]]);
}

/// A → B → C, each with both ways back.
fn chain() -> Agent {
    let ways = |agent: Agent| {
        agent
            .handoff(Handoff::to_previous())
            .handoff(Handoff::to_start())
    };
    let c: Agent = ways(Agent::new("C"));
    let b = ways(Agent::new("B").handoff(&c));
    ways(Agent::new("A").handoff(&b))
}

#[tokio::test]
async fn returns_lead_to_the_previous_and_the_first_agent() {
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .call("return_to_previous", "{}")
        .call("return_to_previous", "{}")
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .call("return_to_start", "{}")
        .say("Here we are.");
    let policy = HandoffPolicy::production().loops(LoopLimits::none());
    let runner = Runner::new(&chain()).model(model.clone());
    let runner = runner.handoff_policy(policy).max_turns(20);
    let result = runner.run("Hi").await.unwrap();
    let path: Vec<&str> = result.handoffs().iter().map(|made| &*made.to).collect();
    assert_eq!(path, ["B", "C", "B", "A", "B", "C", "A"]);
    let offers = offered(&model);
    let both = ["return_to_previous", "return_to_start"];
    assert_eq!(offers[0], ["transfer_to_b"]);
    assert_eq!(offers[1], [&["transfer_to_c"], &both[..]].concat());
    assert_eq!(offers[2], both);
    assert_eq!(offers[4], ["transfer_to_b"]);
    // After the return to the start there is nothing to go back to.
    assert_eq!(offers[7], ["transfer_to_b"]);
    let spec = &model.requests()[2].handoffs[0];
    assert_eq!(&*spec.to, "B");
    assert!(spec.tool_description.contains('B'), "{spec:?}");
}

#[tokio::test]
async fn a_way_back_that_is_not_offered_is_an_unknown_handoff() {
    let model = ScriptedModel::new()
        .call("return_to_previous", "{}")
        .say("Never mind.");
    let runner = Runner::new(&chain()).model(model.clone());
    let result = runner.run("Hi").await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ModelBehavior);
}

#[tokio::test]
async fn limits_on_circles_count_returns() {
    let model = (0..3).fold(ScriptedModel::new(), |model, _| {
        model
            .call("transfer_to_b", "{}")
            .call("return_to_previous", "{}")
    });
    let policy = HandoffPolicy::production().loops(LoopLimits::none().handoffs(3));
    let runner = Runner::new(&chain()).model(model).handoff_policy(policy);
    let error = runner.run("Hi").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffLoop);
    assert!(error.to_string().contains("A → B → A"), "{error}");
}

#[tokio::test]
async fn a_stored_conversation_remembers_the_way_back() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .call("hand_back", r#"{"amount": 3}"#)
        .say("You get 3.")
        .say("Bye.");
    let session = Conversations::in_memory().get("c");
    let runner = |model: &ScriptedModel| {
        let runner = Runner::new(&refunding(&ran)).model(model.clone());
        runner.session(&session)
    };
    runner(&model).run("My bill is wrong").await.unwrap();
    // Another process, with agents built anew.
    let result = runner(&model).run("The one of May").await.unwrap();
    assert_eq!(result.final_text(), "You get 3.");
    assert_eq!(ran.take(), ["3 from Billing to Triage"]);
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    let fork = session.fork("f", None).await.unwrap();
    runner(&model).run("Thanks").await.unwrap();
    assert_eq!(offered(&model)[4], ["transfer_to_billing"]);

    // Taking the message back takes the return back.
    let model = ScriptedModel::new()
        .call("hand_back", r#"{"amount": 4}"#)
        .say("You get 4.");
    assert!(fork.undo().await.unwrap());
    let runner = Runner::new(&refunding(&ran)).model(model.clone());
    let result = runner.session(&fork).run("The one of June").await.unwrap();
    assert_eq!(result.final_text(), "You get 4.");
}

#[tokio::test]
async fn an_agent_that_was_given_the_conversation_has_no_way_back() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .say("Hm.");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&refunding(&ran)).model(model.clone());
    let runner = runner.session(&session);
    runner.run("My bill is wrong").await.unwrap();
    session.set_agent(Some("Billing")).await.unwrap();
    runner.run("The one of May").await.unwrap();
    assert_eq!(offered(&model)[2], [""; 0]);
}

#[tokio::test]
async fn a_renamed_caller_still_gets_the_result() {
    let billing: Agent = Agent::new("Billing");
    let team = |name: &str| Agent::new(name).handoff(handoff(&billing).returns::<Refund>());
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .call("hand_back", r#"{"amount": 3}"#)
        .say("You get 3.");
    let session = Conversations::in_memory().get("c");
    let before = Runner::new(&team("Triage")).model(model.clone());
    before.session(&session).run("Hi").await.unwrap();
    let after = Runner::new(&team("Desk"))
        .model(model.clone())
        .stored_agent("Triage", "Desk");
    let result = after.session(&session).run("May").await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let back: Agent = Agent::new("B").handoff(Handoff::to_previous());
    let team = Team::new()
        .agent(Agent::new("A").handoff("B"))
        .agent(back.handoff("A"))
        .build()
        .unwrap();
    let model = (0..100).fold(ScriptedModel::new(), |model, _| {
        model
            .call("transfer_to_b", "{}")
            .call("transfer_to_a", "{}")
    });
    let policy = HandoffPolicy::production().loops(LoopLimits::none());
    let runner = Runner::new(&team["A"]).model(model.say("Done."));
    let runner = runner.handoff_policy(policy).max_turns(None);
    let result = runner.run("Hi").await.unwrap();
    let stored = serde_json::to_value(result.run()).unwrap();
    assert_eq!(stored["run"]["way_back"].as_array().unwrap().len(), 32);
}

#[tokio::test]
async fn runs_without_a_way_back_store_nothing_about_it() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Hm.");
    let result = Runner::new(&triage).model(model).run("Hi").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    assert!(!stored.contains("way_back"), "{stored}");
}

#[tokio::test]
async fn a_run_stored_after_each_step_ends_the_same() {
    let ran = Ran::default();
    let model = || {
        ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .call("hand_back", r#"{"amount": 20}"#)
            .say("You get 20.")
    };
    let runner = Runner::new(&refunding(&ran)).model(model());
    let mut run: Run = runner.begin("Hi");
    while !matches!(run.step(), Step::Done(_)) {
        runner.step(&mut run).await.unwrap();
        run = stored(&run);
    }
    let whole = Runner::new(&refunding(&ran)).model(model());
    let whole = whole.run("Hi").await.unwrap();
    assert_eq!(
        described(&run.to_input_list()),
        described(&whole.to_input_list())
    );
    assert_eq!(ran.take().len(), 2);
}

#[test]
fn a_schema_that_cannot_be_strict_is_a_problem_of_the_team() {
    let team = Team::new()
        .agent(
            Agent::new("A").handoff(handoff::<()>("B").returns_schema(json!({
                "type": "object", "additionalProperties": true
            }))),
        )
        .agent(Agent::new("B"))
        .build();
    let error = team.unwrap_err().to_string();
    assert!(error.contains("its way back"), "{error}");
}

#[test]
fn drawings_and_checks_know_ways_back() {
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff(handoff("B").returns::<Refund>()))
        .agent(
            Agent::new("B")
                .handoff_description("Bills.")
                .handoff("C")
                .handoff_description("Bills."),
        )
        .agent(
            Agent::new("C")
                .handoff_description("All else.")
                .handoff(Handoff::to_previous())
                .handoff(Handoff::to_start()),
        )
        .build()
        .unwrap();
    assert_eq!(
        team.graph().to_mermaid(),
        "flowchart LR
    a0([\"A\"])
    a1([\"B\"])
    a2([\"C\"])
    a0 --> a1
    a1 --> a2
    a1 -.->|\"hand_back, with Refund\"| a0
    a2 -->|\"return_to_previous\"| a1
    a2 -->|\"return_to_start\"| a0
"
    );
    let codes: Vec<FindingCode> = team.check().iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [FindingCode::UnboundedCycle]);

    // An agent that can only hand back is no dead end.
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff(handoff("B").returns::<Refund>()))
        .agent(Agent::new("B").handoff_description("Bills."))
        .build()
        .unwrap();
    assert_eq!(team.check(), []);
}
