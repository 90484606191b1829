//! Times as text.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// Returns a time as RFC 3339 writes it, in UTC: `2026-11-16T09:05:06.000250Z`.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use switchboard_core::trace::rfc3339;
///
/// let time = UNIX_EPOCH + Duration::from_millis(951_782_400_250);
/// assert_eq!(rfc3339(time), "2000-02-29T00:00:00.250000Z");
/// ```
pub fn rfc3339(time: SystemTime) -> String {
    format!("{}Z", utc(time))
}

/// The date and the time of day, without an offset. Times before 1970 are those of its first moment.
pub(super) fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (since.as_secs(), since.subsec_micros());
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// Serializes a time as text.
pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rfc3339(*time))
}

/// Serializes a time that may be missing.
pub(super) fn serialize_option<S: Serializer>(
    time: &Option<SystemTime>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serialize(time, to),
        None => to.serialize_none(),
    }
}

/// The date that is so many days after 1 January 1970, in the Gregorian calendar. Counts in cycles of
/// 400 years from 1 March of the year 0, so that the leap day is the last of a year.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = cycle * 400 + year;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}
