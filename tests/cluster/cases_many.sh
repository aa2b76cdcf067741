# SPDX-License-Identifier: Apache-2.0
# More nodes and more pods than one machine has room for: node objects, of which many.py plays the kubelets and the
# device plugins. The rest is real. Read by e2e.sh; needs no kubelet.
# shellcheck shell=bash disable=SC2154
declare -A pairs

many() {
    local said
    said=$(python3 "$here/many.py" "$@") || return
    [ -z "$said" ] || figure "$said"
}

the_scheduler_has_three_nodes() {
    bring_scheduler_up && many setup
}

# Of boards with switches for NVLink, with pairs behind a switch for PCIe, and with bridges.
boards_are_joined() {
    local row scores
    mkdir -p "$CLUSTER_FOLDER/boards"
    for row in h200x8:4 l4x4:2 h200nvlx4:2 a100x16:8; do
        scores=$(LD_LIBRARY_PATH=$build/sim/nvml VGPU_SIM_STATE=$CLUSTER_FOLDER/boards/${row%:*} VGPU_SIM_BOARD=${row%:*} \
            "$build/tests/plugin/say-scores") && many topology "${row%:*}" "${row#*:}" "$scores" || return
    done
}

an_api_server_that_is_started_anew_loses_nothing() {
    many interrupted sh -c '"$CLUSTER" stop apiserver && "$CLUSTER" start apiserver'
}

# pair NAME PORT HEALTH-PORT: a replica, which is a kube-scheduler and a vgpu-scheduler of one host name.
start_pair() {
    local at=$CLUSTER_FOLDER/pair-$1
    sed -e "s|^leaderElection:.*|leaderElection: {leaderElect: true, resourceName: hami-scheduler, resourceNamespace: kube-system, \
leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 1s}|" -e "s|127.0.0.1:$scheduler_port|127.0.0.1:$2|" \
        "$CLUSTER_FOLDER/scheduler.yaml" >"$at.yaml"
    # the shell's name is the host's; both end with it
    KUBECONFIG=$CLUSTER_FOLDER/vgpu-scheduler.kubeconfig setsid unshare --uts sh -c "hostname $1
        '$build/src/scheduler/vgpu-scheduler' --http_bind 127.0.0.1:$2 --webhook-secret kube-system/vgpu-scheduler \
            --webhook-configuration vgpu-scheduler --scheduler-name hami-scheduler --metrics-bind-address= --trusted-users '$trusted' --leader-elect \
            --leader-elect-resource-name hami-scheduler --leader-elect-resource-namespace kube-system &
        exec kube-scheduler --config '$at.yaml' --bind-address=127.0.0.1 --secure-port=$3 \
            --authentication-kubeconfig='$CLUSTER_FOLDER/scheduler.kubeconfig' \
            --authorization-kubeconfig='$CLUSTER_FOLDER/scheduler.kubeconfig'" >>"$CLUSTER_FOLDER/log/pair-$1" 2>&1 &
    pairs[$1]=$!
}

# Its session, which is a process group, at once.
stop_pair() {
    kill -KILL -- "-${pairs[$1]}" 2>/dev/null
    wait "${pairs[$1]}"
    unset "pairs[$1]"
}

stop_pairs() {
    local name
    for name in "${!pairs[@]}"; do
        stop_pair "$name"
    done
}

leads() {
    [[ $(api GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/hami-scheduler | jq -r '.spec.holderIdentity') == $1_* ]]
}

# The lease is 4 s long.
a_replica_that_is_killed_loses_nothing() {
    api DELETE /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/hami-scheduler >/dev/null 2>&1
    stop_scheduler
    "$CLUSTER" stop scheduler && start_pair one $scheduler_port 10261 && within 30 leads one && within 30 is_scheduler_ready &&
        start_pair two 9444 10262 || return
    many interrupted kill -KILL -- "-${pairs[one]}" && within 30 leads two || { tail -n 20 "$CLUSTER_FOLDER"/log/pair-*; return 1; }
    stop_pairs
    "$CLUSTER" start scheduler
}

leave_the_nodes() {
    many teardown && leave_the_scheduler
}

many_cases() {
    check "the scheduler has three nodes that are registered, and no more" the_scheduler_has_three_nodes || return
    check "pods are packed on one node, or spread over three" many spread_and_pack
    check "a hundred pods at once are all bound, and no device has too many" many gang
    check "devices of a pod are those that the device plugin says are joined best" boards_are_joined
    check "a quota of the namespace holds" many quota
    check "who asks for a device alone has it alone" many exclusive
    check "a pod gets an instance, or a device with MPS" many modes
    check "room comes by an eviction, and not by a node that was lost" many room_comes_and_goes
    check "what a pod has been given is changed by no other user" many forged
    check "an API server that is started anew loses nothing" an_api_server_that_is_started_anew_loses_nothing
    check "a replica that is killed loses nothing" a_replica_that_is_killed_loses_nothing
    check "nodes and scheduler go" leave_the_nodes
}
