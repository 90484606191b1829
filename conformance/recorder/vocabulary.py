"""The fields of scenarios that the recorder knows."""

from __future__ import annotations

from typing import Any

TOOL_GUARDRAIL = {"name": None, "on": None, "does": None, "message": None}

GUARDRAIL = {"name": None, "trips_on": None, "raises": None, "beside": None, "takes_ms": None}

TOOL = {
    **dict.fromkeys(("name", "description", "parameters", "returns", "fails", "raises", "sets")),
    **dict.fromkeys(("is_enabled", "arguments", "takes_ms", "timeout_ms", "on_timeout")),
    **dict.fromkeys(("failure", "parts")),
    "input_guardrails": TOOL_GUARDRAIL,
    "output_guardrails": TOOL_GUARDRAIL,
}

HANDOFF = dict.fromkeys(
    ("agent", "tool_name_override", "tool_description_override", "input_type", "on_handoff")
    + ("on_handoff_fails", "input_filter", "nest_handoff_history", "is_enabled")
)

AGENT = {
    **dict.fromkeys(("name", "instructions", "handoff_description", "hooks", "output_type")),
    **dict.fromkeys(("tool_use_behavior", "model_settings", "reset_tool_choice")),
    "tools": TOOL,
    "handoffs": HANDOFF,
    "input_guardrails": GUARDRAIL,
    "output_guardrails": GUARDRAIL,
}

RUN_CONFIG = {
    **dict.fromkeys(("nest_handoff_history", "handoff_input_filter", "handoff_history_mapper")),
    **dict.fromkeys(("model_settings", "reasoning_item_id_policy", "tool_not_found_behavior")),
    **dict.fromkeys(("output_guardrail_blocked_message", "session_limit", "tool_concurrency")),
    **dict.fromkeys(("tool_error_formatter", "session_input_callback", "call_model_input_filter")),
    "input_guardrails": GUARDRAIL,
    "output_guardrails": GUARDRAIL,
}

SCENARIO = {
    **dict.fromkeys(("name", "about", "start", "input", "turns", "session", "context")),
    **dict.fromkeys(("max_turns", "history_wrappers", "records", "session_starts_with")),
    **dict.fromkeys(("previous_response_id", "auto_previous_response_id", "conversation_id")),
    "may_differ": dict.fromkeys(("fields", "why")),
    "agents": AGENT,
    "run_config": RUN_CONFIG,
    "model": dict.fromkeys(("output", "error", "usage", "response_id")),
    "error_handlers": dict.fromkeys(("max_turns", "model_refusal", "invalid_final_output")),
}


def unknown_fields(value: Any, known: dict[str, Any] | None = SCENARIO, path: str = "") -> set[str]:
    """The paths of the fields of a scenario that the recorder does not know."""
    if known is None:
        return set()
    if isinstance(value, list):
        return set().union(*(unknown_fields(item, known, f"{path}[]") for item in value))
    if not isinstance(value, dict):
        return set()
    unknown: set[str] = set()
    for name, field in value.items():
        field_path = f"{path}.{name}" if path else name
        if name in known:
            unknown |= unknown_fields(field, known[name], field_path)
        else:
            unknown.add(field_path)
    return unknown
