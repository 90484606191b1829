//! What nothing can be faster than, or is measured against: bytes copied, written as JSON, and read
//! from it.

use std::hint::black_box;

use switchboard_core::Items;

use crate::history::{LONG, history};

/// Something done to the 1,000-item history as a whole.
pub struct Limit {
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

impl Limit {
    /// What there is.
    pub const NAMES: [&str; 3] = ["memcpy_1000", "serialise_1000", "parse_1000"];

    /// The limit of this name.
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

    /// Does it once.
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
