//! Stored runs and teams that have changed since.

use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::run::{RunStatus, StateProblem, StateProblemKind, StateProblems};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, ErrorKind, Item, Run, RunConfig, Runner, Tool, handoff, tool,
};

use super::{Ran, decide_all};
use crate::stored;

/// A tool that waits for approval, takes an object with these properties, and notes that it ran.
fn paying(ran: &Ran, name: &str, properties: &Value) -> Tool {
    let (ran, noted) = (ran.clone(), name.to_owned());
    let schema = json!({"type": "object", "properties": properties});
    tool::<()>(name)
        .needs_approval()
        .run_raw(&schema, move |ctx| {
            ran.add(format!("{noted} {}", ctx.arguments()));
            "done"
        })
}

fn refund(id: &str) -> Item {
    Item::function_call(id, "refund", r#"{"amount":5}"#)
}

fn amount() -> Value {
    json!({"amount": {"type": "integer", "description": "in cents"}})
}

/// The state of a run that waits for `refund`, as text.
async fn waiting(agent: &Agent, calls: &[Item]) -> String {
    let model = ScriptedModel::new().reply(calls.to_vec());
    let result = Runner::new(agent).model(model).run("Money!").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    serde_json::to_string(result.run()).unwrap()
}

fn approved(state: &str) -> Run {
    let mut run: Run = serde_json::from_str(state).unwrap();
    decide_all(&mut run, &Decision::approve());
    run.fork()
}

fn problems(error: &Error) -> &[StateProblem] {
    let cause = error.cause().unwrap().downcast_ref::<StateProblems>();
    cause.unwrap().problems()
}

fn kinds(error: &Error) -> Vec<(StateProblemKind, &str, Option<&str>)> {
    let kind = |problem: &'_ StateProblem| problem.kind;
    problems(error)
        .iter()
        .map(|problem| (kind(problem), &*problem.agent, problem.tool.as_deref()))
        .collect()
}

#[tokio::test]
async fn a_tool_that_is_gone_is_named_before_anything_runs_and_its_call_can_be_mapped() {
    let ran = Ran::default();
    let before: Agent = Agent::new("Desk")
        .tool(paying(&ran, "refund", &amount()))
        .tool(paying(&ran, "close", &json!({})));
    let close = Item::function_call("c2", "close", "{}");
    let state = waiting(&before, &[close, refund("c1")]).await;

    let after: Agent = Agent::new("Desk")
        .tool(paying(&ran, "close", &json!({})))
        .tool(paying(&ran, "pay_back", &amount()));
    let model = ScriptedModel::new().say("Done.");
    let runner = Runner::new(&after).model(model);
    let error = runner.resume(approved(&state)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let unknown = (StateProblemKind::UnknownTool, "Desk", Some("refund"));
    assert_eq!(kinds(&error), [unknown]);
    let text = error.to_string();
    for part in [
        "\"refund\"",
        "call c1",
        "\"Desk\"",
        "Run::map_tool",
        "there are: close, pay_back",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // The other call was approved, and its tool exists.
    assert_eq!(ran.take(), [""; 0]);
    let streamed = runner.resume_stream(approved(&state)).unwrap_err();
    assert_eq!(kinds(&streamed), [unknown]);
    let stepped = runner.step(&mut approved(&state)).await.unwrap_err();
    assert_eq!(kinds(&stepped), [unknown]);

    let mut run = error.into_run().unwrap();
    assert!(!run.map_tool("Nobody", "refund", "pay_back"));
    assert!(!run.map_tool("Desk", "look", "pay_back"));
    assert!(run.map_tool("Desk", "refund", "pay_back"));
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["close {}", r#"pay_back {"amount":5}"#]);
}

#[tokio::test]
async fn a_rejected_call_needs_no_tool() {
    let ran = Ran::default();
    let before: Agent = Agent::new("Desk").tool(paying(&ran, "refund", &amount()));
    let state = waiting(&before, &[refund("c1")]).await;
    let after: Agent = Agent::new("Desk");
    let model = ScriptedModel::new().say("Sorry.");
    let runner = Runner::new(&after).model(model.clone());
    let mut run: Run = serde_json::from_str(&state).unwrap();
    assert!(runner.check_state(&run).is_err());
    decide_all(&mut run, &Decision::reject().message("No."));
    runner.check_state(&run).unwrap();
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "Sorry.");
    let shown = crate::described(&model.requests()[0].input);
    assert_eq!(shown[2], "output of c1: No.");
}

#[tokio::test]
async fn a_rejected_call_runs_into_no_condition() {
    let ran = Ran::default();
    let before: Agent = Agent::new("Desk").tool(paying(&ran, "refund", &amount()));
    let state = waiting(&before, &[refund("c1")]).await;
    let disabled = tool::<()>("refund")
        .needs_approval()
        .enabled_if(|_ctx, _agent| false)
        .run_raw(
            &json!({"type": "object", "properties": amount()}),
            |_ctx| "done",
        );
    let after: Agent = Agent::new("Desk").tool(disabled);
    let runner = Runner::new(&after).model(ScriptedModel::new().say("Sorry."));
    let error = runner.resume(approved(&state)).await.unwrap_err();
    assert!(error.to_string().contains("disabled since"), "{error}");
    let mut run: Run = serde_json::from_str(&state).unwrap();
    decide_all(&mut run, &Decision::reject());
    assert_eq!(
        runner.resume(run.fork()).await.unwrap().final_text(),
        "Sorry."
    );
}

#[tokio::test]
async fn a_tool_with_another_schema_is_named_and_the_change_can_be_accepted() {
    let ran = Ran::default();
    let before: Agent = Agent::new("Desk").tool(paying(&ran, "refund", &amount()));
    let state = waiting(&before, &[refund("c1")]).await;
    let runner = |properties: Value| {
        let agent: Agent = Agent::new("Desk").tool(paying(&ran, "refund", &properties));
        Runner::new(&agent).model(ScriptedModel::new().say("Done."))
    };
    // Other words for the model are no other schema.
    let described = runner(json!({"amount": {"type": "integer", "description": "cents"}}));
    described.check_state(&approved(&state)).unwrap();

    let changed = runner(json!({"amount": {"type": "string"}}));
    let error = changed.resume(approved(&state)).await.unwrap_err();
    let other = (StateProblemKind::OtherSchema, "Desk", Some("refund"));
    assert_eq!(kinds(&error), [other]);
    assert!(
        error.to_string().contains("accept_schema_changes"),
        "{error}"
    );
    assert_eq!(ran.take(), [""; 0]);
    let mut run = error.into_run().unwrap();
    run.accept_schema_changes();
    changed.resume(run).await.unwrap();
    assert_eq!(ran.take(), [r#"refund {"amount":5}"#]);

    // A state that was stored before schemas were noted.
    let mut old: Value = serde_json::from_str(&state).unwrap();
    let approval = old.pointer_mut("/run/position/phase/tools/tools/approvals/0/approval");
    approval
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("schema")
        .unwrap();
    changed.check_state(&approved(&old.to_string())).unwrap();
}

#[tokio::test]
async fn an_agent_that_is_gone_is_named_and_the_run_can_be_given_to_another() {
    let ran = Ran::default();
    let team = |name: &str| {
        let clerk: Agent = Agent::new(name).tool(paying(&ran, "refund", &amount()));
        Agent::new("Front").handoff(handoff(&clerk).tool_name("transfer"))
    };
    let model = ScriptedModel::new()
        .reply([Item::function_call("c0", "transfer", "{}")])
        .reply([refund("c1")]);
    let runner = Runner::new(&team("Clerk")).model(model);
    let result = runner.run("Money!").await.unwrap();
    let state = serde_json::to_string(result.run()).unwrap();

    let runner =
        Runner::new(&team("Cashier")).model(ScriptedModel::new().say("Done.").say("Done."));
    let error = runner.resume(approved(&state)).await.unwrap_err();
    assert_eq!(
        kinds(&error),
        [(StateProblemKind::UnknownAgent, "Clerk", None)]
    );
    assert!(
        error.to_string().contains("there are: Front, Cashier"),
        "{error}"
    );
    let mut run = error.into_run().unwrap();
    assert!(run.map_agent("Clerk", "Cashier"));
    assert!(!run.map_agent("Clerk", "Cashier"));
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Cashier");
    // The runner can name the agent for all conversations and runs.
    let renaming = runner.stored_agent("Clerk", "Cashier");
    let result = renaming.resume(approved(&state)).await.unwrap();
    assert_eq!(result.run().agent(), "Cashier");
    assert_eq!(ran.take().len(), 2);
}

#[tokio::test]
async fn a_run_that_waits_in_a_conversation_goes_to_the_agent_that_gets_the_conversation() {
    let ran = Ran::default();
    let desk = |name: &str| -> Agent { Agent::new(name).tool(paying(&ran, "refund", &amount())) };
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().reply([refund("c1")]).say("Done.");
    let before = Runner::new(&desk("Desk"))
        .team_name("shop")
        .model(model.clone());
    before.session(&session).run("Money!").await.unwrap();

    let after = Runner::new(&desk("Counter")).team_name("shop").model(model);
    let after = after.session(&session).stored_agent("Desk", "Counter");
    let mut run = session.waiting_run().await.unwrap().unwrap();
    decide_all(&mut run, &Decision::approve());
    let result = after.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Counter"));
    assert_eq!(ran.take().len(), 1);
}

#[tokio::test]
async fn a_handoff_that_is_gone_or_has_another_schema_is_named() {
    let front = |name: &str, schema: Value| {
        let boss: Agent = Agent::new("Boss");
        let edge = handoff(&boss).tool_name(name).payload_schema(schema);
        Agent::new("Front").handoff(edge.on_handoff(|_ctx, _payload| ()).needs_approval())
    };
    let text = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let number = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let call = Item::function_call("c1", "up", r#"{"a":"x"}"#);
    let state = waiting(&front("up", text.clone()), &[call]).await;
    let runner = |agent: &Agent| Runner::new(agent).model(ScriptedModel::new().say("Done."));

    let renamed = runner(&front("escalate", text));
    let error = renamed.resume(approved(&state)).await.unwrap_err();
    let gone = (StateProblemKind::UnknownHandoff, "Front", Some("up"));
    assert_eq!(kinds(&error), [gone]);
    assert!(error.to_string().contains("there are: escalate"), "{error}");
    let mut run = error.into_run().unwrap();
    assert!(run.map_tool("Front", "up", "escalate"));
    let result = renamed.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");

    let changed = runner(&front("up", number));
    let error = changed.resume(approved(&state)).await.unwrap_err();
    let other = (StateProblemKind::OtherSchema, "Front", Some("up"));
    assert_eq!(kinds(&error), [other]);

    // Rejected, it need not exist.
    let mut run: Run = serde_json::from_str(&state).unwrap();
    decide_all(&mut run, &Decision::reject().message("No."));
    let alone: Agent = Agent::new("Front");
    let model = ScriptedModel::new().say("Then not.");
    let result = Runner::new(&alone)
        .model(model.clone())
        .resume(run.fork())
        .await;
    assert_eq!(result.unwrap().final_text(), "Then not.");
    let shown = crate::described(&model.requests()[0].input);
    assert_eq!(shown[2], "output of c1: No.");
}

#[tokio::test]
async fn problems_of_runs_inside_tools_say_where_they_are() {
    let ran = Ran::default();
    let team = |expert_name: &str, tool_name: &str| {
        let settings = RunConfig {
            model: Some(
                ScriptedModel::new()
                    .reply([refund("e1")])
                    .say("Paid.")
                    .into(),
            ),
            ..RunConfig::default()
        };
        let expert: Agent = Agent::new(expert_name).tool(paying(&ran, tool_name, &amount()));
        Agent::new("Front").tool(expert.as_tool("ask").config(settings))
    };
    let ask = Item::function_call("c1", "ask", r#"{"input":"x"}"#);
    let state = waiting(&team("Expert", "refund"), &[ask]).await;
    let runner = |agent: &Agent| Runner::new(agent).model(ScriptedModel::new().say("Done."));

    let renamed = runner(&team("Expert", "pay_back"));
    let error = renamed.resume(approved(&state)).await.unwrap_err();
    let problem = &problems(&error)[0];
    assert_eq!(problem.kind, StateProblemKind::UnknownTool);
    assert_eq!(problem.inside, ["ask".into()]);
    assert!(error.to_string().contains("inside the tool ask"), "{error}");

    let replaced = runner(&team("Specialist", "refund"));
    let error = replaced.resume(approved(&state)).await.unwrap_err();
    assert_eq!(
        kinds(&error),
        [(StateProblemKind::UnknownAgent, "Expert", None)]
    );
    let mut run = error.into_run().unwrap();
    assert!(run.map_agent("Expert", "Specialist"));
    replaced.check_state(&run).unwrap();

    let plain: Agent = Agent::new("Front").tool(tool("ask").run(|_ctx, (): ()| "no agent"));
    let error = runner(&plain).resume(approved(&state)).await.unwrap_err();
    assert_eq!(
        kinds(&error),
        [(StateProblemKind::NoAgentTool, "Front", Some("ask"))]
    );
    assert_eq!(ran.take(), [""; 0]);
}
