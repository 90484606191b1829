//! Bodies of the type `multipart/form-data`, as JSON.

use memchr::memmem;
use serde_json::{Map, Value, json};

use crate::error::Problem;

/// Reads a form. A field is a text, or a list of texts if its name ends in `[]`; a file is an object with its
/// `filename`, its `content_type` and its length in `bytes`.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Value, Problem> {
    let boundary = content_type
        .strip_prefix("multipart/form-data")
        .and_then(|rest| rest.split_once("boundary="))
        .map(|(_, boundary)| boundary.trim().trim_matches('"'))
        .filter(|boundary| !boundary.is_empty() && boundary.len() <= 70)
        .ok_or_else(|| malformed("the content type is not multipart/form-data with a boundary"))?;
    let delimiter = format!("--{boundary}");
    let mut rest = body
        .strip_prefix(delimiter.as_bytes())
        .ok_or_else(|| malformed("the body does not begin with the boundary"))?;
    let delimiter = format!("\r\n{delimiter}");
    let mut fields = Map::new();
    loop {
        if rest == b"--\r\n" || rest == b"--" {
            return Ok(fields.into());
        }
        let part = rest.strip_prefix(b"\r\n");
        let part = part.ok_or_else(|| malformed("a part does not begin with a line break"))?;
        let end = memmem::find(part, delimiter.as_bytes());
        let end = end.ok_or_else(|| malformed("the last part has no end"))?;
        add_part(&mut fields, &part[..end])?;
        rest = &part[end + delimiter.len()..];
    }
}

fn add_part(fields: &mut Map<String, Value>, part: &[u8]) -> Result<(), Problem> {
    let head_end = memmem::find(part, b"\r\n\r\n");
    let head_end = head_end.ok_or_else(|| malformed("a part has no head"))?;
    let head = std::str::from_utf8(&part[..head_end]);
    let head = head.map_err(|_| malformed("the head of a part is not UTF-8"))?;
    let content = &part[head_end + 4..];
    let header = |name: &str| {
        head.split("\r\n").find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let disposition = header("content-disposition").unwrap_or_default();
    let parameter = |name: &str| {
        disposition.split(';').find_map(|parameter| {
            let value = parameter.trim().strip_prefix(name)?.strip_prefix('=')?;
            Some(value.trim_matches('"').to_owned())
        })
    };
    let name = parameter("name").ok_or_else(|| malformed("a part has no name"))?;
    if let Some(filename) = parameter("filename") {
        check_file(&filename, content)?;
        let content_type = header("content-type").unwrap_or_default();
        let file =
            json!({"filename": filename, "content_type": content_type, "bytes": content.len()});
        fields.insert(name, file);
        return Ok(());
    }
    let text = std::str::from_utf8(content);
    let text: Value = text.map_err(|_| malformed("a field is not UTF-8"))?.into();
    match name.strip_suffix("[]") {
        Some(list) => {
            let list = fields.entry(list).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(text);
            }
        }
        None if fields.contains_key(&name) => {
            return Err(malformed(&format!("the field {name} is there twice")));
        }
        None => {
            fields.insert(name, text);
        }
    }
    Ok(())
}

/// Checks that a WAV file has a header and samples.
fn check_file(filename: &str, content: &[u8]) -> Result<(), Problem> {
    let is_wav = content.starts_with(b"RIFF")
        && content.get(8..12) == Some(b"WAVE")
        && memmem::find(content, b"fmt ").is_some()
        && memmem::find(content, b"data").is_some_and(|data| content.len() > data + 8);
    if filename.ends_with(".wav") && !is_wav {
        let message = "Audio file might be corrupted or unsupported";
        return Err(Problem::new("invalid_value", "file".to_owned(), message));
    }
    Ok(())
}

fn malformed(problem: &str) -> Problem {
    let message = format!("We could not parse the form of your request: {problem}");
    Problem::new("invalid_form", None, message)
}
