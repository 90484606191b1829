"""Runs a scenario with the reference and records what it did."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from agents import Agent, Runner, SQLiteSession, set_trace_processors
from agents.handoffs import reset_conversation_history_wrappers, set_conversation_history_wrappers
from agents.testing import ModelStep, ScriptedModel
from agents.usage import Usage
from openai.types.responses import ResponseOutputItem
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import TypeAdapter

import serializing
from building import build_agents, build_run_config, error_handlers
from observing import Log, LoggingHooks, SpanCollector

OUTPUT_ITEM: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)

SPANS = SpanCollector()


def record(scenario: dict[str, Any]) -> dict[str, Any]:
    """The `expect` of a scenario, which is run plain and streamed."""
    set_trace_processors([SPANS])
    plain = asyncio.run(run(scenario, is_streamed=False))
    streamed = asyncio.run(run(scenario, is_streamed=True))
    differs = {key: value for key, value in streamed.items() if plain.get(key) != value}
    plain["stream"] = differs.pop("stream")
    gone = [key for key in plain if key not in streamed]
    if differs or gone:
        plain["streamed_differs"] = differs | {key: None for key in gone}
    return plain


async def run(scenario: dict[str, Any], *, is_streamed: bool) -> dict[str, Any]:
    """Runs all turns of a scenario in one way."""
    log: Log = []
    records = scenario.get("records", [])
    model = ScriptedModel([script_step(step) for step in scenario["model"]])
    agents = build_agents(scenario, log)
    context = copy.deepcopy(scenario.get("context"))
    session = None
    if scenario.get("session"):
        session = SQLiteSession("conversation")
        await session.add_items(copy.deepcopy(scenario.get("session_starts_with", [])))
    wrappers = scenario.get("history_wrappers")
    if wrappers:
        set_conversation_history_wrappers(**wrappers)
    settings = {
        "context": context,
        "max_turns": scenario.get("max_turns", 10),
        "hooks": LoggingHooks(log),
        "run_config": build_run_config(scenario, model, log),
        "error_handlers": error_handlers(scenario, log),
        "session": session,
    }
    for name in ("previous_response_id", "auto_previous_response_id", "conversation_id"):
        if name in scenario:
            settings[name] = scenario[name]

    expect: dict[str, Any] = {}
    stream: list[str] = []
    agent = agents[scenario["start"]]
    try:
        for text in scenario.get("turns") or [scenario["input"]]:
            try:
                result = await run_input(agent, text, settings, stream if is_streamed else None)
            except Exception as failure:
                expect = {"error": serializing.error(failure)}
                break
            expect = outcome(result, records)
            agent = result.last_agent
    finally:
        if wrappers:
            reset_conversation_history_wrappers()
    expect["model_calls"] = [serializing.model_call(call, records) for call in model.calls]
    expect["log"] = log
    expect["spans"] = SPANS.take()
    if session is not None:
        expect["session_items"] = serializing.plain(await session.get_items())
    if "context" in records:
        expect["context"] = context
    if is_streamed:
        expect["stream"] = stream
    return expect


async def run_input(
    agent: Agent[Any], text: Any, settings: dict[str, Any], stream: list[str] | None
) -> Any:
    """Runs one input. Adds the names of the events to `stream` if there is one."""
    text = copy.deepcopy(text)
    if stream is None:
        return await Runner.run(agent, text, **settings)
    result = Runner.run_streamed(agent, text, **settings)
    async for event in result.stream_events():
        if event.type == "agent_updated_stream_event":
            stream.append(f"agent_updated:{event.new_agent.name}")
        elif event.type == "run_item_stream_event":
            stream.append(event.name)
    return result


def outcome(result: Any, records: list[str]) -> dict[str, Any]:
    """The result of a run that did not fail."""
    fields = {
        "final_output": serializing.output_value(result.final_output),
        "last_agent": result.last_agent.name,
        "new_items": [serializing.run_item(item) for item in result.new_items],
        "input_list": serializing.plain(result.to_input_list()),
        "responses": len(result.raw_responses),
    }
    if "usage" in records:
        fields["usage"] = serializing.usage(result.context_wrapper.usage)
    return fields


def script_step(step: dict[str, Any]) -> ModelStep:
    """One call of the scripted model."""
    if "error" in step:
        return ModelStep.raise_error(RuntimeError(step["error"]))
    return ModelStep(
        output=[OUTPUT_ITEM.validate_python(item) for item in step["output"]],
        usage=usage(step.get("usage", {})),
        response_id=step.get("response_id"),
    )


def usage(tokens: dict[str, int]) -> Usage:
    """The usage of one request."""
    counts = {"input": 0, "cached": 0, "output": 0, "reasoning": 0} | tokens
    return Usage(
        requests=1,
        input_tokens=counts["input"],
        input_tokens_details=InputTokensDetails(
            cached_tokens=counts["cached"], cache_write_tokens=0
        ),
        output_tokens=counts["output"],
        output_tokens_details=OutputTokensDetails(reasoning_tokens=counts["reasoning"]),
        total_tokens=counts["input"] + counts["output"],
    )
