//! The turn in progress: what it has made, and how far each part of it got.

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::{Approval, CallApproval, HostedRequest, InnerRun};
use super::call_log::CallRole;
use super::edges::Edge;
use super::fan_out::FanOutTurn;
use super::handoff::{Carried, Redirect};
use super::tool_results::RanTool;
use crate::agent::ToolResult;
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::output::FinalOutput;
use crate::runner::DEFAULT_BLOCKED_OUTPUT;
use crate::session::SessionHandle;

/// The turn in progress.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) items: Vec<RunItem>,
    pub(crate) handoffs: Vec<HandoffCall>,
    /// Boxed: most turns hand off or answer, and every run has room for one.
    pub(crate) tools: Option<Box<ToolTurn>>,
    /// Set if the response used any tool, also one that the provider runs.
    pub(crate) used_tools: bool,
    pub(crate) progress: HandoffProgress,
    /// The key of the agent that a custom handoff picked, once the callback has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) picked: Option<Box<Arc<str>>>,
    /// The conversation that the guardrails of the handoff allowed, once the callback has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<Box<Carried>>,
    /// Set if the final output is the result of a tool.
    pub(crate) ends_at_tool: bool,
    /// Set once hooks were notified of the agent's end.
    #[serde(alias = "end_told")]
    pub(crate) end_reported: bool,
    /// Set if the final output is a fallback of the application.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_fallback: bool,
    /// Set if a guardrail rejected the final output, which is then withheld.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_withheld: bool,
    /// The number of items that are in the run's record already, because the turn has waited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) recorded: usize,
    /// Set if all handoffs of the response are refused, and not only the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refuses_all: bool,
    /// The agent that gets the conversation instead of the one that the model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<Box<Redirect>>,
    /// The approval of the handoff, where it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handoff_approval: Option<Box<Approval>>,
    /// Set if a condition takes the handoff, and not the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edge: Option<Box<Edge>>,
}

/// The tool calls of a turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ToolTurn {
    pub(crate) calls: Vec<ToolCall>,
    /// Calls of tools that do not exist.
    pub(crate) unknown: Vec<ToolCall>,
    pub(crate) results: Vec<ToolResult>,
    /// Tools that ran before the turn failed.
    pub(crate) done: Vec<RanTool>,
    /// Indexes of the calls whose start was reported to hooks before the turn failed.
    pub(crate) started: Vec<usize>,
    /// Indexes of the calls that guardrails allowed before the turn failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<usize>,
    /// The approvals of the calls, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<CallApproval>,
    /// The runs of agents used as tools in which calls wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inner_runs: Vec<InnerRun>,
    /// The calls that the provider asks about before it runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) requests: Vec<HostedRequest>,
    /// Set if a result may end the run, as far as it is known; noted when calls wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_end_run: bool,
    /// The handoffs that are made side by side, where these calls are theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fan_out: Option<FanOutTurn>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

static NO_TOOLS: LazyLock<ToolTurn> = LazyLock::new(ToolTurn::default);

/// The progress of a handoff. Finished stages are not repeated when the run is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HandoffProgress {
    #[default]
    #[serde(alias = "nothing")]
    NotStarted,
    CalledBack,
    #[serde(alias = "told_hooks")]
    HooksNotified,
}

/// The place of the calls of a turn among all calls there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallKey {
    pub(crate) session: Option<SessionHandle>,
    pub(crate) run: u64,
    pub(crate) turn: u32,
}

impl CallKey {
    /// The key of one call.
    pub(crate) fn of_call(&self, call_id: &str) -> String {
        let session = self.session.as_ref().and_then(|session| session.id());
        let conversation = session.unwrap_or_default();
        format!("{conversation}/{:016x}/{}/{call_id}", self.run, self.turn)
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool's name.
    pub tool: Arc<str>,
    /// The call.
    pub call: Item,
}

/// A handoff that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffCall {
    /// The name of the handoff's tool.
    pub tool: Arc<str>,
    /// The name of the agent it leads to.
    pub to: Arc<str>,
    /// The call.
    pub call: Item,
}

impl Turn {
    pub(crate) fn tools(&self) -> &ToolTurn {
        self.tools.as_deref().unwrap_or_else(|| &NO_TOOLS)
    }

    pub(crate) fn tools_mut(&mut self) -> &mut ToolTurn {
        self.tools.get_or_insert_default()
    }

    /// Returns `true` if its handoffs are made side by side.
    pub(crate) fn is_fanned_out(&self) -> bool {
        self.tools().fan_out.is_some()
    }

    /// The handoffs that the model has called, which are answered.
    pub(crate) fn called_handoffs(&self) -> &[HandoffCall] {
        match &*self.handoffs {
            _ if self.edge.is_some() => &[],
            [first, ..] if self.is_fanned_out() => std::slice::from_ref(first),
            all => all,
        }
    }

    /// Removes the handoffs, with all that was decided on them.
    pub(crate) fn forget_handoffs(&mut self) {
        self.handoffs.clear();
        self.progress = HandoffProgress::NotStarted;
        self.picked = None;
        self.checked = None;
        self.redirect = None;
        self.handoff_approval = None;
        self.edge = None;
    }

    /// All calls and their roles, tools before handoffs.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&Item, CallRole)> {
        let tools = self.tools();
        let tools = tools.calls.iter().chain(&tools.unknown);
        let tools = tools.map(|call| (&call.call, CallRole::Tool));
        let handoffs = self.handoffs.iter().enumerate().map(|(at, call)| match at {
            0 => (&call.call, CallRole::Handoff),
            _ => (&call.call, CallRole::IgnoredHandoff),
        });
        tools.chain(handoffs)
    }

    /// Returns `true` if the model called anything, also a tool that the provider runs.
    pub(crate) fn made_calls(&self) -> bool {
        let mut kinds = self.items.iter().map(RunItem::kind);
        kinds.any(|kind| matches!(kind, RunItemKind::ToolCall | RunItemKind::HandoffCall))
    }

    /// Returns `true` if the turn did something beside its handoffs: a tool ran, or the agent said
    /// something.
    pub(crate) fn made_progress(&self) -> bool {
        let mut kinds = self.items.iter().map(RunItem::kind);
        kinds.any(|kind| match kind {
            RunItemKind::MessageOutput => true,
            RunItemKind::ToolCallOutput { .. } => !self.tools().results.is_empty(),
            _ => false,
        })
    }

    /// Removes calls, and the reasoning that led to them.
    pub(crate) fn remove_calls(&mut self, removed: &FxHashSet<usize>) {
        let is_removed = |item: &Item| removed.contains(&item.address());
        if let Some(tools) = &mut self.tools {
            tools.calls.retain(|call| !is_removed(&call.call));
            tools.unknown.retain(|call| !is_removed(&call.call));
        }
        self.handoffs.retain(|call| !is_removed(&call.call));
        remove_items(&mut self.items, |made| is_removed(made.item()));
    }

    /// Removes messages, and the reasoning that led to them or came after them.
    pub(crate) fn remove_messages(&mut self) {
        remove_last_reasoning(&mut self.items);
        remove_items(&mut self.items, |made| {
            *made.kind() == RunItemKind::MessageOutput
        });
    }

    /// The items to keep when the turn fails after some of its tools ran: calls with their outputs,
    /// calls that the provider completed, and the reasoning before each.
    pub(crate) fn completed_tools(&self) -> Vec<RunItem> {
        // The calls of handoffs are answered together.
        if self.is_fanned_out() {
            return Vec::new();
        }
        let done = self.tools().done.iter();
        let items: Vec<&RunItem> = self
            .items
            .iter()
            .chain(
                done.filter(|ran| !ran.is_in_turn)
                    .filter_map(|ran| ran.output.as_ref()),
            )
            .collect();
        let answered = tool_outputs(items.iter().copied());
        let is_kept = |made: &RunItem| match made.kind() {
            RunItemKind::ToolCall => {
                answered.contains(&made.item().output_identity())
                    || is_completed_by_provider(made.item())
            }
            RunItemKind::ToolSearchCall | RunItemKind::ToolSearchOutput => {
                is_completed(made.item())
            }
            kind => kind.is_tool_output(),
        };
        // Reasoning belongs to all items up to the next reasoning: providers want it before each.
        let mut kept = Vec::new();
        let mut reasoning = Vec::new();
        let mut follows_reasoning = false;
        for made in items {
            let is_reasoning = *made.kind() == RunItemKind::Reasoning;
            if is_reasoning {
                if !follows_reasoning {
                    reasoning.clear();
                }
                reasoning.push(made.clone());
            } else if is_kept(made) {
                if !made.kind().is_tool_output() {
                    kept.append(&mut reasoning);
                }
                kept.push(made.clone());
            }
            follows_reasoning = is_reasoning;
        }
        kept
    }

    /// Replaces the tool output that the run ends with. If it is not known which tool returned it,
    /// the outputs of all of them are withheld.
    pub(crate) fn replace_tool_output(&mut self, was: &FinalOutput, output: &FinalOutput) {
        let was = was.text();
        let is_final = |made: &RunItem| {
            made.kind().is_tool_output() && made.item().output().is_some_and(|output| output == was)
        };
        let is_known = self.items.iter().any(is_final);
        for made in &mut self.items {
            if !made.kind().is_tool_output() || is_known && !is_final(made) {
                continue;
            }
            let (text, value) = if is_known {
                (output.text(), output.to_value())
            } else {
                (DEFAULT_BLOCKED_OUTPUT.into(), DEFAULT_BLOCKED_OUTPUT.into())
            };
            *made = with_output(made, &text, value);
        }
    }

    /// Replaces the outputs of the tools, and returns the final output in place of theirs.
    pub(crate) fn withhold_outputs(&mut self, text: &str) -> FinalOutput {
        self.is_withheld = true;
        for made in &mut self.items {
            if made.kind().is_tool_output() {
                *made = with_output(made, text, text.into());
            }
        }
        let tools = self.tools_mut();
        tools.done.clear();
        for result in &mut tools.results {
            result.output = text.into();
            result.data = None;
        }
        FinalOutput::Text(text.into())
    }

    /// The calls of the turn with their outputs withheld. Empty if the turn holds more than calls
    /// of functions and their outputs, since other items might repeat an output.
    pub(crate) fn with_outputs_withheld(&self, text: &str) -> Vec<Item> {
        let mut withheld = Vec::new();
        for made in &self.items {
            match made.kind() {
                RunItemKind::ToolCall
                    if matches!(
                        made.item().kind(),
                        ItemKind::FunctionCall | ItemKind::CustomToolCall
                    ) =>
                {
                    withheld.push(made.to_input_item());
                }
                RunItemKind::ToolCallOutput { .. } => {
                    withheld.push(made.item().with_field("output", text));
                }
                RunItemKind::MessageOutput => {}
                _ => return Vec::new(),
            }
        }
        withheld
    }
}

/// The output of a tool with another text and value, without the data that the tool attached.
fn with_output(made: &RunItem, text: &str, output: Value) -> RunItem {
    let kind = RunItemKind::ToolCallOutput { output };
    let item = made.item().with_field("output", text);
    RunItem::made(kind, made.agent_name().clone(), item, made.occurrence())
}

/// The identities of the tool outputs among the items.
pub(crate) fn tool_outputs<'a>(items: impl IntoIterator<Item = &'a RunItem>) -> FxHashSet<u64> {
    let items = items.into_iter();
    let outputs = items.filter(|made| made.kind().is_tool_output());
    outputs.map(|made| made.item().identity()).collect()
}

/// Removes items, and the reasoning before each of them.
fn remove_items(items: &mut Vec<RunItem>, is_removed: impl Fn(&RunItem) -> bool) {
    let mut next_is_removed = false;
    let from_last = items.iter().rev().map(|made| {
        if *made.kind() != RunItemKind::Reasoning {
            next_is_removed = is_removed(made);
        }
        next_is_removed
    });
    let mut removed: Vec<bool> = from_last.collect();
    items.retain(|_| removed.pop() == Some(false));
}

fn remove_last_reasoning(items: &mut Vec<RunItem>) {
    let is_reasoning = |made: &mut RunItem| *made.kind() == RunItemKind::Reasoning;
    while items.pop_if(is_reasoning).is_some() {}
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
    is_hosted && is_completed(item)
}

fn is_completed(item: &Item) -> bool {
    item.field("status") == Some("\"completed\"")
}
