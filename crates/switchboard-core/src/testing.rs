//! Tools for testing agents without a provider.
//!
//! [`ScriptedModel`] answers from a script and keeps its requests. [`Report`] lists what each agent
//! did in a run, has assertions on it, and prints as a transcript for golden files. [`Recorder`]
//! turns a live run into a script.
//!
//! ```
//! use switchboard_core::testing::{Report, ScriptedModel};
//! use switchboard_core::{Agent, Runner};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage").handoff(&billing);
//! let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Done.");
//! let result = Runner::new(&triage).model(model.clone()).run("My bill is wrong").await?;
//!
//! let report = Report::of(&result).with_requests(model.requests());
//! report
//!     .assert_agents(["Triage", "Billing"])
//!     .assert_shown("Billing", [
//!         "user: My bill is wrong",
//!         "call transfer_to_billing {}",
//!         r#"output {"assistant": "Billing"}"#,
//!     ])
//!     .assert_output("Done.");
//! assert_eq!(report.to_string(), "\
//! Triage calls transfer_to_billing {}
//! Triage → Billing
//! Billing: Done.
//! ");
//! # Ok::<(), switchboard_core::Error>(())
//! # }).unwrap().unwrap();
//! ```

mod assertions;
mod recorder;
mod report;
mod scripted_model;

use crate::items::Item;
use crate::model::ModelRequest;

pub use recorder::{Recorder, Recording};
pub use report::{Report, ToolUsed};
pub use scripted_model::ScriptedModel;

/// Describes an item in short: `user: Hi`, `call lookup {"id": 1}`, `output 42`, or its type if it
/// is something else.
///
/// ```
/// use switchboard_core::Item;
/// use switchboard_core::testing::describe_item;
///
/// assert_eq!(describe_item(&Item::user("Hi")), "user: Hi");
/// assert_eq!(describe_item(&Item::function_call("c", "lookup", "{}")), "call lookup {}");
/// ```
pub fn describe_item(item: &Item) -> String {
    match (item.role(), item.name(), item.output_text()) {
        (Some(role), _, _) => format!("{role}: {}", item.text().unwrap_or_default()),
        (None, Some(name), _) => format!("call {name} {}", item.arguments().unwrap_or_default()),
        (None, None, Some(output)) => format!("output {output}"),
        (None, None, None) => item.type_name().unwrap_or_default().into_owned(),
    }
}

/// Returns the requests that were made for this agent.
fn requests_of(requests: &[ModelRequest], agent: &str) -> Vec<ModelRequest> {
    let is_of_agent = |request: &&ModelRequest| request.agent.as_deref() == Some(agent);
    requests.iter().filter(is_of_agent).cloned().collect()
}
