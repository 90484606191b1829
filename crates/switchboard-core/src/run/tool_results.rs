//! The transitions of tools: their results, and the decision about them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::approvals::{CallApproval, InnerRun};
use super::turn::{ToolCall, ToolTurn, Turn};
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
    /// Set once the output is among the items of the turn, because other calls wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_in_turn: bool,
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
            is_in_turn: false,
            stage: ToolStage::Ran,
        }
    }

    /// A call that a guardrail or a person's decision answered instead of the tool.
    pub(crate) fn rejected(at: usize, result: ToolResult) -> Self {
        Self {
            was_invoked: false,
            stage: ToolStage::Checked,
            ..Self::invoked(at, result, None, Duration::ZERO)
        }
    }
}

/// The progress of the tools of a turn that has not ended.
#[derive(Debug, Default)]
pub(crate) struct ToolProgress {
    pub(crate) finished: Vec<RanTool>,
    /// Indexes of the calls whose start hooks were notified of.
    pub(crate) started: Vec<usize>,
    /// Indexes of the calls that guardrails allowed.
    pub(crate) allowed: Vec<usize>,
    pub(crate) approvals: Vec<CallApproval>,
    pub(crate) inner_runs: Vec<InnerRun>,
}

/// The consequence of the tools' results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEnds {
    /// The model is asked again.
    AskModel,
    /// A result may end the run.
    MayEnd,
    /// A result may end the run, once output guardrails have passed it.
    MayEndGuarded,
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
        let results = self.add_outputs(&mut turn, &tools.calls, ran);
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
            approvals: Vec::new(),
            inner_runs: Vec::new(),
            ..tools
        };
        self.answer_requests(&mut turn);
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

    /// Adds the outputs of calls to their turn, and returns the results.
    pub(super) fn add_outputs(
        &mut self,
        turn: &mut Turn,
        calls: &[ToolCall],
        ran: Vec<RanTool>,
    ) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(ran.len());
        for (call, ran) in calls.iter().zip(ran) {
            if !ran.is_in_turn {
                let output = match ran.output {
                    Some(saved) => saved,
                    None => self.tool_output(&call.call, &ran.result),
                };
                turn.items.push(output);
            }
            results.push(ran.result);
        }
        results
    }

    /// Records the progress of the tools before one of them failed, so that none runs again.
    pub(crate) fn tools_failed(&mut self, progress: ToolProgress) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        self.note_progress(&mut turn, progress);
        self.position.phase = Phase::Tools(turn);
    }

    /// Records the progress of the tools, of which some wait for decisions.
    pub(crate) fn tools_wait(&mut self, progress: ToolProgress, ends: ToolEnds) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        self.note_progress(&mut turn, progress);
        let tools = turn.tools.get_or_insert_default();
        tools.may_end_run = ends != ToolEnds::AskModel;
        for ran in &mut tools.done {
            if let Some(output) = ran.output.clone().filter(|_| !ran.is_in_turn) {
                turn.items.push(output);
                ran.is_in_turn = true;
            }
        }
        self.answer_requests(&mut turn);
        self.position.phase = Phase::Tools(turn);
        self.wait(ends != ToolEnds::MayEndGuarded);
    }

    fn note_progress(&mut self, turn: &mut Turn, mut progress: ToolProgress) {
        let tools = turn.tools_mut();
        progress.finished.sort_by_key(|ran| ran.at);
        for ran in &mut progress.finished {
            if ran.output.is_none() && ran.stage != ToolStage::Ran {
                let call = &tools.calls[ran.at].call;
                ran.output = Some(self.tool_output(call, &ran.result));
            }
        }
        tools.done = progress.finished;
        progress.started.sort_unstable();
        tools.started = progress.started;
        progress.allowed.sort_unstable();
        tools.allowed = progress.allowed;
        progress.approvals.sort_by_key(|known| known.at);
        tools.approvals = progress.approvals;
        progress.inner_runs.sort_by_key(|inner| inner.at);
        tools.inner_runs = progress.inner_runs;
    }

    /// Brings the progress of the tools into the order of their calls, by which it is looked up.
    pub(crate) fn sort_tool_progress(&mut self) {
        let (Phase::Tools(turn) | Phase::ToolUse(turn) | Phase::Handoff(turn)) =
            &mut self.position.phase
        else {
            return;
        };
        if let Some(tools) = &mut turn.tools {
            tools.done.sort_by_key(|ran| ran.at);
            tools.started.sort_unstable();
            tools.allowed.sort_unstable();
            tools.approvals.sort_by_key(|known| known.at);
            tools.inner_runs.sort_by_key(|inner| inner.at);
        }
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
