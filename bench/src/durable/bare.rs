//! The store without a run: commits as those of a journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::conversation::{
    Commit, Committed, ConversationStore as _, Conversations, Entry, EntryContent, Expected,
    JOURNAL_PREFIX, Revision, now,
};
use switchboard_durable::{DurableRunner, Embedded};

use super::counting::{CountingStore, Counts};
use super::load::{Work, work};
use super::team::team;
use super::{Failed, durable};

/// The state of a run, about as long as it is.
const DETAILS: &str = r#"{"conversation":"1234-1234567890123456-1234","key":"m1","status":{"running":{}},"failures":0}"#;

/// A durable run with as many steps, in which nothing takes place: it is stored and taken, each step is a commit of the
/// average size, and its end is stored.
pub(super) fn empty_steps(store: Conversations, counts: &Counts) -> Work {
    let steps = counts.steps;
    let bytes = usize::try_from(counts.step_bytes / steps.max(1)).unwrap_or_default();
    let content: Arc<str> =
        format!(r#"{{"step":"{}"}}"#, "x".repeat(bytes.saturating_sub(11))).into();
    work(move |name| {
        let (store, content) = (store.clone(), content.clone());
        async move {
            let id = format!("{JOURNAL_PREFIX}{name}/m1");
            let entry = || Entry::new(EntryContent::Step(content.clone()));
            let mut commit = Commit::new(Expected::New, vec![entry()]);
            (commit.details, commit.expires) = (Some(DETAILS.into()), Some(Some(now())));
            let mut revision = committed(store.commit(&id, commit).await?)?;
            for step in 0..=steps {
                let mut commit = Commit::new(Expected::At(revision), vec![entry()]);
                // The first one takes the run.
                commit.details = (step == 0).then(|| DETAILS.into());
                commit.expires = Some(Some(now() + Duration::from_secs(15)));
                revision = committed(store.commit(&id, commit).await?)?;
            }
            let mut commit = Commit::new(Expected::At(revision), Vec::new());
            (commit.details, commit.expires) = (Some(DETAILS.into()), Some(None));
            committed(store.commit(&id, commit).await?)?;
            Ok(())
        }
    })
}

/// The commits of a durable run and of its conversation, one after the other, without a run.
pub(super) async fn same_commits(store: Conversations) -> Result<Work, Failed> {
    let counting = CountingStore::keeping_commits(Conversations::in_memory());
    let engine = Embedded::new(Conversations::new(counting.clone()));
    durable(DurableRunner::new(engine, team()))("recorded".to_owned()).await?;
    let commits: Arc<[(String, Commit)]> = counting.commits().into();
    Ok(work(move |name| {
        let (store, commits) = (store.clone(), commits.clone());
        async move {
            let mut revisions: BTreeMap<&str, Revision> = BTreeMap::new();
            for (id, commit) in commits.iter() {
                let mut commit = commit.clone();
                (commit.time, commit.run) = (now(), name.as_str().into());
                commit.expected = match revisions.get(&**id) {
                    Some(revision) => Expected::At(*revision),
                    None => Expected::New,
                };
                let record = id.replace("recorded", &name);
                let revision = committed(store.commit(&record, commit).await?)?;
                revisions.insert(id, revision);
            }
            Ok(())
        }
    }))
}

fn committed(outcome: Committed) -> Result<Revision, Failed> {
    match outcome {
        Committed::At(revision) => Ok(revision),
        _ => Err("a commit was refused".into()),
    }
}
