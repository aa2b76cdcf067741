# SPDX-License-Identifier: Apache-2.0
# How a container's runtime is told of its devices; read by e2e.sh.
# shellcheck shell=bash disable=SC2154

sees() {
    start "$1" "$(slot 1 1000 0);" "$(container main 1 "$2")" && phase_is "$1" Succeeded && says "$1" main "$3" &&
        lock_is_released && gone "$1"
}

devices_are_named_in_the_environment() {
    # shellcheck disable=SC2016 # the container's own
    sees envvar 'echo seen: $NVIDIA_VISIBLE_DEVICES' "seen: $(gpu 1)"
}

devices_are_named_by_mounts() {
    # shellcheck disable=SC2016
    restart_plugin --device-list-strategy volume-mounts && slices_are 20 20 &&
        sees mounts 'echo seen: $NVIDIA_VISIBLE_DEVICES $(ls $NVIDIA_VISIBLE_DEVICES)' \
            "seen: /var/run/nvidia-container-devices $(gpu 1)" && restart_plugin && slices_are 20 20
}

strategies_cases() {
    check "envvar names the devices in the environment" devices_are_named_in_the_environment
    check "volume-mounts names them by mounts" devices_are_named_by_mounts
}
