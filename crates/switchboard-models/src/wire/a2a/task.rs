//! A remote task, read from its updates.

use serde_json::Value;

use crate::wire::model_error::{ModelError, ModelErrorKind};

/// The most artifacts of a task that are read.
const MAX_ARTIFACTS: usize = 1000;

/// A remote task as far as it is known. Unknown fields, updates and states are ignored.
#[derive(Debug, Default)]
pub(super) struct RemoteTask {
    pub(super) context_id: Option<String>,
    pub(super) id: Option<String>,
    state: State,
    artifacts: Vec<(String, String)>,
    /// The text of the status's message, or of a message without a task.
    message: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Running,
    Completed,
    /// The next message goes on with the task.
    Waiting,
    Failed,
    Rejected,
    Canceled,
}

impl RemoteTask {
    /// Reads a result: a task, a message or an update. Returns the text that it adds to the answer.
    pub(super) fn read(&mut self, result: &Value) -> String {
        if let Some(update) = result.get("artifactUpdate")
            && let Some(piece) = self.read_piece(update)
        {
            return piece;
        }
        let before = self.text();
        if let Some(task) = result.get("task") {
            self.read_task(task);
        } else if let Some(message) = result.get("message") {
            self.keep_ids(message, "taskId");
            self.message = parts_text(&message["parts"]);
            self.state = State::Completed;
        } else if let Some(update) = result.get("statusUpdate") {
            self.keep_ids(update, "taskId");
            self.read_status(&update["status"]);
        } else if let Some(update) = result.get("artifactUpdate") {
            self.keep_ids(update, "taskId");
            let appends = update["append"] == true;
            self.read_artifact(&update["artifact"], appends);
        }
        let after = self.text();
        match after.strip_prefix(&before) {
            Some(added) => added.to_owned(),
            // What was sent before has changed; the whole answer comes at the end.
            None => String::new(),
        }
    }

    /// Reads a task as it is now.
    pub(super) fn read_task(&mut self, task: &Value) {
        self.keep_ids(task, "id");
        if let Some(artifacts) = task["artifacts"].as_array() {
            self.artifacts.clear();
            for artifact in artifacts {
                self.read_artifact(artifact, false);
            }
        }
        self.read_status(&task["status"]);
    }

    fn keep_ids(&mut self, object: &Value, task_field: &str) {
        let text = |name: &str| {
            let text = object[name].as_str().filter(|text| !text.is_empty());
            text.map(ToOwned::to_owned)
        };
        self.context_id = text("contextId").or(self.context_id.take());
        self.id = text(task_field).or(self.id.take());
    }

    fn read_status(&mut self, status: &Value) {
        self.state = match status["state"].as_str().unwrap_or_default() {
            "TASK_STATE_COMPLETED" => State::Completed,
            "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED" => State::Waiting,
            "TASK_STATE_FAILED" => State::Failed,
            "TASK_STATE_REJECTED" => State::Rejected,
            "TASK_STATE_CANCELED" => State::Canceled,
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => State::Running,
            _ => self.state,
        };
        self.message = parts_text(&status["message"]["parts"]);
    }

    fn read_artifact(&mut self, artifact: &Value, appends: bool) {
        let id = artifact["artifactId"].as_str().unwrap_or_default();
        let text = parts_text(&artifact["parts"]);
        let known = self.artifacts.iter().position(|(known, _)| known == id);
        match known {
            Some(at) if appends => self.artifacts[at].1.push_str(&text),
            Some(at) => self.artifacts[at].1 = text,
            None if self.artifacts.len() < MAX_ARTIFACTS => {
                self.artifacts.push((id.to_owned(), text));
            }
            None => {}
        }
    }

    /// Reads a piece of the last artifact, which is what most updates are. Returns `None` for any other update.
    fn read_piece(&mut self, update: &Value) -> Option<String> {
        let id = update["artifact"]["artifactId"].as_str()?;
        let (_, last) = self.artifacts.last_mut().filter(|(last, _)| last == id)?;
        if update["append"] != true || last.is_empty() {
            return None;
        }
        let text = parts_text(&update["artifact"]["parts"]);
        last.push_str(&text);
        Some(text)
    }

    /// Returns `true` once the task has ended, or waits.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.state, State::Unknown | State::Running)
    }

    /// Returns `true` if the next message goes on with the task.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Waiting
    }

    /// The answer so far: the artifacts, then the question of a task that waits. Where there is neither, the message.
    pub(super) fn text(&self) -> String {
        let artifacts = self.artifacts.iter().map(|(_, text)| text.as_str());
        let mut texts: Vec<&str> = artifacts.filter(|text| !text.is_empty()).collect();
        let has_message = match self.state {
            State::Waiting => true,
            State::Completed => texts.is_empty(),
            _ => false,
        };
        if has_message && !self.message.is_empty() {
            texts.push(&self.message);
        }
        texts.join("\n\n")
    }

    /// The error of a task that has not come to an answer.
    pub(super) fn error(&self) -> Option<ModelError> {
        let what = match self.state {
            State::Failed => "the remote agent failed",
            State::Rejected => "the remote agent rejected the task",
            State::Canceled => "the remote agent cancelled the task",
            _ => return None,
        };
        let message = if self.message.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {}", self.message)
        };
        Some(ModelError::new(ModelErrorKind::Failed, message))
    }
}

/// The text of parts; data is JSON, and a file is its name or address.
fn parts_text(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    for part in parts {
        if let Some(piece) = part["text"].as_str() {
            text.push_str(piece);
            continue;
        }
        let file = part["filename"].as_str().unwrap_or("a file");
        let piece = if let Some(url) = part["url"].as_str() {
            format!("[{file}]({url})")
        } else if part["raw"].is_string() {
            format!("[{file}]")
        } else if let Some(data) = part.get("data") {
            // A question of another Switchboard has its text beside the data.
            if !text.is_empty() && data.get("waiting").is_some() {
                continue;
            }
            data.to_string()
        } else {
            continue;
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(id: &str, text: &str, appends: bool) -> Value {
        json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": appends,
               "artifact": {"artifactId": id, "parts": [{"text": text}]}}})
    }

    fn status(state: &str, text: &str) -> Value {
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {
            "state": state, "message": {"parts": [{"text": text}]}}}})
    }

    #[test]
    fn the_text_of_a_stream_is_that_of_its_artifacts() {
        let mut task = RemoteTask::default();
        let mut streamed = String::new();
        for update in [
            json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}}),
            status("TASK_STATE_WORKING", "thinking"),
            artifact("1", "Hel", false),
            artifact("1", "lo", true),
            json!({"somethingNew": 1}),
            artifact("2", "World", false),
            status("TASK_STATE_COMPLETED", ""),
        ] {
            streamed.push_str(&task.read(&update));
        }
        assert_eq!(streamed, "Hello\n\nWorld");
        assert_eq!(task.text(), streamed);
        assert_eq!(
            (task.id.as_deref(), task.context_id.as_deref()),
            (Some("t"), Some("c"))
        );
        assert!(task.is_settled() && !task.is_open() && task.error().is_none());
    }

    #[test]
    fn a_question_is_the_answer_of_a_task_that_waits() {
        let mut task = RemoteTask::default();
        task.read(&status("TASK_STATE_INPUT_REQUIRED", "Where to?"));
        assert_eq!(task.text(), "Where to?");
        assert!(task.is_open());
    }

    #[test]
    fn failures_are_told() {
        for (state, text) in [
            ("TASK_STATE_FAILED", "the remote agent failed: no luck"),
            (
                "TASK_STATE_REJECTED",
                "the remote agent rejected the task: no luck",
            ),
            (
                "TASK_STATE_CANCELED",
                "the remote agent cancelled the task: no luck",
            ),
        ] {
            let mut task = RemoteTask::default();
            task.read(&status(state, "no luck"));
            assert_eq!(task.error().unwrap().to_string(), text);
        }
    }
}
