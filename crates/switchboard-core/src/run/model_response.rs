//! Interpreting a model response: classifying its items, finding the final output.

use std::sync::Arc;

use super::approvals::HostedRequest;
use super::turn::{HandoffCall, ToolCall, Turn};
use super::{Phase, Run, final_output, mcp_tools, number_after};
use crate::error::{Error, ErrorKind, excerpt, model_error};
use crate::items::{Item, ItemKind, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::offered_tools::Offer;
use crate::output::OutputType;
use crate::runner::{AnnouncedHandoffs, HandoffRetries, RunProblem};
use crate::tool::ToolInfo;

/// The settings of the current agent and the run by which a response is accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseRules<'a> {
    pub(crate) output_type: Option<&'a OutputType>,
    pub(crate) unknown_tool: UnknownTool,
    pub(crate) omit_reasoning_ids: bool,
    pub(crate) empty_output: EmptyOutput,
    /// The handoffs that are announced and not called.
    pub(crate) announced: Option<&'a AnnouncedHandoffs>,
    /// Set if code of the application has found such a handoff.
    pub(crate) is_announced: bool,
    /// The number of handoffs that do not exist of which the model is told.
    pub(crate) handoff_retries: Option<HandoffRetries>,
}

/// Policy for an empty answer of an agent with an output type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyOutput {
    /// The model is asked again.
    AskAgain,
    /// It is rejected, so that the application can give a fallback.
    Reject,
}

/// Policy for a call of a tool that does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownTool {
    /// The run ends with an error.
    #[default]
    Fail,
    /// The model is told that the tool was not found, and continues.
    TellModel,
}

/// A model response that the run cannot accept.
#[derive(Debug)]
pub(crate) struct RejectedResponse {
    pub(crate) error: Error,
    /// Set where hooks and listeners are still notified of the response.
    pub(crate) is_reported: bool,
    /// The problem that the application may recover from.
    pub(crate) problem: Option<RunProblem>,
    /// The items of the response, as far as they could be classified.
    pub(crate) items: Vec<RunItem>,
}

impl Run {
    /// Accepts the model's response.
    pub(crate) fn accept_response(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
        rules: ResponseRules<'_>,
    ) -> Result<(), RejectedResponse> {
        let rejected = |error: Error, is_reported, items| RejectedResponse {
            error: error
                .at_agent(&self.agent.name)
                .with_rejected(response.clone()),
            is_reported,
            problem: None,
            items,
        };
        let calls = &self.conversation.calls;
        let (mut turn, last_item) = self.classify(&response, offer, rules).map_err(|error| {
            let is_handoff = |call: &Item| offer.is_handoff(&call.name().unwrap_or_default());
            let is_reported = !calls.has_conflict(&response.output, is_handoff);
            rejected(error, is_reported, Vec::new())
        })?;
        let (shown, recorded) = (&self.conversation.generated, &self.conversation.record);
        let skipped = calls
            .drop_repeated(&mut turn, shown, recorded)
            .map_err(|error| rejected(error, false, Vec::new()))?;
        let asks_for_approval = !turn.tools().requests.is_empty();
        let output = if asks_for_approval || turn.calls().next().is_some() {
            None
        } else {
            final_output::final_output(&turn, skipped, rules).map_err(|error| {
                let problem = match error.kind() {
                    ErrorKind::ModelRefusal => RunProblem::Refusal,
                    _ => RunProblem::InvalidOutput,
                };
                RejectedResponse {
                    problem: Some(problem),
                    ..rejected(error, true, turn.items.clone())
                }
            })?
        };

        // The answer is not final: the model is asked to do what it says.
        let output = output
            .filter(|_| !self.note_announced(&turn, offer, rules.announced, rules.is_announced));
        self.conversation.calls.add(&turn);
        if rules.unknown_tool == UnknownTool::Fail {
            for call in &turn.tools().unknown {
                self.unknown_handoff(&call.tool);
            }
        }
        self.position.last_item = last_item;
        self.position.turn = self.position.turn.saturating_add(1);
        self.responses.push(response);
        if turn.made_calls() {
            self.position.tool_users.insert(self.agent.key.clone());
        }
        let tools = turn.tools();
        if asks_for_approval || !tools.calls.is_empty() || !tools.unknown.is_empty() {
            self.position.phase = Phase::Tools(turn);
        } else if !turn.handoffs.is_empty() {
            self.position.phase = Phase::Handoff(turn);
        } else {
            self.end_turn(turn, output);
        }
        Ok(())
    }

    /// Classifies the items of a response. Returns the turn and the number of its last item.
    pub(crate) fn classify(
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
                    let is_told = |name: &str| {
                        let is_handoff =
                            name.starts_with("transfer_to_") || offer.has_handoff(name);
                        rules.unknown_tool == UnknownTool::TellModel
                            || is_handoff && self.may_tell_of_failure(name, rules.handoff_retries)
                    };
                    classify_call(item, offer, is_told, &mut turn, &mut tool)?
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
                ItemKind::McpApprovalRequest if item.id().is_none_or(|id| id.is_empty()) => {
                    return Err(model_error(
                        "the provider asks for approval (mcp_approval_request) without an id, so it \
                         cannot be answered",
                    ));
                }
                ItemKind::McpApprovalRequest => {
                    let request = HostedRequest::new(item.clone());
                    turn.tools_mut().requests.push(request);
                    RunItemKind::McpApprovalRequest
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
    tells_of_unknown: impl FnOnce(&str) -> bool,
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
        None if tells_of_unknown(&name) => {
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
