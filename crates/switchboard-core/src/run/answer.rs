//! What a model's answer means.

use super::machine::{Facts, UnknownTool, next_occurrence};
use super::turn::{HandoffCall, ToolCall, Turn};
use crate::agent::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::offer::Offer;
use crate::output::FinalOutput;

/// An agent that answers in text ends with text, whatever its tool returned.
pub(super) fn final_output_of(result: &ToolResult, facts: Facts<'_>) -> FinalOutput {
    match facts.output {
        None => FinalOutput::Text(result.output.text().as_ref().into()),
        Some(_) => FinalOutput::Json(result.output.clone().into_value()),
    }
}

/// Says what each item of a response means.
pub(super) fn classify(
    response: &ModelResponse,
    offer: &Offer,
    facts: Facts<'_>,
    next_item: &mut u32,
) -> Result<Turn, Error> {
    let mut turn = Turn::default();
    // With room for the answer to a handoff, and for the item of an answer after it: most runs make no
    // more, and what the first turn has made becomes the list that grows.
    turn.items.reserve_exact(response.output.len() + 2);
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
        *next_item = next_occurrence(*next_item);
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
        // Most answers ask for one; a vector would begin with room for four.
        turn.handoffs.reserve_exact(1);
        turn.handoffs.push(HandoffCall {
            tool: spec.tool_name.clone(),
            agent: spec.agent_name.clone(),
            call: item.clone(),
        });
        return Ok(RunItemKind::HandoffCall);
    }
    let call = item.clone();
    match offer.tools.iter().find(|spec| *spec.name == *name) {
        Some(spec) => turn.tools_mut().calls.push(ToolCall {
            tool: spec.name.clone(),
            call,
        }),
        None if facts.unknown_tool == UnknownTool::TellModel => {
            let tool = name.as_ref().into();
            turn.tools_mut().unknown.push(ToolCall { tool, call });
        }
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
pub(super) fn settle(
    turn: &Turn,
    skipped: bool,
    facts: Facts<'_>,
) -> Result<Option<FinalOutput>, Error> {
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
