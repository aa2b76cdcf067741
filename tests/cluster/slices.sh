# SPDX-License-Identifier: Apache-2.0
# Pods with slices, as HAMi's scheduler would leave them: annotations on the pod, its lock on the node; read by e2e.sh.
# shellcheck shell=bash disable=SC2154
image=local.test/tenant:1

# A program of CUDA's driver API with the simulated node's driver, in the container's own root.
make_tenant_image() {
    local archive=$CLUSTER_FOLDER/images/tenant.tar
    python3 "$here/image.py" "$archive" $image "$build/examples/tenant:/bin/tenant" \
        "$build/sim/cuda/libcuda.so.1:/usr/lib/sim/libcuda.so.1" \
        "$build/sim/nvml/libnvidia-ml.so.1:/usr/lib/sim/libnvidia-ml.so.1" &&
        ctr -n k8s.io images import "$archive"
}

# gpu INDEX: its UUID, by what the plugin has registered.
gpu() {
    kubectl get node $node_name -o jsonpath='{.metadata.annotations.hami\.io/node-nvidia-register}' |
        grep -o 'GPU-[0-9a-f-]*' | sed -n "$(($1 + 1))p"
}

# slot INDEX MIB CORES: one device of a container's slot.
slot() {
    echo "$(gpu "$1"),NVIDIA,$2,$3:"
}

lock() {
    kubectl annotate --overwrite node/$node_name "hami.io/mutex.lock=${1-$(date -u +%FT%TZ)},default,$2" >/dev/null
}

lock_is_released() {
    for _ in $(seq "${1:-50}"); do
        [ -n "$(lock_of_node)" ] || return 0
        sleep 0.1
    done
    echo "the lock is still $(lock_of_node)"
    return 1
}

lock_of_node() {
    kubectl get node $node_name -o jsonpath='{.metadata.annotations.hami\.io/mutex\.lock}'
}

annotation() {
    kubectl get pod "$1" -o jsonpath="{.metadata.annotations.hami\\.io/$2}"
}

# container NAME COUNT COMMAND: in the form of YAML.
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
    volumeMounts: [{name: sim, mountPath: /sim}]
END
    [ "$2" = 0 ] || echo "    resources: {limits: {nvidia.com/gpu: $2}}"
}

# pod NAME SLOTS CONTAINERS: bound to the node past any scheduler. SLOTS "": it has no annotations.
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
    cat <<END
spec:
  nodeName: $node_name
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}]
  containers:
$3
END
}

# start NAME SLOTS CONTAINERS: with its lock, as the scheduler has it.
start() {
    lock "$(date -u +%FT%TZ)" "$1" && pod "$@" | kubectl apply -f -
}

phase_is() {
    kubectl wait --for=jsonpath='{.status.phase}'="$2" "pod/$1" --timeout="${3:-30}s" || {
        kubectl describe "pod/$1" | tail -n 15
        kubectl logs "$1" --all-containers | tail -n 15
        tail -n 20 "$CLUSTER_FOLDER/log/plugin"
        return 1
    }
}

# says NAME CONTAINER TEXT
says() {
    kubectl logs "$1" -c "$2" | grep -q -- "$3" || {
        kubectl logs "$1" -c "$2"
        return 1
    }
}

is_bound() {
    [ "$(annotation "$1" bind-phase)" = success ] && [ -z "$(annotation "$1" vgpu-devices-to-allocate | tr -d ';')" ]
}

gone() {
    kubectl delete "pod/$1" --timeout=30s
}

# ----- cases -----

# 3000 MiB: a context of the simulated driver and nine blocks of 256 MiB.
a_program_is_refused_beyond_its_quota() {
    start quota "$(slot 0 3000 30);" "$(container main 1 tenant)" && phase_is quota Succeeded &&
        says quota main "took 9 x 256 MiB" && is_bound quota && lock_is_released && gone quota
}

two_containers_have_different_quotas() {
    start two "$(slot 0 2000 0);$(slot 1 5000 50);" "$(container one 1 tenant && container other 1 tenant)" &&
        phase_is two Succeeded && says two one "took 5 x 256 MiB" && says two other "took 17 x 256 MiB" &&
        is_bound two && lock_is_released && gone two
}

is_refused() {
    kubectl wait --for=jsonpath='{.status.reason}'=UnexpectedAdmissionError "pod/$1" --timeout=30s &&
        kubectl get "pod/$1" -o jsonpath='{.status.message}' | grep -q -- "$2"
}

a_wrong_count_is_refused() {
    start wrong "$(slot 0 3000 30);" "$(container main 2 tenant)" && is_refused wrong "device number not matched" &&
        lock_is_released && [ "$(annotation wrong bind-phase)" = failed ] && gone wrong
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
    pod stray "" "$(container main 1 tenant)" | kubectl apply -f - && is_refused stray "no pod that waits" && gone stray
}

# The pod that the lock names ended long ago; the one that is asked for gets its own.
a_stale_lock_is_no_obstacle() {
    lock 2026-01-01T00:00:00Z nobody && pod stale "$(slot 0 1000 0);" "$(container main 1 tenant)" | kubectl apply -f - &&
        phase_is stale Succeeded && says stale main "took 1 x 256 MiB" && lock_is_released 400 && gone stale
}

# Killed while a lock is there whose pod is over: the next one finds it.
a_killed_plugin_is_made_good() {
    kill -KILL "$plugin" && wait "$plugin"
    lock "$(date -u +%FT%TZ)" dead && pod dead "$(slot 0 1000 0);" "$(container main 1 tenant)" | kubectl apply -f -
    is_refused dead "" && [ -n "$(lock_of_node)" ] && start_plugin && lock_is_released 100 &&
        [ "$(annotation dead bind-phase)" = failed ] && gone dead && slices_are 20 20
}
