//! `switchboard test`: where messages end up, and whether that is where they should.

mod cases;
mod table;

use std::io::{self, Write};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use serde_json::Value;
use switchboard_teamfile::{Case, TeamFile};

use crate::args;
use crate::conversation::{Answered, Conversation, Desk};
use crate::event::{Event, Line, rounded};
use crate::failure::{Exit, Failure};
use crate::open;
use crate::screen::style::Look;
use crate::session::Kept;
use crate::signals::{Signal, Signals};
use cases::failures as failures_of;
use table::Table;

pub(super) async fn run(args: args::Test, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.team.team)?;
    let cases = Case::read_all(&args.cases, &file)?;
    let desks = cases.iter();
    let desks = desks.map(|case| open::desk(&file, &args.team, &case.context));
    let desks = desks.collect::<Result<Vec<Desk>, Failure>>()?;
    let began = Instant::now();
    let tried = cases
        .iter()
        .zip(desks)
        .map(|(case, desk)| tried(case, desk));
    let mut tried = stream::iter(tried).buffered(args.jobs.get());
    let names = cases.iter().map(|case| case.name.as_str());
    let table = Table::new(names, look);
    let mut out = anstream::stdout();
    let mut signals = Signals::listen()?;
    let (mut passed, mut failed) = (0, 0);
    let mut stopped = None;
    // A result is shown as soon as those before it are.
    while stopped.is_none() {
        let result = tokio::select! {
            biased;
            signal = signals.next() => {
                stopped = Some(signal);
                continue;
            }
            result = tried.next() => result,
        };
        let Some(result) = result.transpose()? else {
            break;
        };
        if let Ended::Interrupted(signal) = result.ended {
            stopped = Some(signal);
            continue;
        }
        if result.ok() {
            passed += 1
        } else {
            failed += 1
        }
        if args.json {
            print(&Printed::Case(&result))?
        } else {
            table.row(&result, &mut out)?
        }
        // The offline model never waits, and signals come in while something does.
        tokio::task::yield_now().await;
    }
    let summary = Summary {
        passed,
        failed,
        untried: cases.len() - passed - failed,
        seconds: rounded(began.elapsed().as_secs_f64()),
    };
    if args.json {
        print(&Printed::Summary(&summary))?
    } else {
        table.end(&summary, &mut out)?
    }
    Ok(match (stopped, failed) {
        (Some(signal), _) => signal.exit(),
        (None, 0) => Exit::Ok,
        (None, _) => Exit::Failed,
    })
}

/// What came of a case.
#[derive(Debug, Serialize)]
struct Outcome {
    name: String,
    /// Who had the conversation, in this order.
    path: Vec<String>,
    /// What the last handoff brought.
    payload: Option<Value>,
    /// What is not as it should be.
    failures: Vec<String>,
    seconds: f64,
    #[serde(skip)]
    ended: Ended,
}

/// Whether a case was tried to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Tried,
    Interrupted(Signal),
}

impl Outcome {
    fn ok(&self) -> bool {
        self.failures.is_empty()
    }
}

/// All cases together.
#[derive(Debug, Serialize)]
struct Summary {
    passed: usize,
    failed: usize,
    /// Those that were not tried to their end, as the user stopped it.
    #[serde(skip_serializing_if = "is_none")]
    untried: usize,
    seconds: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Printed<'a> {
    Case(&'a Outcome),
    Summary(&'a Summary),
}

fn print(line: &Printed<'_>) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says the messages of a case, and looks at what came of them.
async fn tried(case: &Case, desk: Desk) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let mut signals = Signals::listen()?;
    let mut told: Vec<Line> = Vec::new();
    let mut conversation = Conversation::new(desk, Kept::in_memory(), None, None).await?;
    let mut path = vec![conversation.agent().to_owned()];
    let mut ended = Ended::Tried;
    for message in &case.messages {
        match conversation.say(message, &mut told, &mut signals).await? {
            Answered::Finished => {}
            Answered::Failed(_) => break,
            Answered::Stopped(signal) => {
                ended = Ended::Interrupted(signal);
                break;
            }
        }
    }
    let mut payload = None;
    let mut failures = Vec::new();
    for line in told {
        match line.event {
            Event::Handoff {
                to, payload: sent, ..
            } => {
                path.push(to);
                payload = Some(sent);
            }
            Event::Error { message, .. } => failures.push(message),
            _ => {}
        }
    }
    failures.extend(failures_of(case, &path, payload.as_ref()));
    Ok(Outcome {
        name: case.name.clone(),
        path,
        payload,
        failures,
        seconds: rounded(began.elapsed().as_secs_f64()),
        ended,
    })
}
