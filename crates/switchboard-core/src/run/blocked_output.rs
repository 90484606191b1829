//! The text in place of an output that a guardrail has rejected.

use std::sync::Arc;

use crate::callback::catch_panic_sync;
use crate::guardrail::GuardrailResult;

/// Stands in for an output that an output guardrail rejected, unless the application has another
/// text.
pub(super) const DEFAULT: &str = "Output withheld by an output guardrail.";

type Make = dyn Fn(&GuardrailResult) -> String + Send + Sync;

/// Code that makes the text in place of an output that a guardrail has rejected; see
/// [`Runner::blocked_output_text`](crate::Runner::blocked_output_text).
#[derive(Clone)]
pub struct BlockedOutputText(Arc<Make>);

impl BlockedOutputText {
    /// Creates one.
    pub fn new(make: impl Fn(&GuardrailResult) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }
}

/// The text in place of an output that the guardrail with this result has rejected. Code that panics
/// leaves the default.
pub(super) fn text(code: Option<&BlockedOutputText>, result: Option<&GuardrailResult>) -> String {
    let (Some(code), Some(result)) = (code, result) else {
        return DEFAULT.to_owned();
    };
    catch_panic_sync(|| (code.0)(result)).unwrap_or_else(|error| {
        tracing::warn!(%error, "the text for a blocked output failed; the default is used");
        DEFAULT.to_owned()
    })
}

impl_debug!(BlockedOutputText);
