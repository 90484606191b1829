//! Testing agents without a provider.
//!
//! [`ScriptedModel`] answers from a script and keeps what it was asked. [`Report`] tells who did
//! what in a run, to assert on or to keep as a golden transcript. [`Recorder`] turns a live run into
//! a script.
//!
//! ```
//! use switchboard_core::testing::{Report, ScriptedModel};
//! use switchboard_core::{Agent, Runner};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage").handoff(&billing);
//! let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Done.");
//! let result = Runner::new(&triage).model(model).run("My bill is wrong").await?;
//!
//! let report = Report::of(&result);
//! assert_eq!(report.agents(), ["Triage", "Billing"]);
//! assert_eq!(report.to_string(), "\
//! Triage calls transfer_to_billing {}
//! Triage → Billing
//! Billing: Done.
//! ");
//! # Ok::<(), switchboard_core::Error>(())
//! # }).unwrap().unwrap();
//! ```

mod recorder;
mod report;
mod scripted;

pub use recorder::{Recorder, Recording};
pub use report::{HandoffTaken, Report, ToolUsed};
pub use scripted::ScriptedModel;
