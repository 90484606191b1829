//! `switchboard test`: tests which agents get the messages.

mod expectations;
mod table;

use std::io::{self, Write};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::stream::HandoffStatus;
use switchboard_core::{EventKind, Run};
use switchboard_teamfile::{Case, TeamFile};

use crate::approvals::{self, Approvals, Output};
use crate::args;
use crate::conversation::{Conversation, RunOutcome};
use crate::conversation_store::ConversationStore;
use crate::event_line::{EventLine, rounded};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::Look;
use crate::signals::{Signal, Signals};
use table::Table;

pub(super) async fn run(args: args::Test, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.team.team)?;
    let cases = Case::read_all(&args.cases, &file)?;
    let teams = cases
        .iter()
        .map(|case| LoadedTeam::load(&file, &args.team.options, &case.context))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let runs = cases.iter().zip(teams);
    let approvals = Approvals::new(&args.approve, &file, Output::Json, look)?;
    let runs = runs.map(|(case, team)| run_case(case, team, &approvals));
    let mut results = stream::iter(runs).buffered(args.jobs.get());
    let names = cases.iter().map(|case| case.name.as_str());
    let table = Table::new(names, look);
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
    Ok(match (stopped, failed) {
        (Some(signal), _) => signal.exit(),
        (None, 0) => Exit::Ok,
        (None, _) => Exit::Failed,
    })
}

/// The result of a case.
#[derive(Debug, Serialize)]
struct CaseResult {
    name: String,
    /// The agents that had the conversation, in order.
    path: Vec<String>,
    /// The payload of the last handoff.
    payload: Option<Value>,
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
    Interrupted(Signal),
}

impl CaseResult {
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
    let mut conversation = Conversation::new(team, store, None, None).await?;
    let mut path = vec![conversation.agent().to_owned()];
    let mut end = CaseEnd::Completed;
    for message in &case.messages {
        let outcome = conversation.send(message, &mut lines, &mut signals).await?;
        let (sink, signals) = (&mut lines, &mut signals);
        let settled = approvals.settle(outcome, &mut conversation, None, sink, signals);
        match settled.await? {
            RunOutcome::Finished => {}
            RunOutcome::Failed(_) | RunOutcome::Waiting => break,
            RunOutcome::Stopped(signal) => {
                end = CaseEnd::Interrupted(signal);
                break;
            }
        }
    }
    let mut payload = None;
    let waiting = conversation.waiting().map(Run::interruptions);
    let waiting = waiting.unwrap_or_default();
    // A person who has the conversation is an end that a case may expect.
    let calls = waiting.iter().filter(|call| !approvals::is_person(call));
    let failure =
        |call: &Interruption| format!("{} waits for a decision; --approve decides it", call.tool);
    let mut failures: Vec<String> = calls.map(failure).collect();
    for line in lines {
        match line.event.kind {
            EventKind::Handoff(handoff) if handoff.status == HandoffStatus::Taken => {
                path.push(handoff.to.to_string());
                payload = Some(handoff.payload);
            }
            EventKind::RunFailed { message, .. } => failures.push(message),
            _ => {}
        }
    }
    failures.extend(expectations::failures(case, &path, payload.as_ref()));
    Ok(CaseResult {
        name: case.name.clone(),
        path,
        payload,
        failures,
        seconds: rounded(began.elapsed().as_secs_f64()),
        end,
    })
}
