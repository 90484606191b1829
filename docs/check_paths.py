#!/usr/bin/env python3
"""Checks that every source file that ARCHITECTURE.md names exists."""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
base = root
missing = []
for line in (root / "ARCHITECTURE.md").read_text().splitlines():
    if within := re.match(r"Within `([\w/-]+/src)`", line):
        base = root / "crates" / within.group(1)
    elif line.startswith("## "):
        base = root / "crates/switchboard-core/src"
    for name in re.findall(r"`([\w/.-]+(?:\.rs|/))`", line):
        name = name.removesuffix("{}")
        places = [base, root, root / "crates", root / "crates/switchboard-core", root / "crates/switchboard-models/src/wire"]
        if not any((place / name).exists() for place in places):
            missing.append(name)
if missing:
    sys.exit("ARCHITECTURE.md names files that do not exist: " + ", ".join(missing))
