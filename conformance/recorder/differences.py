"""Finds the first difference between two JSON values."""

from __future__ import annotations

import json
from typing import Any


def first_difference(expected: Any, got: Any, path: str = "expect") -> str | None:
    """The path of the first difference, with both values, or None if there is none."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in [*expected, *(name for name in got if name not in expected)]:
            if name not in expected or name not in got:
                side = "not recorded again" if name in expected else "new"
                return f"{path}.{name}: {side}"
            found = first_difference(expected[name], got[name], f"{path}.{name}")
            if found:
                return found
        return None
    if isinstance(expected, list) and isinstance(got, list):
        for index, (left, right) in enumerate(zip(expected, got, strict=False)):
            found = first_difference(left, right, f"{path}[{index}]")
            if found:
                return found
        if len(expected) == len(got):
            return None
        return f"{path}: {len(expected)} entries, now {len(got)}"
    if type(expected) is type(got) and expected == got:
        return None
    return f"{path}: {short(expected)}, now {short(got)}"


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"
