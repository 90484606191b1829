"""The tools of a scenario, and the guardrails on them."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from agents import (
    FunctionTool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputFileContent,
    ToolOutputGuardrail,
    ToolOutputImage,
    ToolOutputText,
    default_tool_error_function,
    function_tool,
)
from agents.tool_context import ToolContext

from observing import Log
from payloads import TYPES
from serializing import dump_line


def condition(spec: Any) -> Any:
    """A condition on the context."""
    if spec is None:
        return True
    if isinstance(spec, bool):
        return spec
    return lambda ctx, agent: (ctx.context or {}).get(spec["context"]) == spec["equals"]


def build_tool(case: dict[str, Any], log: Log) -> FunctionTool:
    """Makes a function tool whose body does what the case says."""
    guardrails = {
        "tool_input_guardrails": [
            ToolInputGuardrail(guardrail(spec, case["name"], log, is_input=True), name=spec["name"])
            for spec in case.get("input_guardrails", [])
        ],
        "tool_output_guardrails": [
            ToolOutputGuardrail(
                guardrail(spec, case["name"], log, is_input=False), name=spec["name"]
            )
            for spec in case.get("output_guardrails", [])
        ],
    }
    if any(name in case for name in ("arguments", "raises", "failure")):
        return function_tool(
            typed_body(case, log),
            name_override=case["name"],
            description_override=case.get("description", ""),
            is_enabled=condition(case.get("is_enabled")),
            strict_mode="arguments" in case,
            **guardrails,
            **failure_settings(case),
            **timeout_settings(case, "timeout"),
        )
    return FunctionTool(
        name=case["name"],
        description=case.get("description", ""),
        params_json_schema=case.get("parameters", {"type": "object", "properties": {}}),
        on_invoke_tool=lambda ctx, arguments: told_failure(case, log, ctx),
        strict_json_schema=False,
        is_enabled=condition(case.get("is_enabled")),
        **guardrails,
        **timeout_settings(case, "timeout_seconds"),
    )


def failure_settings(case: dict[str, Any]) -> dict[str, Any]:
    """The settings of a tool that say what its failure leads to."""
    failure = case.get("failure", "raise" if "raises" in case else "default")
    if failure == "default":
        return {}
    return {"failure_error_function": None if failure == "raise" else words(failure)}


def timeout_settings(case: dict[str, Any], name: str) -> dict[str, Any]:
    """The settings of a tool's time-out, whose length the reference gives one of two names."""
    if "timeout_ms" not in case:
        return {}
    settings: dict[str, Any] = {name: case["timeout_ms"] / 1000}
    on_timeout = case.get("on_timeout")
    if on_timeout == "raise":
        settings["timeout_behavior"] = "raise_exception"
    elif on_timeout is not None:
        settings["timeout_error_function"] = words(on_timeout)
    return settings


def words(spec: dict[str, str]) -> Any:
    return lambda ctx, error: spec["says"].replace("{error}", str(error))


async def run_body(
    case: dict[str, Any], log: Log, ctx: ToolContext[Any], payload: Any = None
) -> Any:
    """Does what the case says of a tool's body."""
    arguments = {"arguments": ctx.tool_arguments} if payload is None else {"payload": payload}
    log.append({"tool": case["name"], **arguments})
    if "takes_ms" in case:
        await asyncio.sleep(case["takes_ms"] / 1000)
    for failure in ("fails", "raises"):
        if failure in case:
            raise RuntimeError(case[failure])
    if "sets" in case:
        ctx.context.update(case["sets"])
    return tool_output(case)


async def told_failure(case: dict[str, Any], log: Log, ctx: ToolContext[Any]) -> Any:
    """Does the same. Its failure is its output, so that the reference sees none."""
    try:
        return await run_body(case, log, ctx)
    except RuntimeError as error:
        return default_tool_error_function(ctx, error)


def typed_body(case: dict[str, Any], log: Log) -> Any:
    """The function of a tool. Its signature has the fields of the type of its arguments."""
    model = TYPES[case["arguments"]] if "arguments" in case else None

    async def run(ctx: ToolContext[Any], *values: Any) -> Any:
        payload = None
        if model is not None:
            fields = dict(zip(model.model_fields, values, strict=True))
            payload = model.model_validate(fields).model_dump(mode="json")
        return await run_body(case, log, ctx, payload)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("ctx", kind, annotation=ToolContext)]
    for name, field in (model.model_fields if model else {}).items():
        default = inspect.Parameter.empty if field.is_required() else field.default
        parameters.append(
            inspect.Parameter(name, kind, annotation=field.annotation, default=default)
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def tool_output(case: dict[str, Any]) -> Any:
    if "parts" in case:
        return [output_part(part) for part in case["parts"]]
    returns = case.get("returns")
    # The reference prints objects as Python does; the corpus has their JSON.
    return dump_line(returns) if isinstance(returns, dict | list) else returns


def output_part(spec: dict[str, Any]) -> Any:
    kind = {
        "text": ToolOutputText,
        "image": ToolOutputImage,
        "file": ToolOutputFileContent,
    }[spec["type"]]
    return kind(**{key: value for key, value in spec.items() if key != "type"})


def guardrail(spec: dict[str, Any], tool: str, log: Log, *, is_input: bool) -> Any:
    """The function of a guardrail on a tool's calls or outputs."""
    entry = "tool_input_guardrail" if is_input else "tool_output_guardrail"

    def check(data: Any) -> ToolGuardrailFunctionOutput:
        log.append({entry: spec["name"], "of": tool})
        text = data.context.tool_arguments if is_input else str(data.output)
        if spec["on"] not in text:
            return ToolGuardrailFunctionOutput.allow()
        if spec["does"] == "reject":
            return ToolGuardrailFunctionOutput.reject_content(spec.get("message", ""))
        return ToolGuardrailFunctionOutput.raise_exception()

    return check
