#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the programs for Kubernetes cost, by all benchmarks of them, one after the other: bench/kube.sh BUILD [NAME...]
# BUILD was built with tests. A benchmark that cannot run here is left out, with the reason. NAMEs: filter size pods plugin monitor.
set -u
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$(readlink -f "${1:?a build folder with tests}")
shift
wanted=${*:-filter size plugin monitor pods}
failed=0

# measure NAME SENTENCE PROGRAM COMMAND...: where PROGRAM was built.
measure() {
    [[ " $wanted " == *" $1 "* ]] || return 0
    printf '\n%s: %s\n' "$1" "$2"
    if [ ! -x "$build/$3" ]; then
        echo "skipped: $build has no $3; its libraries were missing when it was configured (make setup-kube)"
    elif ! "${@:4}"; then
        echo "failed: $1"
        failed=1
    fi
}

# Each decision alone, and how it grows.
filter() {
    "$build/bench/filter" 100 10 && "$build/bench/filter" 1000 10 && "$build/bench/filter" 5000 3
}

pods() {
    local lacks
    lacks=$("$here/../tests/cluster/cluster.sh" lacks)
    if [ -n "$lacks" ]; then
        echo "skipped: $lacks"
        return
    fi
    "$here/scheduler.sh" "$build" --pods 600
}

measure filter "a decision of the scheduler" bench/filter filter
measure size "the scheduler with 5,000 nodes and 100,000 pods" src/scheduler/vgpu-scheduler python3 "$here/scheduler_size.py" "$build"
measure plugin "the device plugin" tests/plugin/bench-device-plugin "$here/device_plugin.sh" "$build"
measure monitor "the monitor" src/monitor/vgpu-monitor python3 "$here/monitor.py" "$build"
measure pods "pods a second, before a real API server" src/scheduler/vgpu-scheduler pods
exit $failed
