//! The input history of runs.

use switchboard_core::Item;
use switchboard_core::items::Items;

/// The number of items in a long history.
pub const LONG: usize = 1000;

/// The number of items in a short history.
pub const SHORT: usize = 20;

/// The approximate size of an item in bytes.
const SIZE: usize = 500;

/// A conversation of this many items of about 500 bytes: messages, calls and their outputs. Every
/// tenth user message contains an email address for redaction.
pub fn history(items: usize) -> Items {
    let text = "All work and no play makes for a long history. ".repeat(SIZE / 47 + 1);
    let item = |n: usize| {
        let call_id = format!("history_{}", n / 4);
        match n % 4 {
            0 if n.is_multiple_of(40) => {
                Item::user(format!("I am jack@example.com. {}", &text[..SIZE - 53]))
            }
            0 => Item::user(&text[..SIZE - 30]),
            1 => Item::function_call(
                &call_id,
                "lookup",
                &format!("{{\"q\":\"{}\"}}", &text[..SIZE - 100]),
            ),
            2 => Item::function_call_output(&call_id, &text[..SIZE - 70]),
            _ => Item::output_message(&format!("msg_{n}"), &text[..SIZE - 130]),
        }
    };
    (0..items).map(item).collect()
}
