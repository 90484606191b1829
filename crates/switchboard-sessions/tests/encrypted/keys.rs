//! Keys: wrong ones, missing ones, and their rotation.

use std::sync::Arc;

use switchboard_core::conversation::{ConversationStore, Conversations, EntryContent, MemoryStore};
use switchboard_core::{Item, Session};
use switchboard_sessions::{EncryptedStore, EncryptionErrorKind, Key, Keys};

use crate::edited_store::EditedStore;
use crate::{append_each, encrypted, first_key, kind, stored, texts, with_messages};

fn second_key() -> Keys {
    Keys::new("second", [2; 32])
}

#[tokio::test]
async fn a_missing_key_is_named_with_what_to_do() {
    let store = with_messages(&["The word is pomegranate"]).await;
    let other = Conversations::new(EncryptedStore::new(store, second_key()));
    let error = texts(&other.get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::MissingKey);
    assert_eq!(
        error.to_string(),
        "the conversation \"c\" is encrypted with the key \"first\", which is not among the keys; add \
         it with Keys::and_older(\"first\", ..). It can be removed again after \
         EncryptedStore::rotate_all"
    );
}

#[tokio::test]
async fn a_wrong_key_decrypts_nothing_and_changes_nothing() {
    let store = with_messages(&["The word is pomegranate"]).await;
    let before = stored(&store, "c").await;
    let wrong = Conversations::new(EncryptedStore::new(
        store.clone(),
        Keys::new("first", [9; 32]),
    ));
    let conversation = wrong.get("c");
    let error = texts(&conversation).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::WrongKey);
    assert_eq!(
        error.to_string(),
        "the conversation \"c\" cannot be decrypted with the key \"first\": it was encrypted with another \
         key of that name, or its head was changed or copied from another conversation. Check that \
         \"first\" is the same key as when the conversation was stored; otherwise restore the \
         conversation from a copy"
    );
    let error = conversation.append(&[Item::user("More")]).await;
    assert_eq!(kind(&error.unwrap_err()), EncryptionErrorKind::WrongKey);
    assert_eq!(stored(&store, "c").await, before);

    // It is listed, and can be deleted.
    let listed = wrong.list(None).await.unwrap();
    assert_eq!((&*listed[0].id, &listed[0].details), ("c", &None));
    assert!(wrong.delete("c").await.unwrap());
}

#[tokio::test]
async fn after_a_rotation_the_old_key_can_be_removed_and_no_entry_was_written_again() {
    let store = with_messages(&["The word is pomegranate", "The next is persimmon"]).await;
    append_each(&encrypted(&store).get("d"), &["And quince"]).await;
    let entries = [stored(&store, "c").await, stored(&store, "d").await];
    let changed = store.head("c").await.unwrap().unwrap().changed;

    let both = second_key().and_older("first", [1; 32]);
    let rotating = EncryptedStore::new(store.clone(), both);
    // As if it had been stopped after the first one.
    assert!(rotating.rotate("c").await.unwrap());
    assert!(!rotating.rotate("c").await.unwrap());
    let rotation = rotating.rotate_all().await.unwrap();
    assert_eq!((rotation.rotated, rotation.failed.len()), (1, 0));
    assert_eq!(rotating.rotate_all().await.unwrap().rotated, 0);
    assert!(!rotating.rotate("none").await.unwrap());

    assert_eq!(
        [stored(&store, "c").await, stored(&store, "d").await],
        entries
    );
    assert_eq!(store.head("c").await.unwrap().unwrap().changed, changed);
    let only_new = Conversations::new(EncryptedStore::new(store.clone(), second_key()));
    let conversation = only_new.get("c");
    append_each(&conversation, &["Then fig"]).await;
    assert_eq!(
        texts(&conversation).await.unwrap(),
        [
            "The word is pomegranate",
            "The next is persimmon",
            "Then fig"
        ]
    );
    assert_eq!(texts(&only_new.get("d")).await.unwrap(), ["And quince"]);
    let error = texts(&encrypted(&store).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::MissingKey);
}

#[tokio::test]
async fn a_commit_encrypts_the_key_of_the_conversation_with_the_current_key() {
    let store = with_messages(&["One"]).await;
    let both = second_key().and_older("first", [1; 32]);
    let conversations = Conversations::new(EncryptedStore::new(store.clone(), both));
    append_each(&conversations.get("c"), &["Two"]).await;
    let only_new = Conversations::new(EncryptedStore::new(store, second_key()));
    assert_eq!(texts(&only_new.get("c")).await.unwrap(), ["One", "Two"]);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_rotated_does_not_stop_the_others() {
    let store = with_messages(&["One"]).await;
    let third = EncryptedStore::new(store.clone(), Keys::new("third", [3; 32]));
    append_each(&Conversations::new(third).get("other"), &["Two"]).await;

    let both = second_key().and_older("first", [1; 32]);
    let rotation = EncryptedStore::new(store, both).rotate_all().await.unwrap();
    assert_eq!(rotation.rotated, 1);
    let [(id, error)] = &rotation.failed[..] else {
        panic!("one conversation failed: {rotation:?}");
    };
    assert_eq!(
        (&**id, kind(error)),
        ("other", EncryptionErrorKind::MissingKey)
    );
}

#[test]
fn keys_are_read_from_base64_and_are_never_printed() {
    let text = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    let key: Key = format!(" {text}\n").parse().unwrap();
    let keys = Keys::new("first", key).and_older("second", [7; 32]);
    assert_eq!(keys.current_id(), "first");
    assert_eq!(format!("{keys:?}"), r#"Keys(["first", "second"])"#);
    let store = EncryptedStore::new(MemoryStore::default(), keys);
    assert_eq!(
        format!("{store:?}"),
        r#"EncryptedStore { keys: Keys(["first", "second"]), .. }"#
    );
    for invalid in [
        "",
        "cGx1bQ==",
        "pomegranate pomegranate pomegranate",
        &text.repeat(2),
        &text[1..],
    ] {
        let error = invalid.parse::<Key>().unwrap_err();
        assert_eq!(error.kind(), EncryptionErrorKind::InvalidKey);
        assert!(invalid.is_empty() || !format!("{error:?}").contains(invalid));
    }
}

#[tokio::test]
async fn the_key_in_the_text_is_the_key_in_bytes() {
    let store = with_messages(&["One"]).await;
    let text = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let keys = Keys::new("first", text.parse::<Key>().unwrap());
    let conversations = Conversations::new(EncryptedStore::new(store, keys));
    assert_eq!(texts(&conversations.get("c")).await.unwrap(), ["One"]);
}

#[tokio::test]
async fn each_conversation_has_a_key_of_its_own_also_after_it_was_cleared() {
    let data_key = async |store: &MemoryStore, id: &str| {
        let head = store.head(id).await.unwrap().unwrap();
        let details: serde_json::Value = serde_json::from_str(&head.details.unwrap()).unwrap();
        details["switchboard_encrypted"]["data_key"].clone()
    };
    let store = with_messages(&["One"]).await;
    let conversations = encrypted(&store);
    append_each(&conversations.get("d"), &["One"]).await;
    let keys = [data_key(&store, "c").await, data_key(&store, "d").await];
    assert_ne!(keys[0], keys[1]);

    let old: Arc<str> = stored(&store, "c").await[0].content.as_json().into();
    let conversation = conversations.get("c");
    conversation.clear().await.unwrap();
    assert_eq!(conversation.head().await.unwrap().unwrap().details, None);
    append_each(&conversation, &["Two"]).await;
    assert_eq!(texts(&conversation).await.unwrap(), ["Two"]);

    // An entry from before cannot be put in the place of the new one.
    let edited = EditedStore::new(&store).edit_entries(move |entries| {
        let content = EntryContent::from_stored("item", &*old);
        entries[0].content = content.unwrap();
    });
    let edited = Conversations::new(EncryptedStore::new(edited, first_key()));
    let error = texts(&edited.get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::Tampered);
}
