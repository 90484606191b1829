//! What a turn has made so far.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::calls::Role;
use serde::{Deserialize, Serialize};

use crate::agent::ToolResult;
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::output::FinalOutput;

/// What is left of an output that must not pass.
const WITHHELD: &str = "Output withheld by an output guardrail.";

/// What a turn has made so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) items: Vec<RunItem>,
    pub(super) handoffs: Vec<HandoffCall>,
    /// Boxed: most turns hand over or answer, and a run keeps room for one.
    pub(super) tools: Option<Box<Tools>>,
    /// Whether the response used any tool, also one of the provider's own.
    pub(super) used_tools: bool,
    /// How far the handoff got before the turn failed.
    pub(super) progress: Progress,
    /// Whom code picked for the handoff, once the callback has run for them.
    pub(super) picked: Option<Arc<str>>,
    /// Whether the final output is what a tool returned.
    pub(super) ends_at_tool: bool,
    /// Whether hooks were told of the agent's end.
    pub(super) end_told: bool,
}

/// What tools have to do with a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    pub(super) calls: Vec<ToolCall>,
    /// Calls of tools that are not there.
    pub(super) unknown: Vec<ToolCall>,
    pub(super) results: Vec<ToolResult>,
    /// Those that ran before the turn failed.
    pub(super) done: Vec<RanTool>,
    /// The calls whose start hooks were told of before the turn failed, by their place.
    pub(super) started: Vec<usize>,
}

/// What tools have to do with most turns.
static NO_TOOLS: Tools = Tools {
    calls: Vec::new(),
    unknown: Vec::new(),
    results: Vec::new(),
    done: Vec::new(),
    started: Vec::new(),
};

/// A tool that ran in a turn that failed.
#[derive(Debug, Clone)]
pub(super) struct RanTool {
    /// The place of its call among those of the turn.
    pub(super) at: usize,
    pub(super) result: ToolResult,
    /// Whether it failed, and the result is what the model is told of it.
    pub(super) failed: bool,
    pub(super) stage: ToolStage,
}

/// How far a tool got. What was done is not done again when the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolStage {
    Ran,
    /// Guardrails have let its output pass.
    Checked,
    /// Hooks have been told.
    Told,
}

/// How far a handoff got. What was done is not done again when the run is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Progress {
    #[default]
    Nothing,
    CalledBack,
    ToldHooks,
}

/// A tool the model called.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool's name.
    pub tool: Arc<str>,
    /// The call.
    pub call: Item,
}

/// A handoff the model asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HandoffCall {
    /// The name of the handoff's tool.
    pub tool: Arc<str>,
    /// The name of the agent it leads to.
    pub agent: Arc<str>,
    /// The call.
    pub call: Item,
}

impl Turn {
    pub(super) fn tools(&self) -> &Tools {
        self.tools.as_deref().unwrap_or(&NO_TOOLS)
    }

    pub(super) fn tools_mut(&mut self) -> &mut Tools {
        self.tools.get_or_insert_default()
    }

    /// All calls and what they are to the run, tools before handoffs.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&Item, Role)> {
        let tools = self.tools();
        let tools = tools.calls.iter().chain(&tools.unknown);
        let tools = tools.map(|call| (&call.call, Role::Tool));
        let handoffs = self.handoffs.iter().enumerate().map(|(at, call)| match at {
            0 => (&call.call, Role::Handoff),
            _ => (&call.call, Role::IgnoredHandoff),
        });
        tools.chain(handoffs)
    }

    /// Whether there is anything to run or to hand over.
    pub(super) fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Whether the model called anything, also a tool of the provider.
    pub(super) fn made_calls(&self) -> bool {
        let mut kinds = self.items.iter().map(RunItem::kind);
        kinds.any(|kind| matches!(kind, RunItemKind::ToolCall | RunItemKind::HandoffCall))
    }

    /// Leaves calls out, and the reasoning that led to them.
    pub(super) fn leave_out(&mut self, dropped: &FxHashSet<usize>) {
        let is_dropped = |item: &Item| dropped.contains(&item.address());
        if let Some(tools) = &mut self.tools {
            tools.calls.retain(|call| !is_dropped(&call.call));
            tools.unknown.retain(|call| !is_dropped(&call.call));
        }
        self.handoffs.retain(|call| !is_dropped(&call.call));
        self.leave_items_out(|made| is_dropped(made.item()));
    }

    /// Leaves out what the model said, and the reasoning that led to it or came after it.
    pub(super) fn leave_messages_out(&mut self) {
        let is_reasoning = |made: &mut RunItem| *made.kind() == RunItemKind::Reasoning;
        while self.items.pop_if(is_reasoning).is_some() {}
        self.leave_items_out(|made| *made.kind() == RunItemKind::MessageOutput);
    }

    fn leave_items_out(&mut self, is_dropped: impl Fn(&RunItem) -> bool) {
        let mut next_is_dropped = false;
        let mut kept: Vec<RunItem> = Vec::with_capacity(self.items.len());
        for made in self.items.drain(..).rev() {
            if *made.kind() != RunItemKind::Reasoning {
                next_is_dropped = is_dropped(&made);
            }
            if !next_is_dropped {
                kept.push(made);
            }
        }
        kept.reverse();
        self.items = kept;
    }

    /// What is worth keeping where the turn fails after its tools have run: the calls that were
    /// answered, or that the provider completed, the reasoning that led to them, and the answers.
    pub(super) fn completed_tools(&self) -> Vec<RunItem> {
        let outputs = || {
            self.items
                .iter()
                .filter(|made| made.kind().is_tool_output())
        };
        let answered: FxHashSet<u64> = outputs().map(|made| made.item().identity()).collect();
        let mut kept = Vec::new();
        let mut reasoning = Vec::new();
        for made in &self.items {
            let is_kept = match made.kind() {
                RunItemKind::Reasoning => {
                    reasoning.push(made.clone());
                    continue;
                }
                RunItemKind::ToolCall => {
                    answered.contains(&made.item().output_identity())
                        || is_completed_by_provider(made.item())
                }
                kind => kind.is_tool_output(),
            };
            if is_kept {
                kept.append(&mut reasoning);
                kept.push(made.clone());
            }
            reasoning.clear();
        }
        kept
    }

    /// Puts another output in place of the one the run ends with. Where it is not known which tool
    /// returned that, none of their outputs stays.
    pub(super) fn replace_tool_output(&mut self, was: &FinalOutput, output: &FinalOutput) {
        let (was, text) = (was.text(), output.text());
        let is_it = |made: &RunItem| {
            made.kind().is_tool_output() && made.item().output().is_some_and(|output| output == was)
        };
        let is_known = self.items.iter().any(is_it);
        for made in &mut self.items {
            let RunItemKind::ToolCallOutput { .. } = made.kind() else {
                continue;
            };
            let instead = match is_known {
                true if is_it(made) => &*text,
                true => continue,
                false => WITHHELD,
            };
            let kind = RunItemKind::ToolCallOutput {
                output: if is_known {
                    output.to_value()
                } else {
                    WITHHELD.into()
                },
            };
            let item = made.item().with_field("output", instead);
            *made = RunItem::made(kind, made.agent_name().clone(), item, made.occurrence());
        }
    }

    /// The calls of a turn, and that their outputs were withheld. Nothing at all where the turn
    /// holds more than calls of functions and their outputs: what else might tell of the outputs
    /// is not known.
    pub(super) fn withheld(&self) -> Vec<Item> {
        let mut withheld = Vec::new();
        for made in &self.items {
            match made.kind() {
                RunItemKind::ToolCall if made.item().kind() == ItemKind::FunctionCall => {
                    withheld.push(made.to_input_item());
                }
                RunItemKind::ToolCallOutput { .. } => {
                    withheld.push(made.item().with_field("output", WITHHELD));
                }
                RunItemKind::MessageOutput => {}
                _ => return Vec::new(),
            }
        }
        withheld
    }
}

fn is_completed_by_provider(item: &Item) -> bool {
    let is_hosted = matches!(
        item.kind(),
        ItemKind::FileSearchCall
            | ItemKind::WebSearchCall
            | ItemKind::CodeInterpreterCall
            | ItemKind::ImageGenerationCall
            | ItemKind::McpCall
    );
    is_hosted && item.field("status") == Some("\"completed\"")
}
