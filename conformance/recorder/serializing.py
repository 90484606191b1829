"""The JSON forms of runs, as in `cases/FORMAT.md`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from agents import (
    HandoffOutputItem,
    ToolCallOutputItem,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    UserError,
)
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.testing import ModelCall
from pydantic import BaseModel

# Errors that keep their name. The messages of those with `True` are recorded.
ERRORS: dict[type[Exception], bool] = {
    MaxTurnsExceeded: True,
    UserError: True,
    ModelBehaviorError: False,
    ModelRefusalError: False,
    InputGuardrailTripwireTriggered: False,
    OutputGuardrailTripwireTriggered: False,
    ToolInputGuardrailTripwireTriggered: False,
    ToolOutputGuardrailTripwireTriggered: False,
}

SETTINGS = ("temperature", "top_p", "tool_choice", "parallel_tool_calls", "max_tokens")


def plain(value: Any) -> Any:
    """A value as plain JSON."""
    if isinstance(value, ToolOutputText | ToolOutputImage | ToolOutputFileContent):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json", exclude_unset=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict) and value.get("id") == FAKE_RESPONSES_ID:
        return made_up(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def made_up(message: dict[str, Any]) -> dict[str, Any]:
    """A message that the reference itself made. Its id and its lack of logprobs say nothing."""
    content = [{key: part[key] for key in part if key != "logprobs"} for part in message["content"]]
    return {**message, "id": "<made up>", "content": plain(content)}


def output_value(output: Any) -> Any:
    """A final output. A typed one has all its fields."""
    return output.model_dump(mode="json") if isinstance(output, BaseModel) else plain(output)


def run_item(item: Any) -> dict[str, Any]:
    fields = {"type": item.type, "agent": item.agent.name, "raw": plain(item.raw_item)}
    if isinstance(item, HandoffOutputItem):
        fields["source_agent"] = item.source_agent.name
        fields["target_agent"] = item.target_agent.name
    if isinstance(item, ToolCallOutputItem):
        fields["output"] = plain(item.output)
    return fields


def handoff_data(data: Any) -> dict[str, Any]:
    fields = {
        "input_history": plain(data.input_history),
        "pre_handoff_items": [run_item(item) for item in data.pre_handoff_items],
        "new_items": [run_item(item) for item in data.new_items],
    }
    if data.input_items is not None:
        fields["input_items"] = [run_item(item) for item in data.input_items]
    return {**fields, "has_run_context": data.run_context is not None}


def schema(value: Any) -> Any:
    """A schema without its titles, which are Python's."""
    if isinstance(value, list):
        return [schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    # A property may be named `title`; its schema is an object.
    kept = {key: item for key, item in value.items() if key != "title" or isinstance(item, dict)}
    return {key: schema(item) for key, item in kept.items()}


def model_call(call: ModelCall, records: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "system": call.system_instructions,
        "input": plain(call.input),
        "tools": [tool_of(tool, records) for tool in call.tools],
        "handoffs": [
            {
                "tool_name": handoff.tool_name,
                "tool_description": handoff.tool_description,
                "input_json_schema": schema(handoff.input_json_schema),
                "strict": handoff.strict_json_schema,
            }
            for handoff in call.handoffs
        ],
    }
    if "settings" in records:
        settings = {name: getattr(call.model_settings, name) for name in SETTINGS}
        fields["settings"] = {name: value for name, value in settings.items() if value is not None}
    if "output_schema" in records and call.output_schema is not None:
        output = call.output_schema
        fields["output"] = {
            "name": output.name(),
            "strict": output.is_strict_json_schema(),
            "json_schema": schema(output.json_schema()),
        }
    if "server" in records:
        fields["conversation_id"] = call.conversation_id
        fields["previous_response_id"] = call.previous_response_id
    return fields


def tool_of(tool: Any, records: list[str]) -> dict[str, Any]:
    fields = {"name": tool.name, "description": tool.description}
    if "tool_schemas" in records:
        fields["parameters"] = schema(tool.params_json_schema)
    return fields


def usage(total: Any) -> dict[str, Any]:
    """The tokens of a run, and of each of its requests."""
    entries = [tokens(entry) for entry in total.request_usage_entries]
    return {"requests": total.requests, **tokens(total), "entries": entries}


def tokens(part: Any) -> dict[str, Any]:
    return {
        "input": part.input_tokens,
        "cached": part.input_tokens_details.cached_tokens,
        "output": part.output_tokens,
        "reasoning": part.output_tokens_details.reasoning_tokens,
    }


def error(failure: Exception) -> dict[str, Any]:
    """The type of an error, and its message where that says something about the run."""
    kind = type(failure)
    if isinstance(failure, UserError) and failure.__cause__ is not None:
        # The reference wraps an error of a tool's own code.
        cause = failure.__cause__
        kind = type(cause) if type(cause) in ERRORS else RuntimeError
    if kind not in ERRORS:
        return {"type": "RuntimeError"}
    if not ERRORS[kind]:
        return {"type": kind.__name__}
    return {"type": kind.__name__, "message": str(failure)}


def dump_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
