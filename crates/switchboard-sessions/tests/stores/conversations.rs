//! Conversations on every store: record, view, branches, copies.

use switchboard_core::conversation::{Conversation, Conversations, Exported};
use switchboard_core::items::Items;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Session, filters, handoff};

use crate::*;

fn words(items: &Items) -> Vec<String> {
    let text = |item: &Item| {
        item.text()
            .or_else(|| item.name())
            .unwrap_or_default()
            .into_owned()
    };
    items.iter().map(text).collect()
}

async fn record(conversation: &Conversation) -> Vec<String> {
    let entries = conversation.record(None).await.unwrap();
    let items: Items = entries
        .iter()
        .filter_map(|entry| entry.content.item().cloned())
        .collect();
    words(&items)
}

async fn view(conversation: &Conversation) -> Vec<String> {
    words(&conversation.view().await.unwrap())
}

async fn says(conversation: &Conversation, texts: &[&str]) {
    let items: Vec<Item> = texts.iter().map(Item::user).collect();
    conversation.append(&items).await.unwrap();
}

tests! {
    async fn a_cleared_conversation_is_imported_and_a_copy_keeps_the_time_of_expiry(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        says(&session, &["1"]).await;
        session.expire_at(time(1)).await.unwrap();
        session.fork("fork", None).await.unwrap();
        let fork = head(&conversations, "fork").await;
        assert_eq!((fork.expires, fork.entries()), (Some(time(1)), 1));
        session.clear().await.unwrap();
        let exported = session.export().await.unwrap();
        let imported = conversations.get("imported");
        imported.import(&exported).await.unwrap();
        let empty = head(&conversations, "imported").await;
        assert_eq!((empty.entries(), empty.expires), (0, None));
        says(&imported, &["2"]).await;
        assert_eq!(record(&imported).await, ["2"]);
    }

    async fn a_run_goes_on_where_the_last_one_was_handed_off(backend) {
        let conversations = Conversations::new(backend.open().await);
        let model = ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .say("Which bill?")
            .say("Done.");
        let billing: Agent = Agent::new("Billing");
        let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
        let session = conversations.get("c");
        let runner = Runner::new(&triage).model(model.clone()).session(&session);
        runner.run("My card is 4111 1111 1111 1111").await.unwrap();
        // Another process, in effect: another handle to the same place.
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
        let runner = Runner::new(&triage).model(model.clone()).session(&session);
        let result = runner.run("The one of May").await.unwrap();
        assert_eq!(result.last_agent().name(), "Billing");
        assert!(!model.requests()[2].input.iter().any(|item| item.as_json().contains("4111")));
        let recorded = record(&session).await;
        assert_eq!(recorded[0], "My card is 4111 1111 1111 1111");
        assert_eq!(recorded[recorded.len() - 2..], ["The one of May", "Done."]);
        assert!(session.undo().await.unwrap());
        assert_eq!(record(&session).await, recorded[..recorded.len() - 2]);
        assert!(session.undo().await.unwrap());
        assert_eq!(record(&session).await, [""; 0]);
        assert_eq!(session.agent().await.unwrap(), None);
        assert!(!session.undo().await.unwrap());
    }

    async fn items_are_appended_popped_and_cleared(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        assert_eq!(session.pop().await.unwrap(), None);
        assert_eq!(view(&session).await, [""; 0]);
        says(&session, &["a", "b"]).await;
        says(&session, &["c"]).await;
        assert_eq!(record(&session).await, ["a", "b", "c"]);
        assert_eq!(words(&session.load(Some(2)).await.unwrap()), ["b", "c"]);
        assert_eq!(session.pop().await.unwrap(), Some(Item::user("c")));
        assert_eq!(session.pop().await.unwrap(), Some(Item::user("b")));
        says(&session, &["d"]).await;
        assert_eq!(record(&session).await, ["a", "d"]);
        assert_eq!(view(&session).await, ["a", "d"]);
        session.clear().await.unwrap();
        assert_eq!(record(&session).await, [""; 0]);
        says(&session, &["e"]).await;
        assert_eq!(view(&session).await, ["e"]);
        assert_eq!(session.pop().await.unwrap(), Some(Item::user("e")));
        assert_eq!(session.pop().await.unwrap(), None);
    }

    async fn the_agent_is_changed_without_the_view(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        session.set_agent(Some("A")).await.unwrap();
        says(&session, &["a"]).await;
        assert_eq!(session.agent().await.unwrap().as_deref(), Some("A"));
        session.set_agent(Some("B")).await.unwrap();
        session.set_agent(None).await.unwrap();
        assert_eq!(session.agent().await.unwrap(), None);
        assert_eq!(view(&session).await, ["a"]);
        session.clear().await.unwrap();
        session.set_agent(Some("C")).await.unwrap();
        assert_eq!(session.agent().await.unwrap().as_deref(), Some("C"));
        assert_eq!(view(&session).await, [""; 0]);
    }

    async fn a_conversation_is_rewound_and_goes_on_as_a_new_branch(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        for text in ["a", "b", "c"] {
            says(&session, &[text]).await;
        }
        let all = session.head().await.unwrap().unwrap().revision.next;
        session.rewind(1).await.unwrap();
        assert_eq!(record(&session).await, ["a"]);
        says(&session, &["B"]).await;
        assert_eq!(record(&session).await, ["a", "B"]);
        // The old branch is still there, and leads there again.
        session.rewind(all).await.unwrap();
        assert_eq!(record(&session).await, ["a", "b", "c"]);
        assert!(session.entries(0..u64::MAX).await.unwrap().len() > 4);
    }

    async fn a_conversation_is_forked_exported_and_imported(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        for text in ["a", "b", "c"] {
            says(&session, &[text]).await;
        }
        session.clear().await.unwrap();
        for text in ["d", "e", "f"] {
            says(&session, &[text]).await;
        }
        session.set_agent(Some("A")).await.unwrap();
        let first = session.head().await.unwrap().unwrap().first;
        let fork = session.fork("fork", first + 2).await.unwrap();
        assert_eq!(record(&fork).await, ["d", "e"]);
        says(&fork, &["g"]).await;
        assert_eq!(view(&fork).await, ["d", "e", "g"]);
        assert_eq!(view(&session).await, ["d", "e", "f"]);
        assert!(session.fork("fork", None).await.is_err());

        let exported = serde_json::to_string(&session.export().await.unwrap()).unwrap();
        let exported: Exported = serde_json::from_str(&exported).unwrap();
        let copy = conversations.get("copy");
        copy.import(&exported).await.unwrap();
        assert_eq!(view(&copy).await, ["d", "e", "f"]);
        assert_eq!(copy.agent().await.unwrap().as_deref(), Some("A"));
        assert!(copy.import(&exported).await.is_err());
        assert_eq!(conversations.list(None).await.unwrap().len(), 3);
    }

    async fn a_long_conversation_is_exported_and_imported_in_parts(backend) {
        let conversations = Conversations::new(backend.open().await);
        let session = conversations.get("c");
        let items: Vec<Item> = (0..2_500).map(|number| Item::user(number.to_string())).collect();
        session.append(&items).await.unwrap();
        let copy = session.fork("copy", None).await.unwrap();
        assert_eq!(copy.load(None).await.unwrap().iter().collect::<Vec<_>>(), items.iter().collect::<Vec<_>>());
    }
}
