#!/bin/sh
# Records docs/demo.svg: what `switchboard` shows without arguments, at the speed of reading.
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet -p switchboard-cli -p terminal
built=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
exec "$built/terminal-record" --columns 100 --rows 30 --title switchboard --out docs/demo.svg \
    -- "$built/switchboard" demo --slowly
