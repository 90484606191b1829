//! Responses with items in the form of the Responses API.

use serde_json::json;
use switchboard_core::model::Usage;
use switchboard_core::{Item, ModelRequest, ModelResponse};

use crate::text::is_han;

/// Creates a response with a message.
pub(crate) fn message(request: &ModelRequest, text: &str) -> ModelResponse {
    let id = format!("msg_{:016x}", digest(request, "message"));
    with_usage(request, Item::output_message(&id, text), text)
}

/// Creates a response with a call of a tool or handoff.
pub(crate) fn call(request: &ModelRequest, name: &str, arguments: &str) -> ModelResponse {
    let digest = digest(request, name);
    let call_id = format!("call_{digest:016x}");
    let item = Item::from_value(&json!({
        "type": "function_call",
        "id": format!("fc_{digest:016x}"),
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }));
    let item = item.unwrap_or_else(|_| Item::function_call(&call_id, name, arguments));
    with_usage(request, item, arguments)
}

fn with_usage(request: &ModelRequest, item: Item, text: &str) -> ModelResponse {
    let instructions = request.instructions.as_deref().unwrap_or_default().len();
    let input: usize = request.input.iter().map(|item| item.as_json().len()).sum();
    ModelResponse::new([item]).usage(Usage {
        requests: 1,
        input_tokens: estimated_tokens(instructions + input),
        output_tokens: estimated_tokens(text.len()),
        ..Usage::default()
    })
}

/// Estimates how many tokens a language model would count.
fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// Returns an FNV-1a hash for identifiers: deterministic, and unique within a conversation because it
/// covers the history's length, its last item, the instructions and `purpose`.
fn digest(request: &ModelRequest, purpose: &str) -> u64 {
    let length = request.input.len().to_string();
    let last = request.input.last().map_or("", Item::as_json);
    let instructions = request.instructions.as_deref().unwrap_or_default();
    let parts = [length.as_str(), last, instructions, purpose];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Splits a text into deltas for streaming: word by word, Chinese text character by character.
pub(crate) fn deltas(text: &str) -> Vec<&str> {
    text.split_inclusive(|c: char| c.is_whitespace() || is_han(c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_streamed_in_words_and_chinese_characters() {
        assert_eq!(
            deltas("Two words 退款。"),
            ["Two ", "words ", "退", "款", "。"]
        );
        assert_eq!(deltas(""), [""; 0]);
    }
}
