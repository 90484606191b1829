#!/bin/sh
# Adds a line to a file, once for each key: ledger.sh FILE KEY TEXT
set -eu
touch "$1"
if ! cut -f 1 "$1" | grep -qxF -- "$2"; then
    printf '%s\t%s\n' "$2" "$3" >> "$1"
fi
echo "noted: $3"
