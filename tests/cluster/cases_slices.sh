# SPDX-License-Identifier: Apache-2.0
# Slices are handed out, and hold; read by e2e.sh. 3000 MiB are a context of the simulated driver and nine blocks of 256 MiB.
# shellcheck shell=bash disable=SC2154

# Programs of CUDA's driver API with the simulated node's driver, in the container's own root.
make_tenant_image() {
    local archive=$CLUSTER_FOLDER/images/tenant.tar
    python3 "$here/image.py" "$archive" $image "$build/examples/tenant:/bin/tenant" \
        "$build/bench/compute-load:/bin/compute-load" \
        "$build/sim/cuda/libcuda.so.1:/usr/lib/sim/libcuda.so.1" \
        "$build/sim/nvml/libnvidia-ml.so.1:/usr/lib/sim/libnvidia-ml.so.1" &&
        ctr -n k8s.io images import "$archive"
}

# The simulated machine is what a device file is to a real one: for every user.
the_kubelet_has_slices() {
    restart_plugin && slices_are 20 20 && chmod -R a+rwX "$CLUSTER_FOLDER/sim"
}

a_program_is_refused_beyond_its_quota() {
    start quota "$(slot 0 3000 30);" "$(container main 1 tenant)" && phase_is quota Succeeded &&
        says quota main "took 9 x 256 MiB" && within 20 is_bound quota && lock_is_released && gone quota
}

two_containers_have_different_quotas() {
    start two "$(slot 0 2000 0);$(slot 1 5000 50);" "$(container one 1 tenant && container other 1 tenant)" &&
        phase_is two Succeeded && says two one "took 5 x 256 MiB" && says two other "took 17 x 256 MiB" &&
        within 20 is_bound two && lock_is_released && gone two
}

# Slots name their devices in another order than NVML does; the program takes the first that it sees.
a_quota_is_of_its_device() {
    start order "$(slot 1 5000 0)$(slot 0 2000 0);" "$(container main 2 tenant)" && phase_is order Succeeded &&
        says order main "took 5 x 256 MiB" && lock_is_released && gone order
}

# Of the containers' slots the init containers' come first, empty ones among them; a sidecar is one that goes on.
init_containers_and_sidecars_have_theirs() {
    local first side main
    first=$(container first 1 tenant && container plain 0 true)
    side=$(container side 1 "tenant; touch /sim/side; trap exit TERM; tail -f /dev/null & wait" "    restartPolicy: Always")
    main=$(container main 1 "until [ -e /sim/side ]; do sleep 0.1; done; tenant" && container idle 0 true)
    start mixed "$(slot 0 1000 0);;$(slot 1 2000 0);$(slot 0 3000 0);;" "$main" "$first
$side" && phase_is mixed Succeeded && says mixed first "took 1 x 256 MiB" && says mixed side "took 5 x 256 MiB" &&
        says mixed main "took 9 x 256 MiB" && within 20 is_bound mixed && lock_is_released && gone mixed
}

# No place to write but its own mounts, no capability, no name for its user.
any_user_has_a_slice() {
    start user "$(slot 0 3000 30);" "$(container main 1 tenant \
        "    securityContext: {runAsUser: 54321, runAsGroup: 54321, runAsNonRoot: true, readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}")" &&
        phase_is user Succeeded && says user main "took 9 x 256 MiB" && lock_is_released && gone user
}

a_wrong_count_is_refused() {
    start wrong "$(slot 0 3000 30);" "$(container main 2 tenant)" && is_refused wrong "device number not matched" &&
        lock_is_released && within 30 is_in_phase wrong failed && gone wrong
}

a_device_that_is_not_there_is_refused() {
    start absent "GPU-00000000-0000-0000-0000-000000000000,NVIDIA,3000,30:;" "$(container main 1 tenant)" &&
        is_refused absent "no device" && lock_is_released && gone absent
}

a_missing_annotation_is_refused() {
    start missing "" "$(container main 1 tenant)" && is_refused missing "device request not found" && lock_is_released &&
        gone missing
}

a_pod_that_no_scheduler_saw_is_refused() {
    pod stray "" "$(container main 1 tenant)" | create && is_refused stray "no pod that waits" && gone stray
}

# Whether it has the pod that it asks for while it asks, only a real kubelet can say: all of these cases do.
the_record_is_read() {
    [ -S /var/lib/kubelet/pod-resources/kubelet.sock ] && [ "$(plugin_says "does not tell its record")" = 0 ]
}

# require_lock BOOLEAN: the plugin reads its configuration again.
require_lock() {
    local before
    before=$(plugin_says "configuration was read again")
    sed -i "s/^cantaloupe: {.*honour/cantaloupe: {requireNodeLock: $1, honour/" "$CLUSTER_FOLDER/device-config.yaml" &&
        within 30 has_said_more_often "configuration was read again" "$before"
}

only_the_pod_with_the_lock_is_served() {
    require_lock true && pod unlocked "$(slot 0 1000 0);" "$(container main 1 tenant)" | create &&
        is_refused unlocked "has its lock" && start locked "$(slot 0 1000 0);" "$(container main 1 tenant)" &&
        phase_is locked Succeeded && lock_is_released && gone unlocked locked && require_lock false
}

# The pod that the lock names ended long ago; the one that is asked for gets its own.
a_stale_lock_is_no_obstacle() {
    lock nobody 2026-01-01T00:00:00Z && pod stale "$(slot 0 1000 0);" "$(container main 1 tenant)" | create &&
        phase_is stale Succeeded && says stale main "took 1 x 256 MiB" && lock_is_released 40 && gone stale
}

# The runtime would make folders of what it misses, and the container would run without limits.
a_library_that_is_missing_is_refused() {
    mv "$hook/vgpu/ld.so.preload" "$hook/vgpu/ld.so.preload.away" || return 1
    start bare "$(slot 0 1000 0);" "$(container main 1 tenant)" && is_refused bare "ld.so.preload" &&
        mv "$hook/vgpu/ld.so.preload.away" "$hook/vgpu/ld.so.preload" && lock_is_released && gone bare
}

# These two stay for the groups that follow.
pods_that_stay_begin() {
    keep thirty "$(slot 0 3000 30)" && lock_is_released && keep sixty "$(slot 0 5000 60)" && lock_is_released &&
        has_room thirty 9 && has_room sixty 17
}

# load_of NAME COMMAND...: the part of its device's time that a program of some seconds got, from the common start on.
load_of() {
    local name=$1
    shift
    in_pod "$name" "$@" compute-load shape=stream duration_us=500 seconds=4 wait=/sim/go | tee "$CLUSTER_FOLDER/said-$name" |
        sed -n 's/.*"busy": \([0-9.]*\),.*/\1/p'
}

both_are_ready() {
    grep -q ready "$CLUSTER_FOLDER/said-thirty" && grep -q ready "$CLUSTER_FOLDER/said-sixty"
}

# loads [COMMAND...]: what thirty and sixty get beside each other, in percent; COMMAND runs thirty's.
loads() {
    local at=$CLUSTER_FOLDER/sim first second
    rm -f "$at/go"
    : >"$CLUSTER_FOLDER/said-thirty"
    : >"$CLUSTER_FOLDER/said-sixty"
    load_of thirty "$@" >"$CLUSTER_FOLDER/thirty" &
    first=$!
    load_of sixty >"$CLUSTER_FOLDER/sixty" &
    second=$!
    within 60 both_are_ready
    python3 -c 'import time; print(time.monotonic_ns() + 300000000)' >"$at/begin" && mv "$at/begin" "$at/go"
    wait $first && wait $second && awk '{ printf "%.0f ", 100 * $1 }' "$CLUSTER_FOLDER/thirty" "$CLUSTER_FOLDER/sixty"
}

# shares_are_within LEAST MOST LEAST MOST [COMMAND...]: in percent, of thirty and sixty beside each other.
shares_are_within() {
    local got bounds=("${@:1:4}")
    shift 4
    read -r -a got <<<"$(loads "$@")"
    figure "${got[0]:-0} and ${got[1]:-0} %"
    [ ${#got[@]} = 2 ] && [ "${got[0]}" -ge "${bounds[0]}" ] && [ "${got[0]}" -le "${bounds[1]}" ] &&
        [ "${got[1]}" -ge "${bounds[2]}" ] && [ "${got[1]}" -le "${bounds[3]}" ]
}

# Within these bounds at once, or at the next try: a machine that has other things to do may give the programs less than they may have.
share_as_told() {
    local try
    for try in 1 2 3 4 5; do
        shares_are_within 18 42 42 78 "$@" && return
    done
    return 1
}

slices_cases() {
    check "the kubelet has the slices of two devices" the_kubelet_has_slices || return
    check "an image with programs of CUDA's is made" make_tenant_image || return
    check "a program in a slice is refused beyond its quota" a_program_is_refused_beyond_its_quota
    check "two containers have different quotas" two_containers_have_different_quotas
    check "a quota is of its device, whatever the order" a_quota_is_of_its_device
    check "init containers and sidecars have theirs" init_containers_and_sidecars_have_theirs
    check "any user has a slice, with a read-only root and no privileges" any_user_has_a_slice
    check "a wrong count is refused" a_wrong_count_is_refused
    check "a device that is not there is refused" a_device_that_is_not_there_is_refused
    check "a missing annotation is refused" a_missing_annotation_is_refused
    check "a pod that no scheduler saw is refused" a_pod_that_no_scheduler_saw_is_refused
    check "the kubelet's record of slices is read" the_record_is_read
    check "where the lock is required, only its pod is served" only_the_pod_with_the_lock_is_served
    check "a stale lock is no obstacle" a_stale_lock_is_no_obstacle
    check "a library that is missing is refused" a_library_that_is_missing_is_refused
    check "pods that stay begin" pods_that_stay_begin || return
    check "two pods share a device by 30 and 60 %" share_as_told
}
