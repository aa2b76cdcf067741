# SPDX-License-Identifier: Apache-2.0
# A node whose cards are cut into instances (MIG); read by e2e.sh.
# shellcheck shell=bash disable=SC2154

# reservation INDEX PROFILE START SIZE: as the scheduler has it, of the first container's first device.
reservation() {
    printf '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"%s","profile":"%s","placement":{"start":%s,"size":%s}}]' \
        "$(gpu "$1")" "$2" "$3" "$4"
}

# instance INDEX PROFILE START: its UUID, where it is exactly there.
instance() {
    simulate mig --json | jq -r ".[$1].instances[] | select(.profile == \"$2\" and .start == $3) | .uuid"
}

has_instances() {
    [ "$(simulate mig --json | jq "[.[].instances[]] | length")" = "$1" ]
}

# instances_are COUNT: on all cards, soon.
instances_are() {
    within 20 has_instances "$1" && return
    simulate mig
    tail -n 20 "$CLUSTER_FOLDER/log/plugin"
    return 1
}

# cut NAME INDEX PROFILE START SIZE: a pod that keeps an instance.
cut_pod() {
    local instances
    instances=$(reservation "$2" "$3" "$4" "$5") keep "$1" "$(slot "$2" 1000 10)"
}

# sees NAME UUID: the instance and nothing else.
sees_instance() {
    local list
    # shellcheck disable=SC2016
    list=$(in_pod "$1" sh -c 'echo "$NVIDIA_VISIBLE_DEVICES"')
    [ -n "$2" ] && [ "$list" = "$2" ] && return
    echo "$1 sees '$list', and not '$2'"
    return 1
}

is_in_mode_mig() {
    [ "$(of_node '.metadata.annotations["hami.io/node-nvidia-register"]' |
        jq -r '[.[] | select(.mode == "mig" and .health and .count == 7 and .migProfiles)] | length')" = 2 ]
}

the_scheduler_is_told_of_profiles() {
    echo "{\"nodeconfig\": [{\"name\": \"$node_name\", \"operatingmode\": \"mig\"}]}" >"$CLUSTER_FOLDER/mig.json"
    restart_plugin --node-config-file "$CLUSTER_FOLDER/mig.json" && within 30 is_in_mode_mig && slices_are 20 60
}

# Of 16 GiB a context takes some.
a_pod_has_the_memory_of_its_instance() {
    cut_pod cut-a 0 1g.18gb 3 1 && sees_instance cut-a "$(instance 0 1g.18gb 3)" && lock_is_released && within 20 is_bound cut-a &&
        [[ $(annotation cut-a vgpu-mig-allocations) == *'"migUUID":"MIG-'* ]] && has_room cut-a 61
}

two_pods_share_a_card() {
    cut_pod cut-b 0 3g.71gb 4 4 && sees_instance cut-b "$(instance 0 3g.71gb 4)" && sees_instance cut-a "$(instance 0 1g.18gb 3)" &&
        instances_are 2
}

what_another_has_is_refused() {
    local instances
    instances=$(reservation 0 2g.35gb 4 2)
    start cut-x "$(slot 0 1000 10);" "$(container cut-x 1 true)" && is_refused cut-x "another container was given MIG-" &&
        lock_is_released && gone cut-x && instances_are 2
}

a_plugin_that_was_killed_keeps_them() {
    local before
    before=$(instance 0 1g.18gb 3)
    stop_plugin KILL
    restart_plugin --node-config-file "$CLUSTER_FOLDER/mig.json" && [ "$(instance 0 1g.18gb 3)" = "$before" ] &&
        sees_instance cut-a "$before" && instances_are 2
}

# As after a restart of the machine: the instances are there again when the kubelet hears of the slices.
what_the_machine_has_lost_is_made_again() {
    local before
    before=$(instance 0 1g.18gb 3)
    stop_plugin && simulate reset --force && simulate start --board h200x2 &&
        restart_plugin --node-config-file "$CLUSTER_FOLDER/mig.json" && [ "$(instance 0 1g.18gb 3)" = "$before" ] &&
        instances_are 2 && has_room cut-a 61
}

instances_go_with_their_pods() {
    gone cut-a && instances_are 1 && gone cut-b && instances_are 0
}

cards_are_whole_again() {
    stop_plugin && simulate mig off && restart_plugin && slices_are 20 20
}

mig_cases() {
    if ! [ -x "$build/src/plugin/vgpu-device-plugin" ]; then
        check "cards are cut into instances" return 77
        return
    fi
    check "the scheduler is told how cards can be cut" the_scheduler_is_told_of_profiles
    check "a pod has the instance that it reserved, and its memory" a_pod_has_the_memory_of_its_instance
    check "two pods share a card by instances" two_pods_share_a_card
    check "an instance that another pod has is refused" what_another_has_is_refused
    check "a plugin that was killed adopts what pods have" a_plugin_that_was_killed_keeps_them
    check "what a restart of the machine has taken is made again" what_the_machine_has_lost_is_made_again
    check "instances go with their pods" instances_go_with_their_pods
    check "cards are whole again" cards_are_whole_again
}
