//! The headers of a response.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, HeaderName, RETRY_AFTER};

use crate::wire::model_error::RateLimits;

static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static APIM_REQUEST_ID: HeaderName = HeaderName::from_static("apim-request-id");
static X_GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");
static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
static X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
static REMAINING_REQUESTS: HeaderName = HeaderName::from_static("x-ratelimit-remaining-requests");
static REMAINING_TOKENS: HeaderName = HeaderName::from_static("x-ratelimit-remaining-tokens");
static RESET_REQUESTS: HeaderName = HeaderName::from_static("x-ratelimit-reset-requests");
static RESET_TOKENS: HeaderName = HeaderName::from_static("x-ratelimit-reset-tokens");

/// The headers of a response that are used. Malformed ones count as missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseHeaders {
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) rate_limits: RateLimits,
    /// The server's advice on retrying, from `x-should-retry`.
    pub(crate) should_retry: Option<bool>,
}

impl ResponseHeaders {
    pub(crate) fn parse(headers: &HeaderMap) -> Self {
        let text = |name| header_text(headers, name);
        let number = |name| text(name)?.parse().ok();
        let retry_after_ms = || seconds(text(&RETRY_AFTER_MS)?.parse::<f64>().ok()? / 1000.0);
        Self {
            request_id: request_id(headers).map(str::to_owned),
            retry_after: retry_after_ms().or_else(|| retry_after(text(&RETRY_AFTER)?)),
            rate_limits: RateLimits {
                remaining_requests: number(&REMAINING_REQUESTS),
                remaining_tokens: number(&REMAINING_TOKENS),
                reset_requests: text(&RESET_REQUESTS).and_then(duration),
                reset_tokens: text(&RESET_TOKENS).and_then(duration),
            },
            should_retry: text(&X_SHOULD_RETRY).and_then(|value| value.parse().ok()),
        }
    }
}

/// The identifier that the server gave the request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<&str> {
    [&X_REQUEST_ID, &APIM_REQUEST_ID, &X_GENERATION_ID]
        .into_iter()
        .find_map(|name| header_text(headers, name))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Parses a number of seconds or an HTTP date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Parses a duration such as `120ms`, `50.529s`, `6m0s` or `1h2m3s`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..unit].parse().ok()?;
        let (scale, length) = match &rest[unit..] {
            unit if unit.starts_with("ms") => (0.001, 2),
            unit if unit.starts_with('s') => (1.0, 1),
            unit if unit.starts_with('m') => (60.0, 1),
            unit if unit.starts_with('h') => (3600.0, 1),
            unit if unit.starts_with('d') => (86400.0, 1),
            _ => return None,
        };
        total += number * scale;
        rest = &rest[unit + length..];
    }
    seconds(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::fuzzing;
    use proptest::prelude::*;

    #[test]
    fn durations_are_parsed() {
        let ms = |text| duration(text).map(|span| span.as_millis());
        assert_eq!(ms("120ms"), Some(120));
        assert_eq!(ms("50.529s"), Some(50_529));
        assert_eq!(ms("6m0s"), Some(360_000));
        assert_eq!(ms("1h2m3s"), Some(3_723_000));
        for malformed in ["", "s", "1", "1x", "..s", "1e9h"] {
            assert!(matches!(ms(malformed), None | Some(0)), "{malformed}");
        }
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        assert_eq!(retry_after("1.5"), Some(Duration::from_millis(1500)));
        let past = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(past), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let delay = retry_after(&soon).unwrap().as_secs();
        assert!((90..=100).contains(&delay), "{delay}");
        for malformed in [
            "-5",
            "NaN",
            "Thu, 99 Foo 2024",
            "Sun, 06 Nov 1994 24:00:00 GMT",
        ] {
            assert_eq!(retry_after(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn malformed_headers_count_as_missing() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("retry-after", "-5"),
            ("retry-after-ms", "NaN"),
            ("x-should-retry", "maybe"),
            ("x-ratelimit-remaining-tokens", "many"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let parsed = ResponseHeaders::parse(&headers);
        assert_eq!((parsed.retry_after, parsed.should_retry), (None, None));
        assert_eq!(parsed.rate_limits, RateLimits::default());
    }

    /// Nearly valid dates and durations, and any bytes.
    fn any_value() -> impl Strategy<Value = Vec<u8>> {
        let date = "(Sun|), -?[0-9]{0,20} (Jan|Feb|Dec) [0-9]{1,20} [0-9]{1,20}:-?[0-9]{1,20}:[0-9]{1,20} GMT";
        prop_oneof![
            date.prop_map(String::into_bytes),
            "-?[0-9]{0,40}(\\.[0-9]{0,9})?(e[0-9]{1,4})?(ms|s|m|h|d)?[0-9]{0,3}(ms|s)?"
                .prop_map(String::into_bytes),
            "[ -~]{0,40}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..40),
        ]
    }

    proptest! {
        #[test]
        fn no_header_value_panics(value in any_value()) {
            fuzzing::head(&value);
        }
    }
}
