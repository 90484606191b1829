//! The texts that models get about failed tools.

use std::sync::Arc;

use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::tool::ToolError;

type Make<C> = dyn Fn(RunContext<C>, ToolErrorMessage) -> Outcome<Option<String>> + Send + Sync;

/// Code that makes the texts that models get about failed and unknown tools; see
/// [`Runner::tool_error_text`](crate::Runner::tool_error_text).
pub struct ToolErrorText<C>(Arc<Make<C>>);

/// A failed tool call that a model is about to be told of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolErrorMessage {
    /// The failure. Its cause may hold private data.
    pub error: ToolError,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The text that the model gets otherwise.
    pub default_text: String,
}

impl<C> ToolErrorText<C> {
    /// Creates one. `make` returns the text, or `None` for the default.
    pub fn new<F, R, M>(make: F) -> Self
    where
        F: Fn(RunContext<C>, ToolErrorMessage) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<String>, M>,
    {
        Self(Arc::new(move |ctx, message| {
            make(ctx, message).into_outcome()
        }))
    }

    pub(super) fn make(
        &self,
        ctx: RunContext<C>,
        message: ToolErrorMessage,
    ) -> Outcome<Option<String>> {
        (self.0)(ctx, message)
    }
}

impl_clone! { struct ToolErrorText<C> { 0 } }

impl_debug!(ToolErrorText<C>);
