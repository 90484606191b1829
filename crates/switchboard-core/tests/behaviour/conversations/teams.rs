//! The team that a conversation is with, and the ways out where it does not fit.

use switchboard_core::conversation::{Conversation, ConversationErrorKind, Conversations};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Session as _, Step, Team, tool};

use super::{cause, transfer};

/// The outcome of a message to a team: the agent that answers, or the error.
async fn answer(runner: &Runner) -> Result<String, ConversationErrorKind> {
    let runner = runner.clone().model(ScriptedModel::new().say("Hello."));
    match runner.run("Hi").await {
        Ok(result) => Ok(result.last_agent().name().to_owned()),
        Err(error) => Err(cause(&error).unwrap()),
    }
}

/// A conversation of Triage that has gone to Billing.
async fn with_billing() -> Conversation {
    let session = Conversations::in_memory().get("c");
    let triage: Agent = Agent::new("Triage").handoff(Agent::new("Billing"));
    let runner = Runner::new(&triage).session(&session);
    let model = transfer().say("Which bill?");
    runner.model(model).run("My bill").await.unwrap();
    session
}

fn with_tool(agent: &str, name: &str) -> Agent {
    Agent::new(agent).tool(tool(name).run(|_ctx, (): ()| "ok"))
}

/// The team that is stored with a conversation.
async fn stored_team(session: &Conversation) -> serde_json::Value {
    let details = session.head().await.unwrap().unwrap().details.unwrap();
    serde_json::from_str::<serde_json::Value>(&details).unwrap()["team"].clone()
}

#[tokio::test]
async fn a_conversation_can_be_given_to_another_agent_of_the_same_team() {
    let session = with_billing().await;
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Billing"))
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()
        .unwrap();
    let runner = Runner::new(&team["Triage"]).session(&session);
    let given = runner.clone().stored_agent("Billing", "Triage");
    assert_eq!(answer(&given).await, Ok("Triage".to_owned()));
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
    assert_eq!(answer(&runner).await, Ok("Triage".to_owned()));
}

#[tokio::test]
async fn a_first_agent_that_was_renamed_goes_on_with_its_conversations() {
    let session = Conversations::in_memory().get("c");
    let triage: Agent = Agent::new("Triage").handoff(Agent::new("Billing"));
    let runner = Runner::new(&triage).session(&session);
    assert_eq!(answer(&runner).await, Ok("Triage".to_owned()));
    let reception: Agent = Agent::new("Reception").handoff(Agent::new("Billing"));
    let runner = Runner::new(&reception).session(&session);
    assert_eq!(answer(&runner).await, Err(ConversationErrorKind::OtherTeam));
    let renamed = runner.clone().stored_agent("Triage", "Reception");
    assert_eq!(answer(&renamed).await, Ok("Reception".to_owned()));
    // The mapping is not needed any more.
    assert_eq!(answer(&runner).await, Ok("Reception".to_owned()));
}

#[tokio::test]
async fn each_way_out_for_an_agent_that_is_gone_leads_out() {
    let payments: Agent = Agent::new("Triage").handoff(with_tool("Payments", "pay"));
    let runner = |session: &Conversation| Runner::new(&payments).session(session);
    let session = with_billing().await;
    let gone = Err(ConversationErrorKind::UnknownAgent);
    assert_eq!(answer(&runner(&session)).await, gone);
    session.set_agent(Some("Payments")).await.unwrap();
    assert_eq!(answer(&runner(&session)).await, Ok("Payments".to_owned()));

    let session = with_billing().await;
    session.set_agent(None).await.unwrap();
    assert_eq!(answer(&runner(&session)).await, Ok("Triage".to_owned()));

    let session = with_billing().await;
    let mapped = runner(&session).stored_agent("Billing", "Payments");
    assert_eq!(answer(&mapped).await, Ok("Payments".to_owned()));
    // Only the agents are forgotten, not the name.
    let named = runner(&session).team_name("bank");
    assert_eq!(answer(&named).await, Ok("Payments".to_owned()));
    session.set_agent(Some("Triage")).await.unwrap();
    let other = runner(&session).team_name("hotel");
    assert_eq!(answer(&other).await, Err(ConversationErrorKind::OtherTeam));
}

#[tokio::test]
async fn teams_without_names_are_told_apart_by_their_tools() {
    let session = Conversations::in_memory().get("c");
    let bank = with_tool("Assistant", "balance");
    let runner = |agent: &Agent| Runner::new(agent).session(&session);
    assert_eq!(answer(&runner(&bank)).await, Ok("Assistant".to_owned()));
    let pirate = with_tool("Assistant", "sing");
    let model = ScriptedModel::new();
    let refused = runner(&pirate).model(model.clone()).run("Hi").await;
    let error = refused.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
    assert!(
        error.to_string().contains(
            "with the team of Assistant (tools: balance), and this one is of Assistant (tools: sing)"
        ),
        "{error}"
    );
    assert_eq!(model.requests().len(), 0);
    // A tool more, and then the first one less: the same team at different times.
    let edited = bank.clone().tool(tool("sing").run(|_ctx, (): ()| "la"));
    assert_eq!(answer(&runner(&edited)).await, Ok("Assistant".to_owned()));
    assert_eq!(answer(&runner(&pirate)).await, Ok("Assistant".to_owned()));
    let bare: Agent = Agent::new("Assistant");
    assert_eq!(answer(&runner(&bare)).await, Ok("Assistant".to_owned()));

    // Of two agents in common, one has a tool that it had.
    let clinic: Agent = with_tool("Triage", "ask").handoff(with_tool("Billing", "insurance"));
    let session = Conversations::in_memory().get("c");
    let runner = |agent: &Agent| Runner::new(agent).session(&session);
    assert_eq!(answer(&runner(&clinic)).await, Ok("Triage".to_owned()));
    let shop: Agent = with_tool("Triage", "greet").handoff(with_tool("Billing", "invoice"));
    let other = Err(ConversationErrorKind::OtherTeam);
    assert_eq!(answer(&runner(&shop)).await, other);
    let edited: Agent = with_tool("Triage", "greet").handoff(with_tool("Billing", "insurance"));
    assert_eq!(answer(&runner(&edited)).await, Ok("Triage".to_owned()));
}

#[tokio::test]
async fn teams_without_names_are_told_apart_by_the_place_they_were_read_from() {
    let session = Conversations::in_memory().get("c");
    let assistant: Agent = Agent::new("Assistant");
    let runner = Runner::new(&assistant).session(&session);
    let bank = runner.clone().team_source("bank.toml");
    assert_eq!(answer(&bank).await, Ok("Assistant".to_owned()));
    let other = Err(ConversationErrorKind::OtherTeam);
    assert_eq!(
        answer(&runner.clone().team_source("pirate.toml")).await,
        other
    );
    // With other tools, the file is still that of the team; with other agents it is not.
    for tool in ["balance", "account"] {
        let edited = with_tool("Assistant", tool);
        let edited = Runner::new(&edited).session(&session);
        let edited = edited.team_source("bank.toml");
        assert_eq!(answer(&edited).await, Ok("Assistant".to_owned()));
    }
    let clerk: Agent = Agent::new("Clerk");
    let clerk = Runner::new(&clerk).session(&session);
    assert_eq!(answer(&clerk.team_source("bank.toml")).await, other);
    // The team gets a name, which then counts.
    let named = bank.team_name("bank");
    assert_eq!(answer(&named).await, Ok("Assistant".to_owned()));
    let moved = runner.team_source("moved.toml").team_name("bank");
    assert_eq!(answer(&moved).await, Ok("Assistant".to_owned()));
    assert_eq!(
        stored_team(&session).await,
        serde_json::json!({
            "name": "bank", "source": "moved.toml", "start": "Assistant", "agents": ["Assistant"],
        })
    );
}

#[tokio::test]
async fn the_team_is_stored_however_the_first_turn_is_driven() {
    let triage: Agent = with_tool("Triage", "look").handoff(Agent::new("Billing"));
    let team = serde_json::json!({
        "name": "bank", "start": "Triage", "agents": ["Billing", "Triage"],
        "tools": {"Triage": ["look"]},
    });
    let runner = |session: &Conversation, model: ScriptedModel| {
        Runner::new(&triage)
            .session(session)
            .model(model)
            .team_name("bank")
    };

    // A run that is resumed after its first turn has failed.
    let session = Conversations::in_memory().get("c");
    let resumed = runner(&session, ScriptedModel::new().fail("down").say("Hello."));
    let error = resumed.run("Hi").await.unwrap_err();
    resumed.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(stored_team(&session).await, team);

    // A run in steps.
    let session = Conversations::in_memory().get("c");
    let stepped = runner(&session, ScriptedModel::new().say("Hello."));
    let mut run = stepped.begin("Hi");
    while !matches!(run.step(), Step::Done(_)) {
        stepped.step(&mut run).await.unwrap();
    }
    assert_eq!(stored_team(&session).await, team);

    // A run that began without a session.
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new().call("look", "{}").fail("down");
    let error = Runner::new(&triage).model(model).run("Hi").await;
    let run = error.unwrap_err().into_run().unwrap();
    let late = runner(&session, ScriptedModel::new().say("Hello."));
    late.resume(run).await.unwrap();
    assert_eq!(stored_team(&session).await, team);
}

#[tokio::test]
async fn a_run_does_not_go_on_in_a_conversation_of_another_team() {
    let session = Conversations::in_memory().get("c");
    let triage: Agent = Agent::new("Triage");
    let bank = Runner::new(&triage).session(&session).team_name("bank");
    let hotel = Runner::new(&triage).session(&session).team_name("hotel");
    let failing = hotel.clone().model(ScriptedModel::new().fail("down"));
    let run = failing.run("Hi").await.unwrap_err().into_run().unwrap();
    assert_eq!(answer(&bank).await, Ok("Triage".to_owned()));
    let resumed = Runner::new(&triage)
        .session(&session)
        .team_name("bank")
        .model(ScriptedModel::new().say("one").fail("down"));
    resumed.run("One").await.unwrap();
    let run_of_bank = resumed.run("Two").await.unwrap_err().into_run().unwrap();
    let model = ScriptedModel::new().say("Hello.");
    let error = hotel.clone().model(model.clone()).resume(run_of_bank).await;
    let error = error.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
    assert!(
        error.to_string().contains("the run did not go on"),
        "{error}"
    );
    let error = hotel.model(model.clone()).resume(run).await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    assert_eq!(session.load(None).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_conversation_is_checked_without_a_run() {
    let session = with_billing().await;
    let triage: Agent = Agent::new("Triage").handoff(Agent::new("Billing"));
    let runner = Runner::new(&triage).session(&session);
    runner.check_conversation().await.unwrap();
    let other: Agent = Agent::new("Concierge");
    let runner = Runner::new(&other).session(&session);
    let error = runner.check_conversation().await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
    runner
        .take_over_conversations(true)
        .check_conversation()
        .await
        .unwrap();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
    assert_eq!(session.load(None).await.unwrap().len(), 4);
}
