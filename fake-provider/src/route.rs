//! The endpoints of the provider.

use hyper::Method;

use crate::check::Protocol;
use crate::error::Problem;

/// An endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// One of the two protocols of text models.
    Model(Protocol),
    /// `POST /audio/speech`.
    Speech,
    /// `POST /audio/transcriptions`, whose body is a form.
    Transcriptions,
}

impl Route {
    pub(crate) fn find(path: &str, method: &Method) -> Result<Self, Problem> {
        let route = match path {
            "/v1/responses" => Self::Model(Protocol::Responses),
            "/v1/chat/completions" => Self::Model(Protocol::Chat),
            "/v1/audio/speech" => Self::Speech,
            "/v1/audio/transcriptions" => Self::Transcriptions,
            _ => {
                let message = format!("Invalid URL ({method} {path})");
                return Err(Problem::new(None, None, message).status(404));
            }
        };
        match *method {
            Method::POST => Ok(route),
            _ => {
                let message = format!("Not allowed to {method} on {path}");
                Err(Problem::new("method_not_supported", None, message).status(405))
            }
        }
    }

    /// The protocol of a text model.
    pub(crate) fn protocol(self) -> Result<Protocol, Problem> {
        match self {
            Self::Model(protocol) => Ok(protocol),
            Self::Speech | Self::Transcriptions => {
                let message = "prepared replies are those of text models";
                Err(Problem::new("no_reply", None, message).status(404))
            }
        }
    }
}
