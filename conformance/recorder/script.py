"""Short forms for scenarios: agents, steps of the model, and the scenario itself."""

from __future__ import annotations

import json
from typing import Any


class Script:
    """Makes the items that a scripted model answers with. Ids count up within a scenario."""

    def __init__(self) -> None:
        self.count = 0

    def next_id(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def message(self, text: str) -> dict[str, Any]:
        return self.message_with({"type": "output_text", "text": text, "annotations": []})

    def refusal(self, text: str) -> dict[str, Any]:
        return self.message_with({"type": "refusal", "refusal": text})

    def message_with(self, *content: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "message",
            "id": self.next_id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": list(content),
        }

    def reasoning(self, text: str) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": self.next_id("rs"), "summary": summary}

    def call(self, name: str, arguments: Any = None) -> dict[str, Any]:
        """A call of a tool or a handoff. Arguments that are text are passed on as they are."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        number = self.next_id("fc")
        return {
            "type": "function_call",
            "id": number,
            "call_id": number.replace("fc", "call"),
            "name": name,
            "arguments": text,
        }


def agent(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "instructions": f"You are {name}.", **fields}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", **fields}


def scenario(
    name: str,
    about: str,
    agents: list[dict[str, Any]] | dict[str, Any],
    model: list[Any],
    **fields: Any,
) -> dict[str, Any]:
    """A scenario that starts at its first agent.

    A step of `model` is a list of functions of a `Script`, each of which makes an item; or a
    dictionary whose `output` is such a list; or an error of the model.
    """
    script = Script()
    agents = [agents] if isinstance(agents, dict) else agents
    fields.setdefault("input", "Hello")
    if "turns" in fields:
        fields.pop("input")
    return {
        "name": name,
        "about": about,
        "agents": agents,
        "model": [step(script, spec) for spec in model],
        **fields,
        "start": agents[0]["name"],
    }


def step(script: Script, spec: Any) -> dict[str, Any]:
    if isinstance(spec, Exception):
        return {"error": str(spec)}
    if isinstance(spec, list):
        spec = {"output": spec}
    return {**spec, "output": [make(script) for make in spec["output"]]}


def says(text: str) -> Any:
    return lambda script: script.message(text)


def refuses(text: str) -> Any:
    return lambda script: script.refusal(text)


def thinks(text: str) -> Any:
    return lambda script: script.reasoning(text)


def calls(name: str, arguments: Any = None) -> Any:
    return lambda script: script.call(name, arguments)
