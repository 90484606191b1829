//! Models for Switchboard: over the wire, and one that needs no network.

pub mod offline;
