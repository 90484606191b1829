"""Realtime sessions of the reference, OpenAI's Agents SDK for Python, under load.

`realtime_peer.py SESSIONS FRAME_MS URL` talks to `bench talk_server` and prints what that cost, as `bench talk` does.
"""

import asyncio
import json
import sys
import time
from array import array

from agents import set_tracing_disabled
from agents.realtime import RealtimeAgent, RealtimeRunner

CONNECTING = 32


class Counts:
    def __init__(self):
        self.sent = 0
        self.handoffs = 0
        # Four bytes for each frame, so that measuring takes little memory.
        self.ages = array("I")


def stamped_frame(length):
    """A frame of audio of this many bytes, which begins with the time at which it was made."""
    return (time.time_ns() // 1000).to_bytes(8, "little") + bytes(length - 8)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


async def connect(url, limit):
    billing = RealtimeAgent(name="Billing", instructions="You handle bills.")
    desk = RealtimeAgent(name="Desk", instructions="Greet the caller.", handoffs=[billing])
    config = {"url": f"{url}/v1/realtime?model=gpt-realtime", "api_key": "sk-bench"}
    async with limit:
        session = await RealtimeRunner(desk).run(model_config=config)
        await session.enter()
    return session


async def speak(session, frame_ms, counts, is_over):
    length = frame_ms * 48
    start = time.monotonic()
    frames = 0
    while not is_over.is_set():
        # Late frames are made up for: the rate is that of speech.
        await asyncio.sleep(max(0, start + frames * frame_ms / 1000 - time.monotonic()))
        await session.send_audio(stamped_frame(length))
        counts.sent += 1
        frames += 1


async def talk(session, delay, frame_ms, counts):
    await asyncio.sleep(delay)
    await session.send_message("Hello")
    is_over = asyncio.Event()
    speaking = asyncio.create_task(speak(session, frame_ms, counts, is_over))
    async for event in session:
        if event.type == "audio":
            made = int.from_bytes(event.audio.data[:8], "little")
            counts.ages.append(time.time_ns() // 1000 - made)
        elif event.type == "handoff":
            counts.handoffs += 1
        elif event.type == "error":
            raise RuntimeError(str(event.error))
        elif event.type == "agent_end" and event.agent.name == "Billing":
            break
    is_over.set()
    await speaking
    await session.close()


def percentile(ages, percent):
    return ages[min(len(ages) * percent // 100, len(ages) - 1)] if ages else 0


async def main(sessions, frame_ms, url):
    set_tracing_disabled(True)
    before = resident_bytes()
    cpu = time.process_time()
    limit = asyncio.Semaphore(CONNECTING)
    opened = await asyncio.gather(*(connect(url, limit) for _ in range(sessions)))
    connect_cpu = time.process_time() - cpu
    counts = Counts()
    start, cpu = time.monotonic(), time.process_time()
    calls = [
        asyncio.create_task(talk(session, frame_ms / 1000 * number / sessions, frame_ms, counts))
        for number, session in enumerate(opened)
    ]
    talking = asyncio.gather(*calls)
    peak = before
    while not talking.done():
        await asyncio.wait([talking], timeout=0.5)
        peak = max(peak, resident_bytes())
    await talking
    ages = sorted(counts.ages)
    print(json.dumps({
        "sessions": sessions,
        "seconds": time.monotonic() - start,
        "cpu_s": time.process_time() - cpu,
        "connect_cpu_s": connect_cpu,
        "bytes": (peak - before) // sessions,
        "frames_sent": counts.sent,
        "frames_received": len(ages),
        "heard": {"p50_us": percentile(ages, 50), "p99_us": percentile(ages, 99), "worst_us": ages[-1] if ages else 0},
        "handoffs": counts.handoffs,
        "dropped_events": 0,
    }))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
