//! Goes through a corpus and counts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub use fake_provider::Protocol;
use serde::Deserialize as _;
use serde_json::Value;

use crate::compare::{self, Difference};
use crate::models::Models;
use crate::scenario::{self, Mode};
use crate::tables;
use crate::types::Case;
use crate::wire::Wire;

/// What of a corpus is run, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan<'a> {
    /// Only the cases whose name contains this.
    pub only: Option<&'a str>,
    /// Over the wire, in this protocol. Only scenarios have a model to speak to.
    pub wire: Option<Protocol>,
}

/// How a corpus went.
#[derive(Debug, Default)]
pub struct Tally {
    /// Checks that passed: a scenario counts once for each way it is run.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
    /// Cases that were not run.
    pub skipped: usize,
    /// Which, and why.
    pub skips: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// A corpus that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// Runs the corpus in `folder`. Each failure is told as it is found.
///
/// # Errors
/// Where the folder holds no corpus, or one that cannot be read.
pub fn run(
    folder: &Path,
    plan: Plan<'_>,
    tell: &mut dyn FnMut(String),
) -> Result<Tally, Unreadable> {
    let models = match plan.wire {
        None => Models::Scripted,
        Some(protocol) => Models::Wire(Wire::new(protocol).map_err(|reason| Unreadable {
            path: folder.to_owned(),
            reason,
        })?),
    };
    let mut corpus = Corpus {
        tally: Tally::default(),
        only: plan.only,
        models,
        runs: 0,
        tell,
    };
    let mut found = false;
    for path in case_files(folder)? {
        found = true;
        corpus.run_case(&read(&path)?, &path)?;
    }
    let fuzz = folder.join("fuzz.json");
    if fuzz.exists() {
        found = true;
        for case in list(&fuzz)? {
            corpus.run_case(&case, &fuzz)?;
        }
    }
    if plan.wire.is_none() {
        found |= corpus.run_tables(folder)?;
        found |= corpus.skip_realtime(folder)?;
    }
    if !found {
        return Err(Unreadable {
            path: folder.to_owned(),
            reason: "no corpus here: there is no runs/, fuzz.json, tables/ or realtime.json".into(),
        });
    }
    Ok(corpus.tally)
}
type RowCheck = fn(&Value) -> Result<(), String>;

const TABLES: [(&str, RowCheck); 3] = [
    ("tool_names.json", tables::tool_names),
    ("strict_schema.json", tables::strict_schema),
    ("handoff_input_data.json", tables::handoff_input_data),
];

struct Corpus<'a> {
    tally: Tally,
    only: Option<&'a str>,
    models: Models,
    /// How many runs there were.
    runs: usize,
    tell: &'a mut dyn FnMut(String),
}

impl Corpus<'_> {
    fn is_wanted(&self, name: &str) -> bool {
        self.only.is_none_or(|only| name.contains(only))
    }

    fn run_tables(&mut self, folder: &Path) -> Result<bool, Unreadable> {
        let mut found = false;
        for (file, check) in TABLES {
            let path = folder.join("tables").join(file);
            if path.exists() {
                found = true;
                for (index, row) in list(&path)?.iter().enumerate() {
                    let name = format!("tables/{file}[{index}]");
                    self.check(&name, || check(row));
                }
            }
        }
        Ok(found)
    }

    fn skip_realtime(&mut self, folder: &Path) -> Result<bool, Unreadable> {
        let path = folder.join("realtime.json");
        if !path.exists() {
            return Ok(false);
        }
        let cases = list(&path)?;
        let wanted = cases.iter().filter(|case| self.is_wanted(name_of(case)));
        self.tally.skipped += wanted.count();
        let reason = "realtime.json: the engine has no realtime sessions yet".to_owned();
        self.tally.skips.push(reason);
        Ok(true)
    }

    fn run_case(&mut self, case: &Value, path: &Path) -> Result<(), Unreadable> {
        let name = name_of(case);
        let unreadable = |reason: String| Unreadable {
            path: path.to_owned(),
            reason: format!("case {name}: {reason}"),
        };
        let read = Case::deserialize(case).map_err(|error| unreadable(error.to_string()))?;
        if let Models::Wire(wire) = &self.models
            && let Some(reason) = wire.why_not(&read.model, &case["expect"])
        {
            if self.is_wanted(name) {
                self.tally.skipped += 1;
                self.tally.skips.push(format!("{name}: {reason}"));
            }
            return Ok(());
        }
        for mode in [Mode::Plain, Mode::Streamed] {
            let name = format!("{name} ({mode})");
            if self.is_wanted(&name) {
                let difference = self.run_scenario(case, &read, mode).map_err(unreadable)?;
                self.check(&name, || difference);
            }
        }
        Ok(())
    }

    /// Runs a scenario one way. The inner error is a difference.
    fn run_scenario(
        &mut self,
        case: &Value,
        read: &Case,
        mode: Mode,
    ) -> Result<Result<(), String>, String> {
        let key = format!("run-{}", self.runs);
        self.runs += 1;
        let model = self.models.model(&read.model, &key)?;
        let got = scenario::run(read, mode, &model)?;
        Ok(match &self.models {
            Models::Scripted => said(difference(&case["expect"], mode, &got)),
            Models::Wire(wire) => wire.refused(&key).and_then(|()| {
                let expected = wire.compared(&case["expect"]);
                said(difference(&expected, mode, &wire.compared(&got)))
            }),
        })
    }

    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<(), String>) {
        if !self.is_wanted(name) {
            return;
        }
        match check() {
            Ok(()) => self.tally.passed += 1,
            Err(difference) => {
                self.tally.failed += 1;
                (self.tell)(format!("FAILED {name}: {difference}"));
            }
        }
    }
}

fn difference(expect: &Value, mode: Mode, got: &Value) -> Option<Difference> {
    let mut expected = expect.clone();
    if let (Mode::Plain, Some(expected)) = (mode, expected.as_object_mut()) {
        // A plain run has no events.
        expected.shift_remove("stream");
    }
    compare::run_either(&expected, expect.get("streamed_differs"), got)
}

pub(crate) fn said(difference: Option<Difference>) -> Result<(), String> {
    difference.map_or(Ok(()), |difference| Err(difference.to_string()))
}

fn name_of(case: &Value) -> &str {
    case["name"].as_str().unwrap_or("(no name)")
}

fn case_files(folder: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let runs = folder.join("runs");
    if !runs.is_dir() {
        return Ok(Vec::new());
    }
    let unreadable = |error: std::io::Error| Unreadable {
        path: runs.clone(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(&runs).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn list(path: &Path) -> Result<Vec<Value>, Unreadable> {
    match read(path)? {
        Value::Array(cases) => Ok(cases),
        _ => Err(Unreadable {
            path: path.to_owned(),
            reason: "a list of cases was expected".to_owned(),
        }),
    }
}

fn read(path: &Path) -> Result<Value, Unreadable> {
    let unreadable = |reason: String| Unreadable {
        path: path.to_owned(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}
