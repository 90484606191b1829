//! Settings of realtime sessions, from the JSON of cases and back.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard_core::model::{Prompt, ToolChoice};
use switchboard_realtime::model::{
    AudioFormat, MaxOutputTokens, Modality, NoiseReduction, RealtimeModelSettings, RealtimeVoice,
    Switch, Transcription, TurnDetection,
};

/// Reads settings. A field that is not known is an error, so that no case passes by chance.
pub(crate) fn parse(case: &Value) -> Result<RealtimeModelSettings, String> {
    let mut settings = RealtimeModelSettings::default();
    let Some(fields) = case.as_object() else {
        return Ok(settings);
    };
    for (name, value) in fields {
        let failed = |error: serde_json::Error| format!("the setting {name}: {error}");
        match name.as_str() {
            "model_name" => settings.model_name = value.as_str().map(Into::into),
            "instructions" => settings.instructions = value.as_str().map(Into::into),
            "voice" => settings.voice = Some(from::<RealtimeVoice>(value).map_err(failed)?),
            "speed" => settings.speed = value.as_f64(),
            "modalities" | "output_modalities" => {
                settings.output_modalities = Some(from::<Vec<Modality>>(value).map_err(failed)?);
            }
            "tool_choice" => settings.tool_choice = value.as_str().map(tool_choice),
            "parallel_tool_calls" => settings.parallel_tool_calls = value.as_bool(),
            "prompt" => settings.prompt = prompt(value).map(Arc::new),
            "turn_detection" => settings.turn_detection = Some(turn_detection(value)),
            "input_audio_transcription" => {
                let transcription = || from::<Transcription>(value);
                settings.input_audio_transcription =
                    Some(switch(value, transcription).map_err(failed)?);
            }
            "input_audio_noise_reduction" => {
                let reduction = || from::<NoiseReduction>(&value["type"]);
                settings.input_audio_noise_reduction =
                    Some(switch(value, reduction).map_err(failed)?);
            }
            "input_audio_format" => {
                settings.input_audio_format = Some(from::<AudioFormat>(value).map_err(failed)?);
            }
            "output_audio_format" => {
                settings.output_audio_format = Some(from::<AudioFormat>(value).map_err(failed)?);
            }
            "max_output_tokens" => {
                settings.max_output_tokens = Some(match value.as_u64() {
                    Some(limit) => MaxOutputTokens::Limit(u32::try_from(limit).unwrap_or(u32::MAX)),
                    None => MaxOutputTokens::Unlimited,
                });
            }
            "reasoning" => settings.reasoning_effort = value["effort"].as_str().map(Into::into),
            _ => return Err(format!("the setting {name} is not known")),
        }
    }
    Ok(settings)
}

fn from<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value.clone())
}

fn switch<T, E>(value: &Value, on: impl FnOnce() -> Result<T, E>) -> Result<Switch<T>, E> {
    if value.is_null() {
        return Ok(Switch::Off);
    }
    on().map(Switch::On)
}

fn tool_choice(name: &str) -> ToolChoice {
    match name {
        "auto" => ToolChoice::Auto,
        "required" => ToolChoice::Required,
        "none" => ToolChoice::None,
        name => ToolChoice::Named(name.into()),
    }
}

fn turn_detection(value: &Value) -> Switch<TurnDetection> {
    match value.as_object() {
        Some(fields) => Switch::On(TurnDetection::Other(fields.clone())),
        None => Switch::Off,
    }
}

/// Reads a stored prompt.
pub(crate) fn prompt(value: &Value) -> Option<Prompt> {
    let mut prompt = Prompt::new(value["id"].as_str()?);
    if let Some(version) = value["version"].as_str() {
        prompt = prompt.version(version);
    }
    let variables = value["variables"].as_object().into_iter().flatten();
    Some(variables.fold(prompt, |prompt, (name, value)| {
        prompt.variable(name, value.clone())
    }))
}

/// The settings as the corpus writes them; tools in full, or by their names.
pub(crate) fn render(settings: &RealtimeModelSettings, is_full: bool) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    let tools = settings.tools.iter().flat_map(|tools| tools.iter());
    let tools = tools.map(|tool| {
        if is_full {
            json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        } else {
            json!(tool.name)
        }
    });
    set("tools", tools.collect());
    let handoffs = settings
        .handoffs
        .iter()
        .flat_map(|handoffs| handoffs.iter());
    let handoffs = handoffs.map(|handoff| {
        json!({
            "tool_name": handoff.tool_name,
            "tool_description": handoff.tool_description,
            "input_json_schema": handoff.input_json_schema,
        })
    });
    set("handoffs", handoffs.collect());
    set("instructions", json!(settings.instructions));
    set("model_name", json!(settings.model_name));
    set("prompt", json!(settings.prompt));
    set("voice", json!(settings.voice));
    set("speed", json!(settings.speed));
    set("modalities", json!(settings.output_modalities));
    set("parallel_tool_calls", json!(settings.parallel_tool_calls));
    set("input_audio_format", json!(settings.input_audio_format));
    set("output_audio_format", json!(settings.output_audio_format));
    let transcription = settings.input_audio_transcription.as_ref();
    set(
        "input_audio_transcription",
        json!(transcription.and_then(Switch::on)),
    );
    let reduction = settings.input_audio_noise_reduction.as_ref();
    let reduction = reduction
        .and_then(Switch::on)
        .map(|kind| json!({"type": kind}));
    set("input_audio_noise_reduction", json!(reduction));
    let detection = settings.turn_detection.as_ref().and_then(Switch::on);
    if let Some(TurnDetection::Other(fields)) = detection {
        set("turn_detection", json!(fields));
    }
    if let Some(effort) = &settings.reasoning_effort {
        set("reasoning", json!({"effort": effort}));
    }
    set(
        "tool_choice",
        match &settings.tool_choice {
            None => Value::Null,
            Some(ToolChoice::Auto) => "auto".into(),
            Some(ToolChoice::Required) => "required".into(),
            Some(ToolChoice::None) => "none".into(),
            Some(ToolChoice::Named(name)) => json!(name),
        },
    );
    set(
        "max_output_tokens",
        match settings.max_output_tokens {
            None => Value::Null,
            Some(MaxOutputTokens::Unlimited) => "inf".into(),
            Some(MaxOutputTokens::Limit(limit)) => limit.into(),
        },
    );
    fields.retain(|name, value| !value.is_null() || name == "instructions");
    Value::Object(fields)
}
