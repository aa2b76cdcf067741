#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What vgpu-device-plugin costs: bench/device_plugin.sh BUILD [BOARD [ALLOCATES [RESTARTS [IDLE_SECONDS]]]]
set -eu
build=$(realpath "${1:?a build folder with tests}")
export LD_LIBRARY_PATH="$build/sim/nvml"
exec "$build/tests/plugin/bench-device-plugin" "$build/src/plugin/vgpu-device-plugin" "$build/src/tenant/libvgpu.so" \
	"${2:-h200x8}" "${3:-500}" "${4:-1000}" "${5:-60}"
