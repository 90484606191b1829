//! The parameters of operations, read as ProtoJSON: fields by either of their names, numbers also as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::A2aError;
use super::types::Shown;

#[derive(Debug, Deserialize)]
pub(super) struct SendParameters {
    pub(super) message: Value,
    #[serde(default)]
    configuration: Option<ConfigurationFields>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationFields {
    #[serde(default, alias = "history_length", deserialize_with = "integer")]
    history_length: Option<i64>,
    #[serde(default, alias = "return_immediately", deserialize_with = "boolean")]
    return_immediately: Option<bool>,
    #[serde(default, alias = "task_push_notification_config")]
    task_push_notification_config: Option<Value>,
}

/// The configuration of a message.
#[derive(Debug)]
pub(super) struct Configuration {
    history_length: Option<i64>,
    pub(super) return_immediately: bool,
    pub(super) has_push_notifications: bool,
}

impl SendParameters {
    pub(super) fn configuration(&self) -> Result<Configuration, A2aError> {
        let fields = self.configuration.as_ref();
        let configuration = Configuration {
            history_length: fields.and_then(|fields| fields.history_length),
            return_immediately: fields.and_then(|fields| fields.return_immediately) == Some(true),
            has_push_notifications: fields
                .is_some_and(|fields| fields.task_push_notification_config.is_some()),
        };
        configuration.shown()?;
        Ok(configuration)
    }
}

impl Configuration {
    pub(super) fn shown(&self) -> Result<Shown, A2aError> {
        Ok(Shown {
            history_length: history_length(self.history_length)?,
            with_artifacts: true,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParameters {
    pub(super) id: String,
    #[serde(default, alias = "history_length", deserialize_with = "integer")]
    history_length: Option<i64>,
}

impl TaskParameters {
    pub(super) fn history_length(&self) -> Result<Option<usize>, A2aError> {
        history_length(self.history_length)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CancelParameters {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListParameters {
    #[serde(default, alias = "context_id")]
    pub(super) context_id: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default, alias = "page_size", deserialize_with = "integer")]
    pub(super) page_size: Option<i64>,
    #[serde(default, alias = "page_token")]
    pub(super) page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "integer")]
    history_length: Option<i64>,
    #[serde(default, alias = "status_timestamp_after")]
    pub(super) status_timestamp_after: Option<String>,
    #[serde(default, alias = "include_artifacts", deserialize_with = "boolean")]
    pub(super) include_artifacts: Option<bool>,
}

impl ListParameters {
    pub(super) fn history_length(&self) -> Result<Option<usize>, A2aError> {
        history_length(self.history_length)
    }
}

fn history_length(given: Option<i64>) -> Result<Option<usize>, A2aError> {
    let length = given.map(usize::try_from).transpose();
    length.map_err(|_| A2aError::invalid("historyLength", "historyLength is 0 or more"))
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64()),
        Some(Value::String(text)) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(D::Error::custom(format!("{text:?} is no whole number"))),
        },
        Some(other) => Err(D::Error::custom(format!("{other} is no whole number"))),
    }
}

fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(Value::String(text)) if text == "true" => Ok(Some(true)),
        Some(Value::String(text)) if text == "false" => Ok(Some(false)),
        Some(other) => Err(D::Error::custom(format!("{other} is not true or false"))),
    }
}

/// Reads a time of RFC 3339 in UTC, such as `2026-11-16T09:05:06.250Z`. Times before 1970 are its first moment.
pub(super) fn parse_time(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix(['Z', 'z'])?;
    let (date, time) = text.split_once(['T', 't'])?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) => (time, fraction),
        None => (time, ""),
    };
    let number = |text: &str, length: usize| -> Option<i64> {
        let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let mut date = date.split('-');
    let year = number(date.next()?, 4)?;
    let month = number(date.next()?, 2).filter(|month| (1..=12).contains(month))?;
    let day = number(date.next()?, 2).filter(|day| (1..=31).contains(day))?;
    let mut time = time.split(':');
    let hour = number(time.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = number(time.next()?, 2).filter(|minute| *minute < 60)?;
    let second = number(time.next()?, 2).filter(|second| *second <= 60)?;
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    let millis = match fraction {
        "" => 0,
        fraction if fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{fraction:0<3}").get(..3)?.parse().ok()?
        }
        _ => return None,
    };
    // Days since 1970, counted from 1 March so that the leap day is the last of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Some(UNIX_EPOCH + since + Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::super::updates::timestamp;
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for millis in [0, 951_782_400_250, 1_794_819_906_001, 4_107_542_399_999] {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(parse_time(&timestamp(time)), Some(time), "{millis}");
        }
        let whole = UNIX_EPOCH + Duration::from_secs(951_782_400);
        assert_eq!(parse_time("2000-02-29T00:00:00Z"), Some(whole));
        for text in [
            "",
            "2000-02-29",
            "2000-02-29T00:00:00+01:00",
            "2000-13-01T00:00:00Z",
            "2000-02-29T00:00Z",
            "-001-02-29T00:00:00Z",
            "2000-02-29T00:00:00.xZ",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn fields_have_both_names_and_numbers_may_be_text() {
        let parameters =
            serde_json::json!({"context_id": "c", "pageSize": "7", "includeArtifacts": "true"});
        let parameters: ListParameters = serde_json::from_value(parameters).unwrap();
        assert_eq!(parameters.context_id.as_deref(), Some("c"));
        assert_eq!(parameters.page_size, Some(7));
        assert_eq!(parameters.include_artifacts, Some(true));
    }
}
