"""Checks the service's own API against its OpenAPI document with schemathesis. Usage: check_api.py URL"""

import subprocess
import sys
import tempfile
from pathlib import Path

url = sys.argv[1]
schemathesis = Path(sys.executable).with_name("schemathesis")
command = [
    str(schemathesis),
    "run",
    f"{url}/api/openapi.json",
    "--url", url,
    "--max-examples", "25",
    "--request-timeout", "30",
    "--seed", "7",
    "--no-color",
    "--generation-database", "none",
    # A stream without an end.
    "--exclude-path", "/api/events",
]
# It leaves files in its working directory.
with tempfile.TemporaryDirectory() as folder:
    sys.exit(subprocess.run(command, check=False, cwd=folder).returncode)
