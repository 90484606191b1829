"""Records conformance cases with the Python reference. See README.md."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any

# The modules are beside this file; they leave no compiled files there.
sys.dont_write_bytecode = True

from differences import first_difference
from recording import record
from serializing import dump_line
from vocabulary import unknown_fields

FOLDER = Path(__file__).parent
CASES = FOLDER.parent / "cases"
RECORDED = CASES / "recorded"


def main() -> int:
    parser = argparse.ArgumentParser(prog="recorder", description=__doc__)
    parser.add_argument(
        "command",
        choices=("check", "record", "verify"),
        help="check: record the existing cases again and compare; record: write the cases of "
        "scenarios/ into cases/recorded/; verify: check that they are as written",
    )
    parser.add_argument("only", nargs="?", default="", help="a part of the names of cases or files")
    arguments = parser.parse_args()
    # The reference warns about the names of some agents and logs the errors that cases ask for.
    logging.disable(logging.CRITICAL)
    if arguments.command == "check":
        return check(arguments.only)
    return write(arguments.only, is_dry=arguments.command == "verify")


def check(only: str) -> int:
    """Records the cases again that were recorded elsewhere, and compares."""
    same = different = 0
    reasons: Counter[str] = Counter()
    for case in existing_cases():
        if only not in case["name"]:
            continue
        expected = case.pop("expect")
        unknown = unknown_fields(case)
        if "stages" in unknown:
            reasons["runs in stages: agents as tools, approvals"] += 1
            continue
        if unknown:
            reasons[f"unknown fields: {', '.join(sorted(unknown))}"] += 1
            continue
        # Through JSON, so that tuples are lists.
        difference = first_difference(expected, json.loads(json.dumps(record(case))))
        if difference:
            different += 1
            print(f"DIFFERENT {case['name']}: {difference}")
        else:
            same += 1
    for reason, count in reasons.most_common():
        print(f"{count} not recorded: {reason}")
    skipped = sum(reasons.values())
    print(f"{same} recorded identically, {different} different, {skipped} not expressible")
    return 1 if different else 0


def existing_cases() -> list[dict[str, Any]]:
    files = sorted((CASES / "runs").glob("*.json"))
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    for name in ("fuzz.json", "agent_tools.json", "approvals.json"):
        path = CASES / name
        if path.exists():
            cases.extend(json.loads(path.read_text(encoding="utf-8")))
    return cases


def write(only: str, *, is_dry: bool) -> int:
    """Writes the cases of each file of scenarios, or compares them with those written."""
    changed = count = 0
    names: set[str] = set()
    for path in sorted((FOLDER / "scenarios").glob("*.py")):
        if only not in path.stem:
            continue
        scenarios = importlib.import_module(f"scenarios.{path.stem}").SCENARIOS
        for scenario in scenarios:
            unknown = unknown_fields(scenario)
            if unknown or scenario["name"] in names:
                problem = f"unknown fields {sorted(unknown)}" if unknown else "there are two"
                sys.exit(f"{path.name}: {scenario['name']}: {problem}")
            names.add(scenario["name"])
        lines = [dump_line({**scenario, "expect": record(scenario)}) for scenario in scenarios]
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        count += len(lines)
        target = RECORDED / f"{path.stem}.json"
        before = target.read_text(encoding="utf-8") if target.exists() else "[]"
        if text == before:
            continue
        changed += 1
        if is_dry:
            print(f"DIFFERENT {target.name}: {changed_cases(before, text)}")
        else:
            RECORDED.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
    print(f"{count} cases, {changed} files {'differ' if is_dry else 'written'}")
    return 1 if is_dry and changed else 0


def changed_cases(before: str, after: str) -> str:
    """The first case that differs between two files, and where."""
    old = {case["name"]: case for case in json.loads(before)}
    for case in json.loads(after):
        difference = first_difference(old.get(case["name"]), case, case["name"])
        if difference:
            return difference
    return "a case was removed, or only the formatting differs"


if __name__ == "__main__":
    sys.exit(main())
