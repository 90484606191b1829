//! People in checks and drawings of teams, and inside agents used as tools.

use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::conversation::Conversations;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{
    AtBudget, BranchAnswer, Budget, Budgets, FanOut, HandoffPolicy, RunStatus, SeveralHandoffs,
};
use switchboard_core::team::FindingCode;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, Team, tool};

use super::{answered, asked};
use crate::stored;

#[test]
fn drawings_mark_people_and_their_way_back() {
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Ann"))
        .agent(Agent::person("Ann").handoff("Billing"))
        .agent(Agent::new("Billing"))
        .build()
        .unwrap();
    assert_eq!(
        team.graph().to_mermaid(),
        "flowchart LR
    a0([\"Triage\"])
    a1{{\"Ann (person)\"}}
    a2([\"Billing\"])
    a0 --> a1
    a1 --> a2
    a1 -.->|\"hand_back\"| a0
"
    );
    let dot = team.graph().to_dot();
    assert!(
        dot.contains("a1 [label=\"Ann (person)\", shape=hexagon];"),
        "{dot}"
    );
}

#[test]
fn a_check_knows_people() {
    let ignored = tool("lookup").run(|_ctx, (): ()| "");
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Ann").handoff("Bob"))
        .agent(Agent::person("Ann").handoff_description("Complaints."))
        .agent(
            Agent::person("Bob")
                .handoff_description("Bills.")
                .instructions("Be kind.")
                .tool(ignored)
                .handoff("Triage"),
        )
        .build()
        .unwrap();
    let findings = team.check();
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    // Neither the missing model nor the circle through a person is one.
    assert_eq!(
        found,
        [
            "warning[ignored-by-person] agent \"Bob\": it is a person, so instructions, tools have no \
             effect; leave them out, or use an agent with a model"
        ]
    );

    let alone: Team = Team::new().agent(Agent::person("Ann")).build().unwrap();
    let findings = alone.check();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].code, FindingCode::DeadEnd);
    assert!(findings[0].message.contains("nobody"), "{}", findings[0]);
}

#[tokio::test]
async fn a_person_inside_an_agent_tool_is_asked_from_outside() {
    let ann: Agent = Agent::person("Ann");
    let expert = Agent::new("Expert")
        .handoff(&ann)
        .model(ScriptedModel::new().call("transfer_to_ann", "{}"));
    let model = ScriptedModel::new()
        .call("ask", r#"{"input":"What now?"}"#)
        .say("Ann says: wait.");
    let desk = Agent::new("Desk")
        .model(model.clone())
        .tool(expert.as_tool("ask"));
    let runner = Runner::new(&desk);

    let result = runner.run("Hello?").await.unwrap();

    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = stored(result.run());
    let waiting = asked(&run);
    assert_eq!((&*waiting.agent, &*waiting.inside[0]), ("Ann", "call_1"));
    assert!(run.decide(&waiting, Decision::approve()).is_err());
    run.answer(&waiting, PersonAnswer::reply("Wait.")).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.final_text(), "Ann says: wait.");
    let output = model.requests()[1].input.iter().find_map(|item| {
        let output = item.output()?;
        Some(output.into_owned())
    });
    assert_eq!(output.as_deref(), Some("Wait."));
}

#[tokio::test]
async fn a_person_can_be_used_as_a_tool() {
    let ann: Agent = Agent::person("Ann");
    let model = ScriptedModel::new()
        .call("ask_ann", r#"{"input":"May I?"}"#)
        .say("She says yes.");
    let desk = Agent::new("Desk").tool(ann.as_tool("ask_ann"));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&desk).model(model).session(&session);
    runner.run("Hello?").await.unwrap();
    let mut run = session.waiting_run().await.unwrap().unwrap();
    run.answer(&asked(&run), PersonAnswer::reply("Yes."))
        .unwrap();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "She says yes.");
}

#[tokio::test]
async fn a_budget_that_is_used_up_leads_to_a_person() {
    let ann: Agent = Agent::person("Ann");
    let triage = Agent::new("Triage")
        .handoff(&ann)
        .tool(tool("look").run(|_ctx, (): ()| "nothing"));
    let model = ScriptedModel::new().call("look", "{}").say("Go on.");
    let budgets = Budgets::new()
        .run(Budget::new().turns(1))
        .at_limit(AtBudget::HandTo("Ann".into()));
    let runner = Runner::new(&triage).model(model).budgets(budgets);
    let result = runner.run("Hello?").await.unwrap();
    let InterruptionKind::Person { from, .. } = asked(result.run()).kind else {
        panic!("{result:?}");
    };
    assert_eq!(from.as_deref(), Some("Triage"));
    let result = answered(&runner, result, PersonAnswer::hand_back()).await;
    assert_eq!(result.final_text(), "Go on.");
}

#[tokio::test]
async fn a_person_answers_side_by_side_with_agents() {
    let law: Agent = Agent::new("Law").model(ScriptedModel::new().say("It is legal."));
    let transfers = [
        Item::function_call("c1", "transfer_to_ann", "{}"),
        Item::function_call("c2", "transfer_to_law", "{}"),
    ];
    let triage: Agent = Agent::new("Triage")
        .model(ScriptedModel::new().reply(transfers))
        .handoff(Agent::person("Ann"))
        .handoff(&law);
    let join = FanOut::joined(|answers: Vec<BranchAnswer>| {
        let texts = answers.iter().map(|made| made.text().into_owned());
        texts.collect::<Vec<_>>().join(" ")
    });
    let runner = Runner::new(&triage)
        .handoff_policy(HandoffPolicy::production().several(SeveralHandoffs::FanOut(join)));
    let result = runner.run("Is it legal and nice?").await.unwrap();
    let mut run = stored(result.run());
    let waiting = asked(&run);
    assert!(matches!(waiting.kind, InterruptionKind::Person { .. }));
    assert_eq!(
        (&*waiting.agent, &*waiting.inside),
        ("Ann", &["c1".into()][..])
    );
    run.answer(&waiting, PersonAnswer::reply("It is nice."))
        .unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.final_text(), "It is nice. It is legal.");
}

#[tokio::test]
async fn a_person_joins_the_answers_of_several_agents_and_hands_back() {
    let said = |text| ScriptedModel::new().say(text);
    let law: Agent = Agent::new("Law").model(said("It is legal."));
    let price: Agent = Agent::new("Price").model(said("It is cheap."));
    let transfers = [
        Item::function_call("c1", "transfer_to_law", "{}"),
        Item::function_call("c2", "transfer_to_price", "{}"),
    ];
    let triage: Agent = Agent::new("Triage")
        .model(ScriptedModel::new().reply(transfers).say("Ann agrees."))
        .handoff(&law)
        .handoff(&price)
        .handoff(Agent::person("Ann"));
    let join = SeveralHandoffs::FanOut(FanOut::to_agent("Ann"));
    let runner = Runner::new(&triage).handoff_policy(HandoffPolicy::production().several(join));
    let result = runner.run("Is it legal and cheap?").await.unwrap();
    let InterruptionKind::Person { from, .. } = asked(result.run()).kind else {
        panic!("{result:?}");
    };
    assert_eq!(from.as_deref(), Some("Triage"));
    let result = answered(&runner, result, PersonAnswer::hand_back()).await;
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(result.final_text(), "Ann agrees.");
}
