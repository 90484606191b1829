"""Talks to a team with the official Python client and with the reference SDK.

Usage: openai_clients.py URL. The server's team is the one of tests/service/support.rs. Every response and every event
is validated against the models of the Open Responses specification.
"""

import asyncio
import contextlib
import io
import json
import sys
import urllib.request
from pathlib import Path

import openresponses_types.types as spec
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
)
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI

URL = sys.argv[1]
BASE = f"{URL}/v1"
client = OpenAI(base_url=BASE, api_key="none", max_retries=0)

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
CHAT_WEATHER = {"type": "function", "function": {k: v for k, v in WEATHER.items() if k != "type"}}

EVENTS = {
    "response.created": spec.ResponseCreatedStreamingEvent,
    "response.in_progress": spec.ResponseInProgressStreamingEvent,
    "response.completed": spec.ResponseCompletedStreamingEvent,
    "response.failed": spec.ResponseFailedStreamingEvent,
    "response.incomplete": spec.ResponseIncompleteStreamingEvent,
    "response.output_item.added": spec.ResponseOutputItemAddedStreamingEvent,
    "response.output_item.done": spec.ResponseOutputItemDoneStreamingEvent,
    "response.content_part.added": spec.ResponseContentPartAddedStreamingEvent,
    "response.content_part.done": spec.ResponseContentPartDoneStreamingEvent,
    "response.output_text.delta": spec.ResponseOutputTextDeltaStreamingEvent,
    "response.output_text.done": spec.ResponseOutputTextDoneStreamingEvent,
    "response.function_call_arguments.delta": spec.ResponseFunctionCallArgumentsDeltaStreamingEvent,
    "response.function_call_arguments.done": spec.ResponseFunctionCallArgumentsDoneStreamingEvent,
}
TERMINAL = {"response.completed", "response.failed", "response.incomplete"}


def check_equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def raw_events(body):
    """The events of a streamed response as they are on the wire, each validated."""
    request = urllib.request.Request(
        f"{BASE}/responses",
        json.dumps({"stream": True, **body}).encode(),
        {"content-type": "application/json"},
    )
    events = []
    with urllib.request.urlopen(request, timeout=60) as response:
        name = None
        for line in response.read().decode().splitlines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                check_equal(event["type"], name)
                EVENTS[name].model_validate(event)
                events.append(event)
    return events


def events_follow_the_specification():
    bodies = [
        {"model": "support", "input": "hello"},
        {"model": "support", "input": "my bill"},
        {"model": "support", "input": "weather for my bill", "tools": [WEATHER]},
        {"model": "support", "input": "fail"},
        {"model": "support", "input": "a person"},
    ]
    for body in bodies:
        events = raw_events(body)
        types = [event["type"] for event in events]
        check_equal(types[:2], ["response.created", "response.in_progress"])
        check_equal(sum(kind == "response.created" for kind in types), 1)
        check_equal([kind for kind in types if kind in TERMINAL], types[-1:])
        check_equal([event["sequence_number"] for event in events], list(range(len(events))))
        added = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
        check_equal(added, list(range(len(added))))
        last = events[-1]["response"]
        check_equal(len(last["output"]), len(added))
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        check_equal(done, last["output"])


def responses_plain_and_streamed():
    first = client.responses.create(model="support", input="my bill")
    check_equal(first.status, "completed")
    check_equal(first.output_text, "Billing: you said my bill")
    spec.ResponseResource.model_validate(first.model_dump())
    second = client.responses.create(model="support", input="two", previous_response_id=first.id)
    check_equal(second.output_text, "Billing: you said two")
    with client.responses.stream(model="support", input="three", previous_response_id=second.id) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    check_equal((text, final.output_text), ("Billing: you said three",) * 2)
    check_equal(client.responses.retrieve(final.id).output_text, text)
    items = client.responses.input_items.list(final.id)
    check_equal(items.data[0].content[0].text, "three")
    client.responses.delete(final.id)
    try:
        client.responses.retrieve(final.id)
        raise AssertionError("the response is still there")
    except NotFoundError:
        pass


def responses_with_tools():
    first = client.responses.create(model="support", input="weather for my bill", tools=[WEATHER])
    call = first.output[-1]
    check_equal((call.type, call.name, json.loads(call.arguments)), ("function_call", "get_weather", {"city": "Oslo"}))
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    second = client.responses.create(
        model="support", input=[output], previous_response_id=first.id, tools=[WEATHER]
    )
    check_equal(second.output_text, "Billing: I got rain.")


def chat_plain_and_streamed():
    messages = [{"role": "user", "content": "my bill"}]
    answer = client.chat.completions.create(model="support", messages=messages)
    check_equal(answer.choices[0].message.content, "Billing: you said my bill")
    check_equal(answer.choices[0].finish_reason, "stop")
    messages += [answer.choices[0].message, {"role": "user", "content": "a second bill"}]
    stream = client.chat.completions.create(
        model="support", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    text, usage, reasons = "", None, []
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
        usage = chunk.usage or usage
    check_equal((text, reasons), ("Billing: you said a second bill", ["stop"]))
    assert usage.total_tokens == 15, usage


def chat_with_tools():
    for streamed in (False, True):
        messages = [{"role": "user", "content": "weather for my bill"}]
        if streamed:
            with client.chat.completions.stream(model="support", messages=messages, tools=[CHAT_WEATHER]) as stream:
                for _ in stream:
                    pass
                message = stream.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(model="support", messages=messages, tools=[CHAT_WEATHER])
            check_equal(answer.choices[0].finish_reason, "tool_calls")
            message = answer.choices[0].message
        call = message.tool_calls[0]
        check_equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))
        messages += [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.function.name, "arguments": call.function.arguments},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        answer = client.chat.completions.create(model="support", messages=messages, tools=[CHAT_WEATHER])
        check_equal(answer.choices[0].message.content, "Billing: I got rain.")


def models_and_errors():
    names = [model.id for model in client.models.list()]
    check_equal(names, ["support", "support/Triage", "support/Billing", "support/Ann"])
    check_equal(client.models.retrieve("support").id, "support")
    check_equal(client.responses.create(model="support/Billing", input="hi").output_text, "Billing: you said hi")
    for wrong, error in ((dict(model="gpt-5", input="x"), NotFoundError), (dict(model="support", input=""), BadRequestError)):
        try:
            client.responses.create(**wrong)
            raise AssertionError("no error")
        except error as caught:
            assert caught.body["message"], caught


async def the_reference_uses_a_team_as_its_model():
    @function_tool
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    other = AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0)
    for model in (OpenAIResponsesModel("support", other), OpenAIChatCompletionsModel("support", other)):
        agent = Agent(name="Outer", model=model, tools=[get_weather])
        result = await Runner.run(agent, "weather for my bill")
        check_equal(result.final_output, "Billing: I got rain in Oslo.")
        result = await Runner.run(agent, result.to_input_list() + [{"role": "user", "content": "thank you"}])
        check_equal(result.final_output.split(":")[1], " you said thank you")
        streamed = Runner.run_streamed(agent, "weather for my bill")
        deltas = []
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                deltas.append(event.data.delta)
        check_equal(streamed.final_output, "Billing: I got rain in Oslo.")
        check_equal("".join(deltas), streamed.final_output)
        # The team may also be one agent among others.
        triage = Agent(name="Hello", model=model, model_settings=ModelSettings(temperature=0.5))
        check_equal((await Runner.run(triage, "hi")).final_output, "Triage: you said hi")


def run_the_guide():
    """Runs the clients' code in docs/service.md, one block after the other."""
    guide = (Path(__file__).parents[4] / "docs" / "service.md").read_text()
    blocks = [
        guide.split(f"\n## {title}\n")[1].split("```python\n")[1].split("```")[0]
        for title in ("OpenAI's Responses", "Chat Completions")
    ]
    names = {}
    printed = []
    for code in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code.replace("http://127.0.0.1:8080", URL), "docs/service.md", "exec"), names)
        printed.append(out.getvalue())
    check_equal(printed, ["Billing: you said three", "Billing: you said my bill\n"])


events_follow_the_specification()
responses_plain_and_streamed()
responses_with_tools()
chat_plain_and_streamed()
chat_with_tools()
models_and_errors()
asyncio.run(the_reference_uses_a_team_as_its_model())
run_the_guide()
print("all clients are content")
