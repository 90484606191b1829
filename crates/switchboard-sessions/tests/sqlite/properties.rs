//! A store in a file behaves like one in memory.

use std::time::Duration;

use proptest::prelude::*;
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected, Head, ListQuery,
    MemoryStore, Revision, SearchQuery, from_millis,
};
use switchboard_sessions::SqliteStore;

use crate::new_path;

#[derive(Debug, Clone)]
enum Operation {
    Commit(CommitPlan),
    Clear,
    Delete,
    Head,
    Read(u64, u64),
    List(Option<usize>, Option<u32>, Option<u32>),
    Search(String, usize),
    Lease(u8, u64),
    Release(u8),
    Reopen,
}

#[derive(Debug, Clone)]
struct CommitPlan {
    expected: ExpectedPlan,
    run: u8,
    number: u32,
    contents: Vec<EntryContent>,
    agent: Option<Option<String>>,
    details: bool,
    expires: Option<Option<u32>>,
    time: u32,
}

#[derive(Debug, Clone, Copy)]
enum ExpectedPlan {
    Any,
    New,
    Current,
    /// This many entries before the current revision.
    Behind(u64),
    OtherEpoch,
}

fn item() -> impl Strategy<Value = Item> {
    let text = prop_oneof![
        any::<String>(),
        "\\PC{0,12}",
        "[aAbBßÄä%_]{0,4}",
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

fn content() -> impl Strategy<Value = EntryContent> {
    prop_oneof![
        4 => item().prop_map(EntryContent::Item),
        1 => item().prop_map(EntryContent::Replacement),
        1 => "[a-z]{0,3}".prop_map(|json| EntryContent::State(json.into())),
        1 => "[a-z]{0,3}".prop_map(|json| EntryContent::Refused(json.into())),
    ]
}

fn commit() -> impl Strategy<Value = CommitPlan> {
    let expected = prop_oneof![
        3 => Just(ExpectedPlan::Any),
        1 => Just(ExpectedPlan::New),
        3 => Just(ExpectedPlan::Current),
        2 => (1..4_u64).prop_map(ExpectedPlan::Behind),
        1 => Just(ExpectedPlan::OtherEpoch),
    ];
    let changes = (
        prop::option::of(prop::option::of("\\PC{0,3}")),
        any::<bool>(),
        prop::option::of(prop::option::of(0..50_u32)),
    );
    let contents = prop::collection::vec(content(), 1..4);
    (expected, 0..2_u8, 0..3_u32, contents, changes, 0..50_u32).prop_map(
        |(expected, run, number, contents, (agent, details, expires), time)| CommitPlan {
            expected,
            run,
            number,
            contents,
            agent,
            details,
            expires,
            time,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let time = || prop::option::of(0..50_u32);
    prop_oneof![
        8 => commit().prop_map(Operation::Commit),
        1 => Just(Operation::Clear),
        1 => Just(Operation::Delete),
        2 => Just(Operation::Head),
        3 => (0..8_u64, 0..8_u64).prop_map(|(start, length)| Operation::Read(start, start + length)),
        2 => (prop::option::of(0..3_usize), time(), time())
            .prop_map(|(limit, changed, expired)| Operation::List(limit, changed, expired)),
        2 => ("[aAbBßÄäs%_c]{0,2}", 0..5_usize)
            .prop_map(|(text, limit)| Operation::Search(text, limit)),
        2 => (0..2_u8, prop_oneof![Just(0), Just(3_600)])
            .prop_map(|(owner, time)| Operation::Lease(owner, time)),
        1 => (0..2_u8).prop_map(Operation::Release),
        1 => Just(Operation::Reopen),
    ]
}

impl CommitPlan {
    fn expected(&self, head: Option<&Head>) -> Expected {
        let revision = head.map_or(Revision::new(1, 0), |head| head.revision);
        match self.expected {
            ExpectedPlan::Any => Expected::Any,
            ExpectedPlan::New => Expected::New,
            ExpectedPlan::Current => Expected::At(revision),
            ExpectedPlan::Behind(entries) => {
                let next = revision.next.saturating_sub(entries);
                Expected::At(Revision::new(revision.epoch, next))
            }
            ExpectedPlan::OtherEpoch => {
                Expected::At(Revision::new(revision.epoch ^ 1, revision.next))
            }
        }
    }

    fn commit(&self, head: Option<&Head>) -> Commit {
        let run = format!("run {}", self.run);
        let time = from_millis(i64::from(self.time));
        let entry = |content: &EntryContent| {
            Entry::new(content.clone())
                .made_in(run.as_str(), self.number, self.number)
                .made_by(self.agent.clone().flatten().map(Into::into))
                .committed_at(time)
        };
        let mut commit = Commit::new(
            self.expected(head),
            self.contents.iter().map(entry).collect(),
        );
        commit.run = run.as_str().into();
        commit.number = self.number;
        commit.agent = self.agent.clone().map(|agent| agent.map(Into::into));
        commit.details = self
            .details
            .then(|| format!("{{\"at\":{}}}", self.time).into());
        let millis = |millis| from_millis(i64::from(millis));
        commit.expires = self.expires.map(|expires| expires.map(millis));
        commit.time = time;
        commit
    }
}

/// The head without what differs between stores: the random number, and the current time.
fn comparable(mut head: Head) -> Head {
    head.revision.epoch = 0;
    if head.changed > from_millis(50) {
        head.changed = from_millis(50);
    }
    head
}

fn next_position(committed: Committed) -> Option<u64> {
    match committed {
        Committed::At(revision) => Some(revision.next),
        _ => None,
    }
}

/// The results in an order that does not depend on the current time.
fn sorted(heads: Vec<Head>) -> Vec<Head> {
    let mut heads: Vec<Head> = heads.into_iter().map(comparable).collect();
    heads.sort_by(|a, b| a.changed.cmp(&b.changed).then(a.id.cmp(&b.id)));
    heads
}

async fn assert_alike(names: &[String], operations: Vec<(usize, Operation)>) {
    let (_folder, path) = new_path();
    let mut store = SqliteStore::open(&path).await.unwrap();
    let model = MemoryStore::default();
    for (which, operation) in operations {
        let name = &names[which % names.len()];
        let owner = |owner: u8| format!("owner {owner}");
        match operation {
            Operation::Commit(plan) => {
                let head = store.head(name).await.unwrap();
                let found = store
                    .commit(name, plan.commit(head.as_ref()))
                    .await
                    .unwrap();
                let head = model.head(name).await.unwrap();
                let expected = model
                    .commit(name, plan.commit(head.as_ref()))
                    .await
                    .unwrap();
                assert_eq!(next_position(found), next_position(expected), "{plan:?}");
            }
            Operation::Clear => {
                store.clear(name).await.unwrap();
                model.clear(name).await.unwrap();
            }
            Operation::Delete => {
                let found = store.delete(name).await.unwrap();
                assert_eq!(found, model.delete(name).await.unwrap());
            }
            Operation::Head => {
                let found = store.head(name).await.unwrap();
                let expected = model.head(name).await.unwrap();
                assert_eq!(found.map(comparable), expected.map(comparable));
            }
            Operation::Read(start, end) => {
                let found = store.read(name, start..end).await.unwrap();
                assert_eq!(found, model.read(name, start..end).await.unwrap());
            }
            Operation::List(limit, changed, expired) => {
                let mut query = ListQuery::default();
                let millis = |millis| from_millis(i64::from(millis));
                query.changed_before = changed.map(millis);
                query.expired_before = expired.map(millis);
                let found = store.list(&query).await.unwrap();
                let expected = model.list(&query).await.unwrap();
                assert!(found.is_sorted_by_key(|head| std::cmp::Reverse(head.changed)));
                assert_eq!(sorted(found.clone()), sorted(expected));
                query.limit = limit;
                let limited = store.list(&query).await.unwrap();
                assert_eq!(
                    limited,
                    found[..limit.unwrap_or(found.len()).min(found.len())]
                );
            }
            Operation::Search(text, limit) => {
                // Entries of equal times may come in any order.
                let found = store
                    .search(&SearchQuery::new(&*text, usize::MAX))
                    .await
                    .unwrap();
                let expected = model
                    .search(&SearchQuery::new(&*text, usize::MAX))
                    .await
                    .unwrap();
                assert!(found.is_sorted_by(|a, b| {
                    (a.entry.time, a.entry.position) >= (b.entry.time, b.entry.position)
                }));
                assert_eq!(found.len(), expected.len(), "{text:?}");
                assert!(expected.iter().all(|expected| found.contains(expected)));
                let limited = store
                    .search(&SearchQuery::new(&*text, limit))
                    .await
                    .unwrap();
                assert_eq!(limited.len(), found.len().min(limit));
            }
            Operation::Lease(by, time) => {
                let time = Duration::from_secs(time);
                let found = store.lease(name, &owner(by), time).await.unwrap();
                assert_eq!(found, model.lease(name, &owner(by), time).await.unwrap());
            }
            Operation::Release(by) => {
                store.release(name, &owner(by)).await.unwrap();
                model.release(name, &owner(by)).await.unwrap();
            }
            Operation::Reopen => {
                store.close().await;
                store = SqliteStore::open(&path).await.unwrap();
            }
        }
    }
    for name in names {
        let found = store.read(name, 0..u64::MAX).await.unwrap();
        assert_eq!(found, model.read(name, 0..u64::MAX).await.unwrap());
    }
    store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_a_file_behaves_like_one_in_memory(
        names in prop::collection::vec("\\PC{0,5}|['\"%\\\\]{1,3}", 1..4),
        operations in prop::collection::vec((0..3_usize, operation()), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(assert_alike(&names, operations));
    }
}
