//! Interpreting a model response: classifying its items, finding the final output.

use super::machine::{EmptyOutput, ResponseRules, Run, UnknownTool, model_error, number_after};
use super::turn::{HandoffCall, ToolCall, Turn};
use crate::error::{Error, ErrorKind, excerpt};
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::offer::Offer;
use crate::output::FinalOutput;

impl Run {
    /// Classifies the items of a response. Returns the turn and the number of its last item.
    pub(super) fn classify(
        &self,
        response: &ModelResponse,
        offer: &Offer,
        rules: ResponseRules<'_>,
    ) -> Result<(Turn, u32), Error> {
        let mut turn = Turn::default();
        let mut last_item = self.position.last_item;
        for item in &response.output {
            let kind = match item.kind() {
                ItemKind::FunctionCall => {
                    classify_call(item, offer, rules.unknown_tool, &mut turn)?
                }
                ItemKind::ComputerCall
                | ItemKind::LocalShellCall
                | ItemKind::ShellCall
                | ItemKind::ApplyPatchCall
                | ItemKind::CustomToolCall
                | ItemKind::McpApprovalRequest
                | ItemKind::Program => {
                    return Err(model_error(format!(
                        "the model sent an item of type \"{}\", and there is no tool here to answer \
                         it",
                        item.kind().as_str()
                    )));
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
            last_item = number_after(last_item);
            let item = if rules.omit_reasoning_ids {
                item.without_reasoning_id()
            } else {
                item.clone()
            };
            let made = RunItem::made(kind, self.agent.name.clone(), item, last_item);
            turn.items.push(made);
        }
        Ok((turn, last_item))
    }
}

fn classify_call(
    item: &Item,
    offer: &Offer,
    unknown_tool: UnknownTool,
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
        None if unknown_tool == UnknownTool::TellModel => {
            let tool = name.as_ref().into();
            turn.tools_mut().unknown.push(ToolCall { tool, call });
        }
        None => {
            return Err(model_error(format!(
                "the model called \"{}\", which is neither a tool nor a handoff here",
                excerpt(&name)
            )));
        }
    }
    Ok(RunItemKind::ToolCall)
}

/// The final output of a turn without tools to run; `None` if the model must be asked again.
pub(super) fn final_output(
    turn: &Turn,
    skipped_calls: bool,
    rules: ResponseRules<'_>,
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
        let message = format!("the model refused to answer: {}", excerpt(&refusal));
        return Err(Error::new(ErrorKind::ModelRefusal, message));
    }
    let text = message.and_then(|made| made.item().text());
    let text = text.filter(|text| rules.output_type.is_none() || !text.is_empty());
    match (rules.output_type, text) {
        (None, text) => {
            let text = text.unwrap_or_default();
            Ok(Some(FinalOutput::Text(text.as_ref().into())))
        }
        (Some(output), None) => match rules.empty_output {
            EmptyOutput::AskAgain => Ok(None),
            EmptyOutput::Reject => {
                let message = format!(
                    "the model's answer is empty, and its output type asks for a {}",
                    output.name()
                );
                Err(model_error(message))
            }
        },
        (Some(output), Some(text)) => output.validate(&text).map(Some).map_err(|error| {
            let message = format!(
                "the model's answer is not a {}, which its output type asks for: {error}",
                output.name()
            );
            model_error(message).caused_by(error)
        }),
    }
}
