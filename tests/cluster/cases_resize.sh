# SPDX-License-Identifier: Apache-2.0
# Running slices are made smaller and larger, as their pod's annotation asks for it; read by e2e.sh.
# shellcheck shell=bash disable=SC2154

# wish NAME JSON: "" takes it back.
wish() {
    merge "$(pod_path "$1")" "$(jq -cn --arg wish "$2" \
        '{metadata: {annotations: {"cantaloupe.io/resize": (if $wish == "" then null else $wish end)}}}')"
}

is_allocated() {
    [ "$(annotation "$1" vgpu-devices-allocated)" = "$2" ]
}

# has_become NAME SLOT BLOCKS: by what schedulers count, and by what a program gets.
has_become() {
    within 30 is_allocated "$1" "$2;" && within 30 has_room "$1" "$3"
}

# says_refused NAME WORDS: in an event.
says_refused() {
    kubectl get events --field-selector "involvedObject.name=$1,reason=VgpuResizeRefused" \
        -o jsonpath='{.items[*].message}' | grep -F "$2"
}

pods_begin() {
    [ -n "$plugin" ] || { the_kubelet_has_slices && make_tenant_image; } || return
    keep elastic "$(slot 0 5000 30)" && lock_is_released && keep stiff "$(slot 0 3000 30)" && lock_is_released &&
        has_room elastic 17 && has_room stiff 9
}

a_slice_becomes_smaller_and_as_large_as_it_was() {
    wish elastic '{"elastic": {"gpumem": 3000}}' && has_become elastic "$(slot 0 3000 30)" 9 &&
        wish elastic '{"elastic": {"gpumem": 5000, "gpucores": 20}}' && has_become elastic "$(slot 0 5000 20)" 17 &&
        has_room stiff 9 && [ "$(restarts elastic)" = 0 ]
}

# 141 GB has the device; 3,000 are another's.
more_than_the_device_has_is_refused() {
    wish elastic '{"elastic": {"gpumem": 141000}}' && within 30 says_refused elastic "would be granted, and it has" &&
        is_allocated elastic "$(slot 0 5000 20);" && has_room elastic 17 &&
        wish elastic '{"elastic": {"gpucores": 80}}' && within 30 says_refused elastic "percent of device" &&
        is_allocated elastic "$(slot 0 5000 20);"
}

what_is_not_understood_is_refused() {
    wish elastic '{"elastic": 1}' && within 30 says_refused elastic "no object" &&
        wish elastic '{"other": {"gpumem": 1}}' && within 30 says_refused elastic "without a slice" &&
        is_allocated elastic "$(slot 0 5000 20);"
}

# Who can write annotations, and no more, changes no share by the allocation alone.
an_allocation_alone_changes_nothing() {
    wish elastic "" && merge "$(pod_path elastic)" \
        "{\"metadata\": {\"annotations\": {\"hami.io/vgpu-devices-allocated\": \"$(slot 0 9000 90);\"}}}" || return
    sleep 2
    has_room elastic 17 && merge "$(pod_path elastic)" \
        "{\"metadata\": {\"annotations\": {\"hami.io/vgpu-devices-allocated\": \"$(slot 0 5000 20);\"}}}"
}

# The allocation says it, and the plugin was killed before the share did.
a_plugin_that_was_killed_goes_on() {
    stop_plugin KILL
    wish elastic '{"elastic": {"gpumem": 3000}}' && restart_plugin && has_become elastic "$(slot 0 3000 20)" 9
}

resize_cases() {
    check "two pods have slices of one device" pods_begin || return
    check "a slice becomes smaller, and as large as it was" a_slice_becomes_smaller_and_as_large_as_it_was
    check "more than the device has is refused" more_than_the_device_has_is_refused
    check "what is not understood is refused" what_is_not_understood_is_refused
    check "an allocation alone changes nothing" an_allocation_alone_changes_nothing
    check "a plugin that was killed goes on" a_plugin_that_was_killed_goes_on
    gone elastic stiff
}
