//! What the headers of an answer tell.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderValue};

use crate::wire::error::RateLimits;

/// What the headers of an answer tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) rate_limits: RateLimits,
    /// The server's own word on whether to ask again.
    pub(crate) should_retry: Option<bool>,
}

/// The headers that tell something.
const NAMES: [&str; 10] = [
    "x-request-id",
    "apim-request-id",
    "x-generation-id",
    "retry-after-ms",
    "retry-after",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-should-retry",
];

impl Head {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        // Gone through once: 640 instructions, where looking up each of ten takes 3,500.
        let mut found: [Option<&HeaderValue>; NAMES.len()] = [None; NAMES.len()];
        for (name, value) in headers {
            let place = NAMES.iter().position(|known| *known == name.as_str());
            if let Some(place) = place {
                found[place].get_or_insert(value);
            }
        }
        let texts = found.map(|value| value?.to_str().ok().map(str::trim));
        let [
            request_id,
            azures_id,
            generation_id,
            after_ms,
            after,
            texts @ ..,
        ] = texts;
        let [requests, tokens, reset_requests, reset_tokens, should_retry] = texts;
        let after = after_ms
            .and_then(|ms| seconds(ms.parse::<f64>().ok()? / 1000.0))
            .or_else(|| after.and_then(retry_after));
        let request_id = request_id.or(azures_id).or(generation_id);
        let number = |text: Option<&str>| text?.parse().ok();
        Self {
            request_id: request_id.map(str::to_owned),
            retry_after: after,
            rate_limits: RateLimits {
                remaining_requests: number(requests),
                remaining_tokens: number(tokens),
                reset_requests: reset_requests.and_then(duration),
                reset_tokens: reset_tokens.and_then(duration),
            },
            should_retry: should_retry.and_then(|told| told.parse().ok()),
        }
    }
}

/// Reads these bytes as the value of each header there is.
#[cfg(any(test, fuzzing))]
pub(crate) fn of_any(value: &[u8]) {
    let Ok(value) = reqwest::header::HeaderValue::from_bytes(value) else {
        return;
    };
    let names = [
        "retry-after-ms",
        "retry-after",
        "x-request-id",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        "x-should-retry",
    ];
    for name in names {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.clone());
        Head::of(&headers);
    }
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let at = date(text)?;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    Some(at.saturating_sub(now))
}

/// An HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`) as time since 1970.
fn date(text: &str) -> Option<Duration> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_ascii_whitespace().skip(1);
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words
        .next()?
        .split(':')
        .map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_clock =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    if !is_clock || !(1..=31).contains(&day) || !(1970..10_000).contains(&year) {
        return None;
    }
    // Days since 1970, with years that begin in March.
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    let total = ((days * 24 + hour) * 60 + minute) * 60 + second;
    u64::try_from(total).ok().map(Duration::from_secs)
}

/// `120ms`, `50.529s`, `6m0s`, `1h2m3s`.
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
    use proptest::prelude::*;

    #[test]
    fn spans_of_time_are_read() {
        let ms = |text| duration(text).map(|span| span.as_millis());
        assert_eq!(ms("120ms"), Some(120));
        assert_eq!(ms("50.529s"), Some(50_529));
        assert_eq!(ms("6m0s"), Some(360_000));
        assert_eq!(ms("1h2m3s"), Some(3_723_000));
        for odd in ["", "s", "1", "1x", "..s", "1e9h"] {
            assert!(matches!(ms(odd), None | Some(0)), "{odd}");
        }
    }

    #[test]
    fn dates_are_read() {
        let at = |text| date(text).map(|at| at.as_secs());
        assert_eq!(at("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(at("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(at("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(at("Thu, 99 Foo 2024"), None);
        for clock in [
            "9223372036854775807:00:00",
            "24:00:00",
            "00:60:00",
            "-1:0:0",
            "1:2",
        ] {
            let text = format!("Sun, 06 Nov 1994 {clock} GMT");
            assert_eq!(date(&text), None, "{clock}");
        }
    }

    #[test]
    fn headers_that_make_no_sense_say_nothing() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("retry-after", "-5"),
            ("retry-after-ms", "NaN"),
            ("x-should-retry", "maybe"),
            ("x-ratelimit-remaining-tokens", "many"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let head = Head::of(&headers);
        assert_eq!((head.retry_after, head.should_retry), (None, None));
        assert_eq!(head.rate_limits, RateLimits::default());
    }

    /// Text that is almost right is where mistakes are.
    fn any_text() -> impl Strategy<Value = Vec<u8>> {
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
        fn any_header_is_read_or_left(text in any_text()) {
            of_any(&text);
        }
    }
}
