//! Failures of models as clients are told of them.

use switchboard_core::stream::{EventKind, StreamEvent};
use switchboard_core::{Error, ErrorKind};

/// The reason that a provider has not completed an answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// The answer reached the most tokens that it may have.
    MaxTokens,
    ContentFilter,
}

impl CutOff {
    /// The reason of an error; `None` if it is another failure.
    pub(crate) fn of_error(error: &Error) -> Option<Self> {
        match incomplete_code(error)? {
            "max_output_tokens" | "length" => Some(Self::MaxTokens),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }

    /// The reason of an incomplete response.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_output_tokens",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// The provider's reason for an answer that is not complete.
#[cfg(feature = "http-models")]
fn incomplete_code(error: &Error) -> Option<&str> {
    use switchboard_models::{ModelError, ModelErrorKind};

    let error = error.cause()?.downcast_ref::<ModelError>()?;
    let is_incomplete = error.kind() == ModelErrorKind::Incomplete;
    error.code().filter(|_| is_incomplete)
}

/// The reason is not known of models of an application's own.
#[cfg(not(feature = "http-models"))]
fn incomplete_code(_error: &Error) -> Option<&str> {
    None
}

/// Takes the addresses of servers out of what an event says of a model's failure. The log has them.
pub(crate) fn hide_addresses(event: &mut StreamEvent) {
    let text = match &mut event.kind {
        EventKind::Inner { event, .. } => return hide_addresses(event),
        EventKind::RunFailed {
            error: ErrorKind::Model,
            message,
            ..
        } => message,
        EventKind::ModelRetry { reason, .. } | EventKind::CompactionFailed { reason, .. } => reason,
        // Of an agent that is a tool.
        EventKind::ToolEnded {
            error: Some(error), ..
        } => error,
        _ => return,
    };
    if text.contains("://") {
        *text = without_addresses(text);
    }
}

/// The text without addresses. One that begins a clause is left out with its colon.
fn without_addresses(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme = rest[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
        let start = scheme.map_or(0, |before| {
            before + rest[before..].chars().next().map_or(1, char::len_utf8)
        });
        kept.push_str(&rest[..start]);
        let is_end = |c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | ',' | ';')
        };
        let end = rest[start..]
            .find(is_end)
            .map_or(rest.len(), |end| start + end);
        let (address, after) = (&rest[start..end], &rest[end..]);
        rest = match (address.ends_with(':'), after.strip_prefix(' ')) {
            (true, Some(after)) => after,
            _ => {
                kept.push_str("the server");
                after
            }
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::without_addresses;

    #[test]
    fn addresses_are_taken_out_of_messages() {
        for (text, expected) in [
            ("no address", "no address"),
            (
                "a: http://127.0.0.1:7391/v1/chat: status 500: boom",
                "a: status 500: boom",
            ),
            (
                "cannot reach https://x.example/v1",
                "cannot reach the server",
            ),
            (
                "“http://x” and (https://y/z), no",
                "“the server and (the server), no",
            ),
            ("http://x", "the server"),
            ("://", "the server"),
        ] {
            assert_eq!(without_addresses(text), expected, "{text}");
        }
    }
}
