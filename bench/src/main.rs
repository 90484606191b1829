//! Does one case and prints what it cost as a line of JSON.
//!
//! - `bench CASE SECONDS [URL]` does a case for about that many seconds of CPU time; those over HTTP need
//!   the address of a provider.
//! - `bench serve` is that provider: it prints its address and stops when its input ends.
//! - `bench once CASE RUNS [URL]` does a case so many times and prints nothing, for counting instructions.
//! - `bench history ITEMS` prints the conversation that runs begin with, for the programs of others.

use std::error::Error;
use std::io::Read as _;
use std::process::ExitCode;

use bench::{HistoryOf, Limit, Parked, WireCase, Work, history, provider, repeated, spawned};
use serde_json::Value;

/// How many runs are parked where the memory of one is measured.
const PARKED: usize = 10_000;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["serve"] => serve(),
        ["history", items] => print_history(items),
        ["once", case, runs] => once(case, runs, None),
        ["once", case, runs, url] => once(case, runs, Some(url)),
        [case, seconds] => measure(case, seconds, None),
        [case, seconds, url] => measure(case, seconds, Some(url)),
        _ => Err(usage()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> Failed {
    format!(
        "usage: bench CASE SECONDS [URL] | once CASE RUNS [URL] | serve | history ITEMS; CASE is one of {}, {}, \
         one_at_a_time, at_once_RUNS, parked_shared, parked_own, or over HTTP \
         [bare_](responses|chat)_(plain|streamed)_ITEMS_xRUNS",
        Work::NAMES.join(", "),
        Limit::NAMES.join(", ")
    )
    .into()
}

fn measure(case: &str, seconds: &str, url: Option<&str>) -> Result<(), Failed> {
    println!("{}", measured(case, seconds.parse()?, url)?);
    Ok(())
}

fn measured(case: &str, seconds: f64, url: Option<&str>) -> Result<Value, Failed> {
    let parked = |history_of| Parked::measured(PARKED, history_of).ok_or("no /proc on this system");
    match case {
        "one_at_a_time" => return Ok(spawned(1, seconds)?.to_json()),
        "parked_shared" => return Ok(parked(HistoryOf::All)?),
        "parked_own" => return Ok(parked(HistoryOf::Each)?),
        _ => {}
    }
    if let Some(runs) = case.strip_prefix("at_once_") {
        return Ok(spawned(runs.parse()?, seconds)?.to_json());
    }
    if let Some(limit) = Limit::named(case) {
        return Ok(repeated(seconds, || limit.run()).to_json());
    }
    if let (Some(case), Some(url)) = (WireCase::named(case), url) {
        return Ok(case.measured(url, seconds)?.to_json());
    }
    let work = Work::named(case).ok_or_else(usage)?;
    Ok(repeated(seconds, || work.run()).to_json())
}

fn once(case: &str, runs: &str, url: Option<&str>) -> Result<(), Failed> {
    let runs: u32 = runs.parse()?;
    if let (Some(case), Some(url)) = (WireCase::named(case), url) {
        return case.done(url, runs);
    }
    if let Some(limit) = Limit::named(case) {
        (0..runs).for_each(|_| limit.run());
        return Ok(());
    }
    let work = Work::named(case).ok_or_else(usage)?;
    (0..runs).for_each(|_| work.run());
    Ok(())
}

fn serve() -> Result<(), Failed> {
    let provider = provider()?;
    println!("{}", provider.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn print_history(items: &str) -> Result<(), Failed> {
    println!("{}", serde_json::to_string(&history(items.parse()?))?);
    Ok(())
}
