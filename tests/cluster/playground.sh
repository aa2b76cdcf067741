#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Kubernetes of one node on this machine, whose GPUs are simulated and in which everything of ours runs from the chart. It stays
# until it is taken down. As root; no GPU is needed, and nothing is seen outside its namespaces.
#
#   playground.sh up BUILD [KIND]   KIND: a board of the simulated node (`vgpu-sim boards`); h200x2
#   playground.sh kubectl WORDS...  in it; helm and any other command, too: playground.sh exec COMMAND...
#   playground.sh down
#   playground.sh try BUILD         up, the example's pods in their slices, down: the exit code says whether that went well
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
export CLUSTER_FOLDER=${PLAYGROUND_FOLDER:-/tmp/cantaloupe-playground}
folder=$CLUSTER_FOLDER
space=kube-system

cluster() {
    "$here/cluster.sh" "$@"
}

values() {
    cat <<END
image: {registry: local.test, repository: cantaloupe, tag: playground, pullPolicy: Never}
scheduler:
  kubeScheduler: {image: {registry: local.test, repository: kube-scheduler, pullPolicy: Never}}
  admissionWebhook: {failurePolicy: Fail}
END
}

# make_machine KIND: the libraries of the driver and the machine's file, for sim_runtime.py.
make_machine() {
    mkdir -p "$folder/sim/lib" "$folder/sim/machine"
    cp "$build"/sim/cuda/libcuda.so.1 "$build"/sim/nvml/libnvidia-ml.so.1 "$folder/sim/lib/"
    "$build/sim/tool/vgpu-sim" start --board "$1" --state "$folder/sim/machine/machine" >/dev/null
    chmod -R a+rwX "$folder/sim/machine"
}

# archive FILE SOURCE COMMAND...: imports it, after COMMAND has made it, if it is older than one of SOURCE.
archive() {
    local file=$1 source=$2
    shift 2
    if [ ! -e "$file" ] || [ -n "$(find $source -newer "$file" -print -quit)" ]; then
        "$@" >/dev/null
    fi
    cluster exec ctr -n k8s.io images import "$file" >/dev/null
}

load_images() {
    local programs="$build/src/cli/vgpu $build/src/plan/vgpu-plan $build/src/scheduler/vgpu-scheduler $build/src/monitor/vgpu-monitor
$build/src/plugin/vgpu-device-plugin $build/src/tenant/libvgpu.so $here/../../tools/image.py"
    archive "$build/playground-image.tar" "$programs" \
        python3 "$here/../../tools/image.py" "$build" "$build/playground-image.tar" local.test/cantaloupe:playground
    archive "$binaries/kube-scheduler.tar" "$binaries/kubernetes" \
        python3 "$here/image.py" "$binaries/kube-scheduler.tar" "local.test/kube-scheduler:v$kubernetes_version" \
        "$binaries/kubernetes:/usr/bin/kube-scheduler"
    cluster image local.test/playground:1 "$build/examples/tenant:/bin/tenant" "$build/sim/tool/vgpu-sim:/bin/vgpu-sim" \
        "$build/sim/cuda/libcuda.so.1:/usr/lib/stub/libcuda.so.1"
}

up() {
    build=$(readlink -f "${1:?the build folder is missing}")
    local kind=${2:-h200x2} began=$SECONDS
    "$build/sim/tool/vgpu-sim" boards "$kind" >/dev/null
    export CLUSTER_SIMULATES=yes
    cluster up --node
    make_machine "$kind"
    load_images
    values >"$folder/values.yaml"
    cluster exec kubectl label "node/$node_name" gpu=on >/dev/null
    cluster exec setsid "$here/serve.sh" $space </dev/null >"$folder/log/serve" 2>&1 &
    cluster exec helm install vgpu "$here/../../deploy/charts/cantaloupe" -n $space -f "$folder/values.yaml" --wait --timeout 180s >/dev/null
    cluster exec kubectl wait "node/$node_name" --timeout=120s \
        --for='jsonpath={.status.allocatable.nvidia\.com/gpu}' >/dev/null
    cat <<END
A Kubernetes with one node is up after $((SECONDS - began)) s; its GPUs are simulated: $kind. Try:
  tests/cluster/playground.sh kubectl apply -f examples/kubernetes/two-slices.yaml
  tests/cluster/playground.sh kubectl wait --for=condition=Ready pod/small pod/large --timeout=60s
  tests/cluster/playground.sh kubectl logs small
  tests/cluster/playground.sh kubectl exec large -- vgpu-sim smi
  make playground-down
END
}

# 3000 and 5000 MiB: of each a part is the context.
try() {
    export CLUSTER_FOLDER=${PLAYGROUND_FOLDER:-/tmp/cantaloupe-playground-try}
    folder=$CLUSTER_FOLDER
    export CLUSTER_OWNER=$$
    trap 'trap "" INT TERM HUP; cluster down' EXIT # who ends it may say so twice
    trap 'exit 130' INT TERM HUP
    up "$@"
    cluster exec kubectl apply -f "$here/../../examples/kubernetes/two-slices.yaml"
    cluster exec kubectl wait --for=condition=Ready pod/small pod/large --timeout=180s
    local pod blocks
    for pod in small:10 large:18; do
        blocks=${pod#*:} pod=${pod%:*}
        for _ in $(seq 100); do
            ! cluster exec kubectl logs "$pod" | grep "took $blocks x 256 MiB" || continue 2
            sleep 0.2
        done
        fail "$pod has not taken $blocks blocks: $(cluster exec kubectl logs "$pod")"
    done
    cluster exec kubectl exec large -- vgpu-sim smi
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
up) up "$@" ;;
try) try "$@" ;;
kubectl) cluster exec kubectl "$@" ;;
exec) cluster exec "$@" ;;
down) cluster down ;;
*)
    sed -n '3,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
