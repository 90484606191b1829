//! `/sent`: the request that a model was sent last.

use std::io::{self, Write};

use switchboard_core::items::ItemKind;
use switchboard_core::{Item, ModelRequest};

use crate::screen::style::{BOLD, Look};
use crate::screen::wrap::wrapped;

/// Writes the agent, its instructions, the items, the tools and the settings of a request.
pub(super) fn write(
    request: Option<&ModelRequest>,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(request) = request else {
        let none = look.language.choose(
            "Nothing has been sent to a model yet.",
            "还没有向模型发送过内容。",
        );
        return writeln!(out, "{none}");
    };
    let mut section = |title: &str, text: &str| -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let text = wrapped(text, look.width, 2, 2);
        writeln!(out, "{}\n  {text}", look.paint(BOLD, title))
    };
    section("agent", request.agent.as_deref().unwrap_or_default())?;
    section(
        "instructions",
        request.instructions.as_deref().unwrap_or_default(),
    )?;
    let knowledge: Vec<String> = request
        .knowledge
        .iter()
        .map(|entry| format!("{}: {}", entry.title, entry.text))
        .collect();
    section("knowledge", &knowledge.join("\n"))?;
    let items: Vec<String> = request.input.iter().map(describe).collect();
    section("items", &items.join("\n"))?;
    let tools = request
        .tools
        .iter()
        .map(|tool| format!("{}: {} {}", tool.name, tool.description, tool.parameters));
    section("tools", &tools.collect::<Vec<_>>().join("\n"))?;
    let handoffs = request
        .handoffs
        .iter()
        .map(|handoff| format!("{}: {}", handoff.tool_name, handoff.tool_description));
    section("handoffs", &handoffs.collect::<Vec<_>>().join("\n"))
}

/// An item as one entry: its author and its words.
fn describe(item: &Item) -> String {
    let text = item.text().unwrap_or_default();
    match (item.role(), item.kind()) {
        (Some(role), _) => format!("{role}: {}", text.trim()),
        (None, ItemKind::FunctionCall | ItemKind::CustomToolCall) => {
            let (name, arguments) = (item.name(), item.arguments());
            format!(
                "call {} {}",
                name.unwrap_or_default(),
                arguments.unwrap_or_default()
            )
        }
        (None, kind) if kind.is_output() => {
            format!("output {}", item.output_text().unwrap_or_default())
        }
        (None, _) => format!("{}: {text}", item.type_name().unwrap_or_default()),
    }
}
