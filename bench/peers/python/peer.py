"""The reference, OpenAI's Agents SDK for Python. `peer.py CASE SECONDS [URL]` prints what a case cost."""

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path

from agents import (Agent, Model, ModelResponse, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner,
                    Usage, set_trace_processors, set_tracing_disabled)
from agents.extensions import handoff_filters
from agents.tracing import TracingProcessor
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

INPUT = "My bill is wrong"
SECOND = "You handle bills."
PARKED = 1000


class Script(Model):
    """Hands off along a chain of agents and then answers."""

    def __init__(self, handoffs, wait=None, keeps_requests=False):
        names = ["transfer_to_billing"] if handoffs == 1 else [f"transfer_to_agent_{n + 1}" for n in range(handoffs)]
        self.answers = [call(name) for name in names] + [message()]
        self.next, self.wait = 0, wait
        self.kept = [] if keeps_requests else None

    async def get_response(self, system_instructions, input, model_settings, tools, output_schema, handoffs, *rest, **named):
        if self.kept is not None:
            self.kept.append((input, tools, handoffs))
        if self.wait is None:
            answer = self.answers[self.next % len(self.answers)]
            self.next += 1
        else:
            answer = self.answers[0 if handoffs else -1]
            await (asyncio.sleep(0) if self.wait == "yields" or handoffs else asyncio.Event().wait())
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *rest, **named):
        raise NotImplementedError

    def forget(self):
        if self.kept is not None:
            self.kept.clear()


def call(name):
    return ResponseFunctionToolCall(type="function_call", id="fc_1", call_id=f"call_{name}", name=name, arguments="{}")


def message():
    text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
    return ResponseOutputMessage(type="message", id="msg_1", role="assistant", status="completed", content=[text])


class Memory(TracingProcessor):
    """Keeps spans in memory."""

    def __init__(self):
        self.spans = []

    def on_trace_start(self, trace):
        pass

    def on_trace_end(self, trace):
        self.spans.clear()

    def on_span_start(self, span):
        self.spans.append(span)

    def on_span_end(self, span):
        pass

    def shutdown(self):
        pass

    def force_flush(self):
        pass


class Case:
    def __init__(self, name, url):
        self.handoffs, self.items, self.at_once, self.wait = 1, 0, 1, None
        self.is_streamed = self.is_wire = False
        settings = {"tracing_disabled": True}
        model = None
        if name in ("triage", "cold", "parse_1000"):
            pass
        elif name == "triage_traced":
            settings = {}
            set_tracing_disabled(False)
            set_trace_processors([Memory()])
        elif name.startswith("chain_"):
            self.handoffs = int(name.removeprefix("chain_"))
        elif name.startswith("history_1000"):
            self.items = 1000
            if name.endswith("_without_tools"):
                settings["handoff_input_filter"] = handoff_filters.remove_all_tools
            elif name.endswith("_nested"):
                settings["nest_handoff_history"] = True
        elif name == "one_at_a_time":
            self.wait = "yields"
        elif name.startswith("at_once_"):
            self.wait, self.at_once = "yields", int(name.removeprefix("at_once_"))
        elif name.startswith("parked_"):
            self.wait, self.items = "parks", 20
        else:
            model = self.over_http(name, url)
        self.model = model or Script(self.handoffs, self.wait, name.endswith("_recorded"))
        last = "Billing" if self.handoffs == 1 else f"Agent {self.handoffs}"
        self.agent = Agent(name=last, instructions=SECOND)
        for n in reversed(range(self.handoffs)):
            self.agent = Agent(name=f"Agent {n}", instructions="Route.", handoffs=[self.agent])
        self.config = RunConfig(model=self.model, **settings)
        self.input = read(self.items) if self.items else INPUT

    def over_http(self, name, url):
        from openai import AsyncOpenAI

        protocol, form, items, at_once = name.split("_")
        self.is_wire, self.is_streamed = True, form == "streamed"
        self.items, self.at_once = int(items), int(at_once[1:])
        client = AsyncOpenAI(base_url=url, api_key="bench")
        kind = OpenAIResponsesModel if protocol == "responses" else OpenAIChatCompletionsModel
        return kind(model="m", openai_client=client)

    async def run(self, given=None):
        settings = {"run_config": self.config, "max_turns": self.handoffs + 2}
        if self.is_streamed:
            result = Runner.run_streamed(self.agent, self.input, **settings)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(self.agent, given or self.input, **settings)
        assert result.final_output
        if not self.is_wire:
            self.model.forget()


def text(items):
    return (Path(os.environ["BENCH_HISTORIES"]) / f"history-{items}.json").read_text()


def read(items):
    return json.loads(text(items))


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def batch(case, runs):
    """Does so many runs; CPU time in seconds and the time of each on the clock."""
    waits = []

    async def worker(count):
        for _ in range(count):
            start = time.monotonic()
            await case.run()
            waits.append(time.monotonic() - start)

    start = cpu()
    each = -(-runs // case.at_once)
    if case.is_wire:
        await asyncio.gather(*(worker(each) for _ in range(case.at_once)))
    elif case.wait:
        for _ in range(each):
            await asyncio.gather(*(asyncio.create_task(case.run()) for _ in range(case.at_once)))
    else:
        await worker(runs)
    return cpu() - start, waits


async def measured(name, case, seconds):
    if name == "cold":
        await case.run()
        return {"runs": 1}
    if name == "parse_1000":
        return parsed(seconds)
    if case.wait == "parks":
        return await parked(name, case)
    spent, _ = await batch(case, case.at_once)
    while spent < seconds / 10:
        more, _ = await batch(case, case.at_once)
        spent += more
    once, _ = await batch(case, case.at_once)
    runs = max(1, round(seconds / (once / case.at_once)))
    runs = -(-runs // case.at_once) * case.at_once
    spent, waits = await batch(case, runs)
    told = {"runs": runs, "cpu_s": spent}
    if case.is_wire:
        waits.sort()
        for label, percent in (("p50_us", 50), ("p99_us", 99)):
            told[label] = 1e6 * waits[min(len(waits) * percent // 100, len(waits) - 1)]
    return told


def parsed(seconds):
    given, runs, start = text(1000), 0, cpu()
    while cpu() - start < seconds:
        json.loads(given)
        runs += 1
    return {"runs": runs, "cpu_s": cpu() - start}


async def parked(name, case):
    async def park(runs):
        given = [read(20) if name == "parked_own" else None for _ in range(runs)]
        tasks = [asyncio.create_task(case.run(one)) for one in given]
        for _ in range(200):
            await asyncio.sleep(0)
        return tasks

    kept = await park(10)
    before = resident_bytes()
    kept += await park(PARKED)
    return {"runs": PARKED, "bytes": (resident_bytes() - before) // PARKED}


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main():
    name, seconds, *url = sys.argv[1:]
    case = Case(name, url[0] if url else None)
    print(json.dumps(asyncio.run(measured(name, case, float(seconds)))), flush=True)
    # Runs that are parked for ever need no goodbye.
    os._exit(0)


main()
