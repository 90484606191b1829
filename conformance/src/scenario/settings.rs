//! The settings of runs and of model calls that cases describe.

use serde_json::{Value, json};
use switchboard_core::items::Items;
use switchboard_core::model::{ModelSettings, ToolChoice};
use switchboard_core::run::{
    ApprovalGuardrails, BlockedOutputText, Fallback, HandoffPolicy, HistoryPolicy, InnerEvents,
    ModelFilter, Recovery, RunFailure, RunProblem, ServerHistory, SessionInput, StreamedOutput,
    ToolErrorMessage, ToolErrorText, UnknownTool,
};
use switchboard_core::tool::{ToolError, ToolErrorKind};
use switchboard_core::{Agent, Item, ModelRequest, RunConfig, RunContext};

use super::{CaseContext, Environment, Log as _, filters, guardrails};
use crate::case::{
    Case, ConfigCase, ErrorHandlersCase, FormatterCase, HandlerCase, ModelFilterCase, NotFoundCase,
    ReasoningIds, SessionInputCase, SettingsCase,
};

impl Environment {
    /// The settings of a run.
    pub(crate) fn run_config(&self, case: &ConfigCase) -> Result<RunConfig<CaseContext>, String> {
        let own_filter = case.call_model_input_filter.clone().map(model_filter);
        let formatter = case.tool_error_formatter.clone();
        let rejection = case.rejection_message.clone();
        let inputs = case.input_guardrails.iter();
        let outputs = case.output_guardrails.iter();
        Ok(RunConfig {
            nest_handoff_history: case.nest_handoff_history,
            handoff_input_filter: filters::optional(&case.handoff_input_filter, &self.markers)?,
            handoff_history_mapper: filters::mapper(case.handoff_history_mapper.as_deref())?,
            history_markers: self.markers.clone(),
            model_filter: own_filter.or_else(|| self.model_filter.clone()),
            tool_error_text: Some(ToolErrorText::new(move |ctx, message| {
                match message.error.kind() {
                    ToolErrorKind::NotApproved => {
                        Ok(rejection_text(&ctx, &message, rejection.as_ref()))
                    }
                    _ => tool_error_text(&ctx, &message, formatter.as_ref()),
                }
            })),
            handoff_policy: if case.guardrails_before_approval {
                HandoffPolicy::reference().approval_guardrails(ApprovalGuardrails::Both)
            } else {
                HandoffPolicy::reference()
            },
            input_guardrails: inputs.map(guardrails::input).collect(),
            output_guardrails: outputs.map(guardrails::output).collect(),
            model_settings: case
                .model_settings
                .as_ref()
                .map(|settings| model_settings(settings).into()),
            omit_reasoning_ids: case.reasoning_item_id_policy == Some(ReasoningIds::Omit),
            unknown_tool: match case.tool_not_found_behavior {
                NotFoundCase::RaiseError => UnknownTool::Fail,
                NotFoundCase::ReturnErrorToModel => UnknownTool::TellModel,
            },
            blocked_output_text: case
                .output_guardrail_blocked_message
                .clone()
                .map(|text| BlockedOutputText::new(move |_| text.clone())),
            session_limit: case.session_limit,
            session_input: case.session_input_callback.clone().map(session_input),
            tool_concurrency: case.tool_concurrency,
            history: HistoryPolicy::Reference,
            streamed_output: StreamedOutput::AtOnce,
            inner_events: InnerEvents::Hidden,
            ..RunConfig::default()
        })
    }
}

/// The conversation that the provider keeps, if the case has one.
pub(super) fn server_history(case: &Case) -> Option<ServerHistory> {
    if let Some(id) = &case.conversation_id {
        return Some(ServerHistory::Conversation(id.as_str().into()));
    }
    let previous = case.previous_response_id.as_deref().map(Into::into);
    case.is_kept_by_the_provider()
        .then_some(ServerHistory::Responses { previous })
}

pub(super) fn model_settings(case: &SettingsCase) -> ModelSettings {
    ModelSettings {
        temperature: case.temperature,
        top_p: case.top_p,
        tool_choice: case.tool_choice.as_deref().map(|choice| match choice {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            "none" => ToolChoice::None,
            tool => ToolChoice::Named(tool.into()),
        }),
        parallel_tool_calls: case.parallel_tool_calls,
        max_tokens: case.max_tokens,
        ..ModelSettings::default()
    }
}

/// The run's text for a rejected call, if it has one.
fn rejection_text(
    ctx: &RunContext<CaseContext>,
    message: &ToolErrorMessage,
    text: Option<&Option<String>>,
) -> Option<String> {
    let (tool, call_id) = (&*message.tool, &*message.call_id);
    let text = text?;
    ctx.log(json!({
        "rejection_message": tool, "call_id": call_id, "kind": "approval_rejected",
        "default": message.default_text,
    }));
    let text = text.as_ref()?.replace("{tool}", tool);
    Some(text.replace("{call_id}", call_id))
}

/// The text that a model gets about any failure in the reference.
pub(super) const REFERENCE_FAILURE: &str =
    "An error occurred while running the tool. Please try again.";

/// Returns `true` if a run inside the tool has failed.
pub(super) fn is_of_inner_run(error: &ToolError) -> bool {
    error.cause().is::<switchboard_core::Error>()
}

/// The text of the reference for a failed tool. By default, the model is told what is wrong with
/// arguments that do not fit, and why a run inside a tool failed; and the reference does not ask the run
/// about time-outs.
fn tool_error_text(
    ctx: &RunContext<CaseContext>,
    message: &ToolErrorMessage,
    formatter: Option<&Option<FormatterCase>>,
) -> Result<Option<String>, String> {
    let default = match message.error.kind() {
        _ if is_of_inner_run(&message.error) => Some(REFERENCE_FAILURE.to_owned()),
        ToolErrorKind::InvalidArguments => Some(REFERENCE_FAILURE.to_owned()),
        ToolErrorKind::TimedOut => return Ok(None),
        _ => None,
    };
    let Some(formatter) = formatter else {
        return Ok(default);
    };
    let (tool, call_id) = (&*message.tool, &*message.call_id);
    ctx.log(json!({"tool_error_formatter": tool, "call_id": call_id}));
    match formatter {
        None => Ok(default),
        Some(FormatterCase::Fails(error)) => Err(error.clone()),
        Some(FormatterCase::Says(text)) => {
            let text = text.replace("{tool}", tool).replace("{call_id}", call_id);
            Ok(Some(text))
        }
    }
}

fn session_input(case: SessionInputCase) -> SessionInput<CaseContext> {
    SessionInput::new(move |_ctx, history: Items, new: Items| {
        let merged = |first: &Items, second: &Items| -> Items {
            first.iter().chain(second).cloned().collect()
        };
        Ok(match &case {
            SessionInputCase::NewOnly => new,
            SessionInputCase::NewFirst => merged(&new, &history),
            SessionInputCase::KeepLast(count) => {
                let skipped = history.len().saturating_sub(*count);
                merged(&history.skip(skipped), &new)
            }
            SessionInputCase::Fails(error) => return Err(error.clone()),
        })
    })
}

fn model_filter(case: ModelFilterCase) -> ModelFilter<CaseContext> {
    ModelFilter::new(
        move |ctx: RunContext<CaseContext>, agent: Agent<CaseContext>, request: ModelRequest| {
            ctx.log(json!({"model_filter": agent.name(), "items": request.input.len()}));
            apply_model_filter(&case, request)
        },
    )
}

fn apply_model_filter(
    case: &ModelFilterCase,
    mut request: ModelRequest,
) -> Result<ModelRequest, String> {
    if let Some(error) = &case.fails {
        return Err(error.clone());
    }
    if let Some(count) = case.keep_last {
        let skipped = request.input.len().saturating_sub(count);
        request.input = request.input.skip(skipped);
    }
    if let Some(text) = &case.append {
        request.input.extend([Item::user(text.as_str())]);
    }
    if let Some(text) = &case.instructions {
        request.instructions = Some(text.as_str().into());
    }
    Ok(request)
}

/// The functions that give a final output in place of an error, if the case has any.
pub(super) fn recovery(case: &ErrorHandlersCase) -> Option<Recovery<CaseContext>> {
    let handlers = [
        ("max_turns", RunProblem::MaxTurns, &case.max_turns),
        ("model_refusal", RunProblem::Refusal, &case.model_refusal),
        (
            "invalid_final_output",
            RunProblem::InvalidOutput,
            &case.invalid_final_output,
        ),
    ];
    let mut recovery = None;
    for (name, problem, handler) in handlers {
        let Some(handler) = handler.clone() else {
            continue;
        };
        let handle = move |ctx: RunContext<CaseContext>, failure: RunFailure| {
            // The reference counts the items of the response that was rejected as well.
            let rejected = failure.response.as_ref();
            let rejected = rejected.map_or(0, |response| response.output.len());
            let items = failure.run.new_items().len() + rejected;
            ctx.log(json!({"error_handler": name, "items": items}));
            fallback(handler.as_ref())
        };
        let others = recovery.unwrap_or_else(Recovery::none);
        recovery = Some(others.on(problem, handle));
    }
    recovery
}

fn fallback(handler: Option<&HandlerCase>) -> Result<Option<Fallback>, String> {
    match handler {
        None => Ok(None),
        Some(HandlerCase::Fails { fails }) => Err(fails.clone()),
        Some(HandlerCase::Output {
            final_output,
            include_in_history,
        }) => {
            let fallback = match final_output {
                Value::String(text) => Fallback::new(text.as_str()),
                value => Fallback::new(value.clone()),
            };
            Ok(Some(if *include_in_history {
                fallback
            } else {
                fallback.out_of_history()
            }))
        }
    }
}
