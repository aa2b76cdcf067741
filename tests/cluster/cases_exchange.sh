# SPDX-License-Identifier: Apache-2.0
# HAMi's scheduler and device plugin are exchanged for ours under running pods, one by one, and back; read by e2e.sh. Theirs are
# theirs.py and other-plugin, which write and read what the protocol says; their library is ours, by its variables alone.
# shellcheck shell=bash disable=SC2154
their_plugin='' watcher=''
their_account=system:serviceaccount:kube-system:hami-device-plugin

theirs() {
    python3 "$here/theirs.py" "$@"
}

# start_theirs VERSION: their plugin, and what it registers.
start_theirs() {
    local socket=/var/lib/kubelet/device-plugins/nvidia-gpu.sock
    theirs register "$1" || return
    jq -r '.[] | . as $row | range($row.count) | "\($row.id)-\(.)"' "$CLUSTER_FOLDER/their-devices" >"$CLUSTER_FOLDER/their-slices"
    "$build/tests/plugin/other-plugin" $socket "$(command -v python3)" "$here/theirs.py" allocate \
        <"$CLUSTER_FOLDER/their-slices" >>"$CLUSTER_FOLDER/log/theirs" 2>&1 &
    their_plugin=$!
}

# stop_theirs [SIGNAL]: its socket goes with it, where it is not killed.
stop_theirs() {
    [ -n "$their_plugin" ] || return 0
    kill "-${1:-TERM}" "$their_plugin"
    wait "$their_plugin"
    [ "${1:-TERM}" = KILL ] || rm -f /var/lib/kubelet/device-plugins/nvidia-gpu.sock
    their_plugin=
}

# own_account NAME RULES: with a key and what HAMi's chart lets it do.
own_account() {
    (
        folder=$CLUSTER_FOLDER
        . "$here/configure.sh"
        kubeconfig "$1" "/CN=system:serviceaccount:kube-system:$1"
    ) && kubectl apply -f - <<END
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $1}, rules: [$2]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $1}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $1}
subjects: [{kind: ServiceAccount, name: $1, namespace: kube-system}]
END
}

install_theirs() {
    own_account hami-device-plugin '{apiGroups: [""], resources: [pods], verbs: [get, create, watch, list, update, patch]},
        {apiGroups: [""], resources: [nodes], verbs: [get, update, list, patch]}' &&
        own_account hami-scheduler '{apiGroups: [""], resources: [pods, nodes], verbs: [get, list, watch, patch]},
        {apiGroups: [""], resources: [pods/binding], verbs: [create]}' &&
        mkdir -p "$hook/vgpu" && cp "$build/src/tenant/libvgpu.so" "$hook/vgpu/libvgpu.so.2.10.0" &&
        echo "$hook/vgpu/libvgpu.so" >"$hook/vgpu/ld.so.preload"
}

# Which devices there are says ours, once.
a_plugin_of_theirs_has_the_node() {
    [ -x "$build/tests/plugin/other-plugin" ] || return 77
    [ -n "$plugin" ] || { the_kubelet_has_slices && make_tenant_image; } || return
    of_node '.metadata.annotations["hami.io/node-nvidia-register"]' >"$CLUSTER_FOLDER/their-devices"
    gone thirty sixty
    stop_plugin
    install_theirs && start_theirs 2.6 && slices_are 20 20
}

# In the place of gpu(), which reads what ours has registered.
their_slot() {
    echo "$(jq -r ".[$1].id" "$CLUSTER_FOLDER/their-devices"),NVIDIA,$2,$3:"
}

stays="until [ -e /tmp/end ]; do sleep 0.1; done"

# staying NAME SCHEDULER CONTAINERS [INIT-CONTAINERS]: waits for who is named. Variable: notes, its annotations.
staying() {
    cat <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${notes:-}}}
spec:
  schedulerName: $2
  restartPolicy: ${restart:-Always}
  terminationGracePeriodSeconds: 0
  volumes: [{name: sim, hostPath: {path: $CLUSTER_FOLDER/sim}}]
  containers:
$3
END
    [ -z "${4:-}" ] || printf '  initContainers:\n%s\n' "$4"
}

# their_pod NAME VERSION SLOTS CONTAINERS [INIT-CONTAINERS]: is bound by a scheduler of that version.
their_pod() {
    staying "$1" theirs "$4" "${5:-}" | create && theirs bind "$1" "$2" "$3"
}

is_served() {
    runs "$1" && within 30 is_bound "$1" && lock_is_released
}

# Init containers without devices, and idle ones, are where the versions differ.
pods_of_their_schedulers_run() {
    local main init idle
    main=$(container main 1 "$stays") init=$(container init 0 true) idle=$(container idle 0 "$stays")
    notes='test/region: "0"' their_pod v26 2.6 ";$(their_slot 0 3000 30);" "$main" "$init" && is_served v26 &&
        notes='test/region: "1"' their_pod v28 2.8 ";$(their_slot 1 2000 20);;" "$main
$idle" "$init" && is_served v28 &&
        their_pod v29 2.9 ";$(their_slot 0 5000 10);" "$main" "$init" && is_served v29 &&
        their_pod v210 2.10 ";$(their_slot 0 3000 20)$(their_slot 1 3000 20);" "$idle
$(container main 2 "$stays")" && is_served v210 && has_room v29 17
}

our_scheduler_counts_what_they_hold() {
    trusted=$trusted,$their_account bring_scheduler_up && theirs agree >>"$figures" || { cat "$figures"; return 1; }
}

# our_pod NAME LIMITS: as our scheduler places it.
our_pod() {
    notes="nvidia.com/use-gpuuuid: $(jq -r ".[${3:-0}].id" "$CLUSTER_FOLDER/their-devices")" staying "$1" hami-scheduler \
        "$(container main 0 "$stays" "    resources: {limits: {nvidia.com/gpu: 1, $2}}")" | create
}

waits_for_a_node() {
    kubectl wait --for=condition=PodScheduled=False "pod/$1" --timeout=20s
}

# left DEVICE: MiB and cores that nobody has, as theirs would count.
left() {
    theirs usage | jq -r --argjson rows "$(cat "$CLUSTER_FOLDER/their-devices")" \
        "\$rows[$1] as \$row | .[\$row.id] as \$used | \"\(\$row.devmem - \$used[1]) \(100 - \$used[2])\""
}

# All that is left, and then there is nothing.
a_pod_gets_exactly_what_is_left() {
    local memory cores
    read -r memory cores <<<"$(left 0)"
    figure "$memory MiB and $cores %"
    our_pod over "nvidia.com/gpumem: $((memory + 1)), nvidia.com/gpucores: $cores" && waits_for_a_node over && gone over &&
        our_pod rest "nvidia.com/gpumem: $memory, nvidia.com/gpucores: $cores" && is_served rest && theirs reads rest &&
        our_pod more "nvidia.com/gpumem: 1" && waits_for_a_node more && theirs agree >>"$figures" && gone more
}

state_of_containers() {
    kubectl get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID} {.status.containerStatuses[*].restartCount}{"\n"}{end}'
}

# Folder, mode and number on the disk of what they have made; what stands in the regions is the containers'.
state_of_folders() {
    (cd "$hook/vgpu/containers" && find . -name "*.cache" -printf '%p %m %i %s\n' | sort)
}

watch_node() {
    python3 "$here/theirs.py" watch >"$CLUSTER_FOLDER/states" &
    watcher=$!
    within 30 test -s "$CLUSTER_FOLDER/states"
}

stop_watching() {
    [ -n "$watcher" ] || return 0
    kill "$watcher"
    wait "$watcher"
    watcher=
}

# node_kept LEAST: what it had all the while: both devices, and so many slices at least.
node_kept() {
    stop_watching
    figure "$(awk '{ print $2 }' "$CLUSTER_FOLDER/states" | sort -n | head -n 1) slices at least"
    awk -v least="$1" '$1 != 2 || $2 < least { print; bad = 1 } END { exit bad }' "$CLUSTER_FOLDER/states"
}

our_plugin_takes_the_node_over() {
    local containers folders
    containers=$(state_of_containers) folders=$(state_of_folders)
    watch_node || return
    stop_theirs
    restart_plugin && slices_are 20 20 && [ "$(state_of_containers)" = "$containers" ] &&
        [ "$(state_of_folders)" = "$folders" ] && has_room v29 17 && node_kept 0 &&
        of_node '.metadata.annotations["hami.io/node-nvidia-register"]' | jq -e '.[0].type == "NVIDIA H200" and length == 2'
}

# The kubelet mounts what they have said once, and asks ours nothing, also after it has forgotten its plugins.
their_containers_start_again() {
    local given before known
    before=$(restarts v29) given=$(plugin_says "slices are handed out")
    in_pod v29 touch /tmp/end && runs v29 $((before + 1)) && has_room v29 17 || return
    known=$(plugin_says "registered with the kubelet")
    "$CLUSTER" stop kubelet && "$CLUSTER" start kubelet && within 20 has_said_more_often "registered with the kubelet" "$known" &&
        slices_are 20 30 && within 30 has_room v29 17 && [ "$(restarts v29)" = $((before + 1)) ] &&
        [ "$(plugin_says "slices are handed out")" = "$given" ]
}

# regions_are_told: half of what they may have, by regions of both versions.
the_monitor_tells_their_regions() {
    local folders
    folders=$(state_of_folders)
    account vgpu-monitor && kubectl apply -f "$here/../../deploy/monitor-rbac.yaml" && start_monitor &&
        within 30 is_told $((1500 << 20)) hami_vgpu_memory_used_bytes 'pod="v26"' 'container="main"' &&
        within 30 is_told $((3000 << 20)) hami_vgpu_memory_limit_bytes 'pod="v26"' &&
        within 30 is_told $((1000 << 20)) hami_vgpu_memory_used_bytes 'pod="v28"' &&
        within 30 is_told $((5000 << 20)) hami_vgpu_memory_limit_bytes 'pod="v29"' &&
        [ "$(state_of_folders)" = "$folders" ] && stop_monitor || { monitor_asks /metrics | grep hami_vgpu; return 1; }
}

ours_are_given_beside_theirs() {
    our_pod ours "nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30" 1 && is_served ours && has_room ours 9 && theirs reads ours &&
        theirs agree >>"$figures"
}

# None of ours is there any more: their plugin and scheduler have the node, and each slice goes on.
theirs_take_the_node_back() {
    local containers memory cores
    containers=$(state_of_containers)
    leave_the_scheduler && watch_node || return
    stop_plugin
    start_theirs 2.10 && slices_are 20 20 && [ "$(state_of_containers)" = "$containers" ] && node_kept 0 && has_room ours 9 || return
    in_pod ours touch /tmp/end && runs ours 1 && has_room ours 9 && has_room v29 17 || return
    read -r memory cores <<<"$(left 1)"
    figure "$memory MiB and $cores % are left"
    [ "$memory $cores" = "135771 30" ] &&
        their_pod back 2.10 "$(their_slot 1 "$memory" "$cores");" "$(container main 1 "$stays")" && is_served back
}

# The kubelet knows a plugin by its resource's name: when theirs ends it drops ours.
our_plugin_begins_beside_theirs() {
    local signal before
    for signal in TERM KILL; do
        [ -n "$their_plugin" ] || start_theirs 2.10
        watch_node && slices_are 20 20 && before=$(plugin_says "registered with the kubelet") && start_plugin &&
            within 20 has_said_more_often "registered with the kubelet" "$before" || return
        before=$(plugin_says "registered with the kubelet")
        stop_theirs $signal
        within 20 has_said_more_often "registered with the kubelet" "$before" && slices_are 20 20 && node_kept 0 &&
            has_room v29 17 || return
        [ $signal = KILL ] || stop_plugin
    done
}

# A lock of a version that wrote no owner, and slots as two versions have them.
our_plugin_serves_their_scheduler() {
    local main init
    main=$(container main 1 tenant) init=$(container init 0 true)
    gone rest back
    restart=Never their_pod bare 2.6 ";$(their_slot 0 3000 30);" "$main" "$init" && phase_is bare Succeeded &&
        says bare main "took 9 x 256 MiB" && within 20 is_bound bare && lock_is_released &&
        restart=Never their_pod dropped 2.10 ";$(their_slot 1 2000 20);" "$(container idle 0 true)
$main" && phase_is dropped Succeeded && says dropped main "took 5 x 256 MiB" && within 20 is_bound dropped && lock_is_released
}

leave_the_exchange() {
    kubectl delete pod --all --grace-period=0 --force --timeout=30s >/dev/null 2>&1
    kubectl delete clusterrolebinding,clusterrole hami-device-plugin hami-scheduler &&
        merge /api/v1/nodes/$node_name '{"metadata": {"annotations": {"hami.io/node-handshake": null}}}'
}

exchange_cases() {
    check "a plugin of HAMi's has the node" a_plugin_of_theirs_has_the_node || return
    check "pods that HAMi's schedulers from 2.6 to 2.10 bound run" pods_of_their_schedulers_run || return
    check "our scheduler takes over, and counts what they hold" our_scheduler_counts_what_they_hold || return
    check "under HAMi's plugin a new pod gets exactly what is left" a_pod_gets_exactly_what_is_left
    check "our plugin takes the node over, and their slices and folders stay" our_plugin_takes_the_node_over || return
    check "their containers start again with what they had" their_containers_start_again
    check "the monitor tells regions of versions 0 and 1" the_monitor_tells_their_regions
    check "slices of ours are given beside theirs" ours_are_given_beside_theirs
    check "HAMi's plugin and scheduler take the node back, and our slices go on" theirs_take_the_node_back
    check "our plugin begins while HAMi's is there, which then ends or is killed" our_plugin_begins_beside_theirs
    check "our plugin serves pods of HAMi's schedulers" our_plugin_serves_their_scheduler
    check "the exchange ends" leave_the_exchange
}
