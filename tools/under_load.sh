#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# under_load.sh LOOPS COMMAND...: runs a command beside so many loops that do nothing but compute. The
# exit status is the command's.
set -eu
loops=$1
shift
pids=
trap 'kill $pids 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM HUP
while [ "$loops" -gt 0 ]; do
    sh -c 'while :; do :; done' &
    pids="$pids $!"
    loops=$((loops - 1))
done
"$@"
