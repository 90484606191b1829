//! What runs cost in this process, on a model that answers at once, and over HTTP.
//!
//! `cargo run --release -p bench` prints a table, `bench wire` one of runs over HTTP on loopback. `bench once CASE N` runs one case N times and
//! prints nothing, for counting instructions: see bench/README.md.

mod measure;
mod wire;
mod work;

use std::process::ExitCode;

use measure::{Cost, cost_of};
use work::Work;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => {
            table();
            ExitCode::SUCCESS
        }
        ["wire"] => match wire::table() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        ["once", case, times] => match (Work::named(case), times.parse::<u32>()) {
            (Some(work), Ok(times)) => {
                for _ in 0..times {
                    work.run();
                }
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: bench [wire | once CASE TIMES], with CASE one of {}",
        Work::NAMES.join(", ")
    );
    ExitCode::from(2)
}

fn table() {
    println!(
        "{:<34} {:>12} {:>12} {:>12}",
        "work", "CPU µs/run", "allocations", "bytes"
    );
    let mut chain = Vec::new();
    for name in Work::NAMES {
        let Some(work) = Work::named(name) else {
            continue;
        };
        let cost = cost_of(|| work.run());
        print_row(name, &cost);
        if let Some(handoffs) = name
            .strip_prefix("chain_")
            .and_then(|n| n.parse::<f64>().ok())
        {
            chain.push((handoffs, cost));
        }
    }
    if let [.., (few, less), (many, more)] = chain.as_slice() {
        let exponent = |less: f64, more: f64| (more / less).ln() / (many / few).ln();
        println!(
            "\ngrowth exponent, {few} → {many} handoffs: {:.3} in CPU time, {:.3} in allocations",
            exponent(less.micros, more.micros),
            exponent(less.allocations, more.allocations)
        );
    }
    let history = work::history(1000, 500);
    let serialised = cost_of(|| {
        std::hint::black_box(serde_json::to_string(&history).map(|json| json.len())).ok();
    });
    let body: usize = history.iter().map(|item| item.as_json().len() + 1).sum();
    print_row("serialising the 1,000 items once", &serialised);
    println!("(that body has {body} bytes)");
    let parked = measure::parked_bytes(10_000);
    println!("memory of a run parked in the model call after a handoff: {parked} bytes");
}

fn print_row(name: &str, cost: &Cost) {
    println!(
        "{name:<34} {:>12.2} {:>12.0} {:>12.0}",
        cost.micros, cost.allocations, cost.bytes
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str) -> Cost {
        let work = Work::named(name).unwrap();
        work.run();
        let counted = allocation_counter::measure(|| work.run());
        #[expect(clippy::cast_precision_loss, reason = "for a ratio")]
        Cost {
            micros: 0.0,
            allocations: counted.count_total as f64,
            bytes: counted.bytes_total as f64,
        }
    }

    #[test]
    fn a_chain_of_handoffs_allocates_in_proportion_to_its_length() {
        let (short, long) = (cost("chain_100"), cost("chain_200"));
        assert!(long.allocations / short.allocations < 2.05);
        assert!(
            long.bytes / short.bytes < 2.2,
            "{} {}",
            short.bytes,
            long.bytes
        );
    }

    #[test]
    fn keeping_every_request_does_not_copy_the_history() {
        let (free, kept) = (cost("chain_200"), cost("chain_200_recorded"));
        // A request that is kept costs a list segment, not the list.
        assert!(
            kept.bytes / free.bytes < 1.3,
            "{} {}",
            free.bytes,
            kept.bytes
        );
        let (free, kept) = (cost("history_1000"), cost("history_1000_recorded"));
        assert!(
            kept.bytes / free.bytes < 1.3,
            "{} {}",
            free.bytes,
            kept.bytes
        );
    }

    #[test]
    fn a_handoff_over_a_long_history_copies_none_of_it() {
        let body: usize = work::history(1000, 500)
            .iter()
            .map(|i| i.as_json().len())
            .sum();
        for name in ["history_1000", "history_1000_without_tools"] {
            let cost = cost(name);
            #[expect(clippy::cast_precision_loss, reason = "for a ratio")]
            let share = cost.bytes / body as f64;
            assert!(
                share < 0.1,
                "{name} allocates {share} of the history's bytes"
            );
            assert!(
                cost.allocations < 100.0,
                "{name}: {} allocations",
                cost.allocations
            );
        }
    }

    #[test]
    fn a_parked_run_is_small() {
        let bytes = measure::parked_bytes(100);
        assert!(bytes < 5_000, "{bytes} bytes");
    }
}
