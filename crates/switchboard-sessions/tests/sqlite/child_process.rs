//! The tasks of child processes: tests run this program again with one of these tests.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use switchboard_core::conversation::Conversations;
use switchboard_core::{Item, Session};
use switchboard_sessions::{Access, SqliteStore};

use crate::{batch, open};

const FILE: &str = "SWITCHBOARD_TEST_FILE";
const NAME: &str = "SWITCHBOARD_TEST_CHILD";

/// A command that runs a task of this module on the file at `path`.
pub(crate) fn child(task: &str, name: &str, path: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(arguments(task))
        .env(FILE, path)
        .env(NAME, name);
    command.stdout(Stdio::piped());
    command
}

/// Like [`child`], but the process can write at most `blocks` blocks to one file.
pub(crate) fn child_with_file_limit(task: &str, name: &str, path: &Path, blocks: u32) -> Command {
    let mut command = Command::new("sh");
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &limit])
        .arg(env::current_exe().unwrap());
    command
        .args(arguments(task))
        .env(FILE, path)
        .env(NAME, name);
    command
}

/// Like [`child`], but as an unprivileged user if this user is root.
#[cfg(unix)]
pub(crate) fn unprivileged_child(task: &str, path: &Path, folder: &Path) -> Command {
    use std::fs::{Permissions, copy, metadata, set_permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let mut command = child(task, "", path);
    if metadata(folder).unwrap().uid() == 0 {
        // Other users may not have access to the folder of this program.
        let program = folder.join("program");
        copy(env::current_exe().unwrap(), &program).unwrap();
        set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        command = Command::new(program);
        command.args(arguments(task)).env(FILE, path).env(NAME, "");
        command.uid(65534).gid(65534).current_dir("/");
    }
    command
}

fn arguments(task: &str) -> [String; 4] {
    let test = format!("child_process::{task}");
    [
        "--exact".into(),
        test,
        "--ignored".into(),
        "--nocapture".into(),
    ]
}

/// The file and the name that the parent passed, or `None` if there is no parent.
fn parameters() -> Option<(PathBuf, String)> {
    Some((env::var_os(FILE)?.into(), env::var(NAME).ok()?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn append_from_several_tasks() {
    let Some((path, name)) = parameters() else {
        return;
    };
    let conversations = open(path).await.unwrap();
    let tasks = (0..4).map(|task| {
        let session = conversations.get("shared");
        let writer = format!("{name}.{task}");
        tokio::spawn(async move {
            for number in 0..10 {
                let items = batch(&writer, number, 1 + number % 3);
                session.append(&items).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// Appends until it is killed, and prints a line for each stored batch.
#[tokio::test]
#[ignore = "started by other tests"]
async fn append_forever() {
    let Some((path, name)) = parameters() else {
        return;
    };
    let conversations = open(path).await.unwrap();
    let session = conversations.get("shared");
    for number in 0.. {
        let items = batch(&name, number, 1 + number * 7 % 40);
        session.append(&items).await.unwrap();
        println!("stored {number}");
    }
}

/// Appends from eight tasks until it is killed, each to a conversation of its own, and prints a line for
/// each stored batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn append_forever_from_several_tasks() {
    let Some((path, _)) = parameters() else {
        return;
    };
    let conversations = open(path).await.unwrap();
    let tasks = (0..8).map(|task| {
        let conversation = conversations.get(format!("{task}"));
        tokio::spawn(async move {
            let first = conversation.load(None).await.unwrap().len() / 3;
            for number in first.. {
                let items = batch(conversation.name(), number, 3);
                conversation.append(&items).await.unwrap();
                println!("stored {task} {number}");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// Appends until that fails, twice, and prints the errors.
#[tokio::test]
#[ignore = "started by other tests"]
async fn append_until_it_fails() {
    let Some((path, name)) = parameters() else {
        return;
    };
    let conversations = open(path).await.unwrap();
    let session = conversations.get("shared");
    let mut stored = 0;
    let first = loop {
        match session.append(&batch(&name, stored, 20)).await {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    let huge = Item::user("x".repeat(10_000_000));
    let second = session.append(&[huge]).await.unwrap_err();
    let found = session.load(None).await.unwrap().len();
    eprintln!("stored {stored}\nfound {found}\nrefused {first:?}\nrefused {second:?}");
}

/// Opens the file to read it, and prints the number of conversations.
#[tokio::test]
#[ignore = "started by other tests"]
async fn open_to_read() {
    let Some((path, _)) = parameters() else {
        return;
    };
    let store = SqliteStore::options().access(Access::Read).open(path).await;
    match store.map(Conversations::new) {
        Ok(conversations) => {
            let listed = conversations.list(None).await.unwrap();
            conversations.close().await;
            eprintln!("read {}", listed.len());
        }
        Err(error) => eprintln!("refused {error:?}"),
    }
}

/// Opens and closes the file, and prints the result.
#[tokio::test]
#[ignore = "started by other tests"]
async fn open_and_close() {
    let Some((path, _)) = parameters() else {
        return;
    };
    match open(path).await {
        Ok(conversations) => {
            conversations.close().await;
            eprintln!("opened");
        }
        Err(error) => eprintln!("refused {error:?}"),
    }
}
