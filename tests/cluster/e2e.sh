#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# e2e.sh BUILD: what must be true of a real cluster; runs inside one (`cluster.sh run --node`). One line a case, and a
# count at the end. BUILD is a folder that was built with tests.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
. "$here/slices.sh"
. "$here/cases_scheduler.sh"
build=$(readlink -f "$1")
log=$(mktemp)
trap 'stop_scheduler; rm -f "$log"' EXIT
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
    mkdir -p "$CLUSTER_FOLDER/sim"
    cat >"$CLUSTER_FOLDER/device-config.yaml" <<END
nvidia: {resourceCountName: nvidia.com/gpu, deviceSplitCount: 10}
cantaloupe: {turnsFolder: $CLUSTER_FOLDER/turns}
END
    LD_LIBRARY_PATH=$build/sim/nvml VGPU_SIM_STATE=$CLUSTER_FOLDER/sim/machine VGPU_SIM_BOARD=h200x2 \
        NODE_NAME=$node_name HOOK_PATH=$CLUSTER_FOLDER/hook \
        "$build/src/plugin/vgpu-device-plugin" --config-file "$CLUSTER_FOLDER/device-config.yaml" \
        --state-folder "$CLUSTER_FOLDER/state" --library "$build/src/tenant/libvgpu.so" >>"$CLUSTER_FOLDER/log/plugin" 2>&1 &
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

registrations() {
    grep -c "registered with the kubelet" "$CLUSTER_FOLDER/log/plugin"
}

# The kubelet forgets its plugins; it may have them again before anybody sees that the slices were gone.
slices_come_back_with_the_kubelet() {
    local before
    before=$(registrations)
    "$CLUSTER" stop kubelet && "$CLUSTER" start kubelet || return 1
    for _ in $(seq 200); do
        [ "$(registrations)" = "$before" ] || break
        sleep 0.1
    done
    [ "$(registrations)" -gt "$before" ] && slices_are 20 20
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
    check "an image with a program of CUDA's is made" make_tenant_image
    check "a program in a slice is refused beyond its quota" a_program_is_refused_beyond_its_quota
    check "two containers have different quotas" two_containers_have_different_quotas
    check "a wrong count is refused" a_wrong_count_is_refused
    check "a device that is not there is refused" a_device_that_is_not_there_is_refused
    check "a missing annotation is refused" a_missing_annotation_is_refused
    check "a pod that no scheduler saw is refused" a_pod_that_no_scheduler_saw_is_refused
    check "a stale lock is no obstacle" a_stale_lock_is_no_obstacle
    check "what a killed plugin left is made good" a_killed_plugin_is_made_good
    chmod -R a+rwX "$CLUSTER_FOLDER/sim"
    scheduler_cases
    check "slices go with the plugin" slices_go_with_the_plugin
fi
check "the client keeps its word before a real API server" program tests/kube/test_api
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
