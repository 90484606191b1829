//! Default settings by model.

use switchboard_core::ModelSettings;
use switchboard_core::model::Reasoning;

/// The reasoning effort of models whose names may end with a date: `gpt-5.1-2025-11-13`.
const EFFORTS: [(&str, &str); 13] = [
    ("gpt-5", "low"),
    ("gpt-5.1", "none"),
    ("gpt-5.2", "none"),
    ("gpt-5.2-pro", "medium"),
    ("gpt-5.4", "none"),
    ("gpt-5.4-pro", "medium"),
    ("gpt-5.4-mini", "none"),
    ("gpt-5.4-nano", "none"),
    ("gpt-5.5", "none"),
    ("gpt-5.6", "none"),
    ("gpt-5.6-sol", "none"),
    ("gpt-5.6-terra", "none"),
    ("gpt-5.6-luna", "none"),
];

/// The reasoning effort of models whose names have no date.
const UNDATED_EFFORTS: [(&str, &str); 2] = [("gpt-5.2-codex", "low"), ("gpt-5.3-codex", "none")];

/// Models that take no reasoning effort.
const CHAT_MODELS: [&str; 4] = [
    "gpt-5-chat-latest",
    "gpt-5.1-chat-latest",
    "gpt-5.2-chat-latest",
    "gpt-5.3-chat-latest",
];

/// The default settings of a model by its name: GPT-5 models answer briefly, and reason as little as
/// an agent's tools need. Of other models nothing is set.
///
/// [`Providers`](crate::Providers) gives them to the models that it makes over HTTP. They hold for
/// agents without settings of their own: [`Agent::model_settings`](switchboard_core::Agent::model_settings)
/// replaces them, and switches them off with `ModelSettings::default()`.
///
/// ```
/// use switchboard_models::default_model_settings;
///
/// let settings = default_model_settings("gpt-5.2");
/// assert_eq!(settings.reasoning.unwrap().effort.as_deref(), Some("none"));
/// assert_eq!(settings.verbosity.as_deref(), Some("low"));
/// assert_eq!(default_model_settings("gpt-4.1"), Default::default());
/// ```
pub fn default_model_settings(model: &str) -> ModelSettings {
    if !model.starts_with("gpt-5") || CHAT_MODELS.contains(&model) {
        return ModelSettings::default();
    }
    ModelSettings {
        // Not every GPT-5 model takes the same efforts: of an unknown one, none is set.
        reasoning: default_effort(model).map(|effort| Reasoning {
            effort: Some(effort.into()),
            summary: None,
        }),
        verbosity: Some("low".into()),
        ..ModelSettings::default()
    }
}

fn default_effort(model: &str) -> Option<&'static str> {
    let find = |efforts: &[(&str, &'static str)], name: &str| {
        let found = efforts.iter().find(|(known, _)| *known == name);
        found.map(|(_, effort)| *effort)
    };
    find(&UNDATED_EFFORTS, model).or_else(|| find(&EFFORTS, without_date(model)))
}

/// Removes a date at the end: `-2025-11-13`.
fn without_date(model: &str) -> &str {
    let Some((name, date)) = model
        .len()
        .checked_sub(11)
        .and_then(|at| model.split_at_checked(at))
    else {
        return model;
    };
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if is_date { name } else { model }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_reference() {
        for (model, effort, verbosity) in [
            ("gpt-5", Some("low"), Some("low")),
            ("gpt-5-2025-08-07", Some("low"), Some("low")),
            ("gpt-5.1", Some("none"), Some("low")),
            ("gpt-5.2-pro-2025-12-11", Some("medium"), Some("low")),
            ("gpt-5.2-codex", Some("low"), Some("low")),
            ("gpt-5.2-codex-2025-12-11", None, Some("low")),
            ("gpt-5.6-luna", Some("none"), Some("low")),
            ("gpt-5-mini", None, Some("low")),
            ("gpt-5-2025-08-0x", None, Some("low")),
            ("gpt-5.9-ä", None, Some("low")),
            ("gpt-5-chat-latest", None, None),
            ("gpt-4.1", None, None),
            ("o3", None, None),
            ("", None, None),
        ] {
            let settings = default_model_settings(model);
            let reasoning = settings.reasoning.and_then(|reasoning| reasoning.effort);
            assert_eq!(reasoning.as_deref(), effort, "{model}");
            assert_eq!(settings.verbosity.as_deref(), verbosity, "{model}");
        }
    }
}
