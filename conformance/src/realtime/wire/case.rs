//! The JSON of cases on a WebSocket: placeholders, settings in either form, identifiers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use switchboard_realtime::model::{RealtimeModelSettings, RealtimeTrace, RealtimeTracing, Switch};

use super::super::settings;

/// The case with its zeros written out, its settings flat, and its messages without parts that make no
/// sense.
pub(super) fn prepare(case: &Value) -> Value {
    let mut case = expand_zeros(case);
    for field in ["model_settings", "initial_model_settings"] {
        if let Some(settings) = case[field].as_object() {
            case[field] = flatten(settings);
        }
    }
    if let Some(settings) = case["initial_model_settings"].as_object_mut()
        && let Some(tracing) = settings.shift_remove("tracing")
    {
        case["initial_tracing"] = tracing;
    }
    let steps = case["script"].as_array_mut().into_iter().flatten();
    for step in steps {
        if let Some(parts) = step.pointer("/send/content").and_then(Value::as_array) {
            let parts: Vec<Value> = parts.iter().filter_map(sensible_part).collect();
            step["send"]["content"] = json!(parts);
        }
    }
    case
}

/// The expectation, with its zeros written out and without words of errors.
pub(crate) fn expected(case: &Value) -> Value {
    super::super::expected(&expand_zeros(case))
}

/// The settings of the connection, with the trace.
pub(super) fn connection_settings(case: &Value) -> Result<RealtimeModelSettings, String> {
    let mut settings = settings::parse(&case["initial_model_settings"])?;
    settings.tracing = match case.get("initial_tracing") {
        None => None,
        Some(Value::Null) => Some(Switch::Off),
        Some(Value::String(_)) => Some(Switch::On(RealtimeTracing::Auto)),
        Some(trace) => {
            let trace = serde_json::from_value::<RealtimeTrace>(trace.clone());
            let trace = trace.map_err(|error| error.to_string())?;
            Some(Switch::On(RealtimeTracing::Named(trace)))
        }
    };
    Ok(settings)
}

/// Puts the identifiers that the client made up in place of `<id N>`.
pub(super) fn with_ids(value: &Value, frames: &[Value]) -> Value {
    let ids = made_up_ids(frames);
    map_texts(value, &|text| {
        let number = text.strip_prefix("<id ")?.strip_suffix('>')?;
        let number: usize = number.parse().ok()?;
        ids.get(number.checked_sub(1)?).cloned()
    })
}

/// Puts `<id N>` in place of the identifiers that the client made up.
pub(super) fn name_ids(value: Value, frames: &[Value]) -> Value {
    let ids = made_up_ids(frames);
    map_texts(&value, &|text| {
        let position = ids.iter().position(|id| id == text)?;
        Some(format!("<id {}>", position + 1))
    })
}

fn made_up_ids(frames: &[Value]) -> Vec<String> {
    let requests = frames
        .iter()
        .filter(|frame| frame["type"] == "response.create");
    let ids = requests.filter_map(|frame| frame["event_id"].as_str());
    let made_up = ids.filter(|id| id.starts_with("switchboard_response_"));
    made_up.map(str::to_owned).collect()
}

fn expand_zeros(value: &Value) -> Value {
    map_texts(value, &|text| {
        let count = text.strip_prefix("<zeros ")?.strip_suffix('>')?;
        let count: usize = count.parse().ok()?;
        Some(STANDARD.encode(vec![0; count]))
    })
}

fn map_texts(value: &Value, map: &impl Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => json!(map(text).unwrap_or_else(|| text.clone())),
        Value::Array(values) => values.iter().map(|value| map_texts(value, map)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let mapped = fields.map(|(name, value)| (name.clone(), map_texts(value, map)));
            Value::Object(mapped.collect())
        }
        other => other.clone(),
    }
}

/// Settings in one form: those of the `audio` object have precedence over the flat ones.
fn flatten(settings: &Map<String, Value>) -> Value {
    let mut flat = settings.clone();
    let mut set = |name: &str, value: Option<&Value>| {
        if let Some(value) = value {
            flat.insert(name.to_owned(), value.clone());
        }
    };
    let audio = settings.get("audio").unwrap_or(&Value::Null);
    let (input, output) = (&audio["input"], &audio["output"]);
    set("input_audio_format", input.get("format"));
    set("input_audio_noise_reduction", input.get("noise_reduction"));
    set("input_audio_transcription", input.get("transcription"));
    set("turn_detection", input.get("turn_detection"));
    set("output_audio_format", output.get("format"));
    set("voice", output.get("voice"));
    set("speed", output.get("speed"));
    set("modalities", settings.get("output_modalities"));
    flat.shift_remove("audio");
    flat.shift_remove("output_modalities");
    for name in ["input_audio_format", "output_audio_format"] {
        if let Some(format) = flat.get(name).and_then(format_name) {
            flat.insert(name.to_owned(), json!(format));
        }
    }
    if let Some(detection) = flat
        .get_mut("turn_detection")
        .and_then(Value::as_object_mut)
    {
        *detection = std::mem::take(detection)
            .into_iter()
            .map(|(name, value)| (snake_case(&name), value))
            .collect();
    }
    Value::Object(flat)
}

fn format_name(format: &Value) -> Option<&'static str> {
    match format.as_str().or(format["type"].as_str())? {
        "pcm16" | "audio/pcm" | "pcm" => Some("pcm16"),
        "g711_ulaw" | "audio/pcmu" | "pcmu" => Some("g711_ulaw"),
        "g711_alaw" | "audio/pcma" | "pcma" => Some("g711_alaw"),
        _ => None,
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// A part of a message as the reference sends it; `None` if it does not.
fn sensible_part(part: &Value) -> Option<Value> {
    match part["type"].as_str()? {
        "input_text" => part["text"].is_string().then(|| part.clone()),
        "input_image" => {
            let mut part = part.clone();
            part["image_url"].as_str().filter(|url| !url.is_empty())?;
            if !matches!(part["detail"].as_str(), Some("auto" | "low" | "high"))
                && let Some(fields) = part.as_object_mut()
            {
                fields.shift_remove("detail");
            }
            Some(part)
        }
        _ => None,
    }
}
