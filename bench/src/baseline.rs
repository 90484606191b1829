//! Baselines to compare with: the history copied, serialized and parsed as a whole.

use std::hint::black_box;

use switchboard_core::items::Items;

use crate::history::{LONG, history};

/// An operation on the whole 1,000-item history.
pub struct Baseline {
    history: Items,
    json: String,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Copy,
    Serialise,
    Parse,
}

impl Baseline {
    /// The names of all baselines.
    pub const NAMES: [&str; 3] = ["memcpy_1000", "serialise_1000", "parse_1000"];

    /// Returns the baseline of this name.
    pub fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "memcpy_1000" => Kind::Copy,
            "serialise_1000" => Kind::Serialise,
            "parse_1000" => Kind::Parse,
            _ => return None,
        };
        let history = history(LONG);
        let json = serde_json::to_string(&history).ok()?;
        Some(Self {
            history,
            json,
            kind,
        })
    }

    /// Runs it once.
    pub fn run(&self) {
        match self.kind {
            Kind::Copy => drop(black_box(black_box(&self.json).as_bytes().to_vec())),
            Kind::Serialise => drop(black_box(serde_json::to_string(black_box(&self.history)))),
            Kind::Parse => drop(black_box(serde_json::from_str::<Items>(black_box(
                &self.json,
            )))),
        }
    }
}
