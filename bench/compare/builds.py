"""What a user pays before the first run: compile time, dependencies, the size of a program."""

import os
import re
import subprocess
import tempfile
import time

from . import programs


def measured():
    programs.say("compile times")
    build = ["cargo", "build", "--locked", "--release", "--quiet", "--package"]
    for package_name in ("bench", "switchboard-cli"):
        subprocess.run([*build, package_name], cwd=programs.ROOT, check=True)
    return {
        "minimal_program_bytes": stripped_size(programs.TARGET / "release/minimal"),
        "program_bytes": stripped_size(programs.TARGET / "release/switchboard"),
        "switchboard": package("switchboard"),
        "switchboard-core": package("switchboard-core"),
    }


def package(name):
    tree = ["cargo", "tree", "--locked", "--package", name, "--edges", "normal,build", "--prefix", "none"]
    told = subprocess.run(tree, cwd=programs.ROOT, check=True, capture_output=True, text=True).stdout
    # `(*)` marks what was listed before.
    names = {re.sub(r" \(.*", "", line) for line in told.splitlines() if line.strip()}
    with tempfile.TemporaryDirectory(dir=programs.SCRATCH) as scratch:
        build = ["cargo", "build", "--locked", "--release", "--quiet", "--package", name, "--lib"]
        start = time.monotonic()
        usage_before = os.times()
        subprocess.run(build, cwd=programs.ROOT, check=True, env=os.environ | {"CARGO_TARGET_DIR": scratch})
        usage = os.times()
        cpu = usage.children_user + usage.children_system - usage_before.children_user - usage_before.children_system
        return {"dependencies": len(names) - 1, "release_wall_s": time.monotonic() - start, "release_cpu_s": cpu}


def stripped_size(program):
    with tempfile.NamedTemporaryFile(dir=programs.SCRATCH) as stripped:
        subprocess.run(["strip", "-o", stripped.name, program], check=True)
        return os.path.getsize(stripped.name)
