//! `switchboard test`: tests which agents get the messages, and what comes of them.

mod expectations;
mod junit;
mod observed;
mod record;
mod table;

use std::io::{self, Write};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use serde_json::Value;
use switchboard_core::Run;
use switchboard_core::approval::Interruption;
use switchboard_teamfile::{Case, Problems, TeamFile};

use crate::approvals::{self, Approvals, Output};
use crate::args;
use crate::conversation::{Conversation, RunOutcome};
use crate::conversation_store::ConversationStore;
use crate::event_line::{EventLine, rounded};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::Look;
use crate::signals::{Signal, Signals};
use observed::Observed;
use table::Table;

pub(super) async fn run(args: args::Test, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.team.team)?;
    if let Some(recording) = &args.record {
        return record::run(recording, &args.cases, &file, look);
    }
    if let Some(path) = &args.junit {
        junit::check(path)?;
    }
    let cases = Case::read_each(&args.cases, &file)?;
    let has_invalid = cases.iter().any(Result::is_err);
    let teams = cases
        .iter()
        .map(|case| match case {
            Ok(case) => LoadedTeam::load(&file, &args.team.options, &case.context).map(Some),
            Err(_) => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let approvals = Approvals::new(&args.approve, &file, Output::Json, look)?;
    let approvals = &approvals;
    let names: Vec<String> = cases
        .iter()
        .enumerate()
        .map(|(index, case)| match case {
            Ok(case) => case.name.clone(),
            Err(_) => format!("case {}", index + 1),
        })
        .collect();
    let runs = cases.iter().zip(teams).zip(&names);
    let runs = runs.map(|((case, team), name)| async move {
        match (case, team) {
            (Ok(case), Some(team)) => run_case(case, team, approvals).await,
            (Err(problems), _) => Ok(CaseResult::invalid(name, problems)),
            (Ok(case), None) => Ok(CaseResult::new(&case.name)),
        }
    });
    let mut results = stream::iter(runs).buffered(args.jobs.get());
    let table = Table::new(names.iter().map(String::as_str), look);
    let mut reported = Vec::new();
    let mut out = anstream::stdout();
    let mut signals = Signals::listen()?;
    let (mut passed, mut failed) = (0, 0);
    let mut stopped = None;
    while stopped.is_none() {
        let result = tokio::select! {
            biased;
            signal = signals.next() => {
                stopped = Some(signal);
                continue;
            }
            result = results.next() => result,
        };
        let Some(result) = result.transpose()? else {
            break;
        };
        if let CaseEnd::Interrupted(signal) = result.end {
            stopped = Some(signal);
            continue;
        }
        if result.passed() {
            passed += 1;
        } else {
            failed += 1;
        }
        if args.json {
            print(&JsonLine::Case(&result))?;
        } else {
            table.row(&result, &mut out)?;
        }
        reported.push(result);
        // The offline model never waits, but signals arrive only during a wait.
        tokio::task::yield_now().await;
    }
    let summary = Summary {
        passed,
        failed,
        untried: cases.len() - passed - failed,
        seconds: rounded(began.elapsed().as_secs_f64()),
    };
    if args.json {
        print(&JsonLine::Summary(&summary))?;
    } else {
        table.end(&summary, &mut out)?;
    }
    let exit = match (stopped, failed) {
        (Some(signal), _) => signal.exit(),
        (None, 0) => Exit::Ok,
        (None, _) if has_invalid => Exit::Usage,
        (None, _) => Exit::Failed,
    };
    if let Some(path) = &args.junit {
        let name = args.cases.display().to_string();
        let written = junit::write(path, &name, &reported, summary.seconds);
        written.map_err(|failure| failure.after(exit))?;
    }
    Ok(exit)
}

/// The result of a case.
#[derive(Debug, Serialize)]
struct CaseResult {
    name: String,
    /// The agents that had the conversation, in order.
    path: Vec<String>,
    /// The payload of the last handoff.
    payload: Option<Value>,
    /// The final outputs.
    answers: Vec<String>,
    /// The tools that ran.
    tools: Vec<observed::Call>,
    /// The guardrails that fired.
    guardrails: Vec<String>,
    turns: u32,
    /// The expectations that were not met.
    failures: Vec<String>,
    seconds: f64,
    #[serde(skip)]
    end: CaseEnd,
}

/// The way a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseEnd {
    Completed,
    /// The case cannot be run as it is.
    Invalid,
    Interrupted(Signal),
}

impl CaseResult {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: Vec::new(),
            payload: None,
            answers: Vec::new(),
            tools: Vec::new(),
            guardrails: Vec::new(),
            turns: 0,
            failures: Vec::new(),
            seconds: 0.0,
            end: CaseEnd::Completed,
        }
    }

    /// The result of a case that cannot be run.
    fn invalid(name: &str, problems: &Problems) -> Self {
        let failures = problems.iter().map(|problem| {
            let line = problem.line.map(|line| format!("line {line}: "));
            let more = problem.suggestion.as_ref().or(problem.help.as_ref());
            let more = more.map(|more| format!("; {more}"));
            let (line, more) = (line.unwrap_or_default(), more.unwrap_or_default());
            format!("{line}{}{more}", problem.message)
        });
        Self {
            failures: failures.collect(),
            end: CaseEnd::Invalid,
            ..Self::new(name)
        }
    }

    fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// The results of all cases.
#[derive(Debug, Serialize)]
struct Summary {
    passed: usize,
    failed: usize,
    /// The number of cases that did not complete before the user stopped the command.
    #[serde(skip_serializing_if = "is_zero")]
    untried: usize,
    seconds: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsonLine<'a> {
    Case(&'a CaseResult),
    Summary(&'a Summary),
}

fn print(line: &JsonLine<'_>) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{}", serde_json::to_string(line)?)?;
    out.flush()
}

/// Sends the messages of a case, and checks its expectations.
async fn run_case(
    case: &Case,
    team: LoadedTeam,
    approvals: &Approvals,
) -> Result<CaseResult, Failure> {
    let began = Instant::now();
    let mut signals = Signals::listen()?;
    let mut lines: Vec<EventLine> = Vec::new();
    let store = ConversationStore::in_memory();
    let agent = case.agent.as_deref();
    let mut conversation = Conversation::new(team, store, agent, None).await?;
    let first = conversation.agent().to_owned();
    let mut end = CaseEnd::Completed;
    let mut timed_out = false;
    for message in &case.messages {
        let outcome = conversation.send(message, &mut lines, &mut signals).await?;
        let (sink, signals) = (&mut lines, &mut signals);
        let settled = approvals.settle(outcome, &mut conversation, None, sink, signals);
        match settled.await? {
            RunOutcome::Finished => {}
            RunOutcome::Failed(_) | RunOutcome::Waiting => break,
            RunOutcome::TimedOut => {
                timed_out = true;
                break;
            }
            RunOutcome::Stopped(signal) => {
                end = CaseEnd::Interrupted(signal);
                break;
            }
        }
    }
    let waiting = conversation.waiting().map(Run::interruptions);
    let waiting = waiting.unwrap_or_default();
    // A person who has the conversation is an end that a case may expect.
    let calls = waiting.iter().filter(|call| !approvals::is_person(call));
    let failure =
        |call: &Interruption| format!("{} waits for a decision; --approve decides it", call.tool);
    let mut failures: Vec<String> = calls.map(failure).collect();
    if timed_out {
        failures.push("it took longer than --timeout allows".to_owned());
    }
    let observed = Observed::new(first, &lines);
    failures.extend(expectations::failures(case, &observed));
    Ok(CaseResult {
        path: observed.path,
        payload: observed.payload,
        answers: observed.answers,
        tools: observed.calls,
        guardrails: observed.guardrails,
        turns: observed.turns,
        failures,
        seconds: rounded(began.elapsed().as_secs_f64()),
        end,
        ..CaseResult::new(&case.name)
    })
}
