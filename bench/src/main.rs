//! Measures one case and prints its cost as a line of JSON.
//!
//! - `bench CASE SECONDS [URL]` runs a case for about that many seconds of CPU time. Cases over HTTP need
//!   the URL of a provider.
//! - `bench serve` runs that provider: it prints its URL and stops when its input ends.
//! - `bench once CASE RUNS [URL]` runs a case this many times and prints nothing, for counting instructions.
//! - `bench talk_server FRAME_MS SECONDS` runs a server of realtime sessions whose agents speak for so long: it
//!   prints its URL, stops when its input ends, and prints what it has heard and sent.
//! - `bench talk CLIENT SESSIONS FRAME_MS URL` talks to it, with the client `switchboard` or `bare`.
//! - `bench team_server PIECES PAUSE_MS FAILURES STORE` runs a team as a service whose model answers in so many pieces, with
//!   a pause before each; a share of the model's answers fails. It prints its URL and stops when its input ends.
//! - `bench team_callers PIECES PAUSE_MS CONVERSATIONS SECONDS URL` sends messages to it and reads the answers.
//! - `bench durable WORK ENGINE STORE [INGRESS ADMIN]` does work of durable runs (`durable`, `plain`, `bare`, `commits`) on an
//!   engine (`embedded`, `restate`, `dbos`) whenever it reads a line `AT_ONCE SECONDS`.
//! - `bench durable_check STORE RUNS` starts durable runs, 32 at once, and counts what they have left.
//! - `bench journal_sizes TURNS` counts the bytes of journals.
//! - `bench store_waiting STORE RUNS` stores durable runs that wait for an approval, and `bench recover_waiting STORE RUNS` is
//!   a process that starts with them.
//! - `bench history ITEMS` prints the input history of runs, for the programs of the peers.

use std::error::Error;
use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use bench::{
    Baseline, DurablePlace, HistoryOwner, Load, Pace, ParkedRuns, RealtimeClient,
    RealtimeLoadServer, ServiceLoad, SessionCase, TeamServer, WireCase, Work, check_durable,
    history, journal_sizes, measure, measure_spawned, provider, recover_waiting, store_waiting,
    work_durably,
};
use serde_json::Value;

/// The number of parked runs in memory measurements.
const PARKED: usize = 10_000;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["serve"] => serve(),
        ["talk_server", frame_ms, seconds] => serve_talk(frame_ms, seconds),
        ["talk", client, sessions, frame_ms, url] => talk(client, sessions, frame_ms, url),
        ["team_server", pieces, pause_ms, failures, store] => {
            pace(pieces, pause_ms, failures).and_then(|pace| serve_team(pace, store))
        }
        [
            "team_callers",
            pieces,
            pause_ms,
            conversations,
            seconds,
            url,
        ] => pace(pieces, pause_ms, "0")
            .and_then(|pace| call_team(pace, conversations, seconds, url)),
        ["durable", work, engine, store] => work_at(work, engine, store, None),
        ["durable", work, engine, store, ingress, admin] => {
            work_at(work, engine, store, Some((ingress, admin)))
        }
        ["durable_check", store, runs] => durable_check(store, runs),
        ["journal_sizes", turns] => print_sizes(turns),
        ["store_waiting", store, runs] => waiting(store_waiting, store, runs),
        ["recover_waiting", store, runs] => waiting(recover_waiting, store, runs),
        ["history", items] => print_history(items),
        ["once", case, runs] => once(case, runs, None),
        ["once", case, runs, url] => once(case, runs, Some(url)),
        [case, seconds] => print_measurement(case, seconds, None),
        [case, seconds, url] => print_measurement(case, seconds, Some(url)),
        _ => Err(usage()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> Failed {
    format!(
        "usage: bench CASE SECONDS [URL] | once CASE RUNS [URL] | serve | history ITEMS | \
         talk_server FRAME_MS SECONDS | talk (switchboard|bare) SESSIONS FRAME_MS URL | \
         team_server PIECES PAUSE_MS FAILURES STORE | team_callers PIECES PAUSE_MS CONVERSATIONS SECONDS URL | \
         durable (durable|plain|bare|commits) (embedded|restate|dbos) STORE [INGRESS ADMIN] | durable_check STORE RUNS | \
         journal_sizes TURNS | (store_waiting|recover_waiting) STORE RUNS; CASE is one of {}, {}, \
         one_at_a_time, at_once_RUNS, parked_shared, parked_own, session_(open|message)_ITEMS, or over HTTP \
         [bare_|reading_](responses|chat)_(plain|streamed)_ITEMS_xRUNS",
        Work::NAMES.join(", "),
        Baseline::NAMES.join(", ")
    )
    .into()
}

fn print_measurement(case: &str, seconds: &str, url: Option<&str>) -> Result<(), Failed> {
    println!("{}", measure_case(case, seconds.parse()?, url)?);
    Ok(())
}

fn measure_case(case: &str, seconds: f64, url: Option<&str>) -> Result<Value, Failed> {
    let parked = |owner| ParkedRuns::measure(PARKED, owner).ok_or("no /proc on this system");
    match case {
        "one_at_a_time" => return Ok(measure_spawned(1, seconds)?.to_json()),
        "parked_shared" => return Ok(parked(HistoryOwner::Shared)?),
        "parked_own" => return Ok(parked(HistoryOwner::Own)?),
        _ => {}
    }
    if let Some(runs) = case.strip_prefix("at_once_") {
        return Ok(measure_spawned(runs.parse()?, seconds)?.to_json());
    }
    if let Some(baseline) = Baseline::named(case) {
        return Ok(measure(seconds, || baseline.run()).to_json());
    }
    if let Some(case) = SessionCase::named(case) {
        return Ok(case.measure(seconds)?.to_json());
    }
    if let (Some(case), Some(url)) = (WireCase::named(case), url) {
        return Ok(case.measure(url, seconds)?.to_json());
    }
    let work = Work::named(case).ok_or_else(usage)?;
    Ok(measure(seconds, || work.run()).to_json())
}

fn once(case: &str, runs: &str, url: Option<&str>) -> Result<(), Failed> {
    let runs: u32 = runs.parse()?;
    if let (Some(case), Some(url)) = (WireCase::named(case), url) {
        return case.run(url, runs);
    }
    if let Some(baseline) = Baseline::named(case) {
        (0..runs).for_each(|_| baseline.run());
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

fn serve_talk(frame_ms: &str, seconds: &str) -> Result<(), Failed> {
    let frame = Duration::from_millis(frame_ms.parse()?);
    let server = RealtimeLoadServer::start(frame, seconds.parse()?)?;
    println!("{}", server.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{}", server.stop());
    Ok(())
}

fn talk(client: &str, sessions: &str, frame_ms: &str, url: &str) -> Result<(), Failed> {
    let client = RealtimeClient::named(client).ok_or_else(usage)?;
    let load = Load {
        sessions: sessions.parse()?,
        frame: Duration::from_millis(frame_ms.parse()?),
    };
    println!("{}", client.measure(url, load)?);
    Ok(())
}

fn pace(pieces: &str, pause_ms: &str, failures: &str) -> Result<Pace, Failed> {
    Ok(Pace {
        pieces: pieces.parse()?,
        pause: Duration::from_millis(pause_ms.parse()?),
        failures: failures.parse()?,
    })
}

fn serve_team(pace: Pace, store: &str) -> Result<(), Failed> {
    let server = TeamServer::start(pace, store)?;
    println!("{}", server.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    Ok(())
}

fn call_team(pace: Pace, conversations: &str, seconds: &str, url: &str) -> Result<(), Failed> {
    let load = ServiceLoad {
        conversations: conversations.parse()?,
        seconds: seconds.parse()?,
        pace,
    };
    println!("{}", load.run(url)?);
    Ok(())
}

fn work_at(
    work: &str,
    engine: &str,
    store: &str,
    restate: Option<(&str, &str)>,
) -> Result<(), Failed> {
    let place = DurablePlace {
        engine,
        store,
        restate,
    };
    work_durably(work, place)
}

fn durable_check(store: &str, runs: &str) -> Result<(), Failed> {
    println!("{}", check_durable(store, runs.parse()?)?);
    Ok(())
}

fn print_sizes(turns: &str) -> Result<(), Failed> {
    println!("{}", journal_sizes(turns.parse()?)?);
    Ok(())
}

fn waiting(
    act: fn(&str, usize) -> Result<Value, Failed>,
    store: &str,
    runs: &str,
) -> Result<(), Failed> {
    println!("{}", act(store, runs.parse()?)?);
    Ok(())
}

fn print_history(items: &str) -> Result<(), Failed> {
    println!("{}", serde_json::to_string(&history(items.parse()?))?);
    Ok(())
}
