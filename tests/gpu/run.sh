#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests that need a real GPU:
#	tests/gpu/run.sh BUILD [SECTION...]
# BUILD is a build folder; sections are doors, quota, processes, books, compute, mps, foreign, evict, hostile-memory, hostile-time,
# smi, view, frameworks, many, abi, names, plugin; all of them where none is named. Ends with a line "N passed, N failed, N
# skipped".
# With --sim the same on the simulated node, to try the script itself.
set -eu
exec python3 "$(dirname "$0")/run.py" "$@"
