//! Runs the program in a temporary folder.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A team with known answers.
pub(crate) const TEAM: &str = r#"
start = "Triage"

[context]
tier = "standard"

[agents.Triage]
description = "Finds the right colleague."
handoffs = ["Billing", { to = "Manager", payload = { type = "object", properties = { reason = { type = "string" } }, required = ["reason"], additionalProperties = false } }, { to = "Concierge", when = 'tier == "premium"' }]

[agents.Billing]
description = "Bills, invoices, charges and refunds."
knowledge = [{ title = "Charged twice, wrong bill", text = "A second charge is reversed." }]

[agents.Manager]
description = "A manager, for complaints."
knowledge = [{ title = "manager, complaint", text = "I call you back." }]

[agents.Concierge]
description = "Flowers, restaurants, theatre tickets."
knowledge = [{ title = "theatre tickets", text = "Tickets are booked." }]
"#;

/// A folder with a team file, to run the program in.
pub(crate) struct Folder {
    dir: TempDir,
}

/// The result of running the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    /// Creates a folder with `team.toml`.
    pub(crate) fn new() -> Self {
        let folder = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        folder.write("team.toml", TEAM);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command that runs the program in the folder, without the environment of the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("SWITCHBOARD_DATA", self.path("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).spawn().unwrap())
    }

    /// Runs the program with this standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // The program may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ran::of(child)
    }
}

impl Ran {
    /// Waits for the program.
    pub(crate) fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output as lines of JSON, without times.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        let events = lines.map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            let fields = event.as_object_mut().unwrap();
            fields.remove("at");
            fields.remove("seconds");
            event
        });
        events.collect()
    }

    /// The events of a type.
    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["type"] == kind);
        events
    }

    /// Standard output without the lines that have times.
    pub(crate) fn without_times(&self) -> String {
        let is_cost = |line: &str| line.contains(" tokens in, ") || line.contains(" 个词元 · ");
        let lines = self.stdout.lines().filter(|line| !is_cost(line));
        lines.map(|line| format!("{line}\n")).collect()
    }
}
