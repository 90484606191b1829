"""Runs the programs, one after another and again, and gathers what they print."""

import json
import os
import platform
import resource
import subprocess
import time
from contextlib import contextmanager

from . import builds, cases, programs

# A measurement that takes longer is given up.
LIMIT_SECONDS = 120


def everything(only, wanted, rounds, seconds, with_builds, save):
    """Measures the cases that are wanted with these programs; all of them where `wanted` is None.

    What is measured so far is saved after each case, so that a run that is stopped leaves something.
    """
    chosen = [case for _, group in cases.groups() for case in group if is_wanted(case[0], wanted)]
    samples = {}
    results = {"machine": machine(), "rounds": rounds, "seconds": seconds, "samples": samples}
    if wanted is None:
        results["cold_start"] = cold_starts(only, rounds)
        if with_builds:
            results["builds"] = builds.measured()
    with provider() as url:
        for number in range(rounds):
            for name, label, peers in chosen:
                programs.say(f"round {number + 1} of {rounds}: {label}")
                # Interleaved: what slows the machine down for a while slows all of them down.
                for program in ["switchboard", *peers]:
                    if program in only and (program, name) not in cases.TOO_LONG:
                        sample = run(program, name, seconds, url)
                        samples.setdefault(name, {}).setdefault(program, []).append(sample)
                results["rounds"] = number + 1
                save(results)


def is_wanted(name, wanted):
    return wanted is None or any(name.startswith(beginning) for beginning in wanted)


def run(program, case, seconds, url):
    """What one measurement gave: a dictionary, with an `error` where it failed."""
    command = [*programs.command(program), case, str(seconds), url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment())
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {LIMIT_SECONDS} seconds"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["failed"])[-1]
        programs.say(f"{program} {case}: {last}")
        return {"error": last}
    return json.loads(done.stdout.strip().splitlines()[-1])


def environment():
    """The environment of the programs: no proxy on the way to this machine, no telemetry."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"OPENAI_API_KEY": "bench", "BENCH_HISTORIES": str(programs.SCRATCH)}


@contextmanager
def provider():
    """The provider that runs over HTTP ask: in a process of its own, whose CPU time is not counted."""
    command = [*programs.command("switchboard"), "serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def cold_starts(only, rounds):
    """CPU and wall time from the start of a process to the end of its first run."""
    starts = {}
    for _ in range(rounds):
        for program in programs.NAMES:
            if program in only:
                starts.setdefault(program, []).append(cold_start(program))
    return starts


def cold_start(program):
    own = [str(programs.TARGET / "release/minimal")]
    command = own if program == "switchboard" else [*programs.command(program), "cold", "0"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "wall_s": wall}


def machine():
    """What it was measured on, as far as it matters for figures."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
    node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    return {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "system": platform.system(), "architecture": platform.machine(),
            "rustc": rustc, "node": node, "python": platform.python_version()}
