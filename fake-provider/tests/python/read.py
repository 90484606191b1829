"""Reads answers of the fake provider with the official client, whole and streamed.

Reads {"url": ..., "key": "responses" | "chat"} from standard input, where the key also names the
protocol, and writes {"plain": ..., "streamed": ..., "usage": [..., ...]}: what the client made of the
two answers. Everything is checked against the client's types, which it does not do by itself.
"""

import json
import sys
import typing as t

from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

EVENTS = {
    t.get_args(kind.model_fields["type"].annotation)[0]
    for kind in t.get_args(t.get_args(ResponseStreamEvent)[0])
}


def items(response):
    Response.model_validate(response.to_dict())
    return [item.to_dict() for item in response.output]


def tokens(usage, names=("input", "output")):
    data = usage.to_dict()
    first, second = names
    return [
        data[f"{first}_tokens"],
        data[f"{first}_tokens_details"]["cached_tokens"],
        data[f"{second}_tokens"],
        data[f"{second}_tokens_details"]["reasoning_tokens"],
    ]


def responses(client):
    asked = {"model": "gpt-test", "input": "Hi"}
    plain = client.responses.create(**asked)
    done = []
    for number, event in enumerate(client.responses.create(**asked, stream=True)):
        type(event).model_validate(event.to_dict())
        assert event.type in EVENTS, event.type
        assert event.sequence_number == number
        if event.type == "response.output_item.done":
            done.append(event.item.to_dict())
    assert event.type == "response.completed"
    streamed = items(event.response)
    assert streamed == done
    usage = [tokens(plain.usage), tokens(event.response.usage)]
    return {"plain": items(plain), "streamed": streamed, "usage": usage}


def message(completion, reasoning):
    choice = completion.choices[0]
    return {
        "content": choice.message.content,
        "reasoning": reasoning,
        "finish_reason": choice.finish_reason,
        "calls": [
            [call.id, call.function.name, call.function.arguments]
            for call in choice.message.tool_calls
        ],
    }


def chat(client):
    asked = {"model": "gpt-test", "messages": [{"role": "user", "content": "Hi"}]}
    plain = client.chat.completions.create(**asked)
    ChatCompletion.model_validate(plain.to_dict())
    reasoning = ""
    options = {"stream_options": {"include_usage": True}}
    with client.chat.completions.stream(**asked, **options) as stream:
        for event in stream:
            if event.type == "chunk":
                ChatCompletionChunk.model_validate(event.chunk.to_dict())
                for choice in event.chunk.choices:
                    reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        streamed = stream.get_final_completion()
    names = ("prompt", "completion")
    return {
        "plain": message(plain, plain.choices[0].message.reasoning_content),
        "streamed": message(streamed, reasoning),
        "usage": [tokens(plain.usage, names), tokens(streamed.usage, names)],
    }


def main():
    task = json.load(sys.stdin)
    client = OpenAI(base_url=task["url"], api_key=task["key"], max_retries=0)
    read = {"responses": responses, "chat": chat}[task["key"]]
    json.dump(read(client), sys.stdout)


main()
