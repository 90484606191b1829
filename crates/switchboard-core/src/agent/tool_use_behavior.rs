//! The behaviour after an agent's tools have run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::output::FinalOutput;
use crate::tool::ToolOutput;

/// The behaviour after an agent's tools have run.
pub struct ToolUseBehavior<C = ()>(pub(crate) ToolUseBehaviorKind<C>);

pub(crate) enum ToolUseBehaviorKind<C> {
    RunModelAgain,
    StopOnFirstTool,
    StopAtTools(Arc<[String]>),
    Function(Arc<ToolUseFn<C>>),
}

type ToolUseFn<C> =
    dyn Fn(RunContext<C>, Vec<ToolResult>) -> Outcome<Option<FinalOutput>> + Send + Sync;

impl<C> ToolUseBehavior<C> {
    /// The model gets the outputs and continues. This is the default.
    pub const fn run_model_again() -> Self {
        Self(ToolUseBehaviorKind::RunModelAgain)
    }

    /// The first tool's output is the final output.
    pub const fn stop_on_first_tool() -> Self {
        Self(ToolUseBehaviorKind::StopOnFirstTool)
    }

    /// The output of one of these tools, once called, is the final output.
    pub fn stop_at<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(ToolUseBehaviorKind::StopAtTools(
            names.into_iter().map(Into::into).collect(),
        ))
    }

    /// `decide` returns the final output, or `None` to let the model continue.
    pub fn decide<F, R, M>(decide: F) -> Self
    where
        F: Fn(RunContext<C>, Vec<ToolResult>) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<FinalOutput>, M>,
    {
        Self(ToolUseBehaviorKind::Function(Arc::new(
            move |ctx, results| decide(ctx, results).into_outcome(),
        )))
    }
}

impl_clone! { struct ToolUseBehavior<C> { 0 } }
impl_clone! {
    enum ToolUseBehaviorKind<C> {
        RunModelAgain, StopOnFirstTool, StopAtTools(names), Function(decide)
    }
}

impl<C> fmt::Debug for ToolUseBehavior<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolUseBehaviorKind::RunModelAgain => f.write_str("RunModelAgain"),
            ToolUseBehaviorKind::StopOnFirstTool => f.write_str("StopOnFirstTool"),
            ToolUseBehaviorKind::StopAtTools(names) => {
                f.debug_tuple("StopAtTools").field(names).finish()
            }
            ToolUseBehaviorKind::Function(_) => f.write_str("Function"),
        }
    }
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The tool's name.
    pub tool: Arc<str>,
    /// Its output.
    pub output: ToolOutput,
    /// The data that it attached for the application; see
    /// [`ToolContext::attach`](crate::ToolContext::attach).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::json::on_its_own::optional"
    )]
    pub data: Option<Value>,
}
