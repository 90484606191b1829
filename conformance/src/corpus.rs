//! Runs every case of a corpus and counts the results.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub use fake_provider::Protocol;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::case::Case;
use crate::compare::{self, Difference};
use crate::models::ModelSource;
use crate::realtime;
use crate::scenario::{self, Mode};
use crate::stages::{self, Way};
use crate::tables;
use crate::wire::Wire;

/// The cases to run, and the model to run them with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Runs only the cases whose name contains this.
    pub only: Option<&'a str>,
    /// Runs the scenarios over HTTP, in this protocol. The other cases have no model and do not run.
    pub wire: Option<Protocol>,
    /// The kind of runs that scenarios are. Other cases run in the usual way only.
    pub run_as: RunAs,
}

/// The kind of runs that scenarios are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunAs {
    /// Plain and streamed runs.
    #[default]
    Usual,
    /// Durable runs on the embedded engine.
    Durable,
}

/// The counts of passed, failed and skipped checks.
#[derive(Debug, Default)]
pub struct Tally {
    /// Checks that passed. A scenario counts once for each mode it runs in.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
    /// Cases that did not run.
    pub skipped: usize,
    /// The reasons for which cases did not run.
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

/// The error for a corpus that cannot be read.
#[derive(Debug)]
pub struct CorpusError {
    path: PathBuf,
    reason: String,
}

impl CorpusError {
    fn new(path: &Path, reason: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for CorpusError {}

/// Runs the corpus in `folder`. Calls `on_failure` with the text of each failure.
///
/// # Errors
/// Returns an error if the folder holds no corpus, or one that cannot be read.
pub fn run(
    folder: &Path,
    options: Options<'_>,
    on_failure: &mut dyn FnMut(String),
) -> Result<Tally, CorpusError> {
    let models = match options.wire {
        None => ModelSource::Scripted,
        Some(protocol) => {
            let wire = Wire::new(protocol).map_err(|reason| CorpusError::new(folder, reason))?;
            ModelSource::Wire(wire)
        }
    };
    let mut corpus = Corpus {
        tally: Tally::default(),
        only: options.only,
        models,
        run_as: options.run_as,
        runs: 0,
        on_failure,
    };
    let mut is_corpus = false;
    for path in json_files(&folder.join("runs"))? {
        is_corpus = true;
        corpus.run_case(&read_json(&path)?, &path)?;
    }
    let fuzz = Some(folder.join("fuzz.json")).filter(|path| path.exists());
    for path in fuzz
        .into_iter()
        .chain(json_files(&folder.join("recorded"))?)
    {
        is_corpus = true;
        for case in read_list(&path)? {
            corpus.run_case(&case, &path)?;
        }
    }
    if options.wire.is_none() && options.run_as == RunAs::Usual {
        is_corpus |= corpus.run_stages(folder)?;
        is_corpus |= corpus.run_tables(folder)?;
        is_corpus |= corpus.run_realtime(folder)?;
    }
    if !is_corpus {
        let reason = "no corpus here: there is no runs/, recorded/, fuzz.json, agent_tools.json, approvals.json, \
                      tables/ or realtime.json";
        return Err(CorpusError::new(folder, reason));
    }
    Ok(corpus.tally)
}

type RowCheck = fn(&Value) -> Result<(), String>;

const TABLES: [(&str, RowCheck); 3] = [
    ("tool_names.json", tables::tool_names),
    ("strict_schema.json", tables::strict_schema),
    ("handoff_input_data.json", tables::handoff_input_data),
];

/// Files of runs in stages.
const STAGES: [&str; 2] = ["approvals.json", "agent_tools.json"];

struct Corpus<'a> {
    tally: Tally,
    only: Option<&'a str>,
    models: ModelSource,
    run_as: RunAs,
    /// The number of runs so far.
    runs: usize,
    on_failure: &'a mut dyn FnMut(String),
}

impl Corpus<'_> {
    fn is_selected(&self, name: &str) -> bool {
        self.only.is_none_or(|only| name.contains(only))
    }

    /// Checks every row of the tables. Returns `false` if there are no tables.
    fn run_tables(&mut self, folder: &Path) -> Result<bool, CorpusError> {
        let mut exist = false;
        for (file, check) in TABLES {
            let path = folder.join("tables").join(file);
            if path.exists() {
                exist = true;
                for (index, row) in read_list(&path)?.iter().enumerate() {
                    self.check(&format!("tables/{file}[{index}]"), || check(row));
                }
            }
        }
        Ok(exist)
    }

    /// Runs the realtime sessions. Returns `false` if there are none.
    fn run_realtime(&mut self, folder: &Path) -> Result<bool, CorpusError> {
        let path = folder.join("realtime.json");
        if path.exists() {
            for case in read_list(&path)? {
                self.run_session(&case, &path)?;
            }
        }
        let wire = folder.join("realtime_wire.json");
        if wire.exists() {
            for case in read_list(&wire)? {
                self.run_wire_session(&case, &wire)?;
            }
        }
        Ok(path.exists() || wire.exists())
    }

    fn run_session(&mut self, case: &Value, path: &Path) -> Result<(), CorpusError> {
        let name = case_name(case);
        if self.is_selected(name) {
            let got = scenario::block_on(realtime::run(case));
            let got = got.map_err(|reason| case_error(path, name, &reason))?;
            let expected = realtime::expected(case);
            self.check(name, || check(compare::realtime(&expected, &got)));
        }
        Ok(())
    }

    fn run_wire_session(&mut self, case: &Value, path: &Path) -> Result<(), CorpusError> {
        let name = case_name(case);
        if self.is_selected(name) {
            let got = scenario::block_on(realtime::wire::run(case));
            let got = got.map_err(|reason| case_error(path, name, &reason))?;
            let expected = realtime::wire::expected(case);
            self.check(name, || check(compare::realtime_wire(&expected, &got)));
        }
        Ok(())
    }

    /// Runs the scenarios in stages. Returns `false` if there are none.
    fn run_stages(&mut self, folder: &Path) -> Result<bool, CorpusError> {
        let files = files_in(folder, &STAGES);
        for (_, path) in &files {
            for case in read_list(path)? {
                self.run_staged_case(&case, path)?;
            }
        }
        Ok(!files.is_empty())
    }

    fn run_staged_case(&mut self, json: &Value, path: &Path) -> Result<(), CorpusError> {
        let name = case_name(json);
        let failed = |reason: String| case_error(path, name, &reason);
        let case = read_case(json, path)?;
        if let Some(reason) = stages::skip_reason(&case) {
            self.skip(name, reason);
            return Ok(());
        }
        for way in Way::all(&case) {
            let name = format!("{name} ({way})");
            if self.is_selected(&name) {
                let got = scenario::block_on(stages::run(&case, way)).map_err(failed)?;
                self.check(&name, || {
                    check(compare::stages(json, way.has_events(), &got))
                });
            }
        }
        Ok(())
    }

    fn skip(&mut self, name: &str, reason: impl fmt::Display) {
        if self.is_selected(name) {
            self.tally.skipped += 1;
            self.tally.skips.push(format!("{name}: {reason}"));
        }
    }

    fn run_case(&mut self, json: &Value, path: &Path) -> Result<(), CorpusError> {
        let name = case_name(json);
        let failed = |reason: String| case_error(path, name, &reason);
        let case = read_case(json, path)?;
        if let ModelSource::Wire(wire) = &self.models
            && let Some(reason) = wire.skip_reason(&case, &json["expect"])
        {
            self.skip(name, reason);
            return Ok(());
        }
        let expected = compared_fields(json);
        let modes: &[Mode] = match self.run_as {
            RunAs::Usual => &[Mode::Plain, Mode::Streamed],
            RunAs::Durable => &[Mode::Durable],
        };
        for &mode in modes {
            let name = format!("{name} ({mode})");
            if self.is_selected(&name) {
                let result = self.run_scenario(&case, &expected, mode);
                let result = result.map_err(failed)?;
                self.check(&name, || result);
            }
        }
        Ok(())
    }

    /// Runs a scenario in one mode. The outer error is a case that cannot be run, the inner one a
    /// difference.
    fn run_scenario(
        &mut self,
        case: &Case,
        expected: &Value,
        mode: Mode,
    ) -> Result<Result<(), String>, String> {
        let key = format!("run-{}", self.runs);
        self.runs += 1;
        let model = self.models.model(&case.model, &key)?;
        let got = scenario::block_on(scenario::run(case, mode, &model))?;
        Ok(match &self.models {
            ModelSource::Scripted => check(difference(expected, mode, &got)),
            ModelSource::Wire(wire) => wire.check_requests(&key).and_then(|()| {
                let (expected, got) = (wire.normalize(expected), wire.normalize(&got));
                check(difference(&expected, mode, &got))
            }),
        })
    }

    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<(), String>) {
        if !self.is_selected(name) {
            return;
        }
        match check() {
            Ok(()) => self.tally.passed += 1,
            Err(difference) => {
                self.tally.failed += 1;
                (self.on_failure)(format!("FAILED {name}: {difference}"));
            }
        }
    }
}

fn difference(expected: &Value, mode: Mode, got: &Value) -> Option<Difference> {
    let mut plain = expected.clone();
    if let (Mode::Plain, Some(plain)) = (mode, plain.as_object_mut()) {
        // A plain run has no events.
        plain.shift_remove("stream");
    }
    if mode == Mode::Durable {
        list_input(&mut plain);
    }
    compare::run_either(&plain, expected.get("streamed_differs"), got)
}

/// Makes lists of the texts that filters get as input: the input of a stored conversation is a list of items.
fn list_input(expected: &mut Value) {
    let log = expected.get_mut("log").and_then(Value::as_array_mut);
    for entry in log.into_iter().flatten() {
        if let Some(input) = entry.pointer_mut("/filter/input_history")
            && input.is_string()
        {
            *input = json!([{ "content": input.take(), "role": "user" }]);
        }
    }
}

/// The `expect` of a case, without the fields that may differ.
fn compared_fields(case: &Value) -> Value {
    let entries = case["may_differ"].as_array().into_iter().flatten();
    let fields = entries.flat_map(|entry| entry["fields"].as_array().into_iter().flatten());
    let mut expected = case["expect"].clone();
    for field in fields.filter_map(Value::as_str) {
        for part in ["", "/streamed_differs"] {
            let part = expected.pointer_mut(part).and_then(Value::as_object_mut);
            part.and_then(|part| part.shift_remove(field));
        }
    }
    expected
}

/// Returns the text of a difference as an error.
pub(crate) fn check(difference: Option<Difference>) -> Result<(), String> {
    difference.map_or(Ok(()), |difference| Err(difference.to_string()))
}

fn read_case(json: &Value, path: &Path) -> Result<Case, CorpusError> {
    Case::deserialize(json).map_err(|error| case_error(path, case_name(json), &error.to_string()))
}

fn case_error(path: &Path, name: &str, reason: &str) -> CorpusError {
    CorpusError::new(path, format!("case {name}: {reason}"))
}

fn case_name(case: &Value) -> &str {
    case["name"].as_str().unwrap_or("(no name)")
}

/// The JSON files in a folder, sorted by name. A folder that does not exist has none.
fn json_files(folder: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| CorpusError::new(folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Those of the files that exist, with their paths.
fn files_in<'a>(folder: &Path, names: &[&'a str]) -> Vec<(&'a str, PathBuf)> {
    let files = names.iter().map(|name| (*name, folder.join(name)));
    files.filter(|(_, path)| path.exists()).collect()
}

fn read_list(path: &Path) -> Result<Vec<Value>, CorpusError> {
    match read_json(path)? {
        Value::Array(cases) => Ok(cases),
        _ => Err(CorpusError::new(path, "a list of cases was expected")),
    }
}

fn read_json(path: &Path) -> Result<Value, CorpusError> {
    let text = fs::read_to_string(path).map_err(|error| CorpusError::new(path, error))?;
    serde_json::from_str(&text).map_err(|error| CorpusError::new(path, error))
}
