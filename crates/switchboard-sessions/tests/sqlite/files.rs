//! Files that are opened, and files that are rejected and not changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard_core::Session;
use switchboard_core::conversation::Conversations;
use switchboard_sessions::{SqliteStore, StoreError, StoreErrorKind};

use crate::{execute, new_path, open, raw, store_error, user_items};

async fn open_error(path: impl AsRef<Path>) -> StoreError {
    open(path).await.unwrap_err()
}

/// The files of a folder with their contents.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Asserts that opening fails with this message and changes nothing in the folder.
async fn assert_rejected(path: &Path, kind: StoreErrorKind, why: &str) {
    let folder = path.parent().unwrap();
    let before = contents(folder);
    let error = open_error(path).await;
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(Path::new(error.place()), path);
    assert_eq!(
        error.to_string(),
        format!("conversations in {path:?}: {why}")
    );
    // A connection may close a moment after the error is returned.
    let mut after = contents(folder);
    for _ in 0..100 {
        if after == before {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        after = contents(folder);
    }
    let names =
        |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(p, _)| p.clone()).collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a file has changed");
}

const OTHER: &str = "this is a file of another program; choose another path; \
                     the file was left as it is";

#[tokio::test]
async fn a_missing_folder_is_not_created() {
    let (folder, _) = new_path();
    let path = folder.path().join("missing/conversations.db");
    let error = open_error(&path).await;
    let message = format!("conversations in {path:?}: its folder does not exist; create it first");
    assert_eq!(
        (error.kind(), error.to_string()),
        (StoreErrorKind::Address, message)
    );
    assert!(!folder.path().join("missing").exists());
}

#[tokio::test]
async fn a_path_that_is_not_a_file_is_rejected() {
    let (folder, path) = new_path();
    fs::write(&path, "").unwrap();
    let inside = path.join("conversations.db");
    let dangling = folder.path().join("dangling");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("nowhere/x"), &dangling).unwrap();
    let cases = [
        (folder.path(), "this is a folder; name a file in it"),
        (
            Path::new(""),
            "the path is empty; name a file, as in sqlite:conversations.db",
        ),
        (
            Path::new(":memory:"),
            "this is not a file; for conversations in memory use `MemoryStore`",
        ),
        (
            Path::new("/dev/null"),
            "this is not a regular file; choose another path",
        ),
    ];
    for (path, why) in cases {
        let error = open_error(path).await;
        assert_eq!(error.kind(), StoreErrorKind::Address);
        assert_eq!(
            error.to_string(),
            format!("conversations in {path:?}: {why}")
        );
    }
    for path in [&inside, Path::new("a\0b")] {
        assert_eq!(
            open_error(path).await.kind(),
            StoreErrorKind::Address,
            "{path:?}"
        );
    }
    assert_eq!(
        open_error(&dangling).await.kind(),
        StoreErrorKind::Permission
    );
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_not_changed() {
    let (_folder, path) = new_path();
    let long = "Dear diary, ".repeat(1_000);
    let why = "file is not a database; choose another path; the file was left as it is";
    // To SQLite, a file of one byte is empty.
    for (text, why) in [("x", OTHER), ("Dear diary", why), (&long, why)] {
        fs::write(&path, text).unwrap();
        assert_rejected(&path, StoreErrorKind::Foreign, why).await;
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_not_changed() {
    for sql in [
        "CREATE TABLE session (id); CREATE TABLE item (id)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 42",
        "PRAGMA journal_mode = WAL; CREATE TABLE note (text)",
    ] {
        let (_folder, path) = new_path();
        execute(&path, sql);
        assert_rejected(&path, StoreErrorKind::Foreign, OTHER).await;
    }
}

#[tokio::test]
async fn a_database_that_another_program_is_writing_is_not_changed() {
    let (_folder, path) = new_path();
    let other = raw(&path);
    let write = "PRAGMA journal_mode = WAL; CREATE TABLE note (text); \
                 BEGIN IMMEDIATE; INSERT INTO note VALUES ('mine')";
    other.execute_batch(write).unwrap();
    assert_rejected(&path, StoreErrorKind::Foreign, OTHER).await;
    other.execute_batch("COMMIT").unwrap();
}

#[tokio::test]
async fn a_file_of_a_later_version_is_not_changed() {
    let (_folder, path) = new_path();
    open(&path).await.unwrap().close().await;
    execute(&path, "PRAGMA user_version = 7; CREATE TABLE more (x)");
    let why = "the file is of version 7, this program supports 2; use the version of Switchboard that \
               made it, or a later one; the file was left as it is";
    assert_rejected(&path, StoreErrorKind::Newer, why).await;
}

#[tokio::test]
async fn a_later_version_in_the_write_ahead_log_is_rejected() {
    let (_folder, path) = new_path();
    open(&path).await.unwrap().close().await;
    let later = raw(&path);
    later.execute_batch("PRAGMA user_version = 7").unwrap();
    let error = open_error(&path).await;
    assert_eq!(error.kind(), StoreErrorKind::Newer);
}

#[tokio::test]
async fn a_file_without_our_tables_is_damaged() {
    for sql in [
        "DROP TABLE entry",
        "ALTER TABLE conversation ADD COLUMN more TEXT",
    ] {
        let (_folder, path) = new_path();
        open(&path).await.unwrap().close().await;
        execute(&path, sql);
        let error = open_error(&path).await;
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "{error}");
    }
}

#[tokio::test]
async fn other_tables_are_allowed() {
    let (_folder, path) = new_path();
    open(&path).await.unwrap().close().await;
    let others = "CREATE TABLE copied (at); CREATE INDEX by_change ON conversation (changed)";
    execute(&path, others);
    open(&path).await.unwrap().close().await;
}

#[tokio::test]
async fn a_damaged_file_gives_errors_and_no_panics() {
    let (_folder, path) = new_path();
    let conversations = open(&path).await.unwrap();
    for name in ["a", "b"] {
        let text = "words ".repeat(1_000);
        conversations
            .get(name)
            .append(&user_items(&[&text, &text]))
            .await
            .unwrap();
    }
    conversations.close().await;
    let sound = fs::read(&path).unwrap();
    for cut in (1..=sound.len()).step_by(2_777) {
        fs::write(&path, &sound[..cut]).unwrap();
        call_everything(&path).await;
    }
    for at in (0..sound.len()).step_by(411) {
        let mut damaged = sound.clone();
        for byte in damaged.iter_mut().skip(at).take(40) {
            *byte = !*byte;
        }
        fs::write(&path, damaged).unwrap();
        call_everything(&path).await;
    }
}

/// Calls every method and ignores errors.
async fn call_everything(path: &Path) {
    let Ok(conversations) = open(path).await else {
        return;
    };
    let session = conversations.get("a");
    let _ = (
        conversations.list(None).await,
        conversations.search("words", 3).await,
        session.load(None).await,
        session.agent().await,
    );
    let _ = (
        session.append(&user_items(&["more"])).await,
        session.pop().await,
    );
    let _ = (session.clear().await, conversations.delete("b").await);
    conversations.close().await;
    for beside in ["-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        let _ = fs::remove_file(name);
    }
}

#[tokio::test]
async fn a_file_that_others_lock_is_busy_and_usable_afterwards() {
    let (_folder, path) = new_path();
    let options = SqliteStore::options().busy_timeout(Duration::from_millis(100));
    let conversations = Conversations::new(options.clone().open(&path).await.unwrap());
    let conversation = conversations.get("a");
    let others = raw(&path);
    others.execute_batch("BEGIN IMMEDIATE").unwrap();

    let error = conversation.append(&user_items(&["1"])).await.unwrap_err();
    let message = format!(
        "conversations in {path:?}, conversation \"a\": database is locked; try again; if that does \
         not help, look for a program that keeps the file locked"
    );
    let error = store_error(&error);
    assert_eq!(
        (error.kind(), error.to_string()),
        (StoreErrorKind::Busy, message)
    );
    let error = options.open(&path).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    // Readers do not wait.
    assert_eq!(conversations.list(None).await.unwrap(), []);

    others.execute_batch("ROLLBACK").unwrap();
    conversation.append(&user_items(&["2"])).await.unwrap();
    assert_eq!(conversation.load(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_address_opens_its_store() {
    let (_folder, path) = new_path();
    let text = path.to_str().unwrap();
    for address in [format!("sqlite:{text}"), format!("sqlite://{text}")] {
        let conversations = switchboard_sessions::open(&address).await.unwrap();
        let conversation = conversations.get("a");
        conversation.append(&user_items(&["1"])).await.unwrap();
        conversations.close().await;
    }
    let conversations = open(&path).await.unwrap();
    assert_eq!(conversations.list(None).await.unwrap()[0].entries(), 2);
    let in_memory = switchboard_sessions::open("memory:").await.unwrap();
    assert_eq!(in_memory.list(None).await.unwrap(), []);
}

#[tokio::test]
async fn an_unknown_address_is_rejected_without_telling_its_password() {
    for address in [
        "",
        "conversations.db",
        "mysql://user:secret@host/db",
        "memory:secret",
        "SQLITE:secret",
    ] {
        let error = switchboard_sessions::open(address).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Address, "{address}");
        let place = match address.split_once(':') {
            Some((scheme, _)) => format!("{scheme}:…"),
            None => "an address without a scheme".to_owned(),
        };
        let message = format!(
            "conversations at {place}: an address is `memory:`, `sqlite:PATH` as in \
             sqlite:conversations.db, `postgres://USER:PASSWORD@HOST/DATABASE` or `redis://HOST`"
        );
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn an_empty_file_is_treated_as_a_new_one() {
    let (_folder, path) = new_path();
    fs::write(&path, "").unwrap();
    let conversations = open(&path).await.unwrap();
    conversations
        .get("a")
        .append(&user_items(&["1"]))
        .await
        .unwrap();
    assert_eq!(conversations.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_path_that_looks_like_a_uri_is_a_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file:x?mode=memory", "a b#c%20d.db", "é'\".db", "sqlite:x"] {
        let path = folder.path().join(name);
        for _ in 0..2 {
            let conversations = open(&path).await.unwrap();
            conversations
                .get("a")
                .append(&user_items(&["1"]))
                .await
                .unwrap();
            conversations.close().await;
        }
        assert!(path.is_file(), "{name}");
        let conversations = open(&path).await.unwrap();
        assert_eq!(conversations.list(None).await.unwrap()[0].entries(), 2);
        conversations.close().await;
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(contents(folder.path()), []);
}

#[tokio::test]
async fn a_closed_database_is_one_file() {
    let (folder, path) = new_path();
    let conversations = open(&path).await.unwrap();
    conversations
        .get("a")
        .append(&user_items(&["1"]))
        .await
        .unwrap();
    conversations.list(None).await.unwrap();
    conversations.close().await;
    let names: Vec<PathBuf> = contents(folder.path())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(names, [path]);
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Permissions};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use switchboard_core::Session;
    use switchboard_sessions::StoreErrorKind;

    use crate::child_process::unprivileged_child;
    use crate::{new_path, open, user_items};

    #[tokio::test]
    async fn only_the_owner_can_read_a_new_file_and_the_files_beside_it() {
        let (folder, path) = new_path();
        let conversations = open(&path).await.unwrap();
        conversations
            .get("a")
            .append(&user_items(&["1"]))
            .await
            .unwrap();
        let mut modes = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            modes.push(entry.unwrap().metadata().unwrap().mode() & 0o777);
        }
        assert_eq!(modes, [0o600; 3]);
    }

    #[tokio::test]
    async fn the_permissions_of_an_existing_file_are_kept() {
        let (_folder, path) = new_path();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        open(&path).await.unwrap().close().await;
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    }

    #[tokio::test]
    async fn a_path_that_is_not_utf_8_is_rejected() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff.db"));
        let error = open(path).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Address);
        assert!(!path.exists());
    }

    /// Opens the file as an unprivileged user and returns the result as text.
    fn open_unprivileged(path: &Path, folder: &Path) -> String {
        let output = unprivileged_child("open_and_close", path, folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_rejected_and_not_changed() {
        let (outer, _) = new_path();
        fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
        let folder = outer.path().join("read-only");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("conversations.db");
        let advice = "give this user the right to read and write the file and its folder)\n";

        // No file, and none can be created.
        fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
        let message = open_unprivileged(&path, outer.path());
        let start = format!("refused StoreError(Permission: conversations in {path:?}: ");
        assert!(
            message.starts_with(&start) && message.ends_with(advice),
            "{message}"
        );
        assert!(!path.exists());

        // A read-only file in a read-only folder, one in a writable folder, and an unreadable file.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        open(&path).await.unwrap().close().await;
        let before = fs::read(&path).unwrap();
        for (folder_mode, file_mode) in [(0o555, 0o444), (0o777, 0o444), (0o777, 0o000)] {
            fs::set_permissions(&path, Permissions::from_mode(file_mode)).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(folder_mode)).unwrap();
            let message = open_unprivileged(&path, outer.path());
            assert!(
                message.starts_with(&start) && message.ends_with(advice),
                "{message}"
            );
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(fs::read(&path).unwrap() == before);
        // The same user can open a writable file.
        fs::remove_file(&path).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(open_unprivileged(&path, outer.path()), "opened\n");
    }
}
