//! Parsers of option values.

use std::str::FromStr;
use std::time::Duration;

/// A voice, of one agent or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentVoice {
    pub(crate) agent: Option<String>,
    pub(crate) voice: String,
}

pub(super) fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write it as KEY=VALUE, as in tier=premium".to_owned()),
    }
}

pub(crate) fn voice(text: &str) -> Result<AgentVoice, String> {
    let (agent, voice) = match text.split_once('=') {
        Some((agent, voice)) => (Some(agent.trim().to_owned()), voice.trim()),
        None => (None, text.trim()),
    };
    if voice.is_empty() || agent.as_deref() == Some("") {
        return Err("write it as NAME, or as AGENT=NAME".to_owned());
    }
    let voice = voice.to_owned();
    Ok(AgentVoice { agent, voice })
}

pub(super) fn at_least_one<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| "give a number from 1 on".to_owned())
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err("give a number above 0, as in 1 or 2.5".to_owned()),
    }
}

/// Parses seconds, or a number with a unit: `90`, `1.5s`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let number = number.trim().parse::<f64>().ok();
    let time = number.zip(seconds).map(|(number, unit)| number * unit);
    let time = time.and_then(|time| Duration::try_from_secs_f64(time).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "give a time above 0, as in 30, 90s or 2m".to_owned())
}

/// Parses a time as [`duration`] does, or a number of days: `30d`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let days = text
        .strip_suffix('d')
        .map(|days| days.trim().parse::<f64>());
    let age = match days {
        None => duration(text).ok(),
        Some(days) => days
            .ok()
            .and_then(|days| Duration::try_from_secs_f64(days * 24.0 * 3600.0).ok()),
    };
    age.filter(|age| !age.is_zero())
        .ok_or_else(|| "give a time above 0, as in 90m, 12h or 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_value_may_hold_an_equals_sign() {
        let read = key_and_value("query=a=b");
        assert_eq!(read, Ok(("query".to_owned(), "a=b".to_owned())));
        assert!(key_and_value("=b").is_err() && key_and_value("tier").is_err());
    }

    #[test]
    fn a_time_is_a_number_of_seconds_or_has_a_unit() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("30"), Ok(30.0));
        assert_eq!(seconds("1.5s"), Ok(1.5));
        assert_eq!(seconds("2m"), Ok(120.0));
        for wrong in ["", "0", "-1", "2d", "inf", "m"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_may_be_a_number_of_days() {
        assert_eq!(age("1.5d"), Ok(Duration::from_secs(36 * 3600)));
        assert_eq!(age("12h"), Ok(Duration::from_secs(12 * 3600)));
        for wrong in ["", "d", "0d", "-1d", "infd", "1w"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
