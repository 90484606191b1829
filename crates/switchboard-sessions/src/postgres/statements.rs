//! The statements, with the tables of one schema.

use std::sync::Arc;

use sqlx::AssertSqlSafe;

/// The text of a statement. The schema in it is the only part that is not fixed.
#[derive(Debug, Clone)]
pub(super) struct Statement(Arc<str>);

impl Statement {
    fn new(schema: &str, text: &str) -> Self {
        Self(text.replace("{schema}", &quoted(schema)).into())
    }

    pub(super) fn sql(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(self.0.clone())
    }
}

/// A name as an identifier of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// All statements of a store.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) head: Statement,
    pub(super) read: Statement,
    pub(super) commit_any: Statement,
    pub(super) commit_new: Statement,
    pub(super) commit_at: Statement,
    pub(super) same_commit: Statement,
    pub(super) lock: Statement,
    pub(super) clear_head: Statement,
    pub(super) clear_entries: Statement,
    pub(super) delete: Statement,
    pub(super) delete_expired: Statement,
    pub(super) list: Statement,
    pub(super) list_folder: Statement,
    pub(super) list_by_expiry: Statement,
    pub(super) list_folder_by_expiry: Statement,
    pub(super) search: Statement,
    pub(super) search_folder: Statement,
    pub(super) lease: Statement,
    pub(super) release: Statement,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let statement = |text: &str| Statement::new(schema, text);
        let commit = |head: &str| statement(&format!("WITH head AS ({head}), {COMMIT_ENTRIES}"));
        Self {
            head: statement(&format!("{HEAD} WHERE id = $1")),
            read: statement(READ),
            commit_any: commit(&format!("{INSERT_HEAD} ON CONFLICT (id) DO {UPDATE_HEAD}")),
            commit_new: commit(&format!(
                "{INSERT_HEAD} ON CONFLICT (id) DO NOTHING RETURNING key, epoch, next"
            )),
            commit_at: commit(UPDATE_EXPECTED_HEAD),
            same_commit: statement(SAME_COMMIT),
            lock: statement("SELECT key FROM {schema}.conversations WHERE id = $1 FOR UPDATE"),
            clear_head: statement(CLEAR_HEAD),
            clear_entries: statement(
                "DELETE FROM {schema}.entries WHERE conversation = $1 AND position < $2",
            ),
            delete: statement("DELETE FROM {schema}.conversations WHERE id = $1 RETURNING key"),
            delete_expired: statement(
                "DELETE FROM {schema}.conversations WHERE id = $1 AND expires <= $2 RETURNING key",
            ),
            list: statement(&format!("{HEAD} WHERE {LISTED} {BY_CHANGE}")),
            list_folder: statement(&format!(
                "{HEAD} WHERE {FOLDER} = $5 AND {LISTED} {BY_CHANGE}"
            )),
            list_by_expiry: statement(&format!(
                "{HEAD} WHERE expires >= $5 AND {LISTED} {BY_EXPIRY}"
            )),
            list_folder_by_expiry: statement(&format!(
                "{HEAD} WHERE {FOLDER} = $6 AND expires >= $5 AND {LISTED} {BY_EXPIRY}"
            )),
            search: statement(&format!("{SEARCH} {FOUND}")),
            search_folder: statement(&format!("{SEARCH} AND {FOLDER} = $3 {FOUND}")),
            lease: statement(LEASE),
            release: statement("DELETE FROM {schema}.leases WHERE id = $1 AND owner = $2"),
        }
    }
}

const HEAD: &str = "SELECT id, epoch, first, next, state, agent, details, created, changed, expires \
    FROM {schema}.conversations";

/// The folder of a conversation's name. The index has the same expression.
const FOLDER: &str = "regexp_replace(id, '[^/]*$', '')";

const LISTED: &str = "($1::bigint IS NULL OR changed < $1) \
    AND ($2::bigint IS NULL OR expires <= $2) AND starts_with(id, 'switchboard-run:') = $4";

const BY_CHANGE: &str = "ORDER BY changed DESC, id LIMIT $3";

const BY_EXPIRY: &str = "ORDER BY expires, id LIMIT $3";

const READ: &str = "SELECT position, run, turn, number, e.agent, time, kind, content \
    FROM {schema}.entries e JOIN {schema}.conversations c ON c.key = e.conversation \
    WHERE c.id = $1 AND position >= $2 AND position < $3 ORDER BY position";

// The parameters of a commit:
//  $1 name         $4 agent changes    $7 expiry changes   $10 epoch, the new or the expected one
//  $2 entries      $5 agent            $8 expiry           $11 expected position
//  $3 state index  $6 details          $9 time             $12.. columns of the entries

const INSERT_HEAD: &str = "INSERT INTO {schema}.conversations AS c \
    (id, epoch, first, next, state, agent, details, created, changed, expires) \
    SELECT $1::text, $10::bigint, 0, $2::bigint, $3::bigint, CASE WHEN $4 THEN $5::text END, $6::text, \
    $9::bigint, $9::bigint, CASE WHEN $7 THEN $8::bigint END WHERE $11::bigint IS NULL";

const UPDATE_HEAD: &str = "UPDATE SET state = COALESCE(c.next + $3::bigint, c.state), \
    next = c.next + $2::bigint, agent = CASE WHEN $4 THEN $5::text ELSE c.agent END, \
    details = COALESCE($6::text, c.details), changed = $9::bigint, \
    expires = CASE WHEN $7 THEN $8::bigint ELSE c.expires END \
    RETURNING key, epoch, next";

const UPDATE_EXPECTED_HEAD: &str = "UPDATE {schema}.conversations AS c \
    SET state = COALESCE(c.next + $3::bigint, c.state), \
    next = c.next + $2::bigint, agent = CASE WHEN $4 THEN $5::text ELSE c.agent END, \
    details = COALESCE($6::text, c.details), changed = $9::bigint, \
    expires = CASE WHEN $7 THEN $8::bigint ELSE c.expires END \
    WHERE id = $1 AND epoch = $10::bigint AND next = $11::bigint \
    RETURNING key, epoch, next";

const COMMIT_ENTRIES: &str = "stored AS (\
    INSERT INTO {schema}.entries \
    (conversation, position, run, turn, number, agent, time, kind, content, searched) \
    SELECT head.key, head.next - $2::bigint + index - 1, \
    run, turn, number, agent, time, kind, content, searched \
    FROM head, UNNEST($12::text[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[], \
    $17::text[], $18::text[], $19::text[]) WITH ORDINALITY \
    AS entry (run, turn, number, agent, time, kind, content, searched, index)\
    ) SELECT epoch, next FROM head";

const SAME_COMMIT: &str = "SELECT epoch, next FROM {schema}.conversations c \
    WHERE id = $1 AND ($2::bigint IS NULL OR epoch = $2) AND EXISTS (\
    SELECT 1 FROM {schema}.entries e \
    WHERE e.conversation = c.key AND e.position >= $3 AND e.run = $4 AND e.number = $5)";

const CLEAR_HEAD: &str = "UPDATE {schema}.conversations \
    SET epoch = $3, first = next, state = NULL, agent = NULL, details = NULL, expires = NULL, \
    changed = $2 \
    WHERE id = $1 RETURNING key, next";

const SEARCH: &str = "SELECT c.id, position, run, turn, number, e.agent, time, kind, content \
    FROM {schema}.entries e JOIN {schema}.conversations c ON c.key = e.conversation \
    WHERE searched LIKE $1";

const FOUND: &str = "ORDER BY time DESC, position DESC LIMIT $2";

// The server's clock decides, so that the clocks of the writers do not matter.
const LEASE: &str = "INSERT INTO {schema}.leases AS l (id, owner, until) \
    VALUES ($1, $2, clock_timestamp() + $3::double precision * interval '1 millisecond') \
    ON CONFLICT (id) DO UPDATE SET owner = EXCLUDED.owner, until = EXCLUDED.until \
    WHERE l.owner = EXCLUDED.owner OR l.until <= clock_timestamp() \
    RETURNING true";
