//! Properties: what is stored comes back, and nothing that is stored leads to a panic.

use std::sync::Arc;

use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, ConversationStore, Entry, EntryContent, Expected, MemoryStore,
};
use switchboard_sessions::{EncryptedStore, EncryptionError};

use crate::edited_store::EditedStore;
use crate::first_key;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("\u{0}\u{2028}\u{feff}\"\\/")),
        Just(json!({"switchboard_encrypted": {"version": 1, "content": "AAAA"}})),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_content() -> impl Strategy<Value = EntryContent> {
    let object = prop::collection::vec((any::<String>(), any_json()), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()).to_string());
    let kind = prop::sample::select(vec!["item", "replacement", "state", "refused"]);
    (kind, object).prop_map(|(kind, json)| EntryContent::from_stored(kind, json).unwrap())
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let agent = prop::option::of(any::<String>());
    (
        any_content(),
        any::<String>(),
        any::<u32>(),
        any::<u32>(),
        agent,
    )
        .prop_map(|(content, run, turn, commit, agent)| {
            Entry::new(content)
                .made_in(run, turn, commit)
                .made_by(agent.map(Arc::from))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_committed_is_read_as_it_was(
        id in any::<String>(),
        commits in prop::collection::vec(prop::collection::vec(any_entry(), 1..4), 1..4),
        details in prop::option::of(any_json()),
        agent in prop::option::of(any::<String>()),
    ) {
        let store = EncryptedStore::new(MemoryStore::default(), first_key());
        let details: Option<Arc<str>> = details.map(|details| details.to_string().into());
        let agent: Option<Arc<str>> = agent.map(Arc::from);
        let mut expected = Vec::new();
        async {
            for (index, entries) in commits.into_iter().enumerate() {
                expected.extend(entries.clone());
                let mut commit = Commit::new(Expected::Any, entries);
                if index == 0 {
                    commit.details = details.clone();
                    commit.agent = Some(agent.clone());
                }
                store.commit(&id, commit).await.unwrap();
            }
            for (entry, position) in expected.iter_mut().zip(0..) {
                entry.position = position;
            }
            assert_eq!(store.read(&id, 0..100).await.unwrap(), expected);
            let head = store.head(&id).await.unwrap().unwrap();
            assert_eq!((head.details, head.agent), (details, agent));
        }
        .now_or_never()
        .unwrap();
    }
}

proptest! {
    #[test]
    fn stored_bytes_that_are_changed_give_an_error_or_what_was_stored(
        is_head: bool,
        place in any::<prop::sample::Index>(),
        removed in 0..40_usize,
        inserted in ".{0,40}",
        is_all in prop::bool::weighted(0.1),
        allow_plain: bool,
    ) {
        let store = MemoryStore::default();
        let encrypted = EncryptedStore::new(store.clone(), first_key());
        let item = EntryContent::Item(Item::user("pomegranate"));
        // The content of states may be any text.
        let state = EntryContent::State("{}".into());
        let entries = vec![Entry::new(item), Entry::new(state)];
        let commit = Commit::new(Expected::New, entries);
        encrypted.commit("c", commit).now_or_never().unwrap().unwrap();
        let original = encrypted.read("c", 0..2).now_or_never().unwrap().unwrap();

        let change = move |text: &str| -> String {
            let chars: Vec<char> = text.chars().collect();
            let start = if is_all { 0 } else { place.index(chars.len()) };
            let removed = if is_all { chars.len() } else { removed };
            let before = chars.iter().take(start);
            let after = chars.iter().skip(start + removed);
            before.copied().chain(inserted.chars()).chain(after.copied()).collect()
        };
        let change_entry = change.clone();
        let edited = EditedStore::new(&store)
            .edit_head(move |head| {
                if is_head {
                    head.details = head.details.as_deref().map(|text| change(text).into());
                }
            })
            .edit_entries(move |entries| {
                if !is_head {
                    let changed = change_entry(entries[1].content.as_json());
                    entries[1].content = EntryContent::State(changed.into());
                }
            });
        let mut store = EncryptedStore::new(edited, first_key());
        if allow_plain {
            store = store.allow_plain();
        }
        match store.read("c", 0..2).now_or_never().unwrap() {
            Ok(entries) => assert_eq!(entries, original),
            Err(error) => assert!(error.downcast_ref::<EncryptionError>().is_some()),
        }
        // Neither of these panics.
        let _ = store.head("c").now_or_never().unwrap();
        let _ = store.list(&Default::default()).now_or_never().unwrap();
        let _ = store.rotate_all().now_or_never().unwrap();
    }
}
