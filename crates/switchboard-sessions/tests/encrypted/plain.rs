//! Conversations that were stored without encryption.

use switchboard_core::conversation::{
    ConversationError, ConversationErrorKind, ConversationStore, Conversations, MemoryStore,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Session as _};
use switchboard_sessions::{EncryptedStore, EncryptionErrorKind};

use crate::edited_store::EditedStore;
use crate::{append_each, encrypted, first_key, kind, stored, texts, with_messages};

async fn plain_store() -> MemoryStore {
    let store = MemoryStore::default();
    let plain = Conversations::new(store.clone()).get("c");
    append_each(&plain, &["pomegranate"]).await;
    plain.set_agent(Some("Support")).await.unwrap();
    store
}

fn with_plain_allowed(store: &(impl ConversationStore + Clone)) -> Conversations {
    Conversations::new(EncryptedStore::new(store.clone(), first_key()).allow_plain())
}

#[tokio::test]
async fn a_plain_conversation_is_rejected_with_what_to_do() {
    let store = plain_store().await;
    let error = texts(&encrypted(&store).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NotEncrypted);
    assert_eq!(
        error.to_string(),
        "the conversation \"c\" was stored without encryption; to go on with it, set \
         EncryptedStore::allow_plain, which encrypts what is added, or export it without encryption, \
         delete it and import it with encryption"
    );
    // Keys have nothing to do with it.
    let rotating = EncryptedStore::new(store, first_key());
    assert!(!rotating.rotate("c").await.unwrap());
}

#[tokio::test]
async fn an_allowed_plain_conversation_goes_on_encrypted() {
    let store = plain_store().await;
    let conversation = with_plain_allowed(&store).get("c");
    append_each(&conversation, &["persimmon"]).await;
    assert_eq!(
        texts(&conversation).await.unwrap(),
        ["pomegranate", "persimmon"]
    );
    assert_eq!(
        conversation.agent().await.unwrap().as_deref(),
        Some("Support")
    );
    let in_store = format!("{:?}", stored(&store, "c").await);
    assert!(in_store.contains("pomegranate") && !in_store.contains("persimmon"));

    // What is plain is not read without the permission.
    let error = texts(&encrypted(&store).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NotEncrypted);

    let conversations = conversation.conversations();
    let exported = conversation.export().await.unwrap();
    conversations.delete("c").await.unwrap();
    conversation.import(&exported).await.unwrap();
    assert_eq!(
        texts(&encrypted(&store).get("c")).await.unwrap(),
        ["pomegranate", "persimmon"]
    );
    assert!(!format!("{:?}", stored(&store, "c").await).contains("pomegranate"));
}

#[tokio::test]
async fn an_encrypted_entry_cannot_be_replaced_by_a_plain_one() {
    let store = with_messages(&["pomegranate", "persimmon"]).await;
    let forged = stored(&plain_store().await, "c").await.remove(0).content;
    let edited = EditedStore::new(&store).edit_entries(move |entries| {
        entries[1].content = forged.clone();
    });
    let error = texts(&with_plain_allowed(&edited).get("c"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the entry at position 1 of the conversation \"c\" is not encrypted, and those around it are: \
         the store was changed by something else than Switchboard. Restore the conversation from a \
         copy, and find out who can write to the store"
    );
}

#[tokio::test]
async fn an_encrypted_conversation_without_its_key_is_not_taken_for_a_plain_one() {
    let store = with_messages(&["pomegranate"]).await;
    let edited = EditedStore::new(&store).edit_head(|head| head.details = None);
    let error = texts(&encrypted(&edited).get("c")).await.unwrap_err();
    assert_eq!(kind(&error), EncryptionErrorKind::NotEncrypted);
    let error = texts(&with_plain_allowed(&edited).get("c"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the entry at position 0 of the conversation \"c\" is encrypted, and the key of the conversation \
         is gone: the store was changed by something else than Switchboard. Restore the conversation \
         from a copy, and find out who can write to the store"
    );
}

#[tokio::test]
async fn an_encrypted_conversation_is_not_read_as_if_it_were_plain() {
    let store = with_messages(&["pomegranate"]).await;
    let before = stored(&store, "c").await;
    let plain = Conversations::new(store.clone()).get("c");
    let model = ScriptedModel::new().say("Hello!");
    let agent: Agent = Agent::new("Support").model(model.clone());
    let run = Runner::new(&agent).session(&plain).run("Hi").await;
    let cause = run.unwrap_err();
    let cause = cause.cause().unwrap().downcast_ref::<ConversationError>();
    assert_eq!(cause.unwrap().kind(), ConversationErrorKind::Encrypted);
    let errors = [
        plain.view().await.unwrap_err(),
        plain.load(None).await.unwrap_err(),
        plain.record(None).await.unwrap_err(),
        plain.set_agent(Some("Sales")).await.unwrap_err(),
        plain.undo().await.unwrap_err(),
        plain.rewind(0).await.unwrap_err(),
        plain.pop().await.unwrap_err(),
        plain.waiting_run().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            error.to_string(),
            "the conversation \"c\" is encrypted; open its store as an `EncryptedStore` with the key \
             that it was encrypted with"
        );
    }
    assert_eq!(model.requests().len(), 0);
    assert_eq!(stored(&store, "c").await, before);
}
