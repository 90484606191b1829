//! Files that are opened to read or to change them, and not to create them.

use std::fs;
use std::path::Path;

use switchboard_core::conversation::Conversations;
use switchboard_core::{Item, Session};
use switchboard_sessions::{Access, SqliteStore, StoreError, StoreErrorKind};

use crate::{new_path, open, raw, user_items};

/// A file that was written by the program that had version 1.
const VERSION_1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version_1.db");

async fn open_for(path: &Path, access: Access) -> Result<Conversations, StoreError> {
    let store = SqliteStore::options().access(access).open(path).await;
    store.map(Conversations::new)
}

#[tokio::test]
async fn no_file_and_an_empty_one_are_no_stores_and_stay_so() {
    let (folder, path) = new_path();
    for access in [Access::Read, Access::Existing] {
        let error = open_for(&path, access).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Address);
        assert!(
            error.to_string().contains("there is no such file"),
            "{error}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    fs::write(&path, "").unwrap();
    for access in [Access::Read, Access::Existing] {
        let error = open_for(&path, access).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Address);
        assert!(error.to_string().contains("this file is empty"), "{error}");
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    open_for(&path, Access::Create).await.unwrap().close().await;
    for access in [Access::Read, Access::Existing] {
        let conversations = open_for(&path, access).await.unwrap();
        assert_eq!(conversations.list(None).await.unwrap(), []);
        conversations.close().await;
    }
}

#[tokio::test]
async fn an_existing_file_is_changed() {
    let (_folder, path) = new_path();
    open(&path).await.unwrap().close().await;
    let conversations = open_for(&path, Access::Existing).await.unwrap();
    let items = user_items(&["Hi"]);
    conversations.get("a").append(&items).await.unwrap();
    conversations.close().await;
    let conversations = open_for(&path, Access::Read).await.unwrap();
    let read = conversations.get("a").load(None).await.unwrap();
    assert_eq!(read.iter().collect::<Vec<_>>(), [&Item::user("Hi")]);
    conversations.close().await;
}

#[tokio::test]
async fn a_file_of_version_1_is_migrated_where_it_can_be_written() {
    let (_folder, path) = new_path();
    fs::copy(VERSION_1, &path).unwrap();
    let conversations = open_for(&path, Access::Read).await.unwrap();
    assert_eq!(conversations.list(None).await.unwrap().len(), 6);
    conversations.close().await;
    let version: i64 = raw(&path)
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 2);
}

#[cfg(unix)]
mod read_only {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::child_process::unprivileged_child;

    /// Makes a file in a folder, opens it to read as a user who may write neither, and returns the result as text.
    async fn read_unprivileged(make: impl AsyncFnOnce(&Path)) -> String {
        let (outer, _) = new_path();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        mode(outer.path(), 0o755);
        let folder = outer.path().join("read-only");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("conversations.db");
        make(&path).await;
        let before = fs::read(&path).unwrap();
        mode(&path, 0o444);
        mode(&folder, 0o555);
        let mut command = unprivileged_child("open_to_read", &path, outer.path());
        let output = command.output().unwrap();
        mode(&folder, 0o755);
        assert!(output.status.success(), "{output:?}");
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        String::from_utf8(output.stderr).unwrap()
    }

    #[tokio::test]
    async fn a_file_of_this_version_is_read() {
        let told = read_unprivileged(async |path| {
            let conversations = open(path).await.unwrap();
            let items = user_items(&["Hi"]);
            conversations.get("a").append(&items).await.unwrap();
            conversations.close().await;
        });
        assert_eq!(told.await, "read 1\n");
    }

    /// Commits that are not in the file yet are read from the log of the process that has the file open.
    #[tokio::test]
    async fn changes_in_a_log_are_read_directly_and_through_a_link() {
        let (outer, _) = new_path();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        mode(outer.path(), 0o755);
        let folder = outer.path().join("read-only");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("conversations.db");
        open(&path).await.unwrap().close().await;
        let conversations = open(&path).await.unwrap();
        let items = user_items(&["Hi"]);
        conversations.get("a").append(&items).await.unwrap();
        for file in fs::read_dir(&folder).unwrap() {
            mode(&file.unwrap().path(), 0o444);
        }
        let log = folder.join("conversations.db-wal");
        assert!(fs::metadata(&log).unwrap().len() > 0);
        mode(&folder, 0o555);
        let link = outer.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for opened in [&path, &link] {
            let mut command = unprivileged_child("open_to_read", opened, outer.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(told, "read 1\n", "{opened:?}");
        }
        mode(&folder, 0o755);
        conversations.close().await;
    }

    #[tokio::test]
    async fn a_file_of_version_1_is_refused() {
        let told = read_unprivileged(async |path| {
            fs::copy(VERSION_1, path).unwrap();
        });
        let told = told.await;
        let reason =
            "the file is of version 1, and is brought to version 2 only where it can be written";
        assert!(
            told.starts_with("refused ") && told.contains(reason),
            "{told}"
        );
    }
}
