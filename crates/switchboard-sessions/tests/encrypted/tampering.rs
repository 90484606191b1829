//! Changes of what is stored, by something that does not have the key.

use std::time::Duration;

use switchboard_core::conversation::{
    Conversation, ConversationStore, Entry, EntryContent, Head, MemoryStore,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner};
use switchboard_sessions::EncryptionErrorKind;

use crate::edited_store::EditedStore;
use crate::{append_each, encrypted, kind, stored, texts, with_messages};

const FRUIT: [&str; 4] = ["pomegranate", "persimmon", "quince", "fig"];

/// The error of reading a conversation whose entries were edited.
async fn error_after(
    store: &MemoryStore,
    edit: impl Fn(&mut Vec<Entry>) + Send + Sync + 'static,
) -> String {
    let edited = EditedStore::new(store).edit_entries(edit);
    let error = texts(&encrypted(&edited).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::Tampered, "{error}");
    let message = error.to_string();
    for word in FRUIT {
        assert!(!message.contains(word));
    }
    message
}

fn at(position: u64, problem: &str) -> String {
    format!(
        "the entry at position {position} of the conversation \"c\" {problem}: the store was changed by \
         something else than Switchboard. Restore the conversation from a copy, and find out who can \
         write to the store"
    )
}

const CHANGED: &str = "was changed, moved, or copied from another conversation";

#[tokio::test]
async fn exchanged_entries_are_detected() {
    let store = with_messages(&FRUIT).await;
    let exchange_contents = |entries: &mut Vec<Entry>| {
        let content = entries[1].content.clone();
        entries[1].content = std::mem::replace(&mut entries[2].content, content);
    };
    assert_eq!(error_after(&store, exchange_contents).await, at(1, CHANGED));
    let exchange = |entries: &mut Vec<Entry>| {
        entries.swap(1, 2);
        (entries[1].position, entries[2].position) = (1, 2);
    };
    assert_eq!(error_after(&store, exchange).await, at(1, CHANGED));
    let reorder = |entries: &mut Vec<Entry>| entries.swap(1, 2);
    assert_eq!(error_after(&store, reorder).await, at(1, "is missing"));
}

#[tokio::test]
async fn removed_entries_are_detected() {
    let store = with_messages(&FRUIT).await;
    for position in 0..4_u64 {
        let cut = move |entries: &mut Vec<Entry>| {
            entries.retain(|entry| entry.position != position);
        };
        assert_eq!(error_after(&store, cut).await, at(position, "is missing"));
        let close_the_gap = move |entries: &mut Vec<Entry>| {
            cut(entries);
            for (entry, position) in entries.iter_mut().zip(0..) {
                entry.position = position;
            }
        };
        let problem = if position < 3 { CHANGED } else { "is missing" };
        assert_eq!(
            error_after(&store, close_the_gap).await,
            at(position, problem)
        );
    }
}

#[tokio::test]
async fn added_and_repeated_entries_are_detected() {
    let store = with_messages(&FRUIT).await;
    let repeat = |entries: &mut Vec<Entry>| {
        let again = entries[0].clone().at(4);
        entries.push(again);
    };
    let edited = EditedStore::new(&store)
        .edit_entries(repeat)
        .edit_head(|head| head.revision.next += 1);
    let error = texts(&encrypted(&edited).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::Tampered);
}

#[tokio::test]
async fn entries_of_another_conversation_are_detected() {
    let store = with_messages(&FRUIT).await;
    append_each(&encrypted(&store).get("d"), &["melon", "fig"]).await;
    let other = stored(&store, "d").await;
    let replace = move |entries: &mut Vec<Entry>| entries[1] = other[1].clone();
    assert_eq!(error_after(&store, replace).await, at(1, CHANGED));
}

#[tokio::test]
async fn each_changed_field_of_an_entry_is_detected() {
    let store = with_messages(&FRUIT).await;
    type Change = fn(&mut Entry);
    let changes: [(&str, Change); 7] = [
        ("kind", |entry| {
            let json = entry.content.as_json().to_owned();
            entry.content = EntryContent::from_stored("replacement", json).unwrap();
        }),
        ("run", |entry| entry.run = "other".into()),
        ("turn", |entry| entry.turn += 1),
        ("commit", |entry| entry.commit += 1),
        ("agent", |entry| entry.agent = Some("Admin".into())),
        ("no agent, another run", |entry| {
            (entry.run, entry.agent) = ("x".into(), Some("".into()));
        }),
        ("time", |entry| entry.time += Duration::from_millis(1)),
    ];
    for (name, change) in changes {
        let error = error_after(&store, move |entries| change(&mut entries[2])).await;
        assert_eq!(error, at(2, CHANGED), "{name}");
    }
}

#[tokio::test]
async fn changed_content_is_detected() {
    let store = with_messages(&FRUIT).await;
    let with_content = |json: String| {
        move |entries: &mut Vec<Entry>| {
            entries[3].content = EntryContent::from_stored("item", json.clone()).unwrap();
        }
    };
    let sealed = stored(&store, "c").await[3].content.as_json().to_owned();
    // Within the tag, within the encrypted bytes, and within the nonce.
    let cut = |length: usize| {
        let (before, content) = sealed.split_once("\"content\":\"").unwrap();
        format!(r#"{before}"content":"{}"}}}}"#, &content[..length])
    };
    for json in [
        cut(sealed.len() - 60),
        cut(40),
        cut(8),
        cut(7),
        cut(0),
        sealed.replacen("\"content\":\"", "\"content\":\"A", 1),
        r#"{"switchboard_encrypted":{"version":1}}"#.to_owned(),
    ] {
        assert_eq!(
            error_after(&store, with_content(json)).await,
            at(3, CHANGED)
        );
    }
    let plain = r#"{"role":"user","content":"pomegranate"}"#.to_owned();
    assert_eq!(
        error_after(&store, with_content(plain)).await,
        at(3, "is not encrypted, and those around it are")
    );
    let without_version = sealed.replace("\"version\":1,", "");
    assert_eq!(
        error_after(&store, with_content(without_version)).await,
        at(3, "has no version")
    );
}

#[tokio::test]
async fn a_later_version_is_named() {
    let store = with_messages(&FRUIT).await;
    let edited = EditedStore::new(&store).edit_entries(|entries| {
        let json = r#"{"switchboard_encrypted":{"version":2,"other":true}}"#;
        entries[0].content = EntryContent::from_stored("item", json).unwrap();
    });
    let error = texts(&encrypted(&edited).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NewerVersion);
    assert_eq!(
        error.to_string(),
        "the conversation \"c\" is encrypted in version 2, and this program reads version 1; use the \
         version of Switchboard that stored it, or a later one"
    );
    let edited = EditedStore::new(&store).edit_head(|head| {
        head.details = Some(r#"{"switchboard_encrypted":{"version":3}}"#.into());
    });
    let error = texts(&encrypted(&edited).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NewerVersion);
}

/// A conversation of two runs, of which the second hands off.
async fn with_handoff() -> (MemoryStore, Conversation) {
    let store = MemoryStore::default();
    let session = encrypted(&store).get("c");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let model = ScriptedModel::new()
        .say("Hi.")
        .call("transfer_to_billing", "{}")
        .say("Which bill?");
    let runner = Runner::new(&triage).model(model).session(&session);
    runner.run("Hello").await.unwrap();
    runner.run("My bill is wrong").await.unwrap();
    (store, session)
}

#[tokio::test]
async fn each_change_of_a_head_is_detected() {
    let (store, session) = with_handoff().await;
    let details_before = {
        let head = store.head("c").await.unwrap().unwrap();
        session.set_agent(Some("Triage")).await.unwrap();
        head.details
    };
    let other = {
        append_each(&encrypted(&store).get("d"), &FRUIT).await;
        store.head("d").await.unwrap().unwrap().details
    };
    type Change = Box<dyn Fn(&mut Head) + Send + Sync>;
    let changes: [(&str, EncryptionErrorKind, Change); 8] = [
        (
            "another agent",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.agent = Some("Billing".into())),
        ),
        (
            "no agent",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.agent = None),
        ),
        (
            "an earlier state",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.state = Some(2)),
        ),
        (
            "no state",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.state = None),
        ),
        (
            "a shorter record",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.revision.next -= 1),
        ),
        (
            "a record without its start",
            EncryptionErrorKind::Tampered,
            Box::new(|head| head.first = 2),
        ),
        (
            "the details of an earlier commit",
            EncryptionErrorKind::Tampered,
            Box::new(move |head| head.details.clone_from(&details_before)),
        ),
        (
            "the details of another conversation",
            EncryptionErrorKind::WrongKey,
            Box::new(move |head| head.details.clone_from(&other)),
        ),
    ];
    for (name, expected, change) in changes {
        let edited = EditedStore::new(&store).edit_head(change);
        let conversation = encrypted(&edited).get("c");
        let error = conversation.view().await.unwrap_err();
        assert_eq!(kind(&error), expected, "{name}");
        if expected == EncryptionErrorKind::Tampered {
            assert_eq!(
                error.to_string(),
                "the head of the conversation \"c\" is not as it was stored: the store was changed by \
                 something else than Switchboard. Restore the conversation from a copy, and find out \
                 who can write to the store",
                "{name}"
            );
        }
        assert!(conversation.set_agent(None).await.is_err(), "{name}");
        // It does not hide other conversations.
        assert!(encrypted(&edited).list(None).await.unwrap().len() == 2);
    }
}

#[tokio::test]
async fn a_run_ends_with_the_error_as_its_cause() {
    let (store, _) = with_handoff().await;
    let edited = EditedStore::new(&store)
        .edit_entries(|entries| entries.retain(|entry| entry.position != 1));
    let session = encrypted(&edited).get("c");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let runner = Runner::new(&triage).model(ScriptedModel::new().say("Hi."));
    let error = runner.session(&session).run("Hello?").await.unwrap_err();
    assert_eq!(error.kind(), switchboard_core::ErrorKind::Session);
    let cause = error.cause().unwrap();
    let cause = cause.downcast_ref::<switchboard_sessions::EncryptionError>();
    assert_eq!(cause.unwrap().kind(), EncryptionErrorKind::Tampered);
}
