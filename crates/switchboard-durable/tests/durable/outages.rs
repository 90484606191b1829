//! Stores that cannot be written for a while: a full disk, and a database server that is killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::child_process::{child, read_effects};
use crate::killed::{check_outcomes, max_kills};

/// The number of runs.
const RUNS: u64 = 15;

/// Waits until a process ends, or kills it after a time. Returns `true` if it has succeeded.
fn succeeds_within(mut child: Child, time: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if begun.elapsed() > time {
            let _ = child.kill();
            let _ = child.wait();
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The command in a shell that cannot make files larger than this number of kilobytes, as on a disk that is full then.
#[cfg(target_os = "linux")]
fn on_a_small_disk(command: &Command, kilobytes: u32) -> Command {
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("bash");
    limited
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    limited
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn runs_go_on_after_the_disk_was_full() {
    let folder = tempfile::tempdir().unwrap();
    let unharmed = child(folder.path(), None, RUNS, max_kills(RUNS));
    // Enough for the tables and a part of the runs: how much they write before the first effect is not always the same.
    for kilobytes in (192..512).step_by(32) {
        let limited = on_a_small_disk(&unharmed, kilobytes).spawn().unwrap();
        assert!(!succeeds_within(limited, Duration::from_secs(8)));
        if !read_effects(folder.path()).is_empty() {
            break;
        }
    }
    assert!(
        !read_effects(folder.path()).is_empty(),
        "some runs have begun"
    );

    let mut again = child(folder.path(), None, RUNS, max_kills(RUNS));
    assert!(again.status().unwrap().success());
    check_outcomes(folder.path(), None, RUNS).await;
}

/// Kills the PostgreSQL server as a power cut would, and starts it again.
fn restart_postgres() {
    for action in ["--kill", "--start"] {
        let servers = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../switchboard-sessions/tests/with-servers"
        );
        let status = Command::new(servers).args([action, "postgres"]).status();
        assert!(status.unwrap().success());
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which it kills; ./test starts one"]
async fn runs_in_postgres_go_on_after_their_server_was_killed() {
    let address = std::env::var("SWITCHBOARD_TEST_POSTGRES").unwrap();
    // The runs of this test have a schema of their own.
    let address = format!("{address}#outage_{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let mut kills = 0;
    loop {
        let mut child = child(folder.path(), Some(&address), RUNS, max_kills(RUNS))
            .spawn()
            .unwrap();
        let is_disturbed = kills < 4;
        while kills < 4 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(random.u64(100..400)));
            restart_postgres();
            kills += 1;
        }
        // One that could not reach its store for long has failed.
        if succeeds_within(child, Duration::from_secs(60)) {
            break;
        }
        assert!(is_disturbed, "a process that nobody disturbs fails");
    }
    check_outcomes(folder.path(), Some(&address), RUNS).await;
}
