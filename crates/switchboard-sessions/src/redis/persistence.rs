//! The settings of a server that decide what is left after it stops.

use redis::aio::MultiplexedConnection;

use crate::error::Place;

/// Warns if the server would lose conversations. A server that does not tell its settings is not asked
/// further: a provider has made them.
pub(super) async fn check(connection: &mut MultiplexedConnection, place: &Place) {
    let mut sections = String::new();
    for section in ["persistence", "memory"] {
        let info = redis::cmd("INFO")
            .arg(section)
            .query_async(connection)
            .await;
        sections += &info.unwrap_or_else(|_| String::new());
    }
    let save = setting(connection, "save").await;
    let fsync = setting(connection, "appendfsync").await;
    for problem in problems(&sections, save.as_deref(), fsync.as_deref()) {
        tracing::warn!(server = ?place, "Redis may lose conversations: {problem}");
    }
}

async fn setting(connection: &mut MultiplexedConnection, name: &str) -> Option<String> {
    let mut command = redis::cmd("CONFIG");
    let config: Vec<String> = command
        .arg("GET")
        .arg(name)
        .query_async(connection)
        .await
        .ok()?;
    config.into_iter().nth(1)
}

fn problems(info: &str, save: Option<&str>, fsync: Option<&str>) -> Vec<&'static str> {
    let field = |name: &str| {
        let lines = info.lines();
        lines
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim())
    };
    let mut problems = Vec::new();
    match (field("aof_enabled"), save, fsync) {
        (Some("0"), Some(""), _) => problems.push(
            "it writes nothing to disk, so that all are gone when it stops; set `appendonly yes`",
        ),
        (Some("0"), _, _) => problems.push(
            "it writes to disk only now and then, so that a crash takes the last minutes; set \
             `appendonly yes`",
        ),
        (Some("1"), _, Some("no")) => problems.push(
            "it leaves writing to disk to the system, so that a crash takes the last half minute; \
             set `appendfsync everysec` or `always`",
        ),
        _ => {}
    }
    let is_limited = field("maxmemory").is_some_and(|limit| limit != "0");
    if is_limited && field("maxmemory_policy").is_some_and(|policy| policy.starts_with("allkeys")) {
        problems.push(
            "it removes keys when its memory is full; set `maxmemory-policy noeviction` or \
             `volatile-lru`",
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_conversations_are_named() {
        let limited = "aof_enabled:1\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n";
        let cases = [
            ("aof_enabled:1\r\n", Some(""), Some("always"), vec![]),
            ("aof_enabled:1\r\n", Some(""), Some("everysec"), vec![]),
            ("", None, None, vec![]),
            (
                "aof_enabled:0\r\n",
                Some(""),
                Some("everysec"),
                vec!["nothing to disk"],
            ),
            (
                "aof_enabled:0\r\n",
                Some("3600 1"),
                None,
                vec!["only now and then"],
            ),
            (
                "aof_enabled:1\r\n",
                Some(""),
                Some("no"),
                vec!["leaves writing"],
            ),
            (limited, Some(""), Some("always"), vec!["removes keys"]),
        ];
        for (info, save, fsync, expected) in cases {
            let found = problems(info, save, fsync);
            assert_eq!(found.len(), expected.len(), "{info:?}: {found:?}");
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(found, part)| found.contains(part))
            );
        }
    }
}
