//! The tables, and the steps from each version of them to the next.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor, Row};

use super::statements::quoted;

/// The steps, in order. The version of a schema is the number of its steps. A step that was released
/// never changes; what a later version needs is a further step.
const STEPS: [&str; 3] = [
    "
    CREATE TABLE {schema}.conversations (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE \"C\" NOT NULL UNIQUE,
        epoch bigint NOT NULL,
        first bigint NOT NULL,
        next bigint NOT NULL,
        state bigint,
        agent text,
        details text,
        created bigint NOT NULL,
        changed bigint NOT NULL,
        expires bigint
    );
    COMMENT ON TABLE {schema}.conversations IS
        'Conversations of Switchboard. Times are milliseconds since 1970.';
    CREATE INDEX conversations_by_change ON {schema}.conversations (changed DESC, id);
    CREATE INDEX conversations_by_expiry ON {schema}.conversations (expires)
        WHERE expires IS NOT NULL;
    CREATE TABLE {schema}.entries (
        conversation bigint NOT NULL REFERENCES {schema}.conversations ON DELETE CASCADE,
        position bigint NOT NULL,
        run text NOT NULL,
        turn bigint NOT NULL,
        number bigint NOT NULL,
        agent text,
        time bigint NOT NULL,
        kind text NOT NULL,
        content text NOT NULL,
        searched text,
        PRIMARY KEY (conversation, position)
    );
    CREATE INDEX entries_by_time ON {schema}.entries (time DESC, position DESC)
        WHERE searched IS NOT NULL;
    CREATE TABLE {schema}.leases (
        id text COLLATE \"C\" PRIMARY KEY,
        owner text NOT NULL,
        until timestamptz NOT NULL
    );
",
    "CREATE INDEX conversations_by_folder
        ON {schema}.conversations (regexp_replace(id, '[^/]*$', ''), changed DESC, id);",
    "CREATE INDEX conversations_by_folder_and_expiry
        ON {schema}.conversations (regexp_replace(id, '[^/]*$', ''), expires)
        WHERE expires IS NOT NULL;",
];

/// The lock that programs hold while they change a schema: `switchbd` as a number.
const LOCK: i64 = 0x7377_6974_6368_6264;

/// The version of a schema after [`migrate`].
pub(super) enum Migrated {
    /// The tables are as this program uses them.
    Current,
    /// A later program has changed them. They were left as they are.
    Newer(i64),
}

/// Creates the tables, or changes those of an earlier version. Programs that do so at the same time
/// wait for each other, and one that is stopped midway leaves the tables as they were.
pub(super) async fn migrate(
    connection: &mut PgConnection,
    schema: &str,
) -> Result<Migrated, sqlx::Error> {
    let current = STEPS.len() as i64;
    let version = version(connection, schema).await?;
    if version >= current {
        return Ok(if version > current {
            Migrated::Newer(version)
        } else {
            Migrated::Current
        });
    }
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *transaction)
        .await?;
    let version = self::version(&mut transaction, schema).await?;
    if version > current {
        return Ok(Migrated::Newer(version));
    }
    let name = schema;
    let schema = quoted(schema);
    if version == 0 {
        let create = "CREATE TABLE {schema}.migrations (
            version bigint PRIMARY KEY, migrated timestamptz NOT NULL DEFAULT now()
        )";
        // A user may own a schema without the right to create one.
        let is_missing = sqlx::query("SELECT 1 FROM pg_namespace WHERE nspname = $1")
            .bind(name)
            .fetch_optional(&mut *transaction)
            .await?
            .is_none();
        if is_missing {
            execute(&mut transaction, "CREATE SCHEMA {schema}", &schema).await?;
        }
        execute(&mut transaction, create, &schema).await?;
    }
    for (step, number) in STEPS
        .iter()
        .zip(1_i64..)
        .skip(usize::try_from(version).unwrap_or(0))
    {
        execute(&mut transaction, step, &schema).await?;
        let done = format!("INSERT INTO {schema}.migrations (version) VALUES ({number})");
        transaction.execute(AssertSqlSafe(done)).await?;
    }
    transaction.commit().await?;
    Ok(Migrated::Current)
}

async fn execute(
    connection: &mut PgConnection,
    text: &str,
    schema: &str,
) -> Result<(), sqlx::Error> {
    let text = text.replace("{schema}", schema);
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(text)))
        .await?;
    Ok(())
}

/// The version of the tables; 0 if there are none.
async fn version(connection: &mut PgConnection, schema: &str) -> Result<i64, sqlx::Error> {
    // Not `to_regclass`: it may answer from a cache that does not know of tables which another program
    // has created while this one waited for the lock.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1 AND c.relname = 'migrations')";
    let exists: bool = sqlx::query(exists)
        .bind(schema)
        .fetch_one(&mut *connection)
        .await?
        .try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let schema = quoted(schema);
    let version = format!("SELECT COALESCE(MAX(version), 0)::bigint FROM {schema}.migrations");
    let row = sqlx::query(AssertSqlSafe(version))
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}
