//! The session object of `session.update`, from settings.

use serde_json::{Map, Value, json};
use switchboard_core::model::{HandoffSpec, ToolChoice, ToolSpec};

use crate::model::{
    AudioFormat, MaxOutputTokens, Modality, NoiseReduction, RealtimeModelError,
    RealtimeModelErrorKind, RealtimeModelSettings, RealtimeTracing, Switch, Transcription,
    TurnDetection,
};

/// The model of sessions that name none.
pub(crate) const DEFAULT_MODEL: &str = "gpt-realtime-2.1";
const DEFAULT_VOICE: &str = "ash";
const DEFAULT_TRANSCRIPTION: &str = "gpt-4o-mini-transcribe";

/// The session object for these settings. A session that joins a call leaves the formats to the call.
pub(super) fn session_config(
    settings: &RealtimeModelSettings,
    model: &str,
    joins_call: bool,
) -> Result<Map<String, Value>, RealtimeModelError> {
    let mut session = Map::new();
    session.insert("type".into(), "realtime".into());
    session.insert("model".into(), model.into());
    let modalities = settings.output_modalities.as_deref();
    let modalities = modalities.filter(|modalities| !modalities.is_empty());
    let modalities = modalities.unwrap_or(&[Modality::Audio]);
    session.insert("output_modalities".into(), json!(modalities));
    let input = audio_input(settings, joins_call)?;
    let output = audio_output(settings, joins_call);
    session.insert("audio".into(), json!({"input": input, "output": output}));
    session.insert("tools".into(), tools(settings)?);
    if let Some(parallel) = settings.parallel_tool_calls {
        session.insert("parallel_tool_calls".into(), parallel.into());
    }
    if let Some(effort) = &settings.reasoning_effort {
        session.insert("reasoning".into(), json!({"effort": effort}));
    }
    if let Some(instructions) = &settings.instructions {
        session.insert("instructions".into(), (**instructions).into());
    }
    if let Some(prompt) = &settings.prompt {
        let variables = (!prompt.variables.is_empty()).then_some(&prompt.variables);
        let prompt = json!({"id": prompt.id, "version": prompt.version, "variables": variables});
        session.insert("prompt".into(), prompt);
    }
    if let Some(limit) = &settings.max_output_tokens {
        let limit = match limit {
            MaxOutputTokens::Unlimited => "inf".into(),
            MaxOutputTokens::Limit(limit) => (*limit).into(),
        };
        session.insert("max_output_tokens".into(), limit);
    }
    if let Some(choice) = &settings.tool_choice {
        let choice = match choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Named(name) => json!({"type": "function", "name": name}),
        };
        session.insert("tool_choice".into(), choice);
    }
    if let Some(truncation) = &settings.truncation {
        check_truncation(truncation)?;
        session.insert("truncation".into(), truncation.clone());
    }
    Ok(session)
}

/// The session object that sets only the trace.
pub(super) fn tracing_config(tracing: &RealtimeTracing, model: &str) -> Map<String, Value> {
    let tracing = match tracing {
        RealtimeTracing::Auto => "auto".into(),
        RealtimeTracing::Named(trace) => json!({
            "workflow_name": trace.workflow_name,
            "group_id": trace.group_id,
            "metadata": (!trace.metadata.is_empty()).then_some(&trace.metadata),
        }),
    };
    let mut session = Map::new();
    session.insert("type".into(), "realtime".into());
    session.insert("model".into(), model.into());
    session.insert("tracing".into(), tracing);
    session
}

fn audio_input(
    settings: &RealtimeModelSettings,
    joins_call: bool,
) -> Result<Map<String, Value>, RealtimeModelError> {
    let mut input = Map::new();
    if let Some(format) = format(settings.input_audio_format, joins_call) {
        input.insert("format".into(), format);
    }
    match &settings.input_audio_noise_reduction {
        None => {}
        Some(Switch::Off) => {
            input.insert("noise_reduction".into(), Value::Null);
        }
        Some(Switch::On(kind)) => {
            let kind: &NoiseReduction = kind;
            input.insert("noise_reduction".into(), json!({"type": kind}));
        }
    }
    let transcription = match &settings.input_audio_transcription {
        None => json!({"model": DEFAULT_TRANSCRIPTION}),
        Some(Switch::Off) => Value::Null,
        Some(Switch::On(transcription)) => {
            check_transcription(transcription)?;
            json!(transcription)
        }
    };
    input.insert("transcription".into(), transcription);
    let turn_detection = match &settings.turn_detection {
        None => json!({"type": "semantic_vad", "interrupt_response": true}),
        Some(Switch::Off) => Value::Null,
        Some(Switch::On(detection)) => turn_detection(detection)?,
    };
    input.insert("turn_detection".into(), turn_detection);
    Ok(input)
}

fn audio_output(settings: &RealtimeModelSettings, joins_call: bool) -> Map<String, Value> {
    let mut output = Map::new();
    let voice = settings.voice.as_ref();
    let voice = voice.map_or_else(|| DEFAULT_VOICE.into(), |voice| json!(voice));
    output.insert("voice".into(), voice);
    if let Some(format) = format(settings.output_audio_format, joins_call) {
        output.insert("format".into(), format);
    }
    if let Some(speed) = settings.speed {
        output.insert("speed".into(), speed.into());
    }
    output
}

fn format(format: Option<AudioFormat>, joins_call: bool) -> Option<Value> {
    let default = (!joins_call).then(AudioFormat::default);
    let format = match format.or(default)? {
        AudioFormat::Pcm16 => json!({"type": "audio/pcm", "rate": 24_000}),
        AudioFormat::G711Ulaw => json!({"type": "audio/pcmu"}),
        AudioFormat::G711Alaw => json!({"type": "audio/pcma"}),
    };
    Some(format)
}

fn turn_detection(detection: &TurnDetection) -> Result<Value, RealtimeModelError> {
    let (kind, mut value) = match detection {
        TurnDetection::Server(vad) => ("server_vad", json!(vad)),
        TurnDetection::Semantic(vad) => ("semantic_vad", json!(vad)),
        TurnDetection::Other(fields) => {
            check_turn_detection(fields)?;
            return Ok(Value::Object(fields.clone()));
        }
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("type".into(), kind.into());
        check_turn_detection(fields)?;
    }
    Ok(value)
}

/// Refuses turn detection that the official types refuse.
fn check_turn_detection(fields: &Map<String, Value>) -> Result<(), RealtimeModelError> {
    let kind = fields.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("server_vad" | "semantic_vad")) {
        return Err(invalid(format!(
            "turn detection of the type {:?} does not exist: use `server_vad` or `semantic_vad`",
            kind.unwrap_or_default()
        )));
    }
    let eagerness = fields
        .get("eagerness")
        .filter(|eagerness| !eagerness.is_null());
    if kind == Some("semantic_vad")
        && let Some(eagerness) = eagerness
        && !matches!(eagerness.as_str(), Some("low" | "medium" | "high" | "auto"))
    {
        return Err(invalid(format!(
            "the eagerness {eagerness} does not exist: use `low`, `medium`, `high` or `auto`"
        )));
    }
    for field in ["create_response", "interrupt_response"] {
        check(fields, field, "true or false", Value::is_boolean)?;
    }
    if kind == Some("server_vad") {
        for field in [
            "idle_timeout_ms",
            "prefix_padding_ms",
            "silence_duration_ms",
        ] {
            check(fields, field, "a whole number", |value| {
                value.is_u64() || value.is_i64()
            })?;
        }
        check(fields, "threshold", "a number", Value::is_number)?;
    }
    Ok(())
}

fn check_transcription(transcription: &Transcription) -> Result<(), RealtimeModelError> {
    let is_texts = |value: &Value| {
        let texts = value.as_array();
        texts.is_some_and(|texts| texts.iter().all(Value::is_string))
    };
    check(
        &transcription.extra,
        "keywords",
        "a list of texts",
        is_texts,
    )?;
    check(
        &transcription.extra,
        "languages",
        "a list of texts",
        is_texts,
    )?;
    let delays = ["minimal", "low", "medium", "high", "xhigh"];
    let is_delay = |value: &Value| value.as_str().is_some_and(|delay| delays.contains(&delay));
    check(
        &transcription.extra,
        "delay",
        "minimal, low, medium, high or xhigh",
        is_delay,
    )
}

fn check_truncation(truncation: &Value) -> Result<(), RealtimeModelError> {
    let is_ratio =
        || truncation["type"] == "retention_ratio" && truncation["retention_ratio"].is_number();
    if matches!(truncation.as_str(), Some("auto" | "disabled")) || is_ratio() {
        return Ok(());
    }
    Err(invalid(format!(
        "the truncation {truncation} does not exist: use `auto`, `disabled`, or an object of the type \
         `retention_ratio`"
    )))
}

/// Refuses a field that is set to something else than `expected`.
fn check(
    fields: &Map<String, Value>,
    field: &str,
    expected: &str,
    is_valid: impl Fn(&Value) -> bool,
) -> Result<(), RealtimeModelError> {
    match fields.get(field) {
        Some(value) if !value.is_null() && !is_valid(value) => Err(invalid(format!(
            "`{field}` is {value}: it must be {expected}"
        ))),
        _ => Ok(()),
    }
}

fn tools(settings: &RealtimeModelSettings) -> Result<Value, RealtimeModelError> {
    let tools = settings.tools.as_deref().unwrap_or_default();
    let handoffs = settings.handoffs.as_deref().unwrap_or_default();
    let mut names: Vec<&str> = Vec::with_capacity(tools.len() + handoffs.len());
    let mut converted = Vec::with_capacity(tools.len() + handoffs.len());
    for tool in tools {
        let tool: &ToolSpec = tool;
        if tool.takes_text() {
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Configuration,
                format!(
                    "the tool `{}` takes text, and realtime models call tools with JSON only: give it \
                     arguments, or leave it out of realtime agents",
                    tool.name
                ),
            ));
        }
        names.push(&tool.name);
        converted.push(function(
            &tool.name,
            &tool.description,
            tool.parameters.get(),
        )?);
    }
    for handoff in handoffs {
        let handoff: &HandoffSpec = handoff;
        names.push(&handoff.tool_name);
        let schema = handoff.input_json_schema.get();
        converted.push(function(
            &handoff.tool_name,
            &handoff.tool_description,
            schema,
        )?);
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(RealtimeModelError::new(
            RealtimeModelErrorKind::Configuration,
            format!(
                "two tools or handoffs have the name `{}`: rename one of them",
                pair[0]
            ),
        ));
    }
    Ok(Value::Array(converted))
}

fn function(name: &str, description: &str, schema: &str) -> Result<Value, RealtimeModelError> {
    let parameters: Value = serde_json::from_str(schema).map_err(|error| {
        let message = format!("the schema of the tool `{name}` is not JSON");
        RealtimeModelError::caused_by(RealtimeModelErrorKind::Configuration, message, error)
    })?;
    Ok(json!({
        "type": "function", "name": name, "description": description, "parameters": parameters,
    }))
}

fn invalid(message: String) -> RealtimeModelError {
    RealtimeModelError::new(RealtimeModelErrorKind::Validation, message)
}
