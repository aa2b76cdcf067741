# SPDX-License-Identifier: Apache-2.0
# The device plugin on the node itself, whose devices are a simulated machine of its own, or real (CLUSTER_CARD=real); read by
# e2e.sh.
# shellcheck shell=bash disable=SC2154
hook=$CLUSTER_FOLDER/hook
turns=/run/cantaloupe/turns
plugin=
: >>"$CLUSTER_FOLDER/log/plugin"

# start_plugin [OPTION...]: with --program FILE another one than that of the build. Variable: split, slices of a device.
start_plugin() {
    local program=$build/src/plugin/vgpu-device-plugin
    if [ "${1:-}" = --program ]; then
        program=$2
        shift 2
    fi
    [ -x "$program" ] || return 77
    mkdir -p "$CLUSTER_FOLDER/sim"
    cat >"$CLUSTER_FOLDER/device-config.yaml" <<END
nvidia: {resourceCountName: nvidia.com/gpu, deviceSplitCount: ${split:-10}}
cantaloupe: {honourDisableControl: false}
END
    local devices=(LD_LIBRARY_PATH="$build/sim/nvml" VGPU_SIM_STATE="$CLUSTER_FOLDER/sim/machine" VGPU_SIM_BOARD=h200x2)
    [ "${CLUSTER_CARD:-}" != real ] || devices=()
    env "${devices[@]}" NODE_NAME=$node_name HOOK_PATH="$hook" \
        "$program" --config-file "$CLUSTER_FOLDER/device-config.yaml" --state-folder "$CLUSTER_FOLDER/state" \
        --library "$build/src/tenant/libvgpu.so" "$@" >>"$CLUSTER_FOLDER/log/plugin" 2>&1 &
    plugin=$!
}

# stop_plugin [SIGNAL]: one that is stopped, too.
stop_plugin() {
    [ -n "$plugin" ] || return 0
    kill "-${1:-TERM}" "$plugin" 2>/dev/null
    kill -CONT "$plugin" 2>/dev/null
    wait "$plugin"
    plugin=
}

# plugin_says WORDS: how often it did.
plugin_says() {
    grep -c -- "$1" "$CLUSTER_FOLDER/log/plugin"
}

has_said_more_often() {
    [ "$(plugin_says "$1")" -gt "$2" ]
}

# restart_plugin [OPTION...]: and wait until the kubelet knows it.
restart_plugin() {
    local before
    stop_plugin
    before=$(plugin_says "registered with the kubelet")
    start_plugin "$@" && within 20 has_said_more_often "registered with the kubelet" "$before"
}

have_slices() {
    [ "$(of_node '.status.allocatable["nvidia.com/gpu"]')" = "$1" ]
}

# slices_are COUNT SECONDS: which the kubelet hands out.
slices_are() {
    within "$2" have_slices "$1" && return
    of_node .status.allocatable
    tail -n 20 "$CLUSTER_FOLDER/log/plugin"
    return 1
}

# The kubelet has asked for something, and the plugin, which is stopped, has not read it yet.
kubelet_waits() {
    ss -xnH | awk '/nvidia-gpu.sock/ && $3 > 0 { found = 1 } END { exit !found }'
}

simulate() {
    VGPU_SIM_STATE=$CLUSTER_FOLDER/sim/machine "$build/sim/tool/vgpu-sim" "$@"
}
