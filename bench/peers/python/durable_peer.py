"""The conversation of `bench durable` with the reference, OpenAI's Agents SDK for Python, on DBOS.

`durable_peer.py POSTGRES_URL` does it whenever it reads a line `AT_ONCE SECONDS`, and prints a line of JSON when it is ready and one for
each measurement. The conversation is not stored beside the steps of its workflow.
"""

import asyncio
import json
import logging
import os
import sys
import time
import uuid

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool, set_tracing_disabled
from dbos import DBOS, DBOSConfig, SetWorkflowID
from dbos_openai_agents import DBOSRunner
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

MESSAGE = "I was charged twice for order 1047. Please look into it and pay one of them back."
ANSWER = "You were charged twice. I have paid 49.90 back; it arrives within three days. Is there anything else?"
OUTPUT = "Order 1047 of 3 March: two charges of 49.90 to the card ending in 4411, both settled on 5 March."
WARM_UP = 16


class InstantModel(Model):
    """Looks at the order, hands off, reads and pays at the same time, and answers."""

    async def get_response(self, system_instructions, input, model_settings, tools, output_schema, handoffs, *rest, **named):
        outputs = sum(1 for item in input if item.get("type") == "function_call_output")
        number = len(input)

        def call(name, arguments='{"order": 1047}'):
            return ResponseFunctionToolCall(type="function_call", id=f"fc_{number}_{name}", call_id=f"call_{number}_{name}",
                                            name=name, arguments=arguments)

        if outputs == 0:
            output = [call("look")]
        elif handoffs:
            output = [call("transfer_to_billing", "{}")]
        elif outputs == 2:
            output = [call("charges"), call("refund")]
        else:
            text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
            output = [ResponseOutputMessage(type="message", id=f"msg_{number}", role="assistant", status="completed", content=[text])]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    async def stream_response(self, *rest, **named):
        raise NotImplementedError


@function_tool
@DBOS.step()
async def look(order: int) -> str:
    """Works on an order."""
    return OUTPUT


@function_tool
@DBOS.step()
async def charges(order: int) -> str:
    """Works on an order."""
    return OUTPUT


@function_tool
@DBOS.step()
async def refund(order: int) -> str:
    """Works on an order."""
    return OUTPUT


model = InstantModel()
billing = Agent(name="Billing", instructions="You handle bills.", model=model, tools=[charges, refund])
triage = Agent(name="Triage", instructions="Route the customer.", model=model, tools=[look], handoffs=[billing])


@DBOS.workflow()
async def conversation(message: str) -> str:
    result = await DBOSRunner.run(triage, message, run_config=RunConfig(tracing_disabled=True))
    return result.final_output


async def once(latencies):
    begun = time.perf_counter()
    with SetWorkflowID(str(uuid.uuid4())):
        answer = await conversation(MESSAGE)
    assert answer == ANSWER, answer
    latencies.append(time.perf_counter() - begun)


async def measure(at_once, seconds):
    latencies = []
    cpu, begun = time.process_time(), time.perf_counter()

    async def repeat():
        while time.perf_counter() - begun < seconds:
            await once(latencies)

    await asyncio.gather(*(repeat() for _ in range(at_once)))
    latencies.sort()
    percentile = lambda percent: 1e6 * latencies[min(len(latencies) * percent // 100, len(latencies) - 1)]
    return {"runs": len(latencies), "cpu_s": time.process_time() - cpu, "seconds": time.perf_counter() - begun,
            "p50_us": percentile(50), "p99_us": percentile(99)}


async def main():
    for _ in range(WARM_UP):
        await once([])
    steps = len(await DBOS.list_workflow_steps_async((await DBOS.list_workflows_async(limit=1))[0].workflow_id))
    print(json.dumps({"steps": steps}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        at_once, seconds = line.split()
        print(json.dumps(await measure(int(at_once), float(seconds))), flush=True)


if __name__ == "__main__":
    set_tracing_disabled(True)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    url = sys.argv[1].replace("postgres://", "postgresql://", 1)
    config: DBOSConfig = {"name": "bench-durable", "system_database_url": url.rsplit("/", 1)[0] + "/bench_dbos",
                          "run_admin_server": False, "log_level": "ERROR"}
    DBOS(config=config)
    DBOS.launch()
    logging.getLogger("openai.agents").setLevel(logging.ERROR)
    asyncio.run(main())
