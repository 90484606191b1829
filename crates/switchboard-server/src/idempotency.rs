//! Idempotency keys: a request that is sent a second time is answered with the run of the first.

use std::sync::Arc;

use ring::digest;

use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::hex;

/// An idempotency key, with the request that it was sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    key: Arc<str>,
    /// A hash of the request.
    request: Arc<str>,
    validity: KeyValidity,
}

/// The time for which a key stands for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyValidity {
    /// As long as the run is remembered.
    WhileKnown,
    /// Until the end of the run: the same request after it is another one.
    WhileRunning,
}

impl IdempotencyKey {
    /// The key that a client has chosen for a request, which consists of these parts.
    pub(crate) fn of_client(key: &str, request: &[&str]) -> Self {
        Self {
            key: key.into(),
            request: hash(request),
            validity: KeyValidity::WhileKnown,
        }
    }

    /// The key of a request of a protocol without such keys: the request itself, which consists of these parts.
    pub(crate) fn of_request(protocol: &str, request: &[&str]) -> Self {
        let request = hash(request);
        Self {
            // A client's key has no control characters.
            key: format!("{protocol}\n{request}").into(),
            request,
            validity: KeyValidity::WhileKnown,
        }
    }

    /// Lets the key stand for its run until the run ends.
    pub(crate) fn while_running(mut self) -> Self {
        self.validity = KeyValidity::WhileRunning;
        self
    }

    /// The key without its request.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.key
    }

    /// Returns `true` if the key means nothing after the end of its run.
    pub(crate) fn ends_with_run(&self) -> bool {
        self.validity == KeyValidity::WhileRunning
    }

    /// Checks that a key that was sent again was sent with the same request.
    pub(crate) fn check_same_request(&self, known: &Self) -> Result<(), ServiceError> {
        if self.request == known.request {
            return Ok(());
        }
        let message = "this idempotency key was sent with another request; use a new one";
        Err(ServiceError::new(
            ServiceErrorKind::IdempotencyKeyReused,
            message,
        ))
    }
}

fn hash(parts: &[&str]) -> Arc<str> {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        // The lengths tell parts apart.
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    hex(context.finish().as_ref()).into()
}
