//! A run as JSON: every item once, everything else by its place.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{Calls, KnownCall, Role};
use super::guardrail_results::GuardrailResults;
use super::handoff_log::HandoffRecord;
use super::machine::{InputChecks, Phase, Run, ToolUsers};
use super::server::Delivered;
use super::turn::{HandoffCall, Progress, RanTool, ToolCall, ToolStage, Tools, Turn};
use crate::agent::ToolResult;
use crate::handoff::owned::Owned;
use crate::items::{Input, Item, RunItem, RunItemKind};
use crate::model::{ModelResponse, Usage};
use crate::output::FinalOutput;
use crate::tool::ToolOutput;

/// The form of a stored run. It changes with what a run holds.
const VERSION: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    agent: Arc<str>,
    first: Arc<str>,
    trail: Vec<HandoffRecord>,
    turn: u32,
    made_items: u32,
    usage: Usage,
    agent_started: bool,
    input_checks: InputChecks,
    tool_users: Vec<Arc<str>>,
    input_guardrails: GuardrailResults,
    output_guardrails: GuardrailResults,
    tool_guardrails: GuardrailResults,
    handoff_guardrails: GuardrailResults,
    items: Vec<Item>,
    run_items: Vec<SavedRunItem>,
    input: SavedInput,
    stored_input: usize,
    generated: Vec<usize>,
    record: Vec<usize>,
    owned: Vec<(usize, usize)>,
    calls: Vec<(usize, Role)>,
    unsaved: Vec<usize>,
    saved_early: Vec<usize>,
    has_session: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered: Option<Box<Delivered>>,
    responses: Vec<SavedResponse>,
    phase: SavedPhase,
}

#[derive(Serialize, Deserialize)]
struct SavedRunItem {
    kind: RunItemKind,
    agent: Arc<str>,
    item: usize,
    occurrence: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedInput {
    Text(Arc<str>),
    Items(Vec<usize>),
}

#[derive(Serialize, Deserialize)]
struct SavedResponse {
    output: Vec<usize>,
    usage: Usage,
    response_id: Option<Arc<str>>,
    request_id: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedPhase {
    Model,
    Tools(SavedTurn),
    Judge(SavedTurn),
    Handoff(SavedTurn),
    Output(SavedTurn, FinalOutput),
    Done(FinalOutput),
}

#[derive(Serialize, Deserialize)]
struct SavedTurn {
    items: Vec<usize>,
    tools: Vec<(Arc<str>, usize)>,
    unknown_tools: Vec<(Arc<str>, usize)>,
    handoffs: Vec<(Arc<str>, Arc<str>, usize)>,
    results: Vec<SavedResult>,
    done: Vec<SavedRanTool>,
    started: Vec<usize>,
    progress: Progress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    picked: Option<Arc<str>>,
    used_tools: bool,
    ends_at_tool: bool,
    end_told: bool,
}

#[derive(Serialize, Deserialize)]
struct SavedResult {
    tool: Arc<str>,
    output: SavedOutput,
}

/// A string that is a value is not the same as text: the model reads it in quotes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedOutput {
    Text(String),
    Json(#[serde(with = "crate::json::on_its_own")] Value),
}

#[derive(Serialize, Deserialize)]
struct SavedRanTool {
    at: usize,
    result: SavedResult,
    failed: bool,
    stage: ToolStage,
}

impl From<&RanTool> for SavedRanTool {
    fn from(ran: &RanTool) -> Self {
        Self {
            at: ran.at,
            result: SavedResult::from(&ran.result),
            failed: ran.failed,
            stage: ran.stage,
        }
    }
}

impl From<SavedRanTool> for RanTool {
    fn from(saved: SavedRanTool) -> Self {
        Self {
            at: saved.at,
            result: ToolResult::from(saved.result),
            failed: saved.failed,
            stage: saved.stage,
        }
    }
}

impl From<&ToolResult> for SavedResult {
    fn from(result: &ToolResult) -> Self {
        Self {
            tool: result.tool.clone(),
            output: match result.output.clone() {
                ToolOutput::Text(text) => SavedOutput::Text(text),
                ToolOutput::Json(value) => SavedOutput::Json(value),
            },
        }
    }
}

impl From<SavedResult> for ToolResult {
    fn from(saved: SavedResult) -> Self {
        Self {
            tool: saved.tool,
            output: match saved.output {
                SavedOutput::Text(text) => ToolOutput::Text(text),
                SavedOutput::Json(value) => ToolOutput::Json(value),
            },
        }
    }
}

/// Gives each item a place.
#[derive(Default)]
struct Table {
    items: Vec<Item>,
    item_at: HashMap<usize, usize>,
    run_items: Vec<SavedRunItem>,
    run_item_at: HashMap<(usize, usize), usize>,
}

impl Table {
    fn item(&mut self, item: &Item) -> usize {
        *self.item_at.entry(item.address()).or_insert_with(|| {
            self.items.push(item.clone());
            self.items.len() - 1
        })
    }

    fn items<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) -> Vec<usize> {
        items.into_iter().map(|item| self.item(item)).collect()
    }

    fn run_item(&mut self, made: &RunItem) -> usize {
        let item = self.item(made.item());
        let run_items = &mut self.run_items;
        // Copies that a filter changed share their key; the item tells them apart.
        *self
            .run_item_at
            .entry((made.key(), item))
            .or_insert_with(|| {
                run_items.push(SavedRunItem {
                    kind: made.kind().clone(),
                    agent: made.agent_name().clone(),
                    item,
                    occurrence: made.occurrence(),
                });
                run_items.len() - 1
            })
    }

    fn run_items<'a>(&mut self, made: impl IntoIterator<Item = &'a RunItem>) -> Vec<usize> {
        made.into_iter().map(|made| self.run_item(made)).collect()
    }

    fn turn(&mut self, turn: &Turn) -> SavedTurn {
        let mut tools = |calls: &[ToolCall]| {
            let calls = calls.iter();
            calls
                .map(|call| (call.tool.clone(), self.item(&call.call)))
                .collect()
        };
        SavedTurn {
            tools: tools(&turn.tools().calls),
            unknown_tools: tools(&turn.tools().unknown),
            handoffs: turn
                .handoffs
                .iter()
                .map(|call| (call.tool.clone(), call.agent.clone(), self.item(&call.call)))
                .collect(),
            items: self.run_items(&turn.items),
            results: turn.tools().results.iter().map(SavedResult::from).collect(),
            done: turn.tools().done.iter().map(SavedRanTool::from).collect(),
            started: turn.tools().started.clone(),
            progress: turn.progress,
            picked: turn.picked.clone(),
            used_tools: turn.used_tools,
            ends_at_tool: turn.ends_at_tool,
            end_told: turn.end_told,
        }
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = Table::default();
        let input = match &self.input {
            Input::Text(text) => SavedInput::Text(text.clone()),
            Input::Items(items) => SavedInput::Items(table.items(items)),
        };
        let responses = self.responses.iter().map(|response| SavedResponse {
            output: table.items(&response.output),
            usage: response.usage,
            response_id: response.response_id.clone(),
            request_id: response.request_id.clone(),
        });
        let responses = responses.collect();
        let phase = match &self.phase {
            Phase::Model => SavedPhase::Model,
            Phase::Tools(turn) => SavedPhase::Tools(table.turn(turn)),
            Phase::Judge(turn) => SavedPhase::Judge(table.turn(turn)),
            Phase::Handoff(turn) => SavedPhase::Handoff(table.turn(turn)),
            Phase::Output(turn, output) => SavedPhase::Output(table.turn(turn), output.clone()),
            Phase::Done(output) => SavedPhase::Done(output.clone()),
        };
        let owned = self.owned.iter();
        let owned = owned.map(|owned| {
            (
                table.item(&owned.input_item),
                table.run_item(&owned.run_item),
            )
        });
        let owned = owned.collect();
        let calls = self.calls.iter();
        let calls = calls.map(|call| (table.item(&call.item), call.role));
        let mut calls: Vec<(usize, Role)> = calls.collect();
        calls.sort_unstable();
        let saved = Saved {
            version: VERSION,
            agent: self.agent.clone(),
            first: self.first.clone(),
            trail: self.trail.clone(),
            turn: self.turn,
            made_items: self.made_items,
            usage: self.usage,
            agent_started: self.agent_started,
            input_checks: self.input_checks,
            tool_users: sorted(&self.tool_users),
            input_guardrails: self.input_guardrails.clone(),
            output_guardrails: self.output_guardrails.clone(),
            tool_guardrails: self.tool_guardrails.clone(),
            handoff_guardrails: self.handoff_guardrails.clone(),
            input,
            stored_input: self.stored_input,
            generated: table.run_items(&self.generated),
            record: table.run_items(&self.record),
            owned,
            calls,
            unsaved: table.items(&self.unsaved),
            saved_early: self.saved_early.clone(),
            has_session: self.has_session,
            delivered: self.delivered.clone(),
            responses,
            phase,
            items: table.items,
            run_items: table.run_items,
        };
        saved.serialize(serializer)
    }
}

/// The same run is always stored as the same text.
fn sorted(names: &ToolUsers) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = names.iter().map(|(name, ())| name.clone()).collect();
    names.sort_unstable();
    names
}

/// The items a stored run refers to.
struct Found {
    items: Vec<Item>,
    run_items: Vec<RunItem>,
}

impl Found {
    fn item(&self, at: usize) -> Result<Item, String> {
        let item = self.items.get(at).cloned();
        item.ok_or_else(|| format!("the stored run refers to item {at}, which it does not hold"))
    }

    fn items(&self, at: &[usize]) -> Result<Vec<Item>, String> {
        at.iter().map(|at| self.item(*at)).collect()
    }

    fn run_item(&self, at: usize) -> Result<RunItem, String> {
        let item = self.run_items.get(at).cloned();
        item.ok_or_else(|| {
            format!("the stored run refers to run item {at}, which it does not hold")
        })
    }

    fn run_items(&self, at: &[usize]) -> Result<Vec<RunItem>, String> {
        at.iter().map(|at| self.run_item(*at)).collect()
    }

    fn tools(&self, calls: Vec<(Arc<str>, usize)>) -> Result<Vec<ToolCall>, String> {
        let calls = calls.into_iter();
        calls
            .map(|(tool, at)| {
                let call = self.item(at)?;
                Ok(ToolCall { tool, call })
            })
            .collect()
    }

    fn turn(&self, saved: SavedTurn) -> Result<Turn, String> {
        let handoffs = saved.handoffs.into_iter().map(|(tool, agent, at)| {
            let call = self.item(at)?;
            Ok::<_, String>(HandoffCall { tool, agent, call })
        });
        let done = saved.done.iter().map(|ran| ran.at);
        are_places("tools that ran", done, saved.tools.len())?;
        let started = saved.started.iter().copied();
        are_places("tools that began", started, saved.tools.len())?;
        let tools = Tools {
            calls: self.tools(saved.tools)?,
            unknown: self.tools(saved.unknown_tools)?,
            results: saved.results.into_iter().map(ToolResult::from).collect(),
            done: saved.done.into_iter().map(RanTool::from).collect(),
            started: saved.started,
        };
        Ok(Turn {
            items: self.run_items(&saved.items)?,
            handoffs: handoffs.collect::<Result<_, _>>()?,
            tools: Some(Box::new(tools)),
            progress: saved.progress,
            picked: saved.picked,
            used_tools: saved.used_tools,
            ends_at_tool: saved.ends_at_tool,
            end_told: saved.end_told,
        })
    }
}

/// Checks that these are places of calls, each once.
fn are_places(what: &str, at: impl Iterator<Item = usize>, calls: usize) -> Result<(), String> {
    let mut seen = FxHashSet::default();
    for at in at {
        if at >= calls || !seen.insert(at) {
            return Err(format!(
                "the stored run lists call {at} among the {what}, which is not there or there twice"
            ));
        }
    }
    Ok(())
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The form first: another version's run must be told so, not that it lacks a field.
        let stored: Box<RawValue> = Box::deserialize(deserializer)?;
        restore(stored.get()).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn restore(stored: &str) -> Result<Run, String> {
    let unreadable = |error: serde_json::Error| format!("this is not a stored run: {error}");
    let Version { version } = serde_json::from_str(stored).map_err(unreadable)?;
    if version != VERSION {
        return Err(format!(
            "the run was stored in form {version}, this version reads form {VERSION}"
        ));
    }
    let saved: Saved = serde_json::from_str(stored).map_err(unreadable)?;
    let mut found = Found {
        items: saved.items,
        run_items: Vec::with_capacity(saved.run_items.len()),
    };
    for made in saved.run_items {
        let item = found.item(made.item)?;
        let made = RunItem::made(made.kind, made.agent, item, made.occurrence);
        found.run_items.push(made);
    }
    let input = match saved.input {
        SavedInput::Text(text) => Input::Text(text),
        SavedInput::Items(at) => Input::Items(found.items(&at)?.into()),
    };
    let responses = saved.responses.into_iter().map(|response| {
        Ok::<_, String>(ModelResponse {
            output: found.items(&response.output)?,
            usage: response.usage,
            response_id: response.response_id,
            request_id: response.request_id,
        })
    });
    let responses = responses.collect::<Result<_, _>>()?;
    let phase = match saved.phase {
        SavedPhase::Model => Phase::Model,
        SavedPhase::Tools(turn) => Phase::Tools(found.turn(turn)?),
        SavedPhase::Judge(turn) => Phase::Judge(found.turn(turn)?),
        SavedPhase::Handoff(turn) if turn.handoffs.is_empty() => {
            return Err("the stored run is to hand over, and nobody asked for it".to_owned());
        }
        SavedPhase::Handoff(turn) => Phase::Handoff(found.turn(turn)?),
        SavedPhase::Output(turn, output) => Phase::Output(found.turn(turn)?, output),
        SavedPhase::Done(output) => Phase::Done(output),
    };
    let owned = saved.owned.into_iter().map(|(input_item, run_item)| {
        Ok::<_, String>(Owned {
            input_item: found.item(input_item)?,
            run_item: found.run_item(run_item)?,
        })
    });
    let mut tool_users = ToolUsers::default();
    for name in saved.tool_users {
        tool_users.insert(name, ());
    }
    let mut calls = Calls::default();
    for (at, role) in saved.calls {
        let item = found.item(at)?;
        calls.insert(KnownCall { item, role });
    }
    Ok(Run {
        agent: saved.agent,
        first: saved.first,
        trail: saved.trail,
        input,
        stored_input: saved.stored_input,
        generated: found.run_items(&saved.generated)?.into(),
        record: found.run_items(&saved.record)?.into(),
        owned: owned.collect::<Result<_, _>>()?,
        responses,
        usage: saved.usage,
        turn: saved.turn,
        calls,
        tool_users,
        agent_started: saved.agent_started,
        input_checks: saved.input_checks,
        input_guardrails: saved.input_guardrails,
        output_guardrails: saved.output_guardrails,
        tool_guardrails: saved.tool_guardrails,
        handoff_guardrails: saved.handoff_guardrails,
        unsaved: found.items(&saved.unsaved)?,
        saved_early: saved.saved_early,
        has_session: saved.has_session,
        delivered: saved.delivered,
        phase,
        made_items: saved.made_items,
        view: None,
    })
}
