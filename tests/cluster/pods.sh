# SPDX-License-Identifier: Apache-2.0
# Pods with slices, as HAMi's scheduler would leave them: annotations on the pod, its lock on the node; read by e2e.sh.
# shellcheck shell=bash disable=SC2154
image=local.test/tenant:1

# gpu INDEX: its UUID, by what the plugin has registered.
gpu() {
    of_node '.metadata.annotations["hami.io/node-nvidia-register"]' | jq -r ".[$1].id"
}

# slot INDEX MIB CORES: one device of a container's slot.
slot() {
    echo "$(gpu "$1"),NVIDIA,$2,$3:"
}

# lock NAME [TIME]: the scheduler has bound it last.
lock() {
    merge /api/v1/nodes/$node_name \
        "{\"metadata\": {\"annotations\": {\"hami.io/mutex.lock\": \"${2-$(date -u +%FT%TZ)},default,$1\"}}}"
}

lock_of_node() {
    of_node '.metadata.annotations["hami.io/mutex.lock"]'
}

has_no_lock() {
    [ -z "$(lock_of_node)" ]
}

lock_is_released() {
    within "${1:-30}" has_no_lock && return
    echo "the lock is still $(lock_of_node)"
    return 1
}

# container NAME COUNT COMMAND [MORE]: in the form of YAML. MORE are lines of it, four spaces deep.
container() {
    cat <<END
  - name: $1
    image: $image
    imagePullPolicy: Never
    command: [sh, -c, "$3"]
    env:
    - {name: LD_LIBRARY_PATH, value: /usr/lib/sim}
    - {name: VGPU_SIM_STATE, value: /sim/machine}
    - {name: VGPU_SIM_BOARD, value: h200x2}
    - {name: VGPU_SIM_TAG, value: $1}
    volumeMounts: [{name: sim, mountPath: /sim}]
END
    [ "$2" = 0 ] || echo "    resources: {limits: {nvidia.com/gpu: $2}}"
    [ -z "${4:-}" ] || echo "$4"
}

# pod NAME SLOTS CONTAINERS [INIT-CONTAINERS]: bound to the node past any scheduler. SLOTS "": it has no annotations.
# Variables: restart, its restartPolicy; instances, the annotation of those that are reserved.
pod() {
    cat <<END
apiVersion: v1
kind: Pod
metadata:
  name: $1
  annotations:
    test/annotations: "HAMi's"
END
    [ -z "$2" ] || cat <<END
    hami.io/vgpu-node: $node_name
    hami.io/vgpu-time: "$(date +%s)"
    hami.io/bind-time: "$(date +%s)"
    hami.io/bind-phase: allocating
    hami.io/vgpu-devices-allocated: "$2"
    hami.io/vgpu-devices-to-allocate: "$2"
END
    [ -z "${instances:-}" ] || echo "    hami.io/vgpu-mig-allocations: '$instances'"
    cat <<END
spec:
  nodeName: $node_name
  restartPolicy: ${restart:-Never}
  terminationGracePeriodSeconds: 0
  volumes: [{name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}]
  containers:
$3
END
    [ -z "${4:-}" ] || printf '  initContainers:\n%s\n' "$4"
}

# start NAME SLOTS CONTAINERS [INIT-CONTAINERS]: with its lock, as the scheduler has it.
start() {
    lock "$1" && pod "$@" | create
}

# keep NAME SLOT [MORE]: a pod whose container runs until somebody makes /tmp/end in it. Programs are run in it.
keep() {
    restart=Always start "$1" "$2;" "$(container "$1" 1 'until [ -e /tmp/end ]; do sleep 0.1; done' "${3:-}")" &&
        runs "$1"
}

has_phase() {
    [ "$(of_pod "$1" .status.phase)" = "$2" ]
}

# phase_is NAME PHASE [SECONDS]
phase_is() {
    within "${3:-30}" has_phase "$1" "$2" && return
    kubectl describe "pod/$1" | tail -n 15
    kubectl logs "$1" --all-containers | tail -n 15
    tail -n 20 "$CLUSTER_FOLDER/log/plugin"
    return 1
}

# restarts NAME: of its first container.
restarts() {
    of_pod "$1" ".status.containerStatuses[0].restartCount"
}

runs_since_restart() {
    [ "$(of_pod "$1" '.status.containerStatuses[0] | select(.state.running) | .restartCount')" -ge "$2" ] 2>/dev/null
}

# runs NAME [RESTARTS]: its container does, and was started again so often at least.
runs() {
    within 60 runs_since_restart "$1" "${2:-0}" && return
    kubectl describe "pod/$1" | tail -n 15
    tail -n 20 "$CLUSTER_FOLDER/log/plugin"
    return 1
}

log_of() {
    api GET "$(pod_path "$1")/log?container=$2"
}

log_has() {
    [[ $(log_of "$1" "$2") == *"$3"* ]]
}

# says NAME CONTAINER TEXT: in its log, which may come a moment after its end.
says() {
    within 20 log_has "$@" && return
    log_of "$1" "$2"
    return 1
}

# in_pod NAME COMMAND...
in_pod() {
    local name=$1
    shift
    kubectl exec "$name" -- "$@"
}

# has_room NAME BLOCKS: a program in it can take so many of 256 MiB, and is refused the next.
has_room() {
    local text
    text=$(in_pod "$1" tenant 2>&1)
    [[ $text == *"took $2 x 256 MiB = "*"the next: CUDA_ERROR_OUT_OF_MEMORY"* ]] || {
        echo "$1: $text"
        return 1
    }
}

is_bound() {
    is_in_phase "$1" success && [ -z "$(annotation "$1" vgpu-devices-to-allocate | tr -d ';')" ]
}

# is_in_phase NAME PHASE: of its binding.
is_in_phase() {
    [ "$(annotation "$1" bind-phase)" = "$2" ]
}

has_failed_with() {
    [ "$(of_pod "$1" .status.reason)" = UnexpectedAdmissionError ] && [[ $(of_pod "$1" .status.message) == *"$2"* ]]
}

# is_refused NAME WORDS [SECONDS]
is_refused() {
    within "${3:-30}" has_failed_with "$1" "$2" && return
    of_pod "$1" .status
    tail -n 20 "$CLUSTER_FOLDER/log/plugin"
    return 1
}
