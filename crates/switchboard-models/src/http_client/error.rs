//! Errors of connections.

use std::error::Error;
use std::{fmt, io};

use switchboard_core::callback::BoxError;

/// The failure of a request. It quotes neither the address nor the headers.
#[derive(Debug)]
pub struct HttpError {
    cause: BoxError,
    is_connect: bool,
}

/// The error for something that did not happen in time.
#[derive(Debug)]
pub(super) struct TimedOut;

impl HttpError {
    pub(super) fn from_client(error: impl Into<BoxError>) -> Self {
        let cause = error.into();
        let is_connect = cause
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        Self { cause, is_connect }
    }

    pub(super) fn from_body(error: hyper::Error) -> Self {
        Self {
            cause: error.into(),
            is_connect: false,
        }
    }

    /// Returns `true` if there was no connection, so that nothing was sent.
    pub fn is_connect(&self) -> bool {
        self.is_connect
    }

    /// Returns `true` if a time limit was reached.
    pub fn is_timeout(&self) -> bool {
        causes(self).any(|cause| {
            let is_io = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
            cause.is::<TimedOut>() || cause.downcast_ref().is_some_and(is_io)
        })
    }
}

/// The causes of an error, the nearest first.
pub fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (**cause).source())
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request failed")
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit was reached")
    }
}

impl Error for TimedOut {}
