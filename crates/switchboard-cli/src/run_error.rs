//! The exit code and the advice for a run that failed.

use std::borrow::Cow;

use switchboard_core::conversation::{ConversationError, ConversationErrorKind};
use switchboard_core::run::{StateProblemKind, StateProblems};
use switchboard_core::{Error, ErrorKind};
use switchboard_models::{ModelError, ModelErrorKind};

use crate::failure::Exit;
use crate::store_keys;

/// The message for a run that was stopped at its time limit.
pub(crate) const TOOK_TOO_LONG: &str = "the answer took longer than --timeout allows";

/// The exit code for an error.
pub(crate) fn exit(error: &Error) -> Exit {
    match error.kind() {
        ErrorKind::Model => Exit::Model,
        _ if error.is_guardrail() => Exit::Guardrail,
        _ => Exit::Failed,
    }
}

/// Returns `true` if the run ended because its store failed, and not because of what is stored.
pub(crate) fn is_store_failure(error: &Error) -> bool {
    let cause = error.cause();
    error.kind() == ErrorKind::Session
        && !cause.is_some_and(|cause| cause.is::<ConversationError>())
}

/// Advice on an error, unless its message says it all.
pub(crate) fn help(error: &Error) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match error.kind() {
        ErrorKind::Model => return model_help(error),
        ErrorKind::MaxTurns => {
            "raise the limit with --max-turns, or look with `switchboard graph` for agents that hand \
             the conversation back and forth"
        }
        ErrorKind::Budget => {
            "raise the budget in the team file, or set at_budget of [run] to what follows its limit"
        }
        ErrorKind::HandoffLoop => {
            "make the instructions or conditions of these agents clearer, or set at_limit of [run.loops] to \
             what follows the limit"
        }
        ErrorKind::ModelBehavior => {
            "try again; if it stays so, a stronger model (--model) or clearer instructions help"
        }
        ErrorKind::ModelRefusal => "put the question differently, or use another model (--model)",
        ErrorKind::InputGuardrail => "say it differently, or change the guardrail in the team file",
        ErrorKind::OutputGuardrail | ErrorKind::HandoffGuardrail | ErrorKind::ToolGuardrail => {
            "the team file says what the guardrail looks for"
        }
        ErrorKind::Session => session_help(error),
        _ => return None,
    }))
}

/// Advice on a run that waits and cannot go on with the team file.
pub(crate) const CHANGED_TEAM_HELP: &str = "resume it with the team file as it was, or send a message with \
    `switchboard run`, which ends the wait";

/// The message for a run that waits and cannot go on with the team file; `None` for another error.
pub(crate) fn changed_team(error: &Error) -> Option<String> {
    let problems = error.cause()?.downcast_ref::<StateProblems>()?;
    let problems = problems.problems().iter().map(|problem| {
        let agent = &problem.agent;
        let tool = problem.tool.as_deref().unwrap_or_default();
        match problem.kind {
            StateProblemKind::UnknownAgent | StateProblemKind::UnknownTarget => {
                format!("the run waits with the agent \"{agent}\", which cannot be reached any more")
            }
            StateProblemKind::OtherSchema => format!(
                "\"{tool}\" of \"{agent}\" takes other arguments now than when a person was asked about \
                 its call"
            ),
            StateProblemKind::NoAgentTool => {
                format!("the tool \"{tool}\" of \"{agent}\" asks no agent any more")
            }
            _ => format!("the call of \"{tool}\" waits, and \"{agent}\" has it no more"),
        }
    });
    Some(problems.collect::<Vec<_>>().join("; "))
}

fn session_help(error: &Error) -> &'static str {
    let cause = error.cause();
    if let Some(help) = cause.and_then(store_keys::help) {
        return help;
    }
    let cause = cause.and_then(|cause| cause.downcast_ref::<ConversationError>());
    match cause.map(ConversationError::kind) {
        Some(ConversationErrorKind::OtherTeam) => {
            "use another --session, or go on with this one all the same with --force"
        }
        Some(ConversationErrorKind::UnknownAgent) => {
            "give it to another agent with --agent NAME, begin again with another --session, or let \
             the first agent have it with --force"
        }
        Some(ConversationErrorKind::Conflict) => {
            "another program uses the same session; send the message again"
        }
        _ => "check the store of the session, or go on without --session",
    }
}

fn model_help(error: &Error) -> Option<Cow<'static, str>> {
    let cause = error.cause()?.downcast_ref::<ModelError>()?;
    Some(Cow::Borrowed(match cause.kind() {
        // A server that answers is there.
        ModelErrorKind::Timeout if reported_status(cause).is_some() => TRY_AGAIN,
        ModelErrorKind::Request if reported_status(cause) == Some(409) => TRY_AGAIN,
        ModelErrorKind::Connection | ModelErrorKind::Timeout => {
            "check that the server runs and that its address is right (--base-url), or try the team \
             with --model offline"
        }
        ModelErrorKind::Authentication => match cause.key_variable() {
            Some(name) => {
                return Some(Cow::Owned(format!(
                    "check the key in {name}, or try the team with --model offline"
                )));
            }
            None => "check the key that the request has, or try the team with --model offline",
        },
        ModelErrorKind::RateLimit if cause.is_out_of_quota() => {
            "look at the plan and the bills of the account, or use another model (--model)"
        }
        ModelErrorKind::WebPage | ModelErrorKind::WrongAddress => {
            "check the address and its path (--base-url, or base_url in the team file), or try the team \
             with --model offline"
        }
        ModelErrorKind::Redirect => {
            "if the server that it names is the right one, write its address where the redirecting one \
             is (`--base-url`, or `base_url` or `a2a` in the team file); otherwise check the address that \
             is there"
        }
        ModelErrorKind::RateLimit => {
            "wait a little and try again, or look at your account's limits"
        }
        _ if cause.is_too_long() => {
            "begin a new conversation (another --session, or /reset in a chat), let the team file \
             shorten it (`compact_at` or a filter), or use a model that takes more (--model)"
        }
        ModelErrorKind::Request | ModelErrorKind::Unsupported => {
            "check the model's name (--model, or the team file) and its settings"
        }
        ModelErrorKind::Configuration => {
            "mend what the message says; the model's settings are in the team file"
        }
        _ => TRY_AGAIN,
    }))
}

/// The status that the server answered with, or that it reported as the code of an error within an answer.
fn reported_status(error: &ModelError) -> Option<u16> {
    error.status().or_else(|| error.code()?.parse().ok())
}

/// Advice on a failure that may pass.
const TRY_AGAIN: &str = "try again; if it stays so, use another model (--model)";
