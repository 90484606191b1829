//! Carrying out the tasks of the machine with the parts of agents.

use std::sync::Arc;

use switchboard_core::__agent_parts::{AgentParts, PartCall, PartFailure};
use switchboard_core::guardrail::{GuardrailOutcome, GuardrailResult};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::tool::ToolOutput;
use switchboard_core::{__agent_parts as parts, Error, ErrorKind, Tool};

use super::agents::{Agents, KnownAgent};
use crate::agent::RealtimeAgent;
use crate::handoff::RealtimeHandoff;
use crate::machine::{
    CallFailure, CallRef, HandoffAnswer, HandoffRedirect, Prepared, Task, TaskOutcome, ToolAnswer,
};

/// The number of redirects of one handoff.
const MAX_REDIRECTS: u32 = 8;

/// The text for the model about a call that failed for a reason that is none of its business.
const FAILED: &str = "An error occurred while running the tool. Please try again.";

/// Carries out a task.
pub(super) async fn carry_out<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    task: Task,
) -> TaskOutcome {
    match task {
        Task::Prepare {
            call,
            is_handoff: true,
            decision,
            ..
        } => TaskOutcome::Prepared(prepare_handoff(agents, &call, decision.is_some()).await),
        Task::Prepare {
            call,
            decision,
            guardrails_first,
            ..
        } => {
            let is_decided = decision.is_some();
            TaskOutcome::Prepared(prepare_tool(agents, &call, is_decided, guardrails_first).await)
        }
        Task::Check {
            call,
            condition,
            guardrails,
        } => TaskOutcome::Prepared(check_call(agents, &call, condition, guardrails).await),
        Task::RunTool(call) => TaskOutcome::ToolRan(run_tool(agents, &call).await),
        Task::RejectionText(call, decision) => {
            let text = match agents.find(&call.agent) {
                Ok(known) => {
                    known
                        .parts
                        .rejection_text(&part_call(&call), &decision)
                        .await
                }
                Err(_) => FAILED.to_owned(),
            };
            TaskOutcome::Text(text)
        }
        Task::HandOff {
            call,
            redirect,
            is_approved,
            recheck,
        } => {
            let decided = hand_off(agents, &call, redirect, is_approved, recheck);
            TaskOutcome::Handoff(decided.await)
        }
        Task::ResolveAgent(key) => {
            let resolved = agents.resolve(&key).await;
            TaskOutcome::Agent(resolved.map(Box::new).map_err(Into::into))
        }
        Task::ResolveOffer(key) => {
            let resolved = agents.resolve_offer(&key).await;
            TaskOutcome::Offer(resolved.map(Box::new).map_err(Into::into))
        }
        Task::CheckOutput { agent, text } => {
            TaskOutcome::OutputChecked(check_output(agents, &agent, &text).await)
        }
        Task::CallHooks { agent, output } => {
            let called = match agents.find(&agent) {
                Ok(known) if !known.parts.has_hooks() => Ok(()),
                Ok(known) => match output {
                    Some(output) => known.parts.notify_end(&output).await,
                    None => known.parts.notify_start().await,
                },
                Err(error) => Err(error),
            };
            TaskOutcome::HooksCalled(called.map_err(Into::into))
        }
        Task::Timer(duration) => {
            tokio::time::sleep(duration).await;
            TaskOutcome::TimeUp
        }
    }
}

fn part_call(call: &CallRef) -> PartCall {
    PartCall {
        tool: call.call.name.clone(),
        call_id: call.call.call_id.clone(),
        arguments: call.call.arguments.clone(),
    }
}

fn answer_of(output: ToolOutput) -> ToolAnswer {
    let text: Arc<str> = output.text().into();
    ToolAnswer::new(text, output.into_value())
}

impl From<PartFailure> for CallFailure {
    fn from(failure: PartFailure) -> Self {
        let text = failure.text.or_else(|| text_of(&failure.error));
        Self::new(failure.error, text)
    }
}

/// The text for the model about an error of the application's code. A guardrail that trips ends the
/// session.
fn text_of(error: &Error) -> Option<String> {
    (!error.is_guardrail()).then(|| FAILED.to_owned())
}

fn failure(error: Error) -> CallFailure {
    let text = text_of(&error);
    CallFailure::new(error, text)
}

fn find_tool<'a, C>(agent: &'a RealtimeAgent<C>, name: &str) -> Option<&'a Tool<C>> {
    agent.tools().iter().find(|tool| tool.name() == name)
}

fn find_handoff<'a, C>(
    agent: &'a RealtimeAgent<C>,
    name: &str,
) -> Option<(&'a RealtimeHandoff<C>, RealtimeAgent<C>)> {
    let mut handoffs = agent.handoffs().iter();
    let handoff = handoffs.find(|handoff| handoff.tool_name() == name)?;
    Some((handoff, handoff.target(agent)?))
}

async fn prepare_tool<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    call: &CallRef,
    is_decided: bool,
    guardrails_first: bool,
) -> Result<Prepared, CallFailure> {
    let known = agents.find(&call.agent).map_err(failure)?;
    let Some(tool) = find_tool(&known.agent, &call.call.name) else {
        return Ok(Prepared::Unavailable);
    };
    if !known.parts.tool_is_enabled(tool).await.map_err(failure)? {
        return Ok(Prepared::Unavailable);
    }
    let made = part_call(call);
    let needs_approval = !is_decided && known.parts.tool_needs_approval(tool, &made).await;
    if needs_approval && !guardrails_first {
        return Ok(Prepared::NeedsApproval);
    }
    match known.parts.check_call(tool, &made).await.map_err(failure)? {
        Some(output) => Ok(Prepared::Answered(answer_of(output))),
        None if needs_approval => Ok(Prepared::NeedsApproval),
        None => Ok(Prepared::Run),
    }
}

async fn prepare_handoff<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    call: &CallRef,
    is_decided: bool,
) -> Result<Prepared, CallFailure> {
    let known = agents.find(&call.agent).map_err(failure)?;
    let Some((handoff, target)) = find_handoff(&known.agent, &call.call.name) else {
        return Ok(Prepared::Unavailable);
    };
    let (edge, made) = (handoff.edge(), part_call(call));
    if !known
        .parts
        .handoff_is_enabled(edge)
        .await
        .map_err(failure)?
    {
        return Ok(Prepared::Unavailable);
    }
    AgentParts::parse_payload(edge, target.parts(), &made)?;
    let needed = known
        .parts
        .handoff_needs_approval(edge, target.parts(), &made);
    if !is_decided && needed.await {
        return Ok(Prepared::NeedsApproval);
    }
    Ok(Prepared::Run)
}

async fn check_call<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    call: &CallRef,
    condition: bool,
    guardrails: bool,
) -> Result<Prepared, CallFailure> {
    let known = agents.find(&call.agent).map_err(failure)?;
    let Some(tool) = find_tool(&known.agent, &call.call.name) else {
        return Ok(Prepared::Unavailable);
    };
    if condition && !known.parts.tool_is_enabled(tool).await.map_err(failure)? {
        return Ok(Prepared::Unavailable);
    }
    if !guardrails {
        return Ok(Prepared::Run);
    }
    let checked = known.parts.check_call(tool, &part_call(call)).await;
    Ok(match checked.map_err(failure)? {
        Some(output) => Prepared::Answered(answer_of(output)),
        None => Prepared::Run,
    })
}

async fn run_tool<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    call: &CallRef,
) -> Result<ToolAnswer, CallFailure> {
    let known = agents.find(&call.agent).map_err(failure)?;
    let Some(tool) = find_tool(&known.agent, &call.call.name) else {
        let message = format!("the agent has no tool \"{}\"", call.call.name);
        return Err(failure(parts::error(ErrorKind::Configuration, message)));
    };
    let ran = known.parts.run_tool(tool, &part_call(call)).await?;
    Ok(answer_of(ran.output))
}

/// Runs the callback of a handoff, and resolves the agent unless it leads to another one.
async fn hand_off<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    call: &CallRef,
    redirected: Option<HandoffRedirect>,
    is_approved: bool,
    recheck: bool,
) -> Result<HandoffAnswer, CallFailure> {
    let known = agents.find(&call.agent).map_err(failure)?;
    let mut made = part_call(call);
    let (handoff, target) = match &redirected {
        Some(redirected) => {
            made.arguments = redirected.arguments.clone();
            redirect(agents, &known, &redirected.to)?
        }
        None => find_handoff(&known.agent, &made.tool)
            .map(|(handoff, target)| (handoff.clone(), target))
            .ok_or_else(|| {
                let message = format!("the agent has no handoff \"{}\"", made.tool);
                failure(parts::error(ErrorKind::Configuration, message))
            })?,
    };
    if recheck {
        check_condition(&known, &handoff, &target).await?;
    }
    let called = known
        .parts
        .call_back(handoff.edge(), target.parts(), &made, is_approved);
    match called.await? {
        HandoffDecision::Refuse(reason) => Ok(HandoffAnswer::Refused(reason)),
        HandoffDecision::AskApproval if !is_approved => Ok(HandoffAnswer::AskApproval),
        HandoffDecision::Proceed | HandoffDecision::AskApproval => {
            take(agents, &known, &handoff, &target, &made).await
        }
        HandoffDecision::Redirect { to, payload, .. } => {
            let count = redirected.map_or(0, |redirected| redirected.count) + 1;
            if count > MAX_REDIRECTS {
                let message = format!(
                    "the handoff was redirected more than {MAX_REDIRECTS} times in a row; let one of \
                     the callbacks accept it"
                );
                return Err(failure(parts::error(ErrorKind::Configuration, message)));
            }
            if let Some(payload) = payload {
                made.arguments = payload.to_string().into();
            }
            let (handoff, target) = redirect(agents, &known, &to)?;
            check_condition(&known, &handoff, &target).await?;
            let needed = known
                .parts
                .handoff_needs_approval(handoff.edge(), target.parts(), &made);
            let needs_approval = needed.await;
            let mut redirect = HandoffRedirect::new(to, handoff.tool_name(), made.arguments);
            redirect.count = count;
            Ok(HandoffAnswer::Redirected {
                redirect,
                needs_approval,
            })
        }
        _ => {
            let message = "the callback made a decision that realtime sessions do not know";
            Err(failure(parts::error(ErrorKind::UserCode, message)))
        }
    }
}

/// Evaluates the condition of a handoff. The model is told if it does not hold.
async fn check_condition<C: Send + Sync + 'static>(
    known: &KnownAgent<C>,
    handoff: &RealtimeHandoff<C>,
    target: &RealtimeAgent<C>,
) -> Result<(), CallFailure> {
    let enabled = known.parts.handoff_is_enabled(handoff.edge()).await;
    if enabled.map_err(failure)? {
        return Ok(());
    }
    let message = "the condition of the handoff does not hold any more; nothing was handed over";
    let text = format!(
        "The handoff to {} is not possible any more. Go on without it.",
        target.name()
    );
    let error = parts::error(ErrorKind::ModelBehavior, message);
    Err(CallFailure::new(error, Some(text)))
}

/// The handoff to an agent that a callback redirects to: the agent's own, or a plain one.
fn redirect<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    known: &KnownAgent<C>,
    to: &str,
) -> Result<(RealtimeHandoff<C>, RealtimeAgent<C>), CallFailure> {
    let agent = &known.agent;
    let own = agent.handoffs().iter().find_map(|handoff| {
        let target = handoff.target(agent)?;
        (target.name() == to).then(|| (handoff.clone(), target))
    });
    let other = || {
        let target = agents.by_name(to)?.agent;
        Some((crate::handoff::realtime_handoff(&target).build(), target))
    };
    own.or_else(other).ok_or_else(|| {
        let message =
            format!("the handoff was redirected to \"{to}\", which the session does not know");
        failure(parts::error(ErrorKind::Configuration, message))
    })
}

/// Resolves the agent that gets the conversation, and calls the hooks: the last that can fail here.
async fn take<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    known: &KnownAgent<C>,
    handoff: &RealtimeHandoff<C>,
    target: &RealtimeAgent<C>,
    made: &PartCall,
) -> Result<HandoffAnswer, CallFailure> {
    let cannot = |error: Error| {
        let text = format!(
            "The handoff to {} could not be made because of an error. Try again, or go on without it.",
            target.name()
        );
        CallFailure::new(error, Some(text))
    };
    let key = agents.key(target);
    let to = agents.resolve(&key).await.map_err(cannot)?;
    if known.parts.has_hooks() {
        let notified = known.parts.notify_handoff(target.parts(), made).await;
        notified.map_err(cannot)?;
    }
    let message = AgentParts::transfer_message(handoff.edge(), target.parts());
    Ok(HandoffAnswer::Taken {
        to: Box::new(to),
        message: message.into(),
    })
}

/// Asks the output guardrails of the agent and the session. One that fails is skipped. Returns those
/// that tripped.
async fn check_output<C: Send + Sync + 'static>(
    agents: &Agents<C>,
    agent: &str,
    text: &str,
) -> Vec<GuardrailResult> {
    let Ok(known) = agents.find(agent) else {
        return Vec::new();
    };
    let own = parts::output_guardrails(known.agent.parts()).iter();
    let all = own.chain(&agents.output_guardrails);
    let mut asked = Vec::new();
    let mut tripped = Vec::new();
    for guardrail in all {
        if asked
            .iter()
            .any(|other| parts::is_same_guardrail(guardrail, other))
        {
            continue;
        }
        asked.push(guardrail.clone());
        match known.parts.check_output(guardrail, text).await {
            // What was said cannot be replaced.
            Ok(result) if result.outcome != GuardrailOutcome::Allowed => tripped.push(result),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    guardrail = guardrail.name(),
                    %error,
                    "an output guardrail failed; it is skipped"
                );
            }
        }
    }
    tripped
}
