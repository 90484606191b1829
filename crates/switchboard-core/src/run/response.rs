//! Interpreting a model response: classifying its items, finding the final output.

use std::sync::Arc;

use super::machine::{EmptyOutput, ResponseRules, Run, UnknownTool, model_error, number_after};
use super::mcp_tools;
use super::turn::{HandoffCall, ToolCall, Turn};
use crate::error::{Error, ErrorKind, excerpt};
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::json::unquote;
use crate::model::ModelResponse;
use crate::offer::Offer;
use crate::output::FinalOutput;
use crate::tool::ToolInfo;

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
            let mut tool = None;
            let kind = match item.kind() {
                ItemKind::FunctionCall | ItemKind::CustomToolCall => {
                    classify_call(item, offer, rules.unknown_tool, &mut turn, &mut tool)?
                }
                ItemKind::McpCall => {
                    tool = Some(self.mcp_tool(item, response));
                    RunItemKind::ToolCall
                }
                ItemKind::ComputerCall
                | ItemKind::LocalShellCall
                | ItemKind::ShellCall
                | ItemKind::ApplyPatchCall
                | ItemKind::Program => {
                    return Err(model_error(format!(
                        "the model sent an item of type \"{}\", and there is no tool here to answer \
                         it",
                        item.kind().as_str()
                    )));
                }
                ItemKind::McpApprovalRequest => {
                    let server = item.field("server_label").and_then(unquote);
                    return Err(model_error(format!(
                        "the provider asks for approval (mcp_approval_request) to call the tool \
                         \"{}\" of the MCP server \"{}\", and there is nobody here to give it; if the server is trusted, \
                         set \"require_approval\" of the hosted tool to \"never\"",
                        excerpt(&item.name().unwrap_or_default()),
                        excerpt(&server.unwrap_or_default()),
                    )));
                }
                kind if kind.is_output() && kind != ItemKind::ToolSearchOutput => {
                    tracing::warn!(kind = kind.as_str(), "the model sent an output; left out");
                    continue;
                }
                _ => RunItem::kind_of(item),
            };
            if kind == RunItemKind::ToolCall && tool.is_none() && is_run_by_provider(item.kind()) {
                let hosted = offer.hosted_tool(item.kind().as_str());
                tool = Some(hosted.cloned().unwrap_or_else(ToolInfo::of_provider));
            }
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
            turn.items.push(made.with_tool(tool));
        }
        Ok((turn, last_item))
    }

    /// The tool of an MCP server that the provider called.
    fn mcp_tool(&self, call: &Item, response: &ModelResponse) -> Arc<ToolInfo> {
        let input = self.conversation.input.items();
        let made = self.conversation.generated.iter().map(RunItem::item);
        let items: Vec<&Item> = input.iter().chain(made).chain(&response.output).collect();
        mcp_tools::called_tool(call, items.into_iter().rev())
    }
}

fn classify_call(
    item: &Item,
    offer: &Offer,
    unknown_tool: UnknownTool,
    turn: &mut Turn,
    tool: &mut Option<Arc<ToolInfo>>,
) -> Result<RunItemKind, Error> {
    let name = item.name().unwrap_or_default();
    let call = item.clone();
    let is_text = item.kind() == ItemKind::CustomToolCall;
    let handoff = offer.handoffs.iter().find(|spec| *spec.tool_name == *name);
    if let Some(spec) = handoff.filter(|_| !is_text) {
        turn.handoffs.push(HandoffCall {
            tool: spec.tool_name.clone(),
            to: spec.to.clone(),
            call,
        });
        return Ok(RunItemKind::HandoffCall);
    }
    let called = offer.called_tool(&name);
    match called.filter(|(spec, _)| spec.takes_text() == is_text) {
        Some((spec, _)) if is_text && item.arguments().is_none() => {
            return Err(model_error(format!(
                "the model called the free-form tool \"{}\" without an input",
                spec.name
            )));
        }
        Some((spec, info)) => {
            *tool = Some(info.clone());
            let tool = spec.name.clone();
            turn.tools_mut().calls.push(ToolCall { tool, call });
        }
        None if unknown_tool == UnknownTool::TellModel => {
            let tool = name.as_ref().into();
            turn.tools_mut().unknown.push(ToolCall { tool, call });
        }
        None => {
            return Err(model_error(format!(
                "the model called \"{}\"{}, which is neither a tool nor a handoff here",
                excerpt(&name),
                if is_text {
                    " with text (custom_tool_call)"
                } else {
                    ""
                }
            )));
        }
    }
    Ok(RunItemKind::ToolCall)
}

/// Returns `true` for calls that the provider carries out.
fn is_run_by_provider(kind: ItemKind) -> bool {
    !matches!(kind, ItemKind::FunctionCall | ItemKind::CustomToolCall)
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
