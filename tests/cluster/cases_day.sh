# SPDX-License-Identifier: Apache-2.0
# A day in the life of three nodes with GPUs of different kinds, from Helm's chart; read by e2e.sh. After each step the books are
# compared: what pods were promised, what the scheduler counts, and what plugins, monitors and simulated machines have.
# shellcheck shell=bash disable=SC2154

# machine_of NODE: its file.
machine_of() {
    [ "$1" = node1 ] && echo "$CLUSTER_FOLDER/sim/machine" || echo "$CLUSTER_FOLDER/nodes/$1/sim/machine"
}

# simulate_on NODE WORDS...
simulate_on() {
    VGPU_SIM_STATE=$(machine_of "$1") "$build/sim/tool/vgpu-sim" "${@:2}"
}

# Two schedulers on the first node. Cards of the second are cut into instances (MIG), two of the third's are shared by MPS.
day_values() {
    cat <<END
global: {gpuHookPath: /usr/local}
scheduler:
  replicas: 2
  nodeSelector: {kubernetes.io/hostname: node1}
devicePlugin:
  statePath: /var/lib/cantaloupe
  nodeConfiguration:
    config: |
      {"nodeconfig": [{"name": "node1", "devicesplitcount": ${split:-10}}, {"name": "node2", "operatingmode": "mig"}, {"name": "node3", "devicemodes": {"mps": {"index": [2, 3]}}}]}
  extraArgs: [--mps-control=/sim/mps/nvidia-cuda-mps-control]
  extraVolumes:
  - {name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}
  - {name: sim-library, hostPath: {path: $(readlink -f "$build/sim/nvml")}}
  - {name: sim-mps, hostPath: {path: $(readlink -f "$build/sim/mps")}}
  extraVolumeMounts:
  - {name: sim, mountPath: /sim/state}
  - {name: sim-library, mountPath: /sim/lib, readOnly: true}
  - {name: sim-mps, mountPath: /sim/mps, readOnly: true}
  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}
  # the simulated NVML looks for processes in /proc
  monitor: {auditInterval: 1, securityContext: {capabilities: {drop: [ALL], add: [SYS_ADMIN, SYS_PTRACE]}}}
END
}

three_nodes_are_there() {
    local row
    make_own_images && make_priorities || return
    for row in node1:h200x2 node2:a100-80 node3:l4x4; do
        [ "${row%:*}" = node1 ] || "$CLUSTER" start "${row%:*}" || return
        simulate_on "${row%:*}" start --board "${row#*:}" && chmod -R a+rwX "$(dirname "$(machine_of "${row%:*}")")" || return
    done
    kubectl wait --for=create node/node2 node/node3 --timeout=20s && kubectl wait --for=condition=Ready node --all --timeout=30s &&
        within 30 kubectl -n kube-node-lease get lease/node1 lease/node2 lease/node3 >/dev/null 2>&1
}

day_helm() {
    helm "$1" vgpu "$chart" -n $chart_space -f "$CLUSTER_FOLDER/chart-values.yaml" -f "$CLUSTER_FOLDER/day-values.yaml" \
        --wait --timeout 90s "${@:2}"
}

everything_is_installed() {
    "$here/serve.sh" $chart_space 2>/dev/null &
    chart_services=$!
    kubectl create namespace $chart_space
    everything_in_the_cluster >"$CLUSTER_FOLDER/before-chart"
    chart_values >"$CLUSTER_FOLDER/chart-values.yaml"
    day_values >"$CLUSTER_FOLDER/day-values.yaml"
    day_helm install || say_why_not
}

# agree [STATE]: what is promised, counted, handed out and used is the same.
agree() {
    python3 "$here/accounts.py" "$build" 30 "$@"
}

# step SENTENCE COMMAND...: a case, after which all accounts agree.
step() {
    check "$1" then_agree "${@:2}"
}

then_agree() {
    "$@" && agree
}

have_slices_on() {
    local node_name=$1
    have_slices "$2"
}

# Of four cards each; the node with MIG has seven instances.
each_node_has_its_slices() {
    within 30 have_slices_on node1 4 && within 30 have_slices_on node3 40 && within 30 have_slices_on node2 10 || {
        kubectl get nodes -o jsonpath='{.items[*].status.allocatable}'
        return 1
    }
}

holding="until [ -e /tmp/end ]; do tenant --blocks 4 --hold 600000; sleep 1; done"

# day_pod NAME LIMITS [NOTE]: one that holds memory until it is gone.
day_pod() {
    notes=${3:-} apply_asking "$1" "$2" "$holding" && phase_is "$1" Running 40 || explain "$1"
}

# waits NAME REASON: as a person is told.
waits() {
    local said
    kubectl wait --for=condition=PodScheduled=False "pod/$1" --timeout=20s && said=$(vgpu_says 1 explain "$1") &&
        grep -q -- "$2" <<<"$said" || { echo "${said:-}"; return 1; }
}

the_less_important_gives_way() {
    local half="nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50" on_h200='nvidia.com/use-gputype: "H200"'
    class=low day_pod less "$half" "$on_h200" && class=middle day_pod more "$half" "$on_h200" &&
        class=high day_pod urgent "$half" "$on_h200" && within 10 is_away less && has_phase more Running && gone urgent more
}

is_away() {
    ! kubectl get "pod/$1" >/dev/null 2>&1
}

training_and_inference_run() {
    day_pod train "nvidia.com/gpu: 2, nvidia.com/gpumem: 20000, nvidia.com/gpucores: 50" 'nvidia.com/use-gputype: "H200"' &&
        day_pod infer-a "nvidia.com/gpu: 1, nvidia.com/gpumem: 4000, nvidia.com/gpucores: 30" 'nvidia.com/use-gputype: "L4", nvidia.com/vgpu-mode: "hami-core"' &&
        day_pod infer-b "nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 25, nvidia.com/gpucores: 30" 'nvidia.com/use-gputype: "L4", nvidia.com/vgpu-mode: "hami-core"' &&
        has_room infer-a 9
}

an_instance_and_a_server_are_given() {
    day_pod cut "nvidia.com/gpu: 1, nvidia.com/gpumem: 9000" 'nvidia.com/vgpu-mode: "mig"' &&
        day_pod served "nvidia.com/gpu: 1, nvidia.com/gpumem: 5000, nvidia.com/gpucores: 30" 'nvidia.com/vgpu-mode: "mps"' &&
        [ "$(simulate_on node2 mig --json | jq '[.[].instances[]] | length')" = 1 ] && pgrep -f nvidia-cuda-mps-control
}

too_much_waits_and_says_why() {
    apply_asking greedy "nvidia.com/gpu: 1, nvidia.com/gpumem: 130000" "$holding" && waits greedy "node1: 2/2 Card" && gone greedy
}

promises() {
    [[ $(annotation "$1" vgpu-devices-allocated) == *",$2,"* ]]
}

a_slice_is_resized() {
    wish train '{"main": {"gpumem": 10000}}' && within 15 promises train 10000 && agree &&
        wish train '{"main": {"gpumem": 20000}}' && within 15 promises train 20000
}

# All that run count, wherever they do. The scheduler hears of a quota a moment after it is there.
a_quota_holds() {
    local code=0
    kubectl create quota day --hard=limits.nvidia.com/gpumem=60000 && within 10 is_beyond_the_quota || code=1
    kubectl delete quota day && return $code
}

is_beyond_the_quota() {
    local said
    ! said=$(apply_asking beyond "nvidia.com/gpu: 1, nvidia.com/gpumem: 50000" "$holding" 2>&1) || { gone beyond; return 1; }
    grep "exceeding resource quota" <<<"$said"
}

# Its own pods stay: they are of a DaemonSet.
a_node_is_drained() {
    kubectl drain node3 --ignore-daemonsets --delete-emptydir-data --force --timeout=60s && is_away infer-a && is_away served &&
        apply_asking infer-a "nvidia.com/gpu: 1, nvidia.com/gpumem: 4000" "$holding" || return
    kubectl uncordon node3 && day_pod infer-b "nvidia.com/gpu: 1, nvidia.com/gpumem: 4000" 'nvidia.com/use-gputype: "L4"' &&
        phase_is infer-a Running 40 && day_pod served "nvidia.com/gpu: 1, nvidia.com/gpumem: 5000" 'nvidia.com/vgpu-mode: "mps"'
}

# Who looks after the cluster takes its pod away, and another one waits for its place.
a_node_is_lost() {
    "$CLUSTER" stop node2 KILL && kubectl wait --for=condition=Ready=Unknown node/node2 --timeout=60s &&
        kubectl delete pod cut --force --grace-period=0 &&
        notes='nvidia.com/vgpu-mode: "mig"' apply_asking late "nvidia.com/gpu: 1, nvidia.com/gpumem: 70000" "$holding" &&
        ! phase_is late Running 2 >/dev/null || return
    "$CLUSTER" start node2 && phase_is late Running 60 || explain late
}

a_card_is_lost() {
    simulate_on node3 card lose --device 0 && within 20 have_slices_on node3 30 && simulate_on node3 card return --device 0 &&
        within 20 have_slices_on node3 40
}

# The books of those that run are the same before and after.
everything_is_upgraded() {
    local before
    before=$(kubectl get pods -o 'jsonpath={.items[*].status.containerStatuses[*].containerID}')
    day_helm upgrade --set devicePlugin.podAnnotations.upgraded=yes --set scheduler.podAnnotations.upgraded=yes || return
    [ "$(kubectl get pods -o 'jsonpath={.items[*].status.containerStatuses[*].containerID}')" = "$before" ] &&
        each_node_has_its_slices && day_pod after "nvidia.com/gpu: 1, nvidia.com/gpumem: 2000" && gone after
}

leader() {
    kubectl -n $chart_space get lease hami-scheduler -o 'jsonpath={.spec.holderIdentity}' | sed 's/_.*//'
}

leads_no_more() {
    [ -n "$(leader)" ] && [ "$(leader)" != "$1" ]
}

the_other_scheduler_takes_over() {
    local before
    before=$(leader)
    kubectl -n $chart_space delete pod "$before" --force --grace-period=0 && within 40 leads_no_more "$before" &&
        day_pod taken "nvidia.com/gpu: 1, nvidia.com/gpumem: 2000" && gone taken
}

the_server_is_started_anew() {
    "$CLUSTER" stop apiserver KILL && "$CLUSTER" start apiserver && within 40 apply_asking anew "nvidia.com/gpu: 1, nvidia.com/gpumem: 2000" "$holding" &&
        phase_is anew Running 40 && gone anew
}

everything_ends() {
    kubectl delete pod --all --timeout=60s && agree empty
}

# Files of slices stay on the nodes, as the documentation says; processes, daemons and instances do not.
nothing_is_left() {
    helm uninstall vgpu -n $chart_space --wait --timeout 60s && kubectl -n $chart_space wait --for=delete pod --all --timeout=60s || return
    kill "$chart_services"
    within 20 cluster_is_as_before || { diff "$CLUSTER_FOLDER/before-chart" <(everything_in_the_cluster); return 1; }
    ! pgrep -l 'vgpu-|nvidia-cuda-mps'
}

day_cases() {
    split=2
    check "three nodes with GPUs of different kinds are there" three_nodes_are_there || return
    step "all of it is installed on them" everything_is_installed || return
    step "each node has its slices" each_node_has_its_slices || return
    step "the less important gives way" the_less_important_gives_way
    step "training and inference run in slices" training_and_inference_run
    step "a pod has an instance, and one a part of a card that is served" an_instance_and_a_server_are_given
    step "too much waits, and says why" too_much_waits_and_says_why
    step "a slice becomes smaller, and as large as it was" a_slice_is_resized
    step "a quota of the namespace holds for all nodes" a_quota_holds
    step "a node is drained, and used again" a_node_is_drained
    step "a node is lost, and comes back" a_node_is_lost
    step "a card is lost, and comes back" a_card_is_lost
    step "each component is upgraded, and slices stay" everything_is_upgraded
    step "the other scheduler takes over" the_other_scheduler_takes_over
    step "the API server is started anew" the_server_is_started_anew
    check "all pods end, and nothing is used" everything_ends
    check "nothing is left after helm uninstall" nothing_is_left
}
