//! A hook that rewrites model requests.

use std::fmt;
use std::sync::Arc;

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::model::ModelRequest;

type Apply<C> =
    dyn Fn(RunContext<C>, Agent<C>, ModelRequest) -> Outcome<ModelRequest> + Send + Sync;

/// Rewrites every model request before it is sent; see
/// [`Runner::model_filter`](crate::Runner::model_filter).
pub struct ModelFilter<C>(pub(super) Arc<Apply<C>>);

impl<C> ModelFilter<C> {
    /// Creates a filter. `apply` gets the request and returns the one to send.
    pub fn new<F, R, M>(apply: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, ModelRequest) -> R + Send + Sync + 'static,
        R: IntoOutcome<ModelRequest, M>,
    {
        Self(Arc::new(move |ctx, agent, request| {
            apply(ctx, agent, request).into_outcome()
        }))
    }
}

impl<C> Clone for ModelFilter<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for ModelFilter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelFilter")
    }
}
