//! Code of the application that a run calls: for requests, session input and texts for models.

use std::sync::Arc;

use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome, Outcome, call, catch_panic_sync};
use crate::context::RunContext;
use crate::guardrail::GuardrailResult;
use crate::items::Items;
use crate::model::ModelRequest;
use crate::tool::ToolError;

/// Declares a type that holds code of the application, sync or async.
macro_rules! run_callback {
    (
        $(#[$doc:meta])*
        pub struct $name:ident<C>: Fn($($arg:ident: $type:ty),*) -> $output:ty;
        $(#[$new_doc:meta])*
        new
    ) => {
        $(#[$doc])*
        pub struct $name<C>(Arc<dyn Fn($($type),*) -> Outcome<$output> + Send + Sync>);

        impl<C> $name<C> {
            $(#[$new_doc])*
            pub fn new<F, R, M>(code: F) -> Self
            where
                F: Fn($($type),*) -> R + Send + Sync + 'static,
                R: IntoOutcome<$output, M>,
            {
                Self(Arc::new(move |$($arg),*| code($($arg),*).into_outcome()))
            }

            pub(crate) fn call(&self, $($arg: $type),*) -> Outcome<$output> {
                (self.0)($($arg),*)
            }
        }

        impl_clone! { struct $name<C> { 0 } }

        impl_debug!($name<C>);
    };
}

run_callback! {
    /// Rewrites every model request before it is sent; see
    /// [`Runner::model_filter`](crate::Runner::model_filter).
    pub struct ModelFilter<C>: Fn(ctx: RunContext<C>, agent: Agent<C>, request: ModelRequest) -> ModelRequest;
    /// Creates a filter. `code` gets the request and returns the one to send.
    new
}

impl<C> ModelFilter<C> {
    /// Rewrites a request, for filters that add to another one.
    ///
    /// # Errors
    /// The error of the code.
    pub async fn apply(
        &self,
        ctx: RunContext<C>,
        agent: Agent<C>,
        request: ModelRequest,
    ) -> Result<ModelRequest, BoxError> {
        call(|| self.call(ctx, agent, request)).await
    }
}

run_callback! {
    /// Code that merges the history of a session with the new input of a run; see
    /// [`Runner::session_input`](crate::Runner::session_input).
    pub struct SessionInput<C>: Fn(ctx: RunContext<C>, history: Items, new: Items) -> Items;
    /// Creates one. `code` gets the history and the new items, and returns what the run begins with.
    new
}

run_callback! {
    /// Code that makes the texts that models get about failed and unknown tools; see
    /// [`Runner::tool_error_text`](crate::Runner::tool_error_text).
    pub struct ToolErrorText<C>: Fn(ctx: RunContext<C>, message: ToolErrorMessage) -> Option<String>;
    /// Creates one. `code` returns the text, or `None` for the default.
    new
}

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

/// Stands in for an output that an output guardrail rejected, unless the application has another
/// text.
pub(crate) const DEFAULT_BLOCKED_OUTPUT: &str = "Output withheld by an output guardrail.";

/// Code that makes the text in place of an output that a guardrail has rejected; see
/// [`Runner::blocked_output_text`](crate::Runner::blocked_output_text).
#[derive(Clone)]
pub struct BlockedOutputText(Arc<dyn Fn(&GuardrailResult) -> String + Send + Sync>);

impl BlockedOutputText {
    /// Creates one.
    pub fn new(make: impl Fn(&GuardrailResult) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }
}

/// The text in place of an output that the guardrail with this result has rejected. Code that panics
/// leaves the default.
pub(crate) fn blocked_output_text(
    code: Option<&BlockedOutputText>,
    result: Option<&GuardrailResult>,
) -> String {
    let (Some(code), Some(result)) = (code, result) else {
        return DEFAULT_BLOCKED_OUTPUT.to_owned();
    };
    catch_panic_sync(|| (code.0)(result)).unwrap_or_else(|error| {
        tracing::warn!(%error, "the text for a blocked output failed; the default is used");
        DEFAULT_BLOCKED_OUTPUT.to_owned()
    })
}

impl_debug!(BlockedOutputText);
