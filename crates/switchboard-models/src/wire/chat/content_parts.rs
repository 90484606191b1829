//! Contents and outputs that are not plain text, in the form of the protocol.

use serde_json::{Value, json};

use super::messages::unsupported;
use crate::wire::lenient_json::{plain_text, value};
use crate::wire::model_error::ModelError;
use crate::wire::request_body::object;

/// The JSON string of a tool's output that is not text. Parts without text are sent as JSON.
pub(super) fn output(json: &str) -> String {
    let text = match value(json) {
        Some(Value::Null) => String::new(),
        Some(Value::Array(parts)) => {
            let parts: Vec<String> = parts.iter().map(part_text).collect();
            parts.join("\n")
        }
        Some(other) => part_text(&other),
        None => json.to_owned(),
    };
    json!(text).to_string()
}

/// A part of an output as text. The protocol cannot carry images and the like there.
fn part_text(part: &Value) -> String {
    match part["type"].as_str() {
        Some("input_text" | "output_text" | "text") | None if part["text"].is_string() => {
            plain_text(&part["text"])
        }
        Some("input_image" | "image_url" | "image" | "computer_screenshot") => {
            "[a picture was left out]".to_owned()
        }
        Some("input_file" | "file") => "[a file was left out]".to_owned(),
        Some("input_audio" | "audio") => "[a sound was left out]".to_owned(),
        _ => plain_text(part),
    }
}

/// The JSON of a message's content that is not text. Only the content of users may be more than text.
pub(super) fn content(json: &str, is_user: bool) -> Result<String, ModelError> {
    let content = value(json).ok_or_else(|| unsupported("a message is nested too deeply"))?;
    let parts = match content {
        Value::Null => Vec::new(),
        Value::Array(parts) => parts,
        other => vec![other],
    };
    let text = |part: &Value| json!({"type": "text", "text": part_text(part)});
    let parts: Vec<Value> = if is_user {
        parts.iter().map(part).collect::<Result<_, _>>()?
    } else {
        parts.iter().map(text).collect()
    };
    if parts.is_empty() {
        return Ok("\"\"".to_owned());
    }
    Ok(Value::from(parts).to_string())
}

/// A part of a message in the form of the protocol.
fn part(part: &Value) -> Result<Value, ModelError> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "input_text" | "output_text" | "text" => {
            let text = part["text"].as_str().unwrap_or_default();
            Ok(json!({"type": "text", "text": text}))
        }
        "" if part.is_string() => Ok(json!({"type": "text", "text": part})),
        "input_image" => {
            let Some(url) = part["image_url"].as_str() else {
                return Err(unsupported(
                    "an image is given by a file's identifier; give its URL or data",
                ));
            };
            let detail = match part["detail"].as_str() {
                Some("original") => "high",
                Some(detail) => detail,
                None => "auto",
            };
            Ok(json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}))
        }
        "input_audio" => Ok(json!({"type": "input_audio", "input_audio": part["input_audio"]})),
        "input_file" => {
            let given = |name| part.get(name).filter(|value| !value.is_null());
            let file = object(["file_data", "file_id", "filename"].map(|name| (name, given(name))));
            if file["file_data"].is_null() && file["file_id"].is_null() {
                return Err(unsupported("a file is given by its URL; give its data"));
            }
            Ok(json!({"type": "file", "file": file}))
        }
        // Parts in the form of the protocol already.
        "image_url" | "file" | "video_url" => Ok(part.clone()),
        other => {
            let problem = format!("a message has a part of type \"{other}\"");
            Err(unsupported(problem))
        }
    }
}
