//! PostgreSQL: the tables, and servers and networks that fail.

use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use switchboard_core::conversation::{ListQuery, SearchQuery};
use switchboard_sessions::{PostgresOptions, PostgresStore, StoreErrorKind};

use crate::backends::{Backend, Postgres, address, unique_name};
use crate::proxy::{Proxy, host_and_port};
use crate::*;

fn server() -> String {
    address("SWITCHBOARD_TEST_POSTGRES")
}

async fn execute(sql: String) {
    let mut connection = PgConnection::connect(&server()).await.unwrap();
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(sql)))
        .await
        .unwrap();
}

/// The options for a schema of its own.
fn options(schema: &str) -> PostgresOptions {
    PostgresOptions::new(&server()).unwrap().schema(schema)
}

/// A store with one connection, through a network that can fail.
async fn behind_proxy() -> (Proxy, PostgresStore) {
    let proxy = Proxy::to(host_and_port(&server())).await;
    let address = server().replace(
        &host_and_port(&server()),
        &format!("127.0.0.1:{}", proxy.port),
    );
    let options = PostgresOptions::new(&address).unwrap();
    let options = options
        .schema(unique_name())
        .max_connections(1)
        .connect_timeout(Duration::from_secs(3))
        .statement_timeout(Duration::from_millis(800));
    (proxy, options.open().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn programs_that_start_together_create_the_tables_once() {
    let backend = Postgres::new();
    let stores = join_all((0..12).map(|_| backend.open())).await;
    for (store, number) in stores.iter().zip(1..) {
        committed(store, "c", commit(Expected::Any, "r", number, &["x"])).await;
    }
    assert_eq!(all(&stores[0], "c").await.len(), 12);
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn tables_of_a_later_version_are_refused_and_left_as_they_are() {
    let schema = unique_name();
    let store = options(&schema).open().await.unwrap();
    committed(&store, "c", commit(Expected::New, "r", 1, &["x"])).await;
    execute(format!(
        "INSERT INTO {schema}.migrations (version) VALUES (99)"
    ))
    .await;
    let error = options(&schema).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Newer);
    let place = format!("postgres://{}/postgres", host_and_port(&server()));
    assert_eq!(
        error.to_string(),
        format!(
            "conversations at {place}: the tables in schema {schema:?} are of version 99, which is \
             later than this program knows; use the version of Switchboard that made it, or a later \
             one; nothing was changed"
        )
    );
    execute(format!(
        "DELETE FROM {schema}.migrations WHERE version = 99"
    ))
    .await;
    let store = options(&schema).open().await.unwrap();
    assert_eq!(texts(&store, "c").await, [(0, "x".into())]);
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn tables_of_another_program_are_refused_and_left_as_they_are() {
    let schema = unique_name();
    execute(format!(
        "CREATE SCHEMA {schema}; CREATE TABLE {schema}.conversations (a int)"
    ))
    .await;
    let error = options(&schema).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Foreign, "{error}");
    // Nothing of ours was created beside it.
    execute(format!(
        "DROP TABLE {schema}.conversations; DROP SCHEMA {schema}"
    ))
    .await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_schema_may_have_any_name() {
    for name in ["Größe \"x\"; --", "select", "{schema}"] {
        let schema = format!("{name} {}", unique_name());
        let store = options(&schema).open().await.unwrap();
        committed(&store, "c", commit(Expected::New, "r", 1, &["x"])).await;
        let store = options(&schema).open().await.unwrap();
        assert_eq!(texts(&store, "c").await, [(0, "x".into())]);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn missing_rights_and_a_missing_database_are_named() {
    let role = unique_name();
    execute(format!("CREATE ROLE {role} LOGIN")).await;
    let address = server().replace("postgres@", &format!("{role}@"));
    let error = PostgresStore::open(&address).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permission, "{error}");
    assert!(
        error
            .to_string()
            .ends_with("check the user, the password and the user's rights"),
        "{error}"
    );
    let error = PostgresStore::open(&format!("{}_missing", server()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Address, "{error}");
    assert!(
        error
            .to_string()
            .contains("\"postgres_missing\" does not exist"),
        "{error}"
    );

    // A user who may only use a schema that somebody else has created.
    let schema = unique_name();
    execute(format!("CREATE SCHEMA {schema} AUTHORIZATION {role}")).await;
    let options = PostgresOptions::new(&address).unwrap().schema(&schema);
    let store = options.open().await.unwrap();
    committed(&store, "c", commit(Expected::New, "r", 1, &["x"])).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_name_that_is_too_long_is_refused() {
    let store = Postgres::new().open().await;
    let error = store.head(&"x".repeat(2_001)).await.unwrap_err();
    assert_eq!(store_error(&error).kind(), StoreErrorKind::Name, "{error}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_closed_store_says_so() {
    let store = Postgres::new().open().await;
    store.close().await;
    store.close().await;
    let error = store.head("c").await.unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Closed,
        "{error}"
    );
    let error = store
        .commit("c", commit(Expected::New, "r", 1, &["x"]))
        .await
        .unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Closed,
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn lost_connections_are_replaced() {
    let application = unique_name();
    let address = format!("{}?application_name={application}", server());
    let options = PostgresOptions::new(&address)
        .unwrap()
        .schema(unique_name());
    let store = options.open().await.unwrap();
    // Several idle connections.
    let query = SearchQuery::new("x", 1);
    let heads = (0..10).map(|_| store.search(&query));
    join_all(heads).await;
    let end = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{application}'"
    );
    execute(end.clone()).await;
    let revision = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    execute(end.clone()).await;
    assert_eq!(head(&store, "c").await.revision, revision);
    execute(end.clone()).await;
    let revision = committed(&store, "c", commit(Expected::At(revision), "", 0, &["b"])).await;
    execute(end.clone()).await;
    store.clear("c").await.unwrap();
    execute(end).await;
    assert_eq!(head(&store, "c").await.first, revision.next);
}

/// Commits whose answer is lost. The server has stored them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_commit_whose_answer_is_lost_is_stored_once() {
    let (proxy, store) = behind_proxy().await;
    // The statements are prepared, so that the next answer is that of the commit.
    for id in ["new", "again"] {
        let first = committed(&store, id, commit(Expected::New, "warm", 1, &["x"])).await;
        committed(&store, id, commit(Expected::At(first), "warm", 2, &["x"])).await;
        committed(&store, id, commit(Expected::Any, "warm", 3, &["x"])).await;
        assert!(store.delete(id).await.unwrap());
    }
    proxy.lose_next_answer();
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    committed(&store, "warm", commit(Expected::New, "r", 1, &["a"])).await;
    let warm = head(&store, "warm").await.revision;
    committed(&store, "warm", commit(Expected::At(warm), "r", 2, &["a"])).await;
    proxy.lose_next_answer();
    let second = committed(&store, "c", commit(Expected::At(first), "r", 2, &["b"])).await;
    committed(&store, "warm", commit(Expected::Any, "r", 3, &["a"])).await;
    proxy.lose_next_answer();
    let third = committed(&store, "c", commit(Expected::Any, "r", 3, &["c"])).await;
    assert_eq!((first.next, second.next, third.next), (1, 2, 3));
    assert_eq!(
        texts(&store, "c").await,
        [(0, "a".into()), (1, "b".into()), (2, "c".into())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_commit_without_a_number_whose_answer_is_lost_may_be_stored() {
    let (proxy, store) = behind_proxy().await;
    let first = committed(&store, "c", commit(Expected::Any, "", 0, &["a"])).await;
    proxy.lose_next_answer();
    let error = store
        .commit("c", commit(Expected::Any, "", 0, &["b"]))
        .await
        .unwrap_err();
    let error = store_error(&error);
    assert_eq!(
        (error.kind(), error.conversation()),
        (StoreErrorKind::UnknownOutcome, Some("c"))
    );
    let advice = "load the conversation to see if it was stored, and try again if it was not";
    assert!(error.to_string().ends_with(advice), "{error}");
    assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);

    // The statement is prepared, so that the next answer is that of the commit.
    let conflict = commit(Expected::At(Revision::new(1, 1)), "", 0, &["x"]);
    assert_eq!(
        store.commit("d", conflict).await.unwrap(),
        Committed::Conflict
    );
    let at = head(&store, "c").await.revision;
    assert_eq!(at, Revision::new(first.epoch, 2));
    proxy.lose_next_answer();
    let error = store
        .commit("c", commit(Expected::At(at), "", 0, &["c"]))
        .await
        .unwrap_err();
    assert_eq!(store_error(&error).kind(), StoreErrorKind::UnknownOutcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_server_that_falls_silent_is_given_up_and_used_again_later() {
    let (proxy, store) = behind_proxy().await;
    let first = committed(&store, "c", commit(Expected::New, "r", 1, &["a"])).await;
    proxy.fall_silent();
    let error = store.head("c").await.unwrap_err();
    assert_eq!(
        store_error(&error).kind(),
        StoreErrorKind::Unreachable,
        "{error}"
    );
    let again = commit(Expected::At(first), "r", 2, &["b"]);
    let error = store.commit("c", again.clone()).await.unwrap_err();
    let kind = store_error(&error).kind();
    assert!(
        matches!(
            kind,
            StoreErrorKind::Unreachable | StoreErrorKind::UnknownOutcome
        ),
        "{error}"
    );
    proxy.restore();
    committed(&store, "c", again).await;
    assert_eq!(texts(&store, "c").await, [(0, "a".into()), (1, "b".into())]);
    proxy.cut();
    assert_eq!(head(&store, "c").await.revision.next, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn a_statement_that_takes_too_long_is_cancelled_and_stores_nothing() {
    let schema = unique_name();
    let options = options(&schema).statement_timeout(Duration::from_millis(300));
    let store = options
        .max_connections(1)
        .connect_timeout(Duration::from_millis(100))
        .open()
        .await
        .unwrap();
    let mut other = PgConnection::connect(&server()).await.unwrap();
    let lock = format!("BEGIN; LOCK TABLE {schema}.conversations IN EXCLUSIVE MODE");
    other
        .execute(sqlx::raw_sql(AssertSqlSafe(lock)))
        .await
        .unwrap();
    let first = commit(Expected::New, "r", 1, &["a"]);
    // The second one waits for the only connection.
    let (slow, waiting) = tokio::join!(store.commit("c", first.clone()), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        store.head("c").await
    });
    let (slow, waiting) = (slow.unwrap_err(), waiting.unwrap_err());
    let busy = "try again; if that does not help, look for a client that keeps it locked";
    for error in [&slow, &waiting] {
        assert_eq!(store_error(error).kind(), StoreErrorKind::Busy, "{error}");
        assert!(error.to_string().ends_with(busy), "{error}");
    }
    assert!(
        waiting
            .to_string()
            .contains("all 1 connections were in use for 0.1 s"),
        "{waiting}"
    );
    other.close().await.unwrap();
    assert_eq!(store.list(&ListQuery::default()).await.unwrap(), []);
    committed(&store, "c", first).await;
}
