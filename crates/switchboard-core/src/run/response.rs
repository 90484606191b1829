//! Interpreting a model response: classifying its items, finding the final output.

use super::machine::{Rules, UnknownTool, number_after};
use super::turn::{HandoffCall, ToolCall, Turn};
use crate::agent::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::offer::Offer;
use crate::output::FinalOutput;

/// The final output that a tool's result makes. An agent without an output type ends with text.
pub(super) fn tool_result_output(result: &ToolResult, rules: Rules<'_>) -> FinalOutput {
    match rules.output {
        None => FinalOutput::Text(result.output.text().as_ref().into()),
        Some(_) => FinalOutput::Json(result.output.clone().into_value()),
    }
}

/// Classifies the items of a response.
pub(super) fn classify(
    response: &ModelResponse,
    offer: &Offer,
    rules: Rules<'_>,
    last_item: &mut u32,
) -> Result<Turn, Error> {
    let mut turn = Turn::default();
    for item in &response.output {
        let kind = match item.kind() {
            ItemKind::FunctionCall => classify_call(item, offer, rules, &mut turn)?,
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
        *last_item = number_after(*last_item);
        let made = RunItem::made(kind, rules.agent.clone(), item.clone(), *last_item);
        turn.items.push(made);
    }
    Ok(turn)
}

fn classify_call(
    item: &Item,
    offer: &Offer,
    rules: Rules<'_>,
    turn: &mut Turn,
) -> Result<RunItemKind, Error> {
    let name = item.name().unwrap_or_default();
    let call = item.clone();
    if let Some(spec) = offer.handoffs.iter().find(|spec| *spec.tool_name == *name) {
        turn.handoffs.push(HandoffCall {
            tool: spec.tool_name.clone(),
            to: spec.to.clone(),
            call,
        });
        return Ok(RunItemKind::HandoffCall);
    }
    match offer.tools.iter().find(|spec| *spec.name == *name) {
        Some(spec) => {
            let tool = spec.name.clone();
            turn.tools_mut().calls.push(ToolCall { tool, call });
        }
        None if rules.unknown_tool == UnknownTool::TellModel => {
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

/// The final output of a turn without tools to run; `None` if the model must be asked again.
pub(super) fn final_output(
    turn: &Turn,
    skipped_calls: bool,
    rules: Rules<'_>,
) -> Result<Option<FinalOutput>, Error> {
    let message = turn
        .items
        .iter()
        .rev()
        .find(|made| *made.kind() == RunItemKind::MessageOutput);
    if message.is_none() && (turn.used_tools || skipped_calls) {
        return Ok(None);
    }
    if let Some(refusal) = message.and_then(|made| made.item().refusal()) {
        let message = format!("the model refused to answer: {refusal}");
        return Err(Error::new(ErrorKind::ModelRefusal, message));
    }
    let text = message.and_then(|made| made.item().text());
    match (rules.output, text) {
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
