//! A session in a file behaves like one in memory.

use proptest::prelude::*;
use switchboard_core::{Item, MemorySession, Session};
use switchboard_sessions::SqliteSessions;

use crate::new_path;

#[derive(Debug, Clone)]
enum Operation {
    Append(Vec<Item>),
    Pop,
    Clear,
    Load(Option<usize>),
    Reopen,
}

fn item() -> impl Strategy<Value = Item> {
    let text = prop_oneof![
        any::<String>(),
        "\\PC{0,12}",
        Just("'\"\0\u{2028}\u{fffd}".to_owned())
    ];
    prop_oneof![
        text.clone().prop_map(Item::user),
        text.prop_map(|text| Item::function_call("c", &text, &text)),
        // JSON in unusual formats: spaces, escapes, big numbers, duplicate fields.
        "\\{ {0,3}\"a\" {0,2}: {0,2}(\"\\\\ud8[0-9]0\"|-?[1-9][0-9]{0,30}|true|\"\\\\n\"),\"a\":1\\}"
            .prop_map(|json| Item::from_json(json).unwrap()),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => prop::collection::vec(item(), 0..5).prop_map(Operation::Append),
        2 => Just(Operation::Pop),
        1 => Just(Operation::Clear),
        3 => prop::option::of(0..12_usize).prop_map(Operation::Load),
        1 => Just(Operation::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn sessions_in_a_file_behave_like_sessions_in_memory(
        names in prop::collection::vec("\\PC{0,5}|['\"%\\\\]{1,3}", 1..4),
        operations in prop::collection::vec((0..3_usize, operation()), 0..25),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let (_folder, path) = new_path();
            let mut sessions = SqliteSessions::open(&path).await.unwrap();
            let mut models: Vec<(String, MemorySession)> = Vec::new();
            for (which, operation) in operations {
                let name = &names[which % names.len()];
                let model = match models.iter().find(|(known, _)| known == name) {
                    Some((_, model)) => model.clone(),
                    None => {
                        models.push((name.clone(), MemorySession::new()));
                        models[models.len() - 1].1.clone()
                    }
                };
                let session = sessions.session(name.as_str());
                match operation {
                    Operation::Append(items) => {
                        session.append(&items).await.unwrap();
                        model.append(&items).await.unwrap();
                    }
                    Operation::Pop => {
                        let popped = session.pop().await.unwrap();
                        assert_eq!(popped, model.pop().await.unwrap());
                    }
                    Operation::Clear => {
                        session.clear().await.unwrap();
                        model.clear().await.unwrap();
                    }
                    Operation::Load(limit) => {
                        let found = session.load(limit).await.unwrap();
                        let expected = model.load(limit).await.unwrap();
                        assert!(found.iter().eq(expected.iter()), "{found:?} {expected:?}");
                    }
                    Operation::Reopen => {
                        sessions.close().await;
                        sessions = SqliteSessions::open(&path).await.unwrap();
                    }
                }
            }
            for (name, model) in models {
                let found = sessions.session(name.as_str()).load(None).await.unwrap();
                assert!(found.iter().eq(model.items().iter()), "{name:?}");
                let listed = sessions.list().await.unwrap();
                let listed = listed.iter().find(|info| info.name == name);
                assert_eq!(listed.map_or(0, |info| info.items), found.len());
            }
            sessions.close().await;
        });
    }
}
