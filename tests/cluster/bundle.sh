#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bundle.sh BUILD ARCHIVE: what a machine without a network lacks for a cluster with our programs in it, as one
# archive (tar, xz) of some 45 MiB. BUILD is a folder that was built with tests. Takes patchelf. The archive's folder is a
# cache: CANTALOUPE_CACHE=FOLDER CLUSTER_CONTAINERD=2 cluster.sh run --node e2e.sh FOLDER/build card minutes
#
# The machine needs glibc as new as this one's, bash, python3, curl, jq, openssl, util-linux, and root.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
CLUSTER_CONTAINERD=2
. "$here/names.sh"
build=$(readlink -f "$1") archive=$(readlink -m "$2")
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT

# What every machine has in the same or a newer version.
of_the_machine='/(ld-linux-[^/]*|libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+)\.so'

# bring FOLDER FILE...: with the libraries that they load, which they find by where they lie themselves.
bring() {
    local at=$to/$1 file library
    mkdir -p "$at" "$to/brought/lib"
    shift
    for file in "$@"; do
        install -m 755 -s "$file" "$at/"
        for library in $(ldd "$file" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p'); do
            [[ ! $library =~ $of_the_machine ]] && [[ $library != "$build"/* ]] || continue
            [ -e "$to/brought/lib/$(basename "$library")" ] || install -m 755 -s "$library" "$to/brought/lib/"
        done
    done
}

# What lies in FOLDER finds the libraries, theirs among them.
find_libraries() {
    local file up
    for file in "$to/$1"/*; do
        up=$(realpath --relative-to="$to/$1" "$to/brought/lib")
        [ -L "$file" ] || [ ! -f "$file" ] || ! ldd "$file" >/dev/null 2>&1 ||
            patchelf --force-rpath --set-rpath "\$ORIGIN/$up" "$file"
    done
}

bring "kubernetes-$kubernetes_version" "$binaries/kubernetes"
for name in $programs; do
    ln -s kubernetes "$to/kubernetes-$kubernetes_version/$name"
done
mkdir "$to/helm-$helm_version" # else it would be built there; nothing installs a chart
bring "containerd-$containerd_version" "$containerd_binaries"/*
bring brought/bin "$(command -v runc)" "$(command -v busybox)"
ln -s busybox "$to/brought/bin/ip"
bring brought/cni /usr/lib/cni/bridge /usr/lib/cni/host-local /usr/lib/cni/loopback
for file in src/plugin/vgpu-device-plugin src/scheduler/vgpu-scheduler src/monitor/vgpu-monitor src/cli/vgpu src/tenant/libvgpu.so \
    tests/gpu/client tests/plugin/grant-one sim/cuda/libcuda.so.1 sim/nvml/libnvidia-ml.so.1 sim/tool/vgpu-sim \
    sim/mps/nvidia-cuda-mps-control; do
    bring "build/${file%/*}" "$build/$file"
done
cp "$build/src/tenant/ld.so.preload" "$to/build/src/tenant/"
for folder in brought/bin brought/lib build/src/plugin build/src/scheduler build/src/monitor build/tests/plugin; do
    find_libraries "$folder"
done
chmod -R a+rX "$to"
# Go's programs have much in common, far apart.
tar -C "$to" -c --sort=name --owner=0 --group=0 . | xz --x86 --lzma2=preset=6,dict=256MiB -c >"$archive"
ls -l "$archive"
