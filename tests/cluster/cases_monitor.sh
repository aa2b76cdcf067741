# SPDX-License-Identifier: Apache-2.0
# The monitor on the node: pods' slices by their names, and processes that get round them; read by e2e.sh.
# shellcheck shell=bash disable=SC2154
monitor=
monitor_port=9394

# start_monitor [OPTION...]: by its own account.
start_monitor() {
    LD_LIBRARY_PATH=$(driver_libraries) VGPU_SIM_STATE=$CLUSTER_FOLDER/sim/machine VGPU_SIM_BOARD=h200x2 \
        KUBECONFIG=$CLUSTER_FOLDER/vgpu-monitor.kubeconfig \
        "$build/src/monitor/vgpu-monitor" --node-name $node_name --hook-path "$hook/vgpu" \
        --shares-folder "$CLUSTER_FOLDER/state/shares" \
        --metrics-bind-address 127.0.0.1:$monitor_port --audit-interval 1 "$@" >>"$CLUSTER_FOLDER/log/monitor" 2>&1 &
    monitor=$!
    within 30 monitor_is_ready && return
    tail -n 20 "$CLUSTER_FOLDER/log/monitor"
    return 1
}

stop_monitor() {
    [ -n "$monitor" ] || return 0
    kill "$monitor"
    wait "$monitor"
    monitor=
}

monitor_asks() {
    curl --silent --fail --max-time 5 "http://127.0.0.1:$monitor_port$1"
}

monitor_is_ready() {
    monitor_asks /readyz
}

# told NAME TEXT...: the value of the sample of that name that has all of these labels.
told() {
    local name=$1 text samples
    shift
    samples=$(monitor_asks /metrics | grep "^$name{")
    for text in "$@"; do
        samples=$(grep -F "$text" <<<"$samples")
    done
    awk '{ print $NF }' <<<"$samples"
}

# is_told VALUE NAME TEXT...
is_told() {
    local value=$1
    shift
    [ "$(told "$@")" = "$value" ]
}

# has_event POD REASON
has_event() {
    [ -n "$(kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o name)" ]
}

the_monitor_is_ready() {
    [ -x "$build/src/monitor/vgpu-monitor" ] || return 77
    [ -n "$plugin" ] || { the_kubelet_has_slices && make_tenant_image; } || return
    (
        folder=$CLUSTER_FOLDER
        . "$here/configure.sh"
        kubeconfig vgpu-monitor /CN=system:serviceaccount:kube-system:vgpu-monitor
    ) && kubectl apply -f "$here/../../deploy/monitor-rbac.yaml" && start_monitor
}

# a_process NAME [LOADER]: one that keeps its container's device at work, until it is ended.
a_process() {
    in_pod "$1" ${2:-} /bin/compute-load shape=stream duration_us=500 seconds=600 >/dev/null 2>&1 &
}

the_driver_tells_the_same() {
    is_told "$(told vgpu_slice_memory_used_bytes "pod=\"$1\"")" vgpu_container_driver_memory_bytes "pod=\"$1\""
}

slices_are_told_by_their_pods() {
    keep watched "$(slot 0 3000 30)" && lock_is_released && keep beside "$(slot 0 3000 0)" && lock_is_released || return
    a_process watched
    within 30 is_told 3145728000 vgpu_slice_memory_quota_bytes 'pod="watched"' || {
        monitor_asks /metrics | grep vgpu_slice_memory_quota
        return 1
    }
    within 30 is_told 0 vgpu_container_is_violating 'pod="watched"' 'kind="untracked"' || {
        monitor_asks /metrics | grep vgpu_
        tail -n 20 "$CLUSTER_FOLDER/log/monitor"
        return 1
    }
    within 30 the_driver_tells_the_same watched &&
        ! has_event watched VgpuProcessOutsideSlice
}

# make_own_loader POD: /tmp/loader in it does not know the list of what is preloaded.
make_own_loader() {
    in_pod "$1" sh -c 'loader=$(ls /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.* 2>/dev/null | head -n 1) &&
        sed "s#/etc/ld.so.preload#/etc/ld.so.nothing#" "$loader" >/tmp/loader && chmod +x /tmp/loader'
}

# To the library that is a process like any other.
a_process_outside_its_slice_is_told() {
    make_own_loader watched || return
    a_process watched /tmp/loader
    within 30 is_told 1 vgpu_container_is_violating 'pod="watched"' 'kind="untracked"' &&
        within 30 has_event watched VgpuProcessOutsideSlice && ! has_event beside VgpuProcessOutsideSlice || {
        monitor_asks /metrics | grep vgpu_container
        return 1
    }
}

# Its neighbours' processes and those in their slices are not.
it_is_ended_where_that_is_asked_for() {
    stop_monitor
    start_monitor --end-processes untracked && within 30 is_told 1 vgpu_audit_processes_ended_total 'kind="untracked"' &&
        within 30 is_told 0 vgpu_container_is_violating 'pod="watched"' 'kind="untracked"' &&
        [ "$(restarts watched)" = 0 ] && [ "$(told vgpu_container_driver_memory_bytes 'pod="watched"')" -gt 0 ]
}

# assigned NAME SLOTS: by the pod's annotation.
assigned() {
    kubectl annotate --overwrite pod "$1" "hami.io/vgpu-devices-allocated=$2"
}

what_the_kubelet_gave_is_compared() {
    within 30 is_told 1 vgpu_container_kubelet_slices 'pod="watched"' &&
        within 30 is_told 0 vgpu_container_is_violating 'pod="watched"' 'kind="books"' || {
        monitor_asks /metrics | grep -E 'kubelet|books'
        return 1
    }
    assigned watched "$(slot 1 3000 30);" && within 30 is_told 1 vgpu_container_is_violating 'pod="watched"' 'kind="books"' &&
        within 30 has_event watched VgpuSliceNotAsGiven && ! has_event beside VgpuSliceNotAsGiven &&
        assigned watched "$(slot 0 3000 30);" && within 30 is_told 0 vgpu_container_is_violating 'pod="watched"' 'kind="books"' || {
        monitor_asks /metrics | grep -E 'kubelet|books'
        return 1
    }
}

leave_the_monitor() {
    gone watched beside && stop_monitor
}

monitor_cases() {
    check "the monitor is ready" the_monitor_is_ready || return
    check "slices are told by their pods, as the driver has them" slices_are_told_by_their_pods
    check "what the kubelet gave is compared with slices and annotations" what_the_kubelet_gave_is_compared
    check "a process outside its slice is told" a_process_outside_its_slice_is_told
    check "it is ended where that is asked for" it_is_ended_where_that_is_asked_for
    check "the monitor goes" leave_the_monitor
}
