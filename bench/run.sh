#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what the tenant library adds to calls and to starting processes:
#	bench/run.sh [--gpu] [--write] [--rounds N] BUILD
# --gpu measures on this machine's card instead of the simulated node; --write keeps the table in
# bench/results/.
set -eu
exec python3 "$(dirname "$0")/compare.py" "$@"
