# SPDX-License-Identifier: Apache-2.0
# The roles of the device plugin and the monitor are as small as can be; read by e2e.sh. The scheduler's: rbac.py.
# shellcheck shell=bash disable=SC2154
plugin_roles="$here/../../deploy/cantaloupe.yaml vgpu-device-plugin"
monitor_roles="$here/../../deploy/monitor-rbac.yaml vgpu-monitor"

# account NAME: a kubeconfig of the account of that name.
account() {
    (
        folder=$CLUSTER_FOLDER
        . "$here/configure.sh"
        kubeconfig "$1" "/CN=system:serviceaccount:kube-system:$1"
    )
}

# refusals LOG FROM [VERB RESOURCE]: of the API server, in a log from that byte on.
refusals() {
    tail -c "+$(($2 + 1))" "$1" | grep -oE 'cannot [a-z]+ resource [\\]*"[a-z]+' | tr -d '\\"' | sort -u | grep -x "${3:+cannot $3 resource ${4:-}}.*"
}

# each_verb_is_needed LOG ROLES EXERCISE: with all of them EXERCISE goes well and nothing is refused; without any it fails, or the refusal
# is in the log, with which EXERCISE ends.
each_verb_is_needed() {
    local log_file=$1 roles=$2 exercise=$3 verb resource unneeded='' count=0 from enough=()
    : >>"$log_file" && python3 "$here/roles.py" apply $roles && from=$(stat -c %s "$log_file") && $exercise 0 || return
    ! refusals "$log_file" "$from" || return
    while read -r verb resource <&3; do
        count=$((count + 1))
        python3 "$here/roles.py" take $roles "$verb" "$resource" || return
        from=$(stat -c %s "$log_file")
        enough=(refusals "$log_file" "$from" "$verb" "$resource")
        ! $exercise $count || within 5 refusals "$log_file" "$from" "$verb" "$resource" || {
            unneeded+=" $verb $resource;"
            tail -c "+$((from + 1))" "$log_file" | tail -n 20
        }
    done 3< <(python3 "$here/roles.py" verbs $roles)
    python3 "$here/roles.py" apply $roles || return
    figure "$count verbs"
    [ -z "$unneeded" ] || echo "not needed:$unneeded"
    [ -z "$unneeded" ] && [ $count -gt 0 ]
}

# plugin_works NUMBER: the lock of a pod that is gone is released, a pod is served, and a wish that cannot be is refused in an event.
plugin_works() {
    local before name=roles-$1
    stop_plugin
    lock "nobody-$1"
    before=$(plugin_says "registered with the kubelet")
    KUBECONFIG=$CLUSTER_FOLDER/vgpu-device-plugin.kubeconfig start_plugin
    within 20 has_said_more_often "registered with the kubelet" "$before" && within 20 have_slices 20 && lock_is_released 15 || return
    start "$name" "$(slot 0 1000 0);" "$(container "$name" 1 "sleep 60")" && within 20 runs_since_restart "$name" 0 &&
        wish "$name" "{\"$name\": 1}" && within 10 says_refused "$name" "no object"
    local code=$?
    gone "$name" && kubectl wait --for=delete "pod/$name" --timeout=30s
    return $code
}

the_plugin_is_ready_for_less() {
    { [ -n "$plugin" ] || { the_kubelet_has_slices && make_tenant_image; }; } && account vgpu-device-plugin && account vgpu-monitor
}

each_verb_of_the_plugin_is_needed() {
    each_verb_is_needed "$CLUSTER_FOLDER/log/plugin" "$plugin_roles" plugin_works
}

# A container's process is outside its slice.
monitor_works() {
    stop_monitor
    start_monitor && within 20 is_told 1 vgpu_container_is_violating 'pod="outside"' 'kind="untracked"'
}

each_verb_of_the_monitor_is_needed() {
    keep outside "$(slot 0 3000 30)" && lock_is_released && make_own_loader outside || return
    a_process outside /tmp/loader
    each_verb_is_needed "$CLUSTER_FOLDER/log/monitor" "$monitor_roles" monitor_works
    local code=$?
    gone outside && stop_monitor && return $code
}

roles_cases() {
    check "the device plugin has slices" the_plugin_is_ready_for_less || return
    check "each verb of the device plugin's role is needed" each_verb_of_the_plugin_is_needed
    check "the device plugin is back" restart_plugin
    check "each verb of the monitor's role is needed" each_verb_of_the_monitor_is_needed
}
