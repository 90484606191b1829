//! Runs the conformance corpus against the engine.
//!
//! `cases/FORMAT.md` describes the corpus: scenarios with a scripted model, and everything the
//! reference did with them. A [`scenario`] is built from its JSON, run plain and streamed, and
//! what it did is written down in the corpus's own form; [`compare`] says where the two differ.

pub mod compare;
pub mod corpus;
mod scenario;
mod tables;
mod types;
mod written;
