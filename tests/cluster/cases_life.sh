# SPDX-License-Identifier: Apache-2.0
# Life after Allocate: what ends, restarts or is away keeps each container's slice, or restores it; read by e2e.sh. The pods
# thirty and sixty of cases_slices.sh run all the while.
# shellcheck shell=bash disable=SC2154

# holds NAME: a program in it has four blocks, until it is killed with its container.
holds() {
    in_pod "$1" sh -c "tenant --blocks 4 --hold 600000 >/tmp/held 2>&1 & until grep -q holding /tmp/held; do sleep 0.1; done"
}

# What the kubelet has been given for a container is not asked for again.
a_container_restarts_in_place() {
    local before given
    before=$(restarts thirty) given=$(plugin_says "slices are handed out")
    in_pod thirty touch /tmp/end && runs thirty $((before + 1)) && has_room thirty 9 &&
        [ "$(plugin_says "slices are handed out")" = "$given" ]
}

# firsts_are COUNT: so often the container of the pod killed has said what it got of its first three seconds.
firsts_are() {
    [ "$(grep -c '"busy"' "$CLUSTER_FOLDER/sim/first")" = "$1" ]
}

# first NUMBER: that part, in percent.
first() {
    sed -n 's/.*"busy": \([0-9.]*\),.*/\1/p' "$CLUSTER_FOLDER/sim/first" | awk "NR == $1 { printf \"%.0f\", 100 * \$1 }"
}

# Its shell ends with the program, and the container, with what was started to kill, with its shell.
kill_container() {
    # shellcheck disable=SC2016 # the container's own
    in_pod killed sh -c 'for p in /proc/[0-9]*; do grep -q compute-load $p/comm && kill -9 ${p#/proc/}; done' || true
}

# Its next program begins ten seconds later, as after a pause of the kubelet's, which is shorter here; another container works on the
# device all the while. What was under way at the death is charged, and not the time in between.
a_killed_container_has_its_share_again() {
    local load="compute-load shape=stream duration_us=500" began
    : >"$CLUSTER_FOLDER/sim/first"
    restart=Always start killed "$(slot 1 2000 50);$(slot 1 2000 40);" "$(container main 1 \
        "[ ! -s /sim/first ] || sleep 10; $load seconds=3 >>/sim/first; $load seconds=600 >/dev/null; exit 1" &&
        container other 1 "$load seconds=600 >/dev/null")" && lock_is_released && within 60 firsts_are 1 && sleep 1 &&
        kill_container || return 1
    began=$SECONDS
    within 60 firsts_are 2 || return 1
    figure "$(first 1) and, $((SECONDS - began - 3)) s after its death, $(first 2) %"
    [ $((SECONDS - began)) -ge 12 ] && [ "$(first 2)" -ge 25 ] && gone killed
}

# The books of those that run are the same before and after: four blocks of nine, and another context.
a_plugin_restarts_under_pods() {
    local before
    before=$(restarts thirty)
    holds thirty && has_room thirty 3 && restart_plugin && slices_are 20 20 && has_room thirty 3 && has_room sixty 17 &&
        [ "$(restarts thirty)" = "$before" ]
}

# A new version's library is for new pods; those that run, and start again, have theirs.
a_plugin_is_upgraded() {
    local before
    before=$(restarts sixty)
    restart_plugin --program "$build/tests/plugin/vgpu-device-plugin-next" || return
    has_room thirty 3 && start newer "$(slot 1 1000 0);" "$(container main 1 \
        'grep libvgpu /proc/self/mountinfo; tenant')" && phase_is newer Succeeded &&
        says newer main "took 1 x 256 MiB" && says newer main libvgpu.so.next || return 1
    in_pod sixty touch /tmp/end && runs sixty $((before + 1)) && has_room sixty 17 &&
        in_pod sixty cat /proc/self/mountinfo | grep -v 'libvgpu.so.next' | grep 'vgpu/libvgpu.so' && lock_is_released &&
        gone newer && restart_plugin && has_room sixty 17
}

# The kubelet forgets its plugins, and those that run go on.
a_kubelet_restarts_under_pods() {
    local before known
    before=$(plugin_says "registered with the kubelet") known=$(restarts thirty)
    "$CLUSTER" stop kubelet && "$CLUSTER" start kubelet && within 20 has_said_more_often "registered with the kubelet" "$before" &&
        slices_are 20 30 && within 30 has_room thirty 3 && [ "$(restarts thirty)" = "$known" ] &&
        start after "$(slot 1 1000 0);" "$(container main 1 tenant)" && phase_is after Succeeded &&
        says after main "took 1 x 256 MiB" && lock_is_released && gone after
}

# start_stopped NAME: a pod that the kubelet asks for while the plugin does not answer.
start_stopped() {
    kill -STOP "$plugin" && start "$1" "$(slot 0 1000 0);" "$(container main 1 tenant)" && within 30 kubelet_waits
}

another_pod_has_its_slice() {
    start "$1" "$(slot 0 1000 0);" "$(container main 1 tenant)" && phase_is "$1" Succeeded &&
        says "$1" main "took 1 x 256 MiB" && within 20 is_bound "$1" && lock_is_released && gone "$1"
}

a_pod_is_deleted_during_allocate() {
    start_stopped deleted && gone deleted && kill -CONT "$plugin" && lock_is_released 20 && another_pod_has_its_slice heir
}

# The kubelet gives the pod up; the next plugin releases the lock and marks the pod.
a_plugin_is_killed_during_allocate() {
    start_stopped killed && stop_plugin KILL
    is_refused killed "" && [ -n "$(lock_of_node)" ] && restart_plugin && lock_is_released 20 &&
        within 30 is_in_phase killed failed && slices_are 20 20 && another_pod_has_its_slice heir && gone killed
}

# It takes what it is asked, and answers nothing.
the_server_goes_away() {
    "$CLUSTER" stop apiserver STOP
}

the_server_is_back() {
    "$CLUSTER" stop apiserver CONT
}

a_server_is_away_for_a_moment() {
    start_stopped patient && the_server_goes_away && kill -CONT "$plugin" && sleep 1.5
    the_server_is_back && phase_is patient Succeeded && says patient main "took 1 x 256 MiB" && within 20 is_bound patient &&
        lock_is_released && gone patient
}

# The kubelet waits ten seconds at most. What is left half done is made good when the server is there.
a_server_is_away_during_allocate() {
    local before
    before=$(plugin_says "Allocate took too long\|Allocate failed")
    start_stopped away && the_server_goes_away && kill -CONT "$plugin" &&
        within 20 has_said_more_often "Allocate took too long\|Allocate failed" "$before"
    the_server_is_back && is_refused away "" && lock_is_released 30 &&
        within 30 is_in_phase away failed && another_pod_has_its_slice heir && gone away
}

# kubelet_was_first NAME: the kubelet came to the pod before the plugin had come to the kubelet, and refused the pod itself:
# it knew no such resource, or knew it from its checkpoint without a device.
kubelet_was_first() {
    has_failed_with "$1" unregistered || has_failed_with "$1" "no healthy devices present"
}

# is_decided NAME RESTARTS: it runs again, or the kubelet has refused it.
is_decided() {
    runs_since_restart "$1" "$2" || kubelet_was_first "$1"
}

# What lay in memory is gone, and the kubelet mounts what its checkpoint says. Pods that the kubelet refuses are begun anew:
# what is never seen is one without its slice.
a_node_is_booted() {
    local before thirty sixty
    before=$(plugin_says "registered with the kubelet")
    thirty=$(($(restarts thirty) + 1)) sixty=$(($(restarts sixty) + 1))
    stop_plugin
    "$CLUSTER" reboot && [ ! -e $turns ] && start_plugin && "$CLUSTER" start containerd && "$CLUSTER" start kubelet &&
        within 30 has_said_more_often "registered with the kubelet" "$before" && slices_are 20 30 || return 1
    within 60 is_decided thirty $thirty && within 60 is_decided sixty $sixty
    if kubelet_was_first thirty || kubelet_was_first sixty; then
        figure "the kubelet was first"
        thirty=0 sixty=0
        gone thirty sixty && pods_that_stay_begin || return 1
    fi
    runs thirty $thirty && runs sixty $sixty && within 30 has_room thirty 9 && has_room sixty 17 && own_records_are_files &&
        share_as_told
}

own_records_are_files() {
    # shellcheck disable=SC2016 # the container's own
    in_pod thirty sh -c 'test -f /run/vgpu-turns/*/$(sed -n "s/^slice //p" /etc/vgpu/share)'
}

slices_go_with_the_plugin() {
    stop_plugin && slices_are 0 20 && restart_plugin && slices_are 20 20
}

life_cases() {
    check "a container that restarts in place keeps its slice" a_container_restarts_in_place
    check "a container that is killed has its share when it starts again" a_killed_container_has_its_share_again
    check "a plugin restarts under running pods" a_plugin_restarts_under_pods
    check "a plugin is upgraded under running pods" a_plugin_is_upgraded
    check "a kubelet restarts under running pods" a_kubelet_restarts_under_pods
    check "a pod is deleted while Allocate runs" a_pod_is_deleted_during_allocate
    check "a plugin is killed while Allocate runs" a_plugin_is_killed_during_allocate
    check "the API server is away for a moment while Allocate runs" a_server_is_away_for_a_moment
    check "the API server is away while Allocate runs" a_server_is_away_during_allocate
    check "a node is booted with nothing in /run" a_node_is_booted
    check "slices go with the plugin, and come again" slices_go_with_the_plugin
}
