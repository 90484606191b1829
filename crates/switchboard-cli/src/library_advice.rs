//! Errors of the library without its advice for programmers.
//!
//! An error of the library ends with advice, clause by clause: `…; set another limit with HandoffPolicy::loops`.
//! Clauses that name a type of the library are of no use to somebody who has a team file, and are left out.

use std::borrow::Cow;

/// The types that the advice of the library names.
const TYPES: [&str; 30] = [
    "Agent",
    "Budgets",
    "Compaction",
    "EdgeDecision",
    "EncryptedStore",
    "Endpoint",
    "HandoffDecision",
    "HandoffPolicy",
    "HistoryPolicy",
    "Keys",
    "MemoryStore",
    "ModelSettings",
    "PostgresOptions",
    "RealtimeAgent",
    "RealtimeRunner",
    "RealtimeTeam",
    "RedisOptions",
    "RemoteAgent",
    "Report",
    "ResponsesModel",
    "Run",
    "RunSeal",
    "Runner",
    "SeveralHandoffs",
    "SqliteOptions",
    "StateLimits",
    "Store",
    "StoreError",
    "Team",
    "ToolNames",
];

/// Returns the text without the clauses that name a type of the library. The first clause, which says what
/// has happened, stays.
pub(crate) fn without_library_advice(text: &str) -> Cow<'_, str> {
    // Most texts name none.
    if !names_type(text) {
        return Cow::Borrowed(text);
    }
    let mut clauses = text.split("; ");
    let first = clauses.next().unwrap_or_default();
    let rest = clauses.filter(|clause| !names_type(clause));
    Cow::Owned(
        std::iter::once(first)
            .chain(rest)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// Returns `true` for `Runner::model`, `` `MemoryStore` `` and `a ResponsesModel`, and not for `Run it again`.
fn names_type(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    TYPES.iter().any(|name| {
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
            let is_camel_case = name[1..].contains(|c: char| c.is_ascii_uppercase());
            let is_quoted = before.ends_with('`') && after.starts_with('`');
            is_word && (after.starts_with("::") || is_camel_case || is_quoted)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn clauses_that_name_a_type_of_the_library_are_left_out() {
        for (text, plain) in [
            ("it is full; raise StateLimits::bytes", "it is full"),
            (
                "it is full; use a `MemoryStore`; sent 3 times",
                "it is full; sent 3 times",
            ),
            (
                "no key; Run it again; Agent is a name",
                "no key; Run it again; Agent is a name",
            ),
            ("Overrun::x; RunnerUp", "Overrun::x; RunnerUp"),
        ] {
            assert_eq!(without_library_advice(text), plain);
        }
    }

    /// The crates whose errors the program prints.
    const CRATES: [&str; 5] = ["core", "models", "sessions", "teamfile", "offline"];

    #[test]
    fn no_text_of_the_library_keeps_a_path_of_rust() {
        let path = regex::Regex::new(r"\b[A-Z][A-Za-z]+::[a-zA-Z]|`[A-Z][a-z]+[A-Z]\w*`").unwrap();
        let mut files = Vec::new();
        for name in CRATES {
            let folder = format!("../switchboard-{name}/src");
            source_files(
                &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
                &mut files,
            );
        }
        let mut found = Vec::new();
        let mut with_advice = 0;
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            for text in crate::translate::source_texts(&source) {
                // A single word is no message, a raw string is not read as one, and the compiler's messages
                // are for programmers.
                let is_message = text.contains(' ') && !text.contains('\n');
                let is_shown = !crate::translate::NOT_SHOWN
                    .lines()
                    .any(|known| known == text);
                if !is_message || !is_shown || file.ends_with("callback.rs") {
                    continue;
                }
                let plain = without_library_advice(&text);
                with_advice += usize::from(plain != *text);
                if path.is_match(&plain) {
                    found.push(format!("{}: {plain}", file.display()));
                }
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert!(with_advice > 20, "{with_advice}");
    }

    fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                // Reports of tests are not printed by the program.
                if !matches!(&*name, "testing" | "tests") {
                    source_files(&path, files);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                files.push(path);
            }
        }
    }
}
