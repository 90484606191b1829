"""Instructions per run, by callgrind: a figure that a busy machine does not change.

`counts.json` has the expected counts. Another compiler makes other instructions, so they hold for the one they
were counted with; allocations are checked by `cargo test -p bench` with any.
"""

import json
import re
import shutil
import subprocess
import tempfile

from . import programs

FILE = programs.BENCH / "counts.json"
TOLERANCE = 1.05

# Each case, and how many runs of it are counted.
RUNS = {
    "triage": 200,
    "triage_traced": 100,
    "chain_10": 40,
    "chain_100": 4,
    "chain_200": 2,
    "chain_200_recorded": 2,
    "history_1000": 40,
    "history_1000_without_tools": 10,
    "history_1000_redacted": 4,
    "history_1000_redacted_first": 1,
    "history_1000_nested": 2,
    "history_1000_recorded": 40,
    "serialise_1000": 4,
    "parse_1000": 2,
}


def check(write, program=None):
    """Counts, and compares with the expected counts or writes them. Returns the exit code.

    The program is built unless one is given.
    """
    if not shutil.which("valgrind"):
        programs.say("no valgrind here: instructions are not counted")
        return 1 if write else 0
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    known = json.loads(FILE.read_text())
    if not write and known.get("rustc") != rustc:
        programs.say(f"counts.json is of {known.get('rustc')}, this is {rustc}: instructions are not compared")
        return 0
    program = [program] if program else programs.build_for_counts()
    counted = {case: instructions(program, case, runs) for case, runs in RUNS.items()}
    if write:
        FILE.write_text(json.dumps(known | {"rustc": rustc, "instructions": counted}, indent=2) + "\n")
        return 0
    more = 0
    for case, count in counted.items():
        usual = known["instructions"].get(case)
        change = (count / usual - 1) * 100 if usual else float("inf")
        is_more = not usual or count > usual * TOLERANCE
        more += is_more
        print(f"{case:<28} {count:>12,} instructions {change:>+7.1f} %{'  too many' if is_more else ''}")
    if more:
        print("Where that is meant: bench/run --write-counts")
        return 1
    return 0


def instructions(program, case, runs):
    """Instructions of one run: what twice as many runs take more, so that starting does not count."""
    return round((total(program, case, 2 * runs) - total(program, case, runs)) / runs)


def total(program, case, runs):
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *program, "once", case, str(runs)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", told).group(1))
