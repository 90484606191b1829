//! Conversations in Redis.

mod commits;
mod connection;
mod entries;
mod error;
mod options;
mod persistence;
mod scripts;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::{FromRedisValue, ScriptInvocation};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery, Revision, SearchQuery,
    folder_of, now, to_millis,
};

pub use self::options::RedisOptions;

use self::connection::{Connection, Failure};
use self::error::convert;
use self::scripts::Scripts;
use crate::error::{StoreError, StoreErrorKind};

/// The version of the stored form. Version 1 had no lists of folders.
const VERSION: u32 = 2;

/// The number of conversations that are put into the lists of their folders at once.
const MIGRATED: isize = 1000;

/// The number of heads that are read at once.
const HEADS: usize = 500;

/// The number of entries that a search reads at once.
const SEARCHED: u64 = 200;

/// The longest lease. It is far beyond the life of a run, and small enough for the server.
const MAX_LEASE: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Conversations in Redis 6 or later, or Valkey. Clones share one connection.
///
/// A commit is one script, and with that one round trip and all or nothing. A connection that was lost is
/// made again, and the command is repeated: a commit of a run at most once more, and it is stored once.
/// Calls wait for a server that restarts; see [`RedisOptions::connect_timeout`].
///
/// # Durability
/// Redis answers before it has written to disk, unless it is told otherwise. Its settings decide what a
/// crash of the server takes:
///
/// | settings | lost in a crash |
/// | --- | --- |
/// | `appendonly yes`, `appendfsync always` | nothing that was answered |
/// | `appendonly yes`, `appendfsync everysec` | the last second or two |
/// | `appendonly no`, `save ...` | all since the last snapshot |
/// | `appendonly no`, `save ""` | everything |
///
/// A failover to a replica takes what the replica has not received. `maxmemory-policy` must not be one
/// of `allkeys-*`. [`open`](Self::open) warns (`tracing`) about settings that lose more than seconds.
///
/// # Keys
/// All keys of a store begin with `{switchboard}:`, so that a Redis Cluster keeps them together in one
/// slot. The address must be that of the node which has it.
///
/// # Panics
/// The methods panic outside of a Tokio runtime.
///
/// ```no_run
/// use switchboard_core::conversation::Conversations;
/// use switchboard_sessions::RedisStore;
///
/// # async fn example() -> Result<(), switchboard_core::callback::BoxError> {
/// let store = RedisStore::open("rediss://app:secret@cache.example.com/").await?;
/// let conversations = Conversations::new(store);
/// let session = conversations.get("customer-42");
/// assert_eq!(session.agent().await?, None);
/// conversations.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

/// The number of names that are read beyond a limit, as some may be of the other kind.
const SPARE_NAMES: usize = 32;

struct Inner {
    connection: Connection,
    scripts: Scripts,
    prefix: String,
    search_limit: usize,
}

impl RedisStore {
    /// Connects with the usual [`RedisOptions`].
    ///
    /// # Errors
    /// As [`RedisOptions::open`].
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        RedisOptions::new(address)?.open().await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisStore")
            .field(self.0.connection.place())
            .finish()
    }
}

impl Inner {
    async fn check_version(&self) -> Result<(), StoreError> {
        let key = format!("{}:version", self.prefix);
        let mut pipeline = redis::pipe();
        pipeline
            .cmd("SET")
            .arg(&key)
            .arg(VERSION)
            .arg("NX")
            .ignore();
        pipeline.cmd("GET").arg(&key);
        let (version,): (u32,) = self.query(&pipeline).await?;
        if version > VERSION {
            let message = format!(
                "the conversations under {:?} are of version {version}, which is later than this \
                 program knows",
                self.prefix
            );
            let place = self.connection.place().clone();
            return Err(StoreError::new(StoreErrorKind::Newer, place, message));
        }
        if version < 2 {
            self.list_folders().await?;
            let mut pipeline = redis::pipe();
            pipeline.cmd("SET").arg(&key).arg(VERSION).ignore();
            let () = self.query(&pipeline).await?;
        }
        Ok(())
    }

    /// Makes the lists of folders from that of all conversations. It can be repeated.
    async fn list_folders(&self) -> Result<(), StoreError> {
        let [_, _, changed, ..] = self.keys("");
        let mut start = 0;
        loop {
            let mut pipeline = redis::pipe();
            pipeline
                .cmd("ZRANGE")
                .arg(&changed)
                .arg(start)
                .arg(start + MIGRATED - 1)
                .arg("WITHSCORES");
            let (scored,): (Vec<(String, f64)>,) = self.query(&pipeline).await?;
            if scored.is_empty() {
                return Ok(());
            }
            let mut pipeline = redis::pipe();
            for (id, score) in &scored {
                let [.., folder] = self.keys(id);
                pipeline
                    .cmd("ZADD")
                    .arg(folder)
                    .arg(*score)
                    .arg(id)
                    .ignore();
            }
            let () = self.query(&pipeline).await?;
            start += MIGRATED;
        }
    }

    fn key(&self, kind: &str, id: &str) -> String {
        format!("{}:{kind}:{id}", self.prefix)
    }

    /// The keys of a conversation, and those of the lists that it is in.
    fn keys(&self, id: &str) -> [String; 5] {
        [
            self.key("head", id),
            self.key("entries", id),
            format!("{}:changed", self.prefix),
            format!("{}:expires", self.prefix),
            self.key("folder", folder_of(id)),
        ]
    }

    /// The result of commands, which are repeated if the connection is lost.
    async fn query<T: FromRedisValue>(&self, pipeline: &redis::Pipeline) -> Result<T, StoreError> {
        let mut is_repeated = false;
        loop {
            let mut handle = self.connection.get().await?;
            let done = pipeline.query_async(&mut handle.connection).await;
            match self.connection.finished(handle, done).await {
                Err(Failure::Lost(_)) if !is_repeated => is_repeated = true,
                done => return done.map_err(|failure| self.error(failure)),
            }
        }
    }

    /// The result of a script, which is repeated if the connection is lost.
    async fn invoke<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut is_repeated = false;
        loop {
            match self.invoke_once(script).await {
                Err(Failure::Lost(_)) if !is_repeated => is_repeated = true,
                done => return done.map_err(|failure| self.error(failure)),
            }
        }
    }

    async fn invoke_once<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Failure> {
        let mut handle = self.connection.get().await.map_err(Failure::Other)?;
        // A server that has forgotten the script gets it again.
        let done = script.invoke_async(&mut handle.connection).await;
        self.connection.finished(handle, done).await
    }

    fn error(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Lost(error) => convert(error, self.connection.place()),
            Failure::Other(error) => error,
        }
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, StoreError> {
        // Lua's numbers are exact up to here.
        let exact = |position: u64| position.min(1 << 53);
        let mut script = self.scripts.read.prepare_invoke();
        script
            .key(self.key("head", id))
            .key(self.key("entries", id));
        script.arg(exact(positions.start)).arg(exact(positions.end));
        let (first, stored): (u64, Vec<Vec<u8>>) = self.invoke(&script).await?;
        let entries = stored.iter().zip(first..);
        let entries = entries.map(|(stored, position)| {
            entries::decode(stored, position).map_err(|problem| {
                let place = self.connection.place().clone();
                StoreError::new(StoreErrorKind::Entry, place, problem).at_position(position)
            })
        });
        entries.collect()
    }

    /// Deletes a conversation; with a time, only if it has expired by then.
    async fn delete(&self, id: &str, expired: Option<SystemTime>) -> Result<bool, StoreError> {
        let mut script = self.scripts.delete.prepare_invoke();
        for key in self.keys(id) {
            script.key(key);
        }
        script.arg(id);
        if let Some(time) = expired {
            script.arg(to_millis(time));
        }
        let deleted = self.invoke(&script).await;
        deleted.map_err(|error| error.in_conversation(id))
    }

    /// The heads of conversations, without those that do not exist any more.
    async fn heads(&self, ids: &[String]) -> Result<Vec<Head>, StoreError> {
        let mut heads = Vec::with_capacity(ids.len());
        for ids in ids.chunks(HEADS) {
            let mut pipeline = redis::pipe();
            for id in ids {
                pipeline.cmd("HGETALL").arg(self.key("head", id));
            }
            let found: Vec<HashMap<String, String>> = self.query(&pipeline).await?;
            let found = found.iter().zip(ids);
            heads.extend(found.filter_map(|(fields, id)| entries::head(id, fields)));
        }
        Ok(heads)
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, StoreError> {
        let ids = match (query.expired_from, query.expired_before) {
            (Some(from), until) => self.expired_from(query, from, until).await?,
            (None, Some(time)) => self.expired(query, time).await?,
            (None, None) => self.last_changed(query).await?,
        };
        let mut heads = self.heads(&ids).await?;
        heads.retain(|head| {
            let folder = query.folder.as_deref();
            query.changed_before.is_none_or(|time| head.changed < time)
                && folder.is_none_or(|folder| folder_of(&head.id) == folder)
        });
        match query.expired_from {
            None => heads.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.id.cmp(&b.id))),
            // They may have got another time since their names were read.
            Some(from) => {
                heads.retain(|head| head.expires.is_some_and(|expires| expires >= from));
                heads.sort_by(|a, b| (a.expires, &a.id).cmp(&(b.expires, &b.id)));
            }
        }
        heads.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(heads)
    }

    /// The names of the records that have expired by a time.
    async fn expired(
        &self,
        query: &ListQuery,
        time: SystemTime,
    ) -> Result<Vec<String>, StoreError> {
        let [_, _, _, expires, _] = self.keys("");
        let mut ids: Vec<String> = match &query.folder {
            Some(folder) => {
                let mut script = self.scripts.expired_in_folder.prepare_invoke();
                script.key(expires).key(self.key("folder", folder));
                self.invoke(script.arg(to_millis(time))).await?
            }
            None => {
                let mut pipeline = redis::pipe();
                let command = pipeline.cmd("ZRANGEBYSCORE").arg(expires);
                command.arg("-inf").arg(to_millis(time));
                let (ids,) = self.query(&pipeline).await?;
                ids
            }
        };
        ids.retain(|id| query.listed.includes(id));
        Ok(ids)
    }

    /// The names of the records that expire from a time on, in that order. Those of a folder, or changed before a time, are few.
    async fn expired_from(
        &self,
        query: &ListQuery,
        from: SystemTime,
        until: Option<SystemTime>,
    ) -> Result<Vec<String>, StoreError> {
        let [_, _, _, expires, _] = self.keys("");
        let until = until.map_or_else(|| "+inf".to_owned(), |until| to_millis(until).to_string());
        let is_all = query.folder.is_some() || query.changed_before.is_some();
        let limit = query.limit.filter(|_| !is_all).unwrap_or(usize::MAX);
        let page = |offset: usize, number: i64| {
            let mut pipeline = redis::pipe();
            let command = pipeline.cmd("ZRANGEBYSCORE").arg(&expires);
            command.arg(to_millis(from)).arg(&until);
            command.arg("LIMIT").arg(offset).arg(number);
            pipeline
        };
        self.pages(query, limit, page).await
    }

    /// The names of the records that a list begins with, page by page: conversations and journals have one index.
    async fn last_changed(&self, query: &ListQuery) -> Result<Vec<String>, StoreError> {
        let [_, _, all, _, _] = self.keys("");
        let changed = match &query.folder {
            None => all,
            Some(folder) => self.key("folder", folder),
        };
        // The scores are negative, so that the last changed come first.
        let from = query
            .changed_before
            .map(|time| format!("({}", -to_millis(time)));
        let from = from.unwrap_or_else(|| "-inf".to_owned());
        let limit = query.limit.unwrap_or(usize::MAX);
        let page = |offset: usize, number: i64| {
            let mut pipeline = redis::pipe();
            let command = pipeline.cmd("ZRANGEBYSCORE").arg(&changed);
            command.arg(&from).arg("+inf").arg("LIMIT");
            command.arg(offset).arg(number);
            pipeline
        };
        self.pages(query, limit, page).await
    }

    /// Reads names page by page, until there are enough of the kind that is listed. `page` makes the command for a page from its
    /// offset and length.
    async fn pages(
        &self,
        query: &ListQuery,
        limit: usize,
        page: impl Fn(usize, i64) -> redis::Pipeline,
    ) -> Result<Vec<String>, StoreError> {
        let length = limit.saturating_add(SPARE_NAMES);
        let mut ids = Vec::new();
        let mut offset = 0;
        while ids.len() < limit {
            let pipeline = page(offset, i64::try_from(length).unwrap_or(-1));
            let (read,): (Vec<String>,) = self.query(&pipeline).await?;
            let is_last = read.len() < length;
            offset += read.len();
            ids.extend(read.into_iter().filter(|id| query.listed.includes(id)));
            if is_last {
                break;
            }
        }
        ids.truncate(limit);
        Ok(ids)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        let (text, limit) = (query.text.to_lowercase(), query.limit);
        let mut listed = ListQuery::default();
        listed.folder.clone_from(&query.folder);
        let mut found: Vec<Found> = Vec::new();
        let mut left = self.search_limit;
        for head in self.list(&listed).await? {
            // All other conversations were changed before the entries that were found.
            let last = limit.checked_sub(1).and_then(|last| found.get(last));
            if limit == 0 || left == 0 || last.is_some_and(|last| last.entry.time > head.changed) {
                break;
            }
            let mut end = head.revision.next;
            while end > head.first && left > 0 {
                let start = end.saturating_sub(SEARCHED).max(head.first);
                let entries = self.read(&head.id, start..end).await;
                let entries = entries.map_err(|error| error.in_conversation(&head.id))?;
                left = left.saturating_sub(entries.len().max(1));
                let matching = entries.into_iter().filter(|entry| {
                    let searched = entry.content.searchable_text();
                    searched.is_some_and(|searched| searched.to_lowercase().contains(&text))
                });
                found.extend(matching.map(|entry| Found::new(head.id.clone(), entry)));
                end = start;
            }
            found.sort_by(|a, b| {
                let newest = b.entry.time.cmp(&a.entry.time);
                newest.then(b.entry.position.cmp(&a.entry.position))
            });
            found.truncate(limit);
        }
        Ok(found)
    }
}

impl ConversationStore for RedisStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let heads = self.0.heads(&[id.to_owned()]).await;
        let heads = heads.map_err(|error| error.in_conversation(id))?;
        Ok(heads.into_iter().next())
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        let entries = self.0.read(id, positions).await;
        Ok(entries.map_err(|error| error.in_conversation(id))?)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        let committed = self.0.commit(id, &commit).await;
        Ok(committed.map_err(|error| error.in_conversation(id))?)
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        let mut script = self.0.scripts.clear.prepare_invoke();
        for key in self.0.keys(id) {
            script.key(key);
        }
        let epoch = Revision::of_new_conversation().epoch;
        script.arg(id).arg(to_millis(now())).arg(epoch);
        let cleared: Result<(), _> = self.0.invoke(&script).await;
        Ok(cleared.map_err(|error| error.in_conversation(id))?)
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        Ok(self.0.delete(id, None).await?)
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        Ok(self.0.delete(id, Some(time)).await?)
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        Ok(self.0.list(query).await?)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        Ok(self.0.search(query).await?)
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        let millis = u64::try_from(time.min(MAX_LEASE).as_millis()).unwrap_or(u64::MAX);
        let mut script = self.0.scripts.lease.prepare_invoke();
        script.key(self.0.key("lease", id)).arg(owner).arg(millis);
        let taken: Result<bool, _> = self.0.invoke(&script).await;
        Ok(taken.map_err(|error| error.in_conversation(id))?)
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        let mut script = self.0.scripts.release.prepare_invoke();
        script.key(self.0.key("lease", id)).arg(owner);
        let released: Result<(), _> = self.0.invoke(&script).await;
        Ok(released.map_err(|error| error.in_conversation(id))?)
    }

    async fn close(&self) {
        self.0.connection.close().await;
    }
}
