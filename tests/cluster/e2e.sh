#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# e2e.sh BUILD: what must be true of a real cluster; runs inside one (`cluster.sh run --node`). One line a case, and a
# count at the end. BUILD is a folder that was built with tests.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
build=$(readlink -f "$1")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

# check SENTENCE COMMAND...: 77 says that it could not be tried.
check() {
    local sentence=$1 code=0
    shift
    "$@" >"$log" 2>&1 || code=$?
    case $code in
    0)
        echo "passed   $sentence"
        passed=$((passed + 1))
        ;;
    77)
        echo "SKIPPED  $sentence"
        skipped=$((skipped + 1))
        ;;
    *)
        echo "FAILED   $sentence: exit code $code"
        tail -n 40 "$log" | sed 's/^/    | /'
        failed=$((failed + 1))
        ;;
    esac
}

the_node_is_ready() {
    kubectl wait --for=condition=Ready node/$node_name --timeout=5s
}

a_pod_runs_to_its_end() {
    kubectl apply -f "$here/hello.yaml" &&
        kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/hello --timeout=60s &&
        [ "$(kubectl logs hello)" = "hello from hello" ] &&
        kubectl delete pod/hello --timeout=30s
}

# The plugin runs on the node itself, whose devices are a simulated machine of its own.
start_plugin() {
    [ -x "$build/src/plugin/vgpu-device-plugin" ] || return 77
    LD_LIBRARY_PATH=$build/sim/nvml VGPU_SIM_STATE=$CLUSTER_FOLDER/machine VGPU_SIM_BOARD=h200x2 \
        "$build/src/plugin/vgpu-device-plugin" >>"$CLUSTER_FOLDER/log/plugin" 2>&1 &
    plugin=$!
}

# slices_are COUNT SECONDS
slices_are() {
    kubectl wait --for=jsonpath='{.status.allocatable.nvidia\.com/gpu}'="$1" node/$node_name --timeout="$2s" || {
        tail -n 20 "$CLUSTER_FOLDER/log/plugin"
        return 1
    }
}

the_kubelet_has_slices() {
    start_plugin && slices_are 20 20
}

# The kubelet forgets its plugins: the slices are gone until they are advertised again.
slices_come_back_with_the_kubelet() {
    "$CLUSTER" stop kubelet && "$CLUSTER" start kubelet && slices_are 0 20 && slices_are 20 20
}

# Until Allocate gives a container its limits it gives it nothing.
a_slice_is_not_handed_out_without_limits() {
    kubectl apply -f "$here/slice.yaml" &&
        kubectl wait --for=jsonpath='{.status.reason}'=UnexpectedAdmissionError pod/slice --timeout=30s &&
        kubectl delete pod/slice --timeout=30s
}

slices_go_with_the_plugin() {
    kill "$plugin" && slices_are 0 20
}

# program NAME: a test's own, where it was built.
program() {
    [ -x "$build/$1" ] || return 77
    "$build/$1"
}

check "the node is ready" the_node_is_ready
check "a pod runs to its end" a_pod_runs_to_its_end
check "the kubelet has the slices of two devices" the_kubelet_has_slices
if [ -n "${plugin:-}" ]; then
    check "slices come back with the kubelet" slices_come_back_with_the_kubelet
    check "a slice is not handed out without limits" a_slice_is_not_handed_out_without_limits
    check "slices go with the plugin" slices_go_with_the_plugin
fi
check "the client keeps its word before a real API server" program tests/kube/test_api
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
