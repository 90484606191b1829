"""Takes one turn of a conversation with the OpenAI Agents SDK for Python.

Reads {"start": agent, "items": [...], "say": text, "script": [[item, ...], ...]} from standard
input, runs it on a model that follows the script, and writes {"items": result.to_input_list(),
"seen": [what the model was given, call by call], "handoff_data": [what filters were given]}.

With "session": {"id": ..., "path": ...} in place of "items", the turn is one of that SQLiteSession, and
"stored" are its items afterwards.
"""

import asyncio
import json
import sys

from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, handoff
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage


class Scripted(Model):
    def __init__(self, script):
        self.script = list(script)
        self.seen = []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.seen.append(input)
        kinds = {"message": ResponseOutputMessage, "function_call": ResponseFunctionToolCall}
        output = [kinds[item["type"]](**item) for item in self.script.pop(0)]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def main():
    task = json.load(sys.stdin)
    model = Scripted(task["script"])
    given = []

    def look(data):
        given.append(
            {
                "input_history": data.input_history
                if isinstance(data.input_history, str)
                else list(data.input_history),
                "pre_handoff_items": [item.to_input_item() for item in data.pre_handoff_items],
                "new_items": [item.to_input_item() for item in data.new_items],
            }
        )
        return data

    billing = Agent(name="Billing agent", model=model)
    triage = Agent(name="Triage agent", model=model, handoffs=[handoff(billing, input_filter=look)])
    billing.handoffs.append(handoff(triage, input_filter=look))
    start = {"Billing agent": billing, "Triage agent": triage}[task["start"]]
    session = task.get("session") and SQLiteSession(task["session"]["id"], task["session"]["path"])
    said = [{"role": "user", "content": task["say"]}]
    items = task["say"] if session else task["items"] + said
    config = RunConfig(tracing_disabled=True)
    result = asyncio.run(Runner.run(start, items, session=session, run_config=config))
    json.dump(
        {
            "stored": asyncio.run(session.get_items()) if session else None,
            "items": result.to_input_list(),
            "seen": model.seen,
            "last_agent": result.last_agent.name,
            "handoff_data": given,
        },
        sys.stdout,
    )


main()
