//! The state of a task, and its updates, made from the events of a run.
//!
//! Each message of an agent is an artifact, which grows while it is streamed. Handoffs are status updates whose metadata
//! has them; the tools of the team are its own affair.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::conversation::now;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, HandoffStatus, ItemEvent, StreamEvent};
use switchboard_core::trace::rfc3339;

use super::types::{Artifact, Metadata, Shown, Task, TaskState, TaskStatus};
use crate::api::Waiting;
use crate::runs::RunRecord;

/// A task that follows the events of a run.
#[derive(Debug, Clone)]
pub(super) struct TaskUpdates {
    pub(super) task: Task,
    open: Vec<OpenArtifact>,
    /// The calls and people that the run waits for.
    pub(super) waiting: Vec<Interruption>,
    is_settled: bool,
}

/// An artifact whose text is being streamed.
#[derive(Debug, Clone)]
struct OpenArtifact {
    /// The model's identifier of the message.
    model_id: Arc<str>,
    index: usize,
    text: String,
    /// Set if the next piece replaces what was sent.
    is_restarted: bool,
}

impl TaskUpdates {
    pub(super) fn new(task: Task) -> Self {
        Self {
            task,
            open: Vec::new(),
            waiting: Vec::new(),
            is_settled: false,
        }
    }

    /// Returns `true` once the run has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// The first event of a stream: the task as it is.
    pub(super) fn snapshot(&self) -> Value {
        let all = Shown {
            history_length: None,
            with_artifacts: true,
        };
        json!({"task": self.task.show(all)})
    }

    /// Translates an event of the run.
    pub(super) fn translate(&mut self, event: &StreamEvent, run: &RunRecord) -> Vec<Value> {
        let mut updates = Vec::new();
        if self.is_settled {
            return updates;
        }
        let agent = &*event.agent;
        match &event.kind {
            EventKind::RunStarted { .. } => {
                let metadata = Metadata::one("agent", agent);
                updates.push(self.change_state(TaskState::Working, None, metadata));
            }
            EventKind::AgentUpdated { .. } => self.task.metadata.set("agent", agent),
            EventKind::TextDelta { item, text, .. } if !text.is_empty() => {
                let at = self.opened(item, agent);
                updates.extend(self.add_text(at, text, false));
            }
            // The next attempt writes the message again.
            EventKind::ModelRetry { .. } => {
                for open in &mut self.open {
                    open.text.clear();
                    open.is_restarted = true;
                }
            }
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text,
                item,
                ..
            } => {
                let id = item.item().id().unwrap_or_default().into_owned();
                let text = text.as_deref().unwrap_or_default();
                updates.extend(self.finish_message(&id, text, agent));
            }
            EventKind::Handoff(handoff) => {
                let handed = json!({
                    "from": &*handoff.from, "to": &*handoff.to, "status": handoff.status,
                });
                let handoffs = self.task.metadata.switchboard.entry("handoffs");
                if let Value::Array(handoffs) = handoffs.or_insert_with(|| json!([])) {
                    handoffs.push(handed.clone());
                }
                if handoff.status == HandoffStatus::Taken {
                    self.task.metadata.set("agent", &*handoff.to);
                }
                let metadata = Metadata::one("handoff", handed);
                updates.push(self.change_state(TaskState::Working, None, metadata));
            }
            EventKind::RunFinished { output, usage, .. } => {
                self.close_all(&mut updates);
                updates.extend(self.add_final_output(output, agent));
                updates.push(self.settle(TaskState::Completed, None, Some(usage)));
            }
            EventKind::RunInterrupted {
                interruptions,
                usage,
                ..
            } => {
                self.close_all(&mut updates);
                self.waiting.clone_from(interruptions);
                let message = self.question(interruptions);
                updates.push(self.settle(TaskState::InputRequired, Some(message), Some(usage)));
            }
            EventKind::RunStopped { usage, .. } => {
                self.close_all(&mut updates);
                updates.push(self.stop(run.is_cancelled(), Some(usage)));
            }
            EventKind::RunFailed { message, usage, .. } => {
                self.close_all(&mut updates);
                let message = self.agent_message(vec![json!({"text": message})]);
                updates.push(self.settle(TaskState::Failed, Some(message), Some(usage)));
            }
            _ => {}
        }
        updates
    }

    /// Ends the task of a run whose own end was not seen.
    pub(super) fn fail(&mut self, text: &str) -> Value {
        let message = self.agent_message(vec![json!({"text": text})]);
        self.settle(TaskState::Failed, Some(message), None)
    }

    /// Ends the task of a run that was stopped.
    pub(super) fn stop(&mut self, is_cancelled: bool, usage: Option<&Usage>) -> Value {
        let (state, text) = if is_cancelled {
            (TaskState::Canceled, "The task was cancelled.")
        } else {
            (
                TaskState::Failed,
                "The task was stopped: its time was over, or the service is shutting down.",
            )
        };
        let message = self.agent_message(vec![json!({"text": text})]);
        self.settle(state, Some(message), usage)
    }

    /// Cancels the task with a reason.
    pub(super) fn cancel(&mut self, text: &str) {
        let message = self.agent_message(vec![json!({"text": text})]);
        self.settle(TaskState::Canceled, Some(message), None);
    }

    /// Adds a message of an agent as it was stored.
    pub(super) fn add_message(&mut self, agent: &str, text: &str) {
        self.finish_message("", text, agent);
    }

    /// Sets the state after a run has ended.
    pub(super) fn settle(
        &mut self,
        state: TaskState,
        message: Option<Value>,
        usage: Option<&Usage>,
    ) -> Value {
        self.is_settled = true;
        if let Some(usage) = usage {
            let usage = json!({
                "requests": usage.requests, "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
            });
            self.task.metadata.set("usage", usage);
        }
        self.change_state(state, message, self.task.metadata.clone())
    }

    /// The question for calls and people that wait: text for people, and data for programs.
    pub(super) fn question(&self, waiting: &[Interruption]) -> Value {
        let mut text = String::new();
        for waiting in waiting {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&describe_wait(waiting));
        }
        let waiting: Vec<Waiting> = waiting.iter().map(Waiting::from).collect();
        let data = json!({"data": {"waiting": waiting}, "mediaType": "application/json"});
        self.agent_message(vec![json!({"text": text}), data])
    }

    /// A message of the team about the task.
    pub(super) fn agent_message(&self, parts: Vec<Value>) -> Value {
        json!({
            "messageId": format!("{}-status-{}", self.task.id, self.task.history.len()),
            "contextId": self.task.context_id, "taskId": self.task.id,
            "role": "ROLE_AGENT", "parts": parts,
        })
    }

    fn change_state(
        &mut self,
        state: TaskState,
        message: Option<Value>,
        metadata: Metadata,
    ) -> Value {
        self.task.status = status(state, message);
        self.status_update(&metadata)
    }

    /// An update with the state of the task as it is.
    pub(super) fn state_update(&self) -> Value {
        self.status_update(&self.task.metadata)
    }

    fn status_update(&self, metadata: &Metadata) -> Value {
        json!({"statusUpdate": {
            "taskId": self.task.id, "contextId": self.task.context_id,
            "status": self.task.status, "metadata": metadata,
        }})
    }

    /// The place of the open artifact for the model's message; it is opened if need be.
    fn opened(&mut self, model_id: &Arc<str>, agent: &str) -> usize {
        if let Some(at) = self.open.iter().position(|open| open.model_id == *model_id) {
            return at;
        }
        // After a retry the message has another identifier.
        if let Some(at) = self.open.iter().position(|open| open.is_restarted) {
            self.open[at].model_id = model_id.clone();
            return at;
        }
        let index = self.task.artifacts.len();
        self.task.artifacts.push(Artifact {
            artifact_id: format!("message-{}", index + 1),
            name: agent.to_owned(),
            parts: vec![json!({"text": ""})],
            metadata: Metadata::one("agent", agent),
        });
        self.open.push(OpenArtifact {
            model_id: model_id.clone(),
            index,
            text: String::new(),
            is_restarted: true,
        });
        self.open.len() - 1
    }

    /// Adds a piece of text to an open artifact.
    fn add_text(&mut self, at: usize, text: &str, is_last: bool) -> Option<Value> {
        let open = self.open.get_mut(at)?;
        open.text.push_str(text);
        let appends = !std::mem::replace(&mut open.is_restarted, false);
        let artifact = self.task.artifacts.get_mut(open.index)?;
        let whole = artifact.parts.first_mut().map(|part| &mut part["text"]);
        match whole {
            // In place: copying the whole text for each piece would be quadratic.
            Some(Value::String(whole)) if appends => whole.push_str(text),
            _ => artifact.parts = vec![json!({"text": open.text})],
        }
        let piece = Artifact {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            parts: vec![json!({"text": text})],
            metadata: artifact.metadata.clone(),
        };
        Some(self.artifact_update(&piece, appends, is_last))
    }

    fn artifact_update(&self, artifact: &Artifact, appends: bool, is_last: bool) -> Value {
        json!({"artifactUpdate": {
            "taskId": self.task.id, "contextId": self.task.context_id,
            "artifact": artifact, "append": appends, "lastChunk": is_last,
        }})
    }

    /// Completes the artifact of a message.
    fn finish_message(&mut self, id: &str, text: &str, agent: &str) -> Option<Value> {
        let open = self.open.iter().position(|open| *open.model_id == *id);
        let open = open.or_else(|| (!self.open.is_empty()).then_some(0));
        if open.is_none() && text.is_empty() {
            return None;
        }
        let at = open.unwrap_or_else(|| self.opened(&id.into(), agent));
        let rest = match text.strip_prefix(self.open[at].text.as_str()) {
            Some(rest) => rest.to_owned(),
            // What was streamed is not what was kept.
            None => {
                let open = &mut self.open[at];
                open.text.clear();
                open.is_restarted = true;
                text.to_owned()
            }
        };
        let update = self.add_text(at, &rest, true);
        self.open.remove(at);
        update
    }

    /// Completes what is open.
    fn close_all(&mut self, updates: &mut Vec<Value>) {
        while !self.open.is_empty() {
            updates.extend(self.add_text(0, "", true));
            self.open.remove(0);
        }
    }

    /// Adds the final output where no message has it: JSON, or an output that a tool has made.
    fn add_final_output(&mut self, output: &Value, agent: &str) -> Option<Value> {
        let last = self.task.artifacts.last();
        let said = last.and_then(|artifact| artifact.parts.first()?["text"].as_str());
        let said = said.map(ToOwned::to_owned);
        match output {
            Value::String(text) if said.as_deref() == Some(text) => None,
            Value::String(text) => self.finish_message("", text, agent),
            output => {
                let data = json!({"data": output, "mediaType": "application/json"});
                let is_said = said.is_some_and(|text| {
                    serde_json::from_str::<Value>(&text).is_ok_and(|said| said == *output)
                });
                let artifact = match self.task.artifacts.last_mut() {
                    Some(artifact) if is_said => {
                        artifact.parts = vec![data];
                        artifact.clone()
                    }
                    _ => {
                        let artifact = Artifact {
                            artifact_id: format!("message-{}", self.task.artifacts.len() + 1),
                            name: agent.to_owned(),
                            parts: vec![data],
                            metadata: Metadata::one("agent", agent),
                        };
                        self.task.artifacts.push(artifact.clone());
                        artifact
                    }
                };
                Some(self.artifact_update(&artifact, false, true))
            }
        }
    }
}

/// A status with the current time.
pub(super) fn status(state: TaskState, message: Option<Value>) -> TaskStatus {
    TaskStatus {
        state,
        message,
        timestamp: timestamp(now()),
    }
}

/// A time as A2A writes it, with milliseconds.
pub(super) fn timestamp(time: SystemTime) -> String {
    let text = rfc3339(time);
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            format!("{seconds}.{}Z", fraction.get(..3).unwrap_or("000"))
        }
        None => text,
    }
}

fn describe_wait(waiting: &Interruption) -> String {
    let agent = &waiting.agent;
    match &waiting.kind {
        InterruptionKind::Person { .. } => {
            format!("{agent} is asked for an answer. The next message of this task is the answer.")
        }
        InterruptionKind::Handoff { to, .. } => format!(
            "{agent} wants to hand the conversation to {to}. Answer \"approve\" or \"reject\"."
        ),
        _ => format!(
            "{agent} wants to call {} with {}. Answer \"approve\" or \"reject\".",
            waiting.tool, waiting.arguments
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn a_long_answer_is_not_copied_for_each_of_its_pieces() {
        let mut updates = TaskUpdates::new(Task {
            id: "task".to_owned(),
            context_id: "context".to_owned(),
            status: status(TaskState::Working, None),
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Metadata::default(),
        });
        let at = updates.opened(&"message".into(), "Writer");
        let mut places = Vec::new();
        for _ in 0..1000 {
            updates.add_text(at, "word ", false).unwrap();
            let text = updates.task.artifacts[0].parts[0]["text"].as_str().unwrap();
            places.push(text.as_ptr());
        }
        let text = updates.task.artifacts[0].parts[0]["text"].as_str().unwrap();
        assert_eq!(text, "word ".repeat(1000));
        // A text that is copied is never where it was before.
        places.dedup();
        assert!(places.len() < 50, "{} copies", places.len());
    }
}
