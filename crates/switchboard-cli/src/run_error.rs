//! Why a run failed: what the user is told, and the exit code.

use serde_json::Value;
use switchboard_core::{Error, ErrorKind};
use switchboard_models::{ModelError, ModelErrorKind};

use crate::event::{Cost, Event};
use crate::failure::Exit;

/// The events of a failure.
pub(crate) fn events(error: &Error, cost: Cost) -> Vec<Event> {
    let guardrail = error.guardrail().map(|result| Event::Guardrail {
        guardrail: result.guardrail.to_string(),
        agent: result.agent.to_string(),
        outcome: result.outcome,
        info: match &result.verdict.info {
            Value::String(text) if text.is_empty() => Value::Null,
            info => info.clone(),
        },
    });
    let failure = Event::Error {
        kind: kind(error.kind()).to_owned(),
        message: error.to_string(),
        help: help(error),
        exit_code: exit(error).code(),
        cost,
    };
    guardrail.into_iter().chain([failure]).collect()
}

/// The exit code of a failure.
pub(crate) fn exit(error: &Error) -> Exit {
    match error.kind() {
        ErrorKind::Model => Exit::Model,
        _ if error.is_guardrail() => Exit::Guardrail,
        _ => Exit::Failed,
    }
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ModelBehavior => "model_behavior",
        ErrorKind::ModelRefusal => "model_refusal",
        ErrorKind::Model => "model",
        ErrorKind::Configuration => "configuration",
        ErrorKind::MaxTurns => "max_turns",
        ErrorKind::InputGuardrail => "input_guardrail",
        ErrorKind::OutputGuardrail => "output_guardrail",
        ErrorKind::HandoffGuardrail => "handoff_guardrail",
        ErrorKind::ToolGuardrail => "tool_guardrail",
        ErrorKind::UserCode => "user_code",
        ErrorKind::Session => "session",
        _ => "other",
    }
}

/// What to do, where the message does not say so itself.
fn help(error: &Error) -> Option<String> {
    let help = match error.kind() {
        ErrorKind::Model => model_help(error)?,
        ErrorKind::MaxTurns => {
            "raise the limit with --max-turns, or look with `switchboard graph` for agents that hand \
             the conversation back and forth"
        }
        ErrorKind::ModelBehavior => {
            "try again; if it stays so, a stronger model (--model) or clearer instructions help"
        }
        ErrorKind::ModelRefusal => "put the question differently, or use another model (--model)",
        ErrorKind::InputGuardrail => "say it differently, or change the guardrail in the team file",
        ErrorKind::OutputGuardrail | ErrorKind::HandoffGuardrail | ErrorKind::ToolGuardrail => {
            "the team file says what the guardrail looks for"
        }
        ErrorKind::Session => "check the disk, or go on without --session",
        _ => return None,
    };
    Some(help.to_owned())
}

fn model_help(error: &Error) -> Option<&'static str> {
    let cause = error.cause()?.downcast_ref::<ModelError>()?;
    Some(match cause.kind() {
        ModelErrorKind::Connection | ModelErrorKind::Timeout => {
            "check that the server runs and that its address is right (--base-url), or try the team \
             with --model offline"
        }
        ModelErrorKind::Authentication => {
            "check the key in the variable that the team file names, or try the team with --model \
             offline"
        }
        ModelErrorKind::RateLimit => {
            "wait a little and try again, or look at your account's limits"
        }
        ModelErrorKind::Request | ModelErrorKind::Unsupported => {
            "check the model's name and settings in the team file"
        }
        ModelErrorKind::Configuration => "mend the model's settings in the team file",
        _ => "try again; if it stays so, use another model (--model)",
    })
}
