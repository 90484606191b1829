//! Interrupts: the calls that wait for a decision and the people that are asked, and the client's answers to them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::approval::{Decision, Interruption, InterruptionKind};

use super::event::Interrupt;
use crate::api::{AnswerBody, DecisionBody, Waiting};
use crate::error::ServiceError;
use crate::service::Resolution;

/// The beginning of the identifiers of interrupts that ask a person.
const PERSON: &str = "person:";

/// An answer of the client to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    interrupt_id: String,
    status: ResumeStatus,
    #[serde(default)]
    payload: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResumeStatus {
    Resolved,
    Cancelled,
}

/// The answer to a call that waits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalPayload {
    approved: bool,
    /// The text that the model gets for a call that is rejected.
    #[serde(default)]
    message: Option<String>,
    /// Decides all calls of the same tool by the same agent until the run ends.
    #[serde(default)]
    always: bool,
}

/// Describes what waits.
pub(super) fn describe_interrupt(waiting: &Interruption) -> Interrupt {
    let metadata = json!({"switchboard": Waiting::from(waiting)});
    if let InterruptionKind::Person { may_hand_to, .. } = &waiting.kind {
        let names: Vec<&str> = may_hand_to.iter().map(|name| &**name).collect();
        return Interrupt {
            id: format!("{PERSON}{}", waiting.agent).into(),
            reason: "input_required",
            message: format!("{} is asked for an answer.", waiting.agent),
            tool_call_id: None,
            response_schema: json!({
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "The words for the user."},
                    "hand_to": {"type": "string", "enum": names, "description": "The agent that gets the conversation."},
                    "hand_back": {"type": "boolean"},
                    "then_wait": {"type": "boolean"},
                    "note": {"type": "string", "description": "Words for the next agent alone."},
                },
                "additionalProperties": false,
            }),
            metadata,
        };
    }
    let message = match &waiting.kind {
        InterruptionKind::Handoff { to } => {
            format!("{} wants to hand the conversation to {to}.", waiting.agent)
        }
        _ => format!(
            "{} wants to call {} with {}.",
            waiting.agent, waiting.tool, waiting.arguments
        ),
    };
    Interrupt {
        id: waiting.call_id.clone(),
        reason: "tool_call",
        message,
        tool_call_id: Some(waiting.call_id.clone()),
        response_schema: json!({
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "message": {"type": "string", "description": "The text that the model gets for a call that is rejected."},
                "always": {"type": "boolean", "description": "Decides all calls of the tool by this agent until the run ends."},
            },
            "required": ["approved"],
            "additionalProperties": false,
        }),
        metadata,
    }
}

/// The identifier of the interrupt for what waits.
pub(super) fn interrupt_id(waiting: &Interruption) -> Arc<str> {
    match &waiting.kind {
        InterruptionKind::Person { .. } => format!("{PERSON}{}", waiting.agent).into(),
        _ => waiting.call_id.clone(),
    }
}

impl ResumeEntry {
    pub(super) fn interrupt_id(&self) -> &str {
        &self.interrupt_id
    }

    /// Reads the client's answer. A call whose interrupt is cancelled is rejected.
    pub(super) fn resolution(&self) -> Result<Resolution, ServiceError> {
        let id = &self.interrupt_id;
        if let Some(person) = id.strip_prefix(PERSON) {
            if self.status == ResumeStatus::Cancelled {
                return Err(ServiceError::invalid(format!(
                    "a person is asked by {id:?}: the answer is a text or a handoff, and cannot be cancelled"
                )));
            }
            return self.person_answer(person);
        }
        if self.status == ResumeStatus::Cancelled {
            return Ok(Resolution::Decide(id.as_str().into(), Decision::reject()));
        }
        if self.payload.get("editedArgs").is_some() {
            return Err(ServiceError::invalid(
                "editedArgs is not possible: the arguments of a call cannot be changed; reject it with a message",
            ));
        }
        let payload = match &self.payload {
            Value::Bool(approved) => ApprovalPayload {
                approved: *approved,
                message: None,
                always: false,
            },
            payload => serde_json::from_value(payload.clone()).map_err(|error| {
                ServiceError::invalid(format!("the payload for {id:?} cannot be used: {error}"))
            })?,
        };
        let decision = DecisionBody {
            call_id: id.clone(),
            approve: payload.approved,
            message: payload.message,
            always: payload.always,
        };
        Ok(Resolution::Decide(id.as_str().into(), decision.decision()))
    }

    fn person_answer(&self, person: &str) -> Result<Resolution, ServiceError> {
        let payload = match &self.payload {
            Value::String(text) => json!({"text": text}),
            payload => payload.clone(),
        };
        let has_other = ["person", "stream"].map(|name| payload.get(name).is_some());
        let answer = serde_json::from_value::<AnswerBody>(payload);
        let answer = answer.map_err(|error| error.to_string());
        match answer {
            Ok(answer) if !has_other.contains(&true) => Ok(Resolution::Answer {
                person: Some(person.into()),
                answer: answer.answer()?,
            }),
            Ok(_) => Err(ServiceError::invalid(
                "person and stream are no parts of a person's answer here",
            )),
            Err(error) => Err(ServiceError::invalid(format!(
                "the payload for {:?} cannot be used: {error}",
                self.interrupt_id
            ))),
        }
    }
}
