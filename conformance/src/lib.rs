//! Runs the conformance corpus against the engine.
//!
//! `cases/FORMAT.md` describes the corpus: scenarios with a scripted model, and everything the
//! reference implementation did with them. [`corpus::run`] builds each scenario from its JSON, runs it
//! plain and streamed, and serializes the outcome in the format of the corpus. [`compare`] finds the
//! differences. The model of a scenario is the script itself, or a client of a fake provider that
//! replies from the script. A run in stages is several actions of the application, one after another; a
//! realtime session is a list of steps of the user and of the model.

mod case;
pub mod compare;
pub mod corpus;
mod lock;
mod models;
mod payloads;
mod realtime;
mod scenario;
mod serialize;
mod stages;
mod tables;
mod wire;
