//! An answer in the form of the Responses API.

use serde_json::json;
use switchboard_core::{Item, ModelRequest, ModelResponse, Usage};

use super::text::is_han;

/// A message.
pub(super) fn message(request: &ModelRequest, text: &str) -> ModelResponse {
    let id = format!("msg_{:016x}", digest(request, "message"));
    respond(request, Item::output_message(&id, text), text)
}

/// A call of a tool or a handoff.
pub(super) fn call(request: &ModelRequest, name: &str, arguments: &str) -> ModelResponse {
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
    respond(request, item, arguments)
}

fn respond(request: &ModelRequest, item: Item, text: &str) -> ModelResponse {
    let instructions = request.instructions.as_deref().unwrap_or_default().len();
    let input: usize = request.input.iter().map(|item| item.as_json().len()).sum();
    ModelResponse::new([item]).usage(Usage {
        requests: 1,
        input_tokens: tokens(instructions + input),
        output_tokens: tokens(text.len()),
        ..Usage::default()
    })
}

/// About how many tokens a language model would count.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// A number that is this answer's alone in a conversation, and the same each time: it comes from
/// where the conversation stands, who is asked and what for (FNV-1a).
fn digest(request: &ModelRequest, what: &str) -> u64 {
    let length = request.input.len().to_string();
    let last = request.input.last().map_or("", Item::as_json);
    let instructions = request.instructions.as_deref().unwrap_or_default();
    let parts = [length.as_str(), last, instructions, what];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A text in pieces, as a streaming model would send it: word by word, Chinese by the character.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for c in text.chars() {
        piece.push(c);
        if c.is_whitespace() || is_han(c) {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_in_words_and_characters() {
        assert_eq!(
            pieces("Two words 退款。"),
            ["Two ", "words ", "退", "款", "。"]
        );
        assert_eq!(pieces(""), [""; 0]);
    }
}
