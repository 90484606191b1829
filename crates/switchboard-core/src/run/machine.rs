//! The run as a state machine: it makes every decision and awaits nothing.
//!
//! A driver asks for the next [`Step`], does what it says, and tells the machine what came of
//! it. Every method that moves the machine either succeeds as a whole or leaves it where it was.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::view::{self, View};
use crate::agent::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::guardrail::GuardrailResult;
use crate::handoff::owned::{self, Owned};
use crate::handoff::transfer_message;
use crate::items::{Input, Item, ItemKind, Items, RunItem, RunItemKind, RunItems};
use crate::model::{ModelResponse, Usage};
use crate::offer::Offer;
use crate::output::{FinalOutput, OutputType};

/// What a handoff that was not the first of its response is answered with.
const IGNORED_HANDOFF: &str = "Multiple handoffs detected, ignoring this one.";

/// A run: where it stands, and all it has made.
///
/// It is what an [`Error`] and a result carry. It serialises (each item once), and a run read
/// back goes on where it stood with [`Runner::resume`](crate::Runner::resume).
#[derive(Debug, Clone)]
pub struct Run {
    /// Who has the conversation, by the name that is theirs alone.
    pub(super) agent: Arc<str>,
    /// What the current agent's conversation starts from.
    pub(super) input: Input,
    /// What the run made since, as models see it.
    pub(super) generated: RunItems,
    /// All the run made; what a session keeps.
    pub(super) record: RunItems,
    pub(super) owned: Vec<Owned>,
    pub(super) responses: Vec<ModelResponse>,
    pub(super) usage: Usage,
    pub(super) turn: u32,
    pub(super) calls: Calls,
    /// Agents that have used a tool in this run.
    pub(super) tool_users: FxHashSet<Arc<str>>,
    /// Whether the current agent has been told that it has the conversation.
    pub(super) agent_started: bool,
    pub(super) input_checked: bool,
    pub(super) input_guardrails: Vec<GuardrailResult>,
    pub(super) output_guardrails: Vec<GuardrailResult>,
    /// What the session has not been given yet.
    pub(super) unsaved: Vec<Item>,
    /// Items of the turn under way that the session was given before the turn's end.
    pub(super) saved_early: Vec<usize>,
    /// Whether there is a session to be given anything.
    pub(super) has_session: bool,
    pub(super) phase: Phase,
    pub(super) made_items: u32,
    /// What the model will be shown; made anew where it is absent.
    pub(super) view: Option<View>,
}

/// Where a run stands within a turn.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Model,
    Tools(Turn),
    Judge(Turn),
    Handoff(Turn),
    Output(Turn, FinalOutput),
    Done(FinalOutput),
}

/// What a turn has made so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) items: Vec<RunItem>,
    pub(super) tools: Vec<ToolCall>,
    pub(super) unknown_tools: Vec<ToolCall>,
    pub(super) handoffs: Vec<HandoffCall>,
    pub(super) results: Vec<ToolResult>,
    /// Whether the response used any tool, also one of the provider's own.
    pub(super) used_tools: bool,
    /// Whether the final output is what a tool returned.
    pub(super) ends_at_tool: bool,
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

/// What a run needs next.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Ask the model.
    CallModel,
    /// Run these tools, side by side.
    RunTools(&'a [ToolCall]),
    /// Decide whether what these tools returned is the final output.
    JudgeTools(&'a [ToolResult]),
    /// Hand the conversation over: the first of these, the others are ignored.
    TakeHandoff(&'a [HandoffCall]),
    /// Check this final output and end.
    Conclude(&'a FinalOutput),
    /// The run has ended.
    Done(&'a FinalOutput),
}

/// How the machine must see the agent that has the conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) name: &'a Arc<str>,
    pub(super) output: Option<&'a OutputType>,
    pub(super) unknown_tool: UnknownTool,
    pub(super) tool_use: ToolUseRule<'a>,
    /// Whether anybody wants to be told of the items of an answer.
    pub(super) is_watched: bool,
}

/// What happens after tools have run.
#[derive(Debug, Clone, Copy)]
pub(super) enum ToolUseRule<'a> {
    RunModelAgain,
    StopOnFirstTool,
    StopAtTools(&'a [String]),
    AskDriver,
}

/// What happens when the model calls a tool that is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownTool {
    /// The run ends with an error.
    #[default]
    Fail,
    /// The model is told, and goes on.
    TellModel,
}

/// A response the machine would not take.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) error: Error,
    /// Whether it was a valid answer at all, so that those who watch answers are told of it.
    pub(super) is_answer: bool,
    /// The items of the answer, as far as they could be told.
    pub(super) items: Vec<RunItem>,
}

impl Run {
    pub(super) fn new(agent: Arc<str>, input: Input) -> Self {
        Self {
            agent,
            input,
            generated: RunItems::new(),
            record: RunItems::new(),
            owned: Vec::new(),
            responses: Vec::new(),
            usage: Usage::default(),
            turn: 0,
            calls: Calls::default(),
            tool_users: FxHashSet::default(),
            agent_started: false,
            input_checked: false,
            input_guardrails: Vec::new(),
            output_guardrails: Vec::new(),
            unsaved: Vec::new(),
            saved_early: Vec::new(),
            has_session: false,
            phase: Phase::Model,
            made_items: 0,
            view: None,
        }
    }

    /// What the run needs next.
    pub fn step(&self) -> Step<'_> {
        match &self.phase {
            Phase::Model => Step::CallModel,
            Phase::Tools(turn) => Step::RunTools(&turn.tools),
            Phase::Judge(turn) => Step::JudgeTools(&turn.results),
            Phase::Handoff(turn) => Step::TakeHandoff(&turn.handoffs),
            Phase::Output(_, output) => Step::Conclude(output),
            Phase::Done(output) => Step::Done(output),
        }
    }

    /// Who has the conversation.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// How many turns have been taken.
    pub fn turns(&self) -> u32 {
        self.turn
    }

    /// What the current agent's conversation starts from: the run's input, or what a handoff's
    /// filter made of it.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// All the run has made.
    pub fn new_items(&self) -> &RunItems {
        &self.record
    }

    /// What the models answered.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        &self.responses
    }

    /// What the models used.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What the input guardrails found.
    pub fn input_guardrail_results(&self) -> &[GuardrailResult] {
        &self.input_guardrails
    }

    /// What the output guardrails found.
    pub fn output_guardrail_results(&self) -> &[GuardrailResult] {
        &self.output_guardrails
    }

    /// The conversation so far, to go on from: the input, and then what the run made, without
    /// what the input already carries.
    pub fn to_input_list(&self) -> Items {
        let mut items = self.input.items();
        items.extend(owned::not_owned(&self.record, &self.owned).map(RunItem::to_input_item));
        items
    }

    /// What the model will be shown.
    pub(super) fn model_input(&mut self) -> Items {
        let (input, generated) = (&self.input, &self.generated);
        let view = self
            .view
            .get_or_insert_with(|| View::new(&input.items(), generated));
        match view.ready() {
            Some(items) => items.clone(),
            None => view::with_care(&self.input.items(), &self.generated),
        }
    }

    /// The number of the turn that would be next, if the run may take it.
    pub(super) fn next_turn(&self, max_turns: Option<u32>) -> Result<u32, Error> {
        let next = self.turn.saturating_add(1);
        match max_turns {
            Some(max) if next > max => Err(Error::new(
                ErrorKind::MaxTurns,
                format!(
                    "the run was not done after {max} turns (max turns ({max}) exceeded); if its \
                     agents do not go round in circles, allow more with max_turns"
                ),
            )),
            _ => Ok(next),
        }
    }

    pub(super) fn has_used_tools(&self) -> bool {
        self.tool_users.contains(&self.agent)
    }

    /// Takes the model's answer. Returns the items it consists of.
    pub(super) fn answered(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
        facts: Facts<'_>,
    ) -> Result<Vec<RunItem>, Rejected> {
        self.usage += response.usage;
        let rejected = |error: Error, is_answer, items| Rejected {
            error: error.at_agent(facts.name),
            is_answer,
            items,
        };
        let mut made_items = self.made_items;
        let turn = classify(&response, offer, facts, &mut made_items)
            .map_err(|error| rejected(error, true, Vec::new()))?;
        let (turn, skipped) = self
            .calls
            .admit(turn)
            .map_err(|error| rejected(error, false, Vec::new()))?;
        let items = match facts.is_watched {
            true => turn.items.clone(),
            false => Vec::new(),
        };
        let output = match turn.has_calls() {
            true => None,
            false => settle(&turn, skipped, facts)
                .map_err(|error| rejected(error, true, items.clone()))?,
        };
        self.calls.note(&turn);
        self.made_items = made_items;
        self.turn = self.turn.saturating_add(1);
        self.responses.push(response);
        if turn.made_calls() && !self.has_used_tools() {
            self.tool_users.insert(self.agent.clone());
        }
        if !turn.tools.is_empty() || !turn.unknown_tools.is_empty() {
            self.phase = Phase::Tools(turn);
        } else if !turn.handoffs.is_empty() {
            self.phase = Phase::Handoff(turn);
        } else {
            self.end_turn(turn, output);
        }
        Ok(items)
    }

    /// Takes what the tools returned, in the order of the calls.
    pub(super) fn tools_ran(&mut self, results: Vec<ToolResult>, facts: Facts<'_>) {
        let Phase::Tools(mut turn) = std::mem::replace(&mut self.phase, Phase::Model) else {
            return;
        };
        for (call, result) in turn.tools.iter().zip(&results) {
            let text = result.output.text();
            let output = result.output.clone().into_value();
            let made = self.answer(&call.call, &text, facts.name, output);
            turn.items.push(made);
        }
        for call in &turn.unknown_tools {
            let text = format!("Tool '{}' not found.", call.tool);
            let made = self.answer(&call.call, &text, facts.name, Value::from(text.as_str()));
            turn.items.push(made);
        }
        turn.results = results;
        if !turn.handoffs.is_empty() {
            self.phase = Phase::Handoff(turn);
            return;
        }
        let last_word = match facts.tool_use {
            ToolUseRule::AskDriver if !turn.results.is_empty() => {
                self.phase = Phase::Judge(turn);
                return;
            }
            ToolUseRule::RunModelAgain | ToolUseRule::AskDriver => None,
            ToolUseRule::StopOnFirstTool => turn.results.first(),
            ToolUseRule::StopAtTools(names) => turn
                .results
                .iter()
                .find(|result| names.iter().any(|name| **name == *result.tool)),
        };
        let output = last_word.map(|result| final_output_of(result, facts));
        self.end_turn(turn, output);
    }

    /// Takes the driver's word on whether what the tools returned is the final output.
    pub(super) fn tools_judged(&mut self, output: Option<FinalOutput>) {
        if let Phase::Judge(turn) = std::mem::replace(&mut self.phase, Phase::Model) {
            self.end_turn(turn, output);
        }
    }

    /// Ends a turn in which the agent stayed: with the final output, or with the model asked again.
    fn end_turn(&mut self, mut turn: Turn, output: Option<FinalOutput>) {
        match output {
            Some(output) => {
                turn.ends_at_tool = !turn.results.is_empty();
                self.phase = Phase::Output(turn, output);
            }
            None => {
                self.commit(turn.items);
                self.phase = Phase::Model;
            }
        }
    }

    /// What the turn would consist of, were the conversation handed to `target`.
    pub(super) fn handed_over_items(&self, from: &Arc<str>, target: &Arc<str>) -> Vec<RunItem> {
        let Phase::Handoff(turn) = &self.phase else {
            return Vec::new();
        };
        let mut items = Vec::with_capacity(turn.items.len() + turn.handoffs.len());
        items.extend_from_slice(&turn.items);
        let mut occurrence = self.made_items;
        let mut made = |kind, item| {
            occurrence += 1;
            RunItem::made(kind, from.clone(), item, occurrence)
        };
        for ignored in turn.handoffs.iter().skip(1) {
            let item = answer_item(&ignored.call, IGNORED_HANDOFF);
            let output = Value::from(IGNORED_HANDOFF);
            items.push(made(RunItemKind::ToolCallOutput { output }, item));
        }
        if let Some(taken) = turn.handoffs.first() {
            let kind = RunItemKind::HandoffOutput {
                source: from.clone(),
                target: target.clone(),
            };
            items.push(made(
                kind,
                answer_item(&taken.call, &transfer_message(target)),
            ));
        }
        items
    }

    /// Hands the conversation to `target`.
    pub(super) fn handed_over(&mut self, target: Arc<str>, handover: Handover) {
        let ignored_and_taken = match &self.phase {
            Phase::Handoff(turn) => turn.handoffs.len(),
            _ => 0,
        };
        self.made_items += u32::try_from(ignored_and_taken).unwrap_or(u32::MAX);
        match handover {
            Handover::AsItIs(items) => self.commit(items),
            Handover::Rewritten(parts) => {
                let added = owned::after_filters(&parts.owned, &parts.input_history);
                let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
                self.generated = parts.pre_handoff_items.concat(shown);
                self.record.extend(parts.new_items.iter().cloned());
                self.note_unsaved_parts(&parts);
                self.owned = owned::after_handoff(
                    &self.owned,
                    &self.input,
                    &parts.input_history,
                    added,
                    &self.record,
                );
                self.input = parts.input_history;
                self.view = None;
            }
        }
        self.agent = target;
        self.agent_started = false;
        self.phase = Phase::Model;
    }

    /// Ends the run with its final output.
    pub(super) fn concluded(&mut self) {
        if let Phase::Output(turn, output) = std::mem::replace(&mut self.phase, Phase::Model) {
            self.commit(turn.items);
            self.phase = Phase::Done(output);
        }
    }

    /// What a session may keep of a turn whose final output, made by a tool, must not pass: the
    /// calls, and that their outputs were withheld.
    pub(super) fn withheld_items(&self) -> Vec<Item> {
        const WITHHELD: &str = "Output withheld by an output guardrail.";
        match &self.phase {
            Phase::Output(turn, _) if turn.ends_at_tool => turn
                .items
                .iter()
                .filter_map(|made| match made.kind() {
                    RunItemKind::ToolCall => Some(made.to_input_item()),
                    RunItemKind::ToolCallOutput { .. } => {
                        Some(made.item().with_field("output", WITHHELD))
                    }
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// What the turn that is about to end the run has made.
    pub(super) fn last_turn_items(&self) -> &[RunItem] {
        match &self.phase {
            Phase::Output(turn, _) => &turn.items,
            _ => &[],
        }
    }

    /// Whether tools ran in this turn before its handoff.
    pub(super) fn ran_tools_this_turn(&self) -> bool {
        matches!(&self.phase, Phase::Handoff(turn) if !turn.results.is_empty())
    }

    /// Adds what a turn made.
    fn commit(&mut self, items: Vec<RunItem>) {
        if let Some(view) = &mut self.view {
            view.extend(&items);
        }
        self.generated.extend(items.iter().cloned());
        if self.has_session {
            self.note_unsaved(items.iter());
        }
        self.record.extend(items);
    }

    /// Notes what the session must be given.
    fn note_unsaved<'a>(&mut self, items: impl Iterator<Item = &'a RunItem>) {
        let early = std::mem::take(&mut self.saved_early);
        let unsaved = items.filter(|made| !early.contains(&made.key()));
        let batch = unsaved.map(RunItem::to_input_item).collect();
        self.unsaved.extend(view::latest_only(batch));
    }

    /// Notes what the session must be given of a turn that a filter rewrote: what the filter left
    /// for the record, and any call whose output it left for the model alone.
    fn note_unsaved_parts(&mut self, parts: &crate::handoff::Parts) {
        if !self.has_session {
            return;
        }
        let mut kept: Vec<&RunItem> = parts.new_items.iter().collect();
        let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
        let answered: Vec<u64> = shown
            .iter()
            .filter(|made| matches!(made.kind(), RunItemKind::ToolCallOutput { .. }))
            .map(|made| made.item().identity())
            .collect();
        if !answered.is_empty() {
            let calls = parts.pre_handoff_items.iter().chain(shown);
            kept.extend(calls.filter(|made| {
                *made.kind() == RunItemKind::ToolCall
                    && answered.contains(&made.item().output_identity())
                    && !parts.new_items.iter().any(|kept| kept == *made)
            }));
        }
        self.note_unsaved(kept.into_iter());
    }

    /// What is worth keeping of a turn that fails after its tools have run: the calls that were
    /// answered, the reasoning that led to them, and the answers. The session is to be given them
    /// now; the run itself stays where it is.
    pub(super) fn keep_completed_tools(&mut self) -> Vec<RunItem> {
        let (Phase::Handoff(turn) | Phase::Judge(turn)) = &self.phase else {
            return Vec::new();
        };
        let answered: Vec<u64> = turn
            .items
            .iter()
            .filter(|made| matches!(made.kind(), RunItemKind::ToolCallOutput { .. }))
            .map(|made| made.item().identity())
            .collect();
        let mut kept = Vec::new();
        let mut reasoning = Vec::new();
        for made in &turn.items {
            match made.kind() {
                RunItemKind::Reasoning => {
                    reasoning.push(made.clone());
                    continue;
                }
                RunItemKind::ToolCall if answered.contains(&made.item().output_identity()) => {
                    kept.append(&mut reasoning);
                    kept.push(made.clone());
                }
                RunItemKind::ToolCallOutput { .. } => kept.push(made.clone()),
                _ => {}
            }
            reasoning.clear();
        }
        if self.has_session && self.saved_early.is_empty() {
            self.unsaved.extend(kept.iter().map(RunItem::to_input_item));
            self.saved_early = kept.iter().map(RunItem::key).collect();
        }
        kept
    }

    fn answer(&mut self, call: &Item, text: &str, agent: &Arc<str>, output: Value) -> RunItem {
        self.made_items += 1;
        let kind = RunItemKind::ToolCallOutput { output };
        RunItem::made(
            kind,
            agent.clone(),
            answer_item(call, text),
            self.made_items,
        )
    }
}

/// What the next agent is given.
#[derive(Debug)]
pub(super) enum Handover {
    /// Everything so far, and then this turn's items.
    AsItIs(Vec<RunItem>),
    /// What a filter or nesting made of it.
    Rewritten(crate::handoff::Parts),
}

fn answer_item(call: &Item, text: &str) -> Item {
    Item::function_call_output(&call.call_id().unwrap_or_default(), text)
}

/// An agent that answers in text ends with text, whatever its tool returned.
fn final_output_of(result: &ToolResult, facts: Facts<'_>) -> FinalOutput {
    match facts.output {
        None => FinalOutput::Text(result.output.text().as_ref().into()),
        Some(_) => FinalOutput::Json(result.output.clone().into_value()),
    }
}

/// Says what each item of a response means.
fn classify(
    response: &ModelResponse,
    offer: &Offer,
    facts: Facts<'_>,
    next_item: &mut u32,
) -> Result<Turn, Error> {
    let mut turn = Turn::default();
    for item in &response.output {
        let kind = match item.kind() {
            ItemKind::FunctionCall => classify_call(item, offer, facts, &mut turn)?,
            ItemKind::ComputerCall
            | ItemKind::LocalShellCall
            | ItemKind::ShellCall
            | ItemKind::ApplyPatchCall
            | ItemKind::CustomToolCall
            | ItemKind::McpApprovalRequest
            | ItemKind::Program => {
                return Err(Error::new(
                    ErrorKind::ModelBehavior,
                    format!(
                        "the model sent an item of type \"{}\", and there is no tool here to answer it",
                        item.kind().as_str()
                    ),
                ));
            }
            kind if kind.is_output() && kind != ItemKind::ToolSearchOutput => {
                tracing::warn!(kind = kind.as_str(), "the model sent an output; left out");
                continue;
            }
            _ => RunItem::kind_of(item),
        };
        turn.used_tools |= matches!(
            kind,
            RunItemKind::ToolCall
                | RunItemKind::HandoffCall
                | RunItemKind::ToolSearchCall
                | RunItemKind::ToolSearchOutput
        );
        *next_item += 1;
        let made = RunItem::made(kind, facts.name.clone(), item.clone(), *next_item);
        turn.items.push(made);
    }
    Ok(turn)
}

fn classify_call(
    item: &Item,
    offer: &Offer,
    facts: Facts<'_>,
    turn: &mut Turn,
) -> Result<RunItemKind, Error> {
    let name = item.name().unwrap_or_default();
    let handoff = offer.handoffs.iter().find(|spec| *spec.tool_name == *name);
    if let Some(spec) = handoff {
        turn.handoffs.push(HandoffCall {
            tool: spec.tool_name.clone(),
            agent: spec.agent_name.clone(),
            call: item.clone(),
        });
        return Ok(RunItemKind::HandoffCall);
    }
    let call = item.clone();
    match offer.tools.iter().find(|spec| *spec.name == *name) {
        Some(spec) => turn.tools.push(ToolCall {
            tool: spec.name.clone(),
            call,
        }),
        None if facts.unknown_tool == UnknownTool::TellModel => turn.unknown_tools.push(ToolCall {
            tool: name.as_ref().into(),
            call,
        }),
        None => {
            return Err(Error::new(
                ErrorKind::ModelBehavior,
                format!("the model called \"{name}\", which is neither a tool nor a handoff here"),
            ));
        }
    }
    Ok(RunItemKind::ToolCall)
}

/// The final output of a turn without calls of ours; `None` where the model must be asked again.
fn settle(turn: &Turn, skipped: bool, facts: Facts<'_>) -> Result<Option<FinalOutput>, Error> {
    let message = turn
        .items
        .iter()
        .rev()
        .find(|made| *made.kind() == RunItemKind::MessageOutput);
    if message.is_none() && (turn.used_tools || skipped) {
        return Ok(None);
    }
    if let Some(refusal) = message.and_then(|made| made.item().refusal()) {
        let message = format!("the model refused to answer: {refusal}");
        return Err(Error::new(ErrorKind::ModelRefusal, message));
    }
    let text = message.and_then(|made| made.item().text());
    match (facts.output, text) {
        (None, text) => {
            let text = text.unwrap_or_default();
            Ok(Some(FinalOutput::Text(text.as_ref().into())))
        }
        (Some(_), None) => Ok(None),
        (Some(output), Some(text)) => output.validate(&text).map(Some).map_err(|error| {
            let message = format!(
                "the model's answer is not a {}, which its output type asks for: {error}",
                output.name()
            );
            Error::new(ErrorKind::ModelBehavior, message).caused_by(error)
        }),
    }
}

/// The calls of a run, so that none runs twice and no call id stands for two.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(FxHashMap<u64, KnownCall>);

#[derive(Debug, Clone)]
pub(super) struct KnownCall {
    pub(super) item: Item,
    pub(super) is_handoff: bool,
}

impl Calls {
    pub(super) fn insert(&mut self, call: KnownCall) {
        self.0.insert(call.item.identity(), call);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownCall> {
        self.0.values()
    }

    fn note(&mut self, turn: &Turn) {
        for (item, is_handoff) in turn.calls() {
            let item = item.clone();
            self.insert(KnownCall { item, is_handoff });
        }
    }

    /// The turn without calls that were answered before, and whether any was left out.
    fn admit(&self, mut turn: Turn) -> Result<(Turn, bool), Error> {
        let mut repeated: Vec<Item> = Vec::new();
        for (at, (item, is_handoff)) in turn.calls().enumerate() {
            if item.call_id().is_none_or(|id| id.is_empty()) {
                return Err(Error::new(
                    ErrorKind::ModelBehavior,
                    format!(
                        "the model called \"{}\" without a call id, so the call cannot be answered",
                        item.name().unwrap_or_default()
                    ),
                ));
            }
            let known = self.0.get(&item.identity());
            let known = known.map(|known| (&known.item, known.is_handoff));
            let mut earlier = turn.calls().take(at);
            let known =
                known.or_else(|| earlier.find(|(other, _)| other.identity() == item.identity()));
            match known {
                None => {}
                Some((known, was_handoff))
                    if was_handoff == is_handoff && same_call(known, item) =>
                {
                    repeated.push(item.clone());
                }
                Some(_) => {
                    return Err(Error::new(
                        ErrorKind::ModelBehavior,
                        format!(
                            "the model used the call id \"{}\" for two different calls",
                            item.call_id().unwrap_or_default()
                        ),
                    ));
                }
            }
        }
        if !repeated.is_empty() {
            turn.leave_out(&repeated);
        }
        Ok((turn, !repeated.is_empty()))
    }
}

impl Turn {
    /// All calls, tools before handoffs, and whether each asks for a handoff.
    fn calls(&self) -> impl Iterator<Item = (&Item, bool)> {
        let tools = self.tools.iter().chain(&self.unknown_tools);
        let tools = tools.map(|call| (&call.call, false));
        tools.chain(self.handoffs.iter().map(|call| (&call.call, true)))
    }

    /// Whether there is anything to run or to hand over.
    fn has_calls(&self) -> bool {
        !(self.tools.is_empty() && self.unknown_tools.is_empty() && self.handoffs.is_empty())
    }

    /// Whether the model called anything, also a tool of the provider.
    fn made_calls(&self) -> bool {
        let mut kinds = self.items.iter().map(RunItem::kind);
        kinds.any(|kind| matches!(kind, RunItemKind::ToolCall | RunItemKind::HandoffCall))
    }

    /// Leaves calls out, and the reasoning that led to them.
    fn leave_out(&mut self, dropped: &[Item]) {
        let is_dropped = |item: &Item| dropped.iter().any(|dropped| dropped.is_same(item));
        self.tools.retain(|call| !is_dropped(&call.call));
        self.unknown_tools.retain(|call| !is_dropped(&call.call));
        self.handoffs.retain(|call| !is_dropped(&call.call));
        let mut next_is_dropped = false;
        let mut kept: Vec<RunItem> = Vec::with_capacity(self.items.len());
        for made in self.items.drain(..).rev() {
            if *made.kind() != RunItemKind::Reasoning {
                next_is_dropped = is_dropped(made.item());
            }
            if !next_is_dropped {
                kept.push(made);
            }
        }
        kept.reverse();
        self.items = kept;
    }
}

/// Whether two calls ask for the same thing, whatever the form of their arguments.
fn same_call(a: &Item, b: &Item) -> bool {
    a.call_id() == b.call_id() && a.name() == b.name() && {
        let (a, b) = (a.arguments(), b.arguments());
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        a == b
            || matches!((&a, &b), (Some(a), Some(b)) if value(a).is_some() && value(a) == value(b))
    }
}
