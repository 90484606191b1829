"""The team of `bench team_server` served with FastAPI and the reference, OpenAI's Agents SDK for Python.

`service_peer.py PIECES PAUSE_MS PORT` answers `POST /api/conversations/ID/messages` with the same events, as far as the callers look at
them. Conversations are kept in memory.
"""

import asyncio
import json
import sys
import time

import uvicorn
from agents import Agent, Model, ModelResponse, RunConfig, Runner, set_tracing_disabled
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from openai.types.responses import (Response, ResponseCompletedEvent, ResponseFunctionToolCall, ResponseOutputMessage,
                                    ResponseOutputText, ResponseTextDeltaEvent)

PIECES, PAUSE, PORT = int(sys.argv[1]), int(sys.argv[2]) / 1000, int(sys.argv[3])


class PacedModel(Model):
    """Hands off, and answers at a fixed pace."""

    async def get_response(self, *rest, **named) -> ModelResponse:
        raise NotImplementedError

    async def stream_response(self, system_instructions, input, model_settings, tools, output_schema, handoffs, *rest, **named):
        if handoffs:
            output = ResponseFunctionToolCall(type="function_call", id="fc_1", call_id=f"call_{time.time_ns()}",
                                              name="transfer_to_billing", arguments="{}")
        else:
            for number in range(PIECES):
                await asyncio.sleep(PAUSE)
                yield ResponseTextDeltaEvent(type="response.output_text.delta", item_id="msg_1", output_index=0, content_index=0,
                                             sequence_number=number, delta=f"@{time.time_ns() // 1000};", logprobs=[])
            text = ResponseOutputText(type="output_text", text="word " * PIECES, annotations=[])
            output = ResponseOutputMessage(type="message", id="msg_1", role="assistant", status="completed", content=[text])
        response = Response(id="resp_1", created_at=0, model="paced", object="response", output=[output], parallel_tool_calls=True,
                            tool_choice="auto", tools=[])
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=PIECES)


model = PacedModel()
billing = Agent(name="Billing", model=model)
triage = Agent(name="Triage", model=model, handoffs=[billing])
config = RunConfig(tracing_disabled=True)
conversations = {}
app = FastAPI()


def event(name, **fields):
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"


@app.post("/api/conversations/{name}/messages")
async def message(name: str, request: Request):
    words = (await request.json())["input"]
    agent, items = conversations.get(name, (triage, []))

    async def events():
        result = Runner.run_streamed(agent, [*items, {"role": "user", "content": words}], run_config=config)
        async for told in result.stream_events():
            if told.type == "raw_response_event" and told.data.type == "response.output_text.delta":
                yield event("text_delta", agent=result.current_agent.name, text=told.data.delta)
            elif told.type == "run_item_stream_event" and told.name == "handoff_occured":
                yield event("handoff", to=result.current_agent.name)
        conversations[name] = (result.last_agent, result.to_input_list())
        yield event("run_finished", output=result.final_output)

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    set_tracing_disabled(True)
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning", access_log=False)
