//! The transitions of tools: their results, and the decision about them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::turn::ToolTurn;
use super::{Phase, Run};
use crate::agent::{Agent, ToolResult, ToolUseBehaviorKind};
use crate::items::{Item, RunItem, RunItemKind};
use crate::output::FinalOutput;
use crate::tool::ToolError;

/// A tool that ran in a turn that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RanTool {
    /// The index of its call.
    pub(crate) at: usize,
    pub(crate) result: ToolResult,
    /// The failure, where the result is the text for the model about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ToolError>,
    /// Set if the tool's code was called, and hooks are notified of its end.
    #[serde(default = "was_invoked")]
    pub(crate) was_invoked: bool,
    /// The item of the output, once it was saved before the end of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<RunItem>,
    /// The time that its code took.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub(crate) took: Duration,
    /// Set once its end was an event of a stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_streamed: bool,
    pub(crate) stage: ToolStage,
}

impl RanTool {
    /// A tool whose code was called.
    pub(crate) fn invoked(
        at: usize,
        result: ToolResult,
        error: Option<ToolError>,
        took: Duration,
    ) -> Self {
        Self {
            at,
            result,
            error,
            was_invoked: true,
            output: None,
            took,
            is_streamed: false,
            stage: ToolStage::Ran,
        }
    }

    /// A call that a guardrail answered instead of the tool.
    pub(crate) fn rejected(at: usize, result: ToolResult) -> Self {
        Self {
            was_invoked: false,
            stage: ToolStage::Checked,
            ..Self::invoked(at, result, None, Duration::ZERO)
        }
    }
}

/// The value in stored runs that do not have the field.
fn was_invoked() -> bool {
    true
}

/// The progress of a tool. Finished stages are not repeated when the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolStage {
    Ran,
    /// Guardrails have passed its output.
    Checked,
    /// Hooks were notified.
    #[serde(alias = "told")]
    Reported,
}

impl Run {
    /// Accepts the results of the tools, in the order of their calls, and the texts for the calls of
    /// tools that do not exist.
    pub(crate) fn tools_ran<C>(
        &mut self,
        ran: Vec<RanTool>,
        not_found: Vec<String>,
        agent: &Agent<C>,
    ) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let tools = std::mem::take(turn.tools_mut());
        let mut results = Vec::with_capacity(ran.len());
        for (call, ran) in tools.calls.iter().zip(ran) {
            let output = match ran.output {
                Some(saved) => saved,
                None => self.tool_output(&call.call, &ran.result),
            };
            turn.items.push(output);
            results.push(ran.result);
        }
        for (call, text) in tools.unknown.iter().zip(not_found) {
            let result = ToolResult {
                tool: call.tool.clone(),
                output: text.into(),
                data: None,
            };
            turn.items.push(self.tool_output(&call.call, &result));
        }
        *turn.tools_mut() = ToolTurn {
            results,
            done: Vec::new(),
            ..tools
        };
        if !turn.handoffs.is_empty() {
            self.position.phase = Phase::Handoff(turn);
            return;
        }
        let results = &turn.tools().results;
        let last = match &agent.def.tool_use.0 {
            ToolUseBehaviorKind::Function(_) if !results.is_empty() => {
                self.position.phase = Phase::ToolUse(turn);
                return;
            }
            ToolUseBehaviorKind::RunModelAgain | ToolUseBehaviorKind::Function(_) => None,
            ToolUseBehaviorKind::StopOnFirstTool => results.first(),
            ToolUseBehaviorKind::StopAtTools(names) => results
                .iter()
                .find(|result| names.iter().any(|name| **name == *result.tool)),
        };
        let output = last.map(|result| match agent.output_type() {
            None => FinalOutput::Text(result.output.text().as_ref().into()),
            Some(_) => FinalOutput::Json(result.output.clone().into_value()),
        });
        self.end_turn(turn, output);
    }

    /// Records the tools that finished before one of them failed, so that they do not run again, the
    /// calls whose start hooks were notified of, and those that guardrails allowed.
    pub(crate) fn tools_failed(
        &mut self,
        mut finished: Vec<RanTool>,
        started: Vec<usize>,
        allowed: Vec<usize>,
    ) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let tools = turn.tools_mut();
        finished.sort_by_key(|ran| ran.at);
        for ran in &mut finished {
            if ran.output.is_none() && ran.stage != ToolStage::Ran {
                let call = &tools.calls[ran.at].call;
                ran.output = Some(self.tool_output(call, &ran.result));
            }
        }
        tools.done = finished;
        tools.started = started;
        tools.allowed = allowed;
        self.position.phase = Phase::Tools(turn);
    }

    /// Accepts the agent's decision on whether the tools' results are the final output.
    pub(crate) fn tool_use_decided(&mut self, output: Option<FinalOutput>) {
        if let Phase::ToolUse(turn) = std::mem::take(&mut self.position.phase) {
            self.end_turn(turn, output);
        }
    }

    /// Makes the output item of a call.
    fn tool_output(&mut self, call: &Item, result: &ToolResult) -> RunItem {
        let item = result.output.to_item(call);
        let output = result.output.clone().into_value();
        let kind = RunItemKind::ToolCallOutput { output };
        let number = self.next_item();
        RunItem::made(kind, self.agent.name.clone(), item, number).with_data(result.data.clone())
    }
}
