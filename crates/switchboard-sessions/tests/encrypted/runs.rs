//! Runs with encrypted conversations behave as with others.

use std::sync::Arc;

use switchboard_core::conversation::{Conversation, Conversations, EntryContent, MemoryStore};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Input, Runner, Session, filters, handoff, tool};

use crate::{encrypted, stored};

/// Everything that a user of a conversation can see, without the random names of runs and the times.
#[derive(Debug, PartialEq)]
struct Seen {
    agent: Option<Arc<str>>,
    details: Option<Arc<str>>,
    positions: (u64, u64, Option<u64>),
    view: Vec<String>,
    record: Vec<(u64, u32, Option<Arc<str>>, EntryContent)>,
    all: Vec<(u64, u32, u32, EntryContent)>,
}

async fn seen(conversation: &Conversation) -> Seen {
    let head = conversation.head().await.unwrap().unwrap();
    let view = conversation.view().await.unwrap();
    let record = conversation.record(None).await.unwrap().into_iter();
    let all = conversation.entries(0..1_000).await.unwrap().into_iter();
    Seen {
        agent: head.agent.clone(),
        details: head.details.clone(),
        positions: (head.first, head.revision.next, head.state),
        view: view.iter().map(|item| item.as_json().to_owned()).collect(),
        record: record
            .map(|entry| (entry.position, entry.turn, entry.agent, entry.content))
            .collect(),
        all: all
            .map(|entry| (entry.position, entry.turn, entry.commit, entry.content))
            .collect(),
    }
}

/// A conversation with a handoff, a filter, a tool, a refusal, an undo, a fork and a change of agent.
async fn take_all_paths(conversations: &Conversations) -> (Vec<Seen>, Vec<Vec<String>>) {
    let model = ScriptedModel::new()
        .say("Hi.")
        .call("transfer_to_billing", "{}")
        .call("look_up", "{}")
        .say("It is 42.")
        .say("Paid.")
        .say("Again.")
        .say("In the fork.");
    let guardrail = InputGuardrail::new("no_secrets", |_ctx, _agent, input: Input| {
        let items = input.items();
        let is_secret = items.iter().any(|item| item.as_json().contains("secret"));
        InputVerdict::trip_if(is_secret, "a secret")
    });
    let billing: Agent = Agent::new("Billing").tool(tool("look_up").run(|_ctx, (): ()| "42"));
    let triage = Agent::new("Triage")
        .input_guardrail(guardrail)
        .handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = conversations.get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    let mut all = Vec::new();
    runner.run("Hello").await.unwrap();
    assert!(runner.run("a secret").await.is_err());
    all.push(seen(&session).await);
    for words in ["My card is 4111 1111 1111 1111", "And the one of May?"] {
        runner.run(words).await.unwrap();
        all.push(seen(&session).await);
    }
    assert!(session.undo().await.unwrap());
    all.push(seen(&session).await);
    runner.run("And the one of June?").await.unwrap();
    let fork = session.fork("fork", None).await.unwrap();
    fork.set_agent(Some("Triage")).await.unwrap();
    let forked = Runner::new(&triage).model(model.clone()).session(&fork);
    forked.run("Where am I?").await.unwrap();
    assert!(fork.pop().await.unwrap().is_some());
    all.push(seen(&session).await);
    all.push(seen(&fork).await);
    let shown = model.requests();
    let shown = shown.iter().map(|request| {
        let items = request.input.iter();
        items.map(|item| item.as_json().to_owned()).collect()
    });
    (all, shown.collect())
}

#[tokio::test]
async fn runs_with_a_handoff_a_filter_a_refusal_an_undo_and_a_fork_are_the_same_as_without() {
    let store = MemoryStore::default();
    let with = take_all_paths(&encrypted(&store)).await;
    let without = take_all_paths(&Conversations::in_memory()).await;
    assert_eq!(with, without);

    for id in ["c", "fork"] {
        let in_store = format!("{:?}", stored(&store, id).await);
        // Long enough not to stand in a random identifier, a time or a ciphertext by chance.
        for words in [
            "4111 1111",
            "[CARD",
            "look_up",
            "a secret",
            "of June",
            "transfer_to_billing",
            "\"view\"",
        ] {
            assert!(!in_store.contains(words), "{words}");
        }
    }
}

#[tokio::test]
async fn a_conversation_goes_on_in_another_process() {
    let store = MemoryStore::default();
    let agent: Agent = Agent::new("Greeter");
    for (words, reply) in [("I am Ann", "Hello Ann."), ("Who am I?", "You are Ann.")] {
        // The keys are read again, and nothing else is kept.
        let session = encrypted(&store).get("c");
        let model = ScriptedModel::new().say(reply);
        let runner = Runner::new(&agent).model(model).session(&session);
        runner.run(words).await.unwrap();
    }
    let view = encrypted(&store).get("c").view().await.unwrap();
    let texts: Vec<_> = view.iter().filter_map(|item| item.text()).collect();
    assert_eq!(
        texts,
        ["I am Ann", "Hello Ann.", "Who am I?", "You are Ann."]
    );
}
