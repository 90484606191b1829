//! The tools of MCP servers that a provider called.

use std::sync::Arc;

use serde::Deserialize;

use crate::items::{Item, ItemKind};
use crate::json::unquote;
use crate::tool::{ToolInfo, ToolOrigin};

/// A list of an MCP server's tools, as far as it is read.
#[derive(Deserialize)]
struct ListedTool {
    name: Arc<str>,
    #[serde(default)]
    title: Option<Arc<str>>,
    #[serde(default)]
    description: Option<Arc<str>>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(default)]
    title: Option<Arc<str>>,
}

/// The tool that a call of the provider names. Its title and description are those of the server's
/// last list among the items, which are given from the last to the first.
pub(crate) fn called_tool<'a>(
    call: &Item,
    from_last: impl Iterator<Item = &'a Item>,
) -> Arc<ToolInfo> {
    let label = |item: &Item| {
        item.field("server_label")
            .and_then(unquote)
            .map(String::from)
    };
    let server = label(call).unwrap_or_default();
    let mut lists = from_last
        .filter(|item| item.kind() == ItemKind::McpListTools)
        .filter(|item| label(item).is_some_and(|label| label == server));
    let name = call.name().unwrap_or_default();
    let listed = lists.find_map(|list| {
        let tools: Vec<ListedTool> = serde_json::from_str(list.field("tools")?).ok()?;
        tools.into_iter().find(|tool| *tool.name == *name)
    });
    let (title, description) = match listed {
        Some(tool) => {
            let annotated = || tool.annotations.and_then(|annotations| annotations.title);
            (tool.title.or_else(annotated), tool.description)
        }
        None => (None, None),
    };
    let origin = ToolOrigin::Mcp {
        server: server.into(),
    };
    Arc::new(ToolInfo::new(
        origin,
        title,
        &description.unwrap_or_default(),
    ))
}
