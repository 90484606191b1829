"""The programs that are compared, and how they get here.

Each does one case for some seconds of CPU time and prints a line of JSON: `PROGRAM CASE SECONDS [URL]`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SCRATCH = TARGET / "bench-peers"

PYTHON_PACKAGE = "openai-agents==0.24.0"
DBOS_PACKAGES = ["dbos-openai-agents==0.3.0", "dbos==3.4.0"]
FASTAPI_PACKAGES = ["fastapi==0.162.7", "uvicorn[standard]==0.54.0"]
NODE_PACKAGE = "@openai/agents@0.20.0"

# As tables name them, with the versions that are installed.
NAMES = {
    "switchboard": "Switchboard",
    "openai-agents-rs": "openai-agents 0.1.1 (Rust)",
    "rig": "rig-core 0.46",
    "node": "@openai/agents 0.20 (Node)",
    "python": "openai-agents 0.24 (Python)",
}


def say(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def command(name):
    """The program of this name, without its arguments."""
    return {
        "switchboard": [str(TARGET / "release/bench")],
        "openai-agents-rs": [str(SCRATCH / "rust/release/peer-openai-agents")],
        "rig": [str(SCRATCH / "rust/release/peer-rig")],
        "node": ["node", str(SCRATCH / "node/peer.mjs")],
        "python": [str(SCRATCH / "python/bin/python"), str(BENCH / "peers/python/peer.py")],
    }[name]


def install(only):
    """Builds and installs what these programs need; what is there already stays."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    build_own()
    if {"rig", "openai-agents-rs"} & set(only):
        build_rust_peers()
    if "python" in only:
        install_python()
    if "node" in only:
        install_node()
    for items in (20, 1000):
        history = subprocess.run([*command("switchboard"), "history", str(items)], check=True, stdout=subprocess.PIPE)
        (SCRATCH / f"history-{items}.json").write_bytes(history.stdout)


def build_for_counts():
    """The program in the profile of the tests, which ./test has built already."""
    say("building Switchboard")
    features = ["--features", "switchboard/sqlite,switchboard/team-files"]
    subprocess.run(["cargo", "build", "--locked", "--workspace", "--bins", *features], cwd=ROOT, check=True)
    return [str(TARGET / "debug/bench")]


def build_own(options=()):
    say("building Switchboard")
    subprocess.run(["cargo", "build", "--locked", "--release", "--package", "bench", *options], cwd=ROOT, check=True)


def build_rust_peers():
    say("building the peers in Rust")
    # rig declares a newer compiler than it needs.
    build = ["cargo", "build", "--locked", "--release", "--ignore-rust-version"]
    env = os.environ | {"CARGO_TARGET_DIR": str(SCRATCH / "rust")}
    subprocess.run(build, cwd=BENCH / "peers/rust", env=env, check=True)


def install_python():
    python = SCRATCH / "python/bin/python"
    found = python.exists() and subprocess.run([python, "-c", "import agents"], stderr=subprocess.DEVNULL)
    if not found or found.returncode != 0:
        say(f"installing {PYTHON_PACKAGE}")
        subprocess.run([sys.executable, "-m", "venv", SCRATCH / "python"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PYTHON_PACKAGE], check=True)


def install_fastapi():
    """What the reference needs to be a service."""
    python = SCRATCH / "python/bin/python"
    found = subprocess.run([python, "-c", "import fastapi, uvicorn"], stderr=subprocess.DEVNULL)
    if found.returncode != 0:
        say("installing FastAPI")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *FASTAPI_PACKAGES], check=True)


def install_dbos():
    """What the reference needs to run on DBOS."""
    python = SCRATCH / "python/bin/python"
    found = subprocess.run([python, "-c", "import dbos_openai_agents"], stderr=subprocess.DEVNULL)
    if found.returncode != 0:
        say("installing DBOS")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *DBOS_PACKAGES], check=True)


def install_node():
    # Modules are looked for beside the program, so the program goes beside them.
    folder = SCRATCH / "node"
    folder.mkdir(exist_ok=True)
    shutil.copy(BENCH / "peers/node/peer.mjs", folder)
    if not (folder / "node_modules/@openai/agents").exists():
        say(f"installing {NODE_PACKAGE}")
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", NODE_PACKAGE]
        subprocess.run(install, cwd=folder, check=True)
