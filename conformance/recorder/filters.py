"""The filters and callbacks on histories that scenarios name."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from agents import HandoffInputData
from agents.extensions.handoff_filters import remove_all_tools
from agents.handoffs import nest_handoff_history
from agents.run import CallModelData, ModelInputData

from observing import Log
from serializing import handoff_data


def handoff_filter(spec: Any, log: Log) -> Any:
    """The handoff filter that a scenario names, or None."""
    if spec is None:
        return None
    if isinstance(spec, list):
        chain = [handoff_filter(part, log) for part in spec]

        async def apply_all(data: HandoffInputData) -> HandoffInputData:
            for part in chain:
                data = part(data)
                if inspect.isawaitable(data):
                    data = await data
            return data

        return apply_all
    if isinstance(spec, str):
        return named_filter(spec, log)
    ((name, argument),) = spec.items()
    if name == "keep_last_history":

        def keep_last(data: HandoffInputData) -> HandoffInputData:
            if isinstance(data.input_history, str):
                return data
            kept = data.input_history[max(0, len(data.input_history) - argument) :]
            return data.clone(input_history=kept)

        return keep_last
    if name == "replace_history":
        return lambda data: data.clone(input_history=argument)

    async def async_identity(data: HandoffInputData) -> HandoffInputData:
        await asyncio.sleep(argument / 1000)
        return data

    return async_identity


def named_filter(name: str, log: Log) -> Any:
    def record(data: HandoffInputData) -> HandoffInputData:
        log.append({"filter": handoff_data(data)})
        return data

    return {
        "identity": lambda data: data,
        "remove_all_tools": remove_all_tools,
        "nest": nest_handoff_history,
        "drop_new_items": lambda data: data.clone(new_items=()),
        "drop_pre_handoff_items": lambda data: data.clone(pre_handoff_items=()),
        "input_items_empty": lambda data: data.clone(input_items=()),
        "record": record,
    }[name]


def history_mapper(name: str | None) -> Any:
    """The mapper of nested history that a scenario names, or None."""
    if name is None:
        return None
    return {
        "identity": lambda transcript: transcript,
        "last_two": lambda transcript: transcript[-2:],
        "count": lambda transcript: [
            {"role": "assistant", "content": f"{len(transcript)} earlier items"}
        ],
    }[name]


def session_input(spec: Any) -> Any:
    """The callback that merges a session's history and new input, or None."""
    if spec is None:
        return None
    if spec == "new_only":
        return lambda history, new: new
    if spec == "new_first":
        return lambda history, new: new + history
    if "fails" in spec:

        def fail(history: Any, new: Any) -> Any:
            raise RuntimeError(spec["fails"])

        return fail
    count = spec["keep_last"]
    return lambda history, new: history[max(0, len(history) - count) :] + new


def model_filter(spec: Any, log: Log) -> Any:
    """The filter on what a model is given, or None."""
    if spec is None:
        return None

    def apply(data: CallModelData) -> ModelInputData:
        log.append({"model_filter": data.agent.name, "items": len(data.model_data.input)})
        if "fails" in spec:
            raise RuntimeError(spec["fails"])
        items = data.model_data.input
        if "keep_last" in spec:
            items = items[max(0, len(items) - spec["keep_last"]) :]
        if "append" in spec:
            items = [*items, {"role": "user", "content": spec["append"]}]
        instructions = spec.get("instructions", data.model_data.instructions)
        return ModelInputData(input=items, instructions=instructions)

    return apply
