# SPDX-License-Identifier: Apache-2.0
# Devices are specified by CDI, which takes containerd 2; read by e2e.sh. The image has no driver: what a program of CUDA's needs of
# it comes by the specification, from a driver's root that is made of the simulated node's libraries.
# shellcheck shell=bash disable=SC2154
driver_version=580.95.05

make_driver_root() {
    local root=$CLUSTER_FOLDER/driver
    mkdir -p "$root/usr/lib64" "$root/dev"
    cp "$build/sim/cuda/libcuda.so.1" "$root/usr/lib64/libcuda.so.$driver_version"
    cp "$build/sim/nvml/libnvidia-ml.so.1" "$root/usr/lib64/libnvidia-ml.so.$driver_version"
    for name in nvidia0 nvidia1 nvidiactl nvidia-uvm; do
        mknod -m 666 "$root/dev/$name" c 1 3 || return 1
    done
}

# start_with STRATEGY
start_with() {
    mkdir -p "$CLUSTER_FOLDER/sim"
    restart_plugin --device-list-strategy "$1" --nvidia-driver-root "$CLUSTER_FOLDER/driver" \
        --driver-root-ctr-path "$CLUSTER_FOLDER/driver" --nvidia-cdi-hook-path "" && slices_are 20 20
}

# The second device, with its file, the driver's libraries, and no name of it in the environment. The simulated driver knows no
# files of devices: what a real one sees by them is said to it.
a_device_comes_by() {
    start_with "$1" && start "$1" "$(slot 1 3000 0);" "$(container main 1 \
        'export LD_LIBRARY_PATH=/usr/lib64; echo seen: $NVIDIA_VISIBLE_DEVICES $(ls /dev | grep nvidia);
            NVIDIA_VISIBLE_DEVICES=$(ls /dev | sed -n s/^nvidia//p | grep ^[0-9]) tenant')" &&
        phase_is "$1" Succeeded && says "$1" main "seen: void nvidia-uvm nvidia1 nvidiactl" &&
        says "$1" main "took 9 x 256 MiB" && lock_is_released && gone "$1"
}

cdi_cases() {
    check "an image with programs of CUDA's is made" make_tenant_image || return
    check "a driver's root is made" make_driver_root || return
    check "cdi-cri names the devices to the runtime" a_device_comes_by cdi-cri
    check "cdi-annotations name them by the container's annotations" a_device_comes_by cdi-annotations
}
