#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# node.sh FOLDER yes|no: the first process of the cluster's namespaces. It mounts what the programs expect, starts
# them, and then starts and stops them as FOLDER/control says. Its end is the end of everything in here.
# yes: with containerd and a kubelet; no: the control plane alone.
set -euo pipefail
folder=$1 with_kubelet=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
PATH=$binaries:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
is_own_containerd || PATH=$containerd_binaries:$PATH
declare -A pids

# What lies in memory only is gone with the namespace. Places that programs have built in: the kubelet's
# folder of device plugins, the links of container logs, the shims' sockets.
mount_own() {
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /var/lib/kubelet /var/lib/containerd /run/netns /run/containerd /run/etcd "$folder/log"
    chmod 700 /run/etcd
    mount -t tmpfs -o mode=755 tmpfs /var/lib/kubelet
    mount -t tmpfs -o mode=755 tmpfs /var/lib/containerd
    mkdir -p "$folder/var-log"
    mount --bind "$folder/var-log" /var/log
    mount -t sysfs sysfs /sys # else /sys/class/net is the host's
    mount_cgroups
    mount --make-rshared / # the kubelet and runc ask for shared propagation
}

mount_cgroups() {
    if [ -e "$folder/unified" ]; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        # processes live in leaves only
        mkdir -p /sys/fs/cgroup/programs
        echo 0 >/sys/fs/cgroup/programs/cgroup.procs
        for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
            echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
        done
        return
    fi
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    while IFS=: read -r _ controllers _; do
        [ -n "$controllers" ] || continue
        mkdir -p "/sys/fs/cgroup/${controllers#name=}"
        mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/${controllers#name=}"
    done </proc/self/cgroup
}

# The node's address is on a bridge without ports: kernels without dummy devices have that, too. Pods reach the
# API server at its service address by two rules; other services do not work here.
make_network() {
    ip link set lo up
    ip link add node0 type bridge
    ip address add "$node_address/24" dev node0
    ip address add "$service_address/32" dev node0
    ip link set node0 up
    ip route add default dev node0
    echo 1 >/proc/sys/net/ipv4/ip_forward
    [ "$with_kubelet" = yes ] || return 0
    for chain in PREROUTING OUTPUT; do
        iptables -t nat -A $chain -d $service_address -p tcp --dport 443 -j REDIRECT --to-ports 6443
    done
}

# program NAME COMMAND...: in the background, with its own log.
program() {
    local name=$1
    shift
    "$@" >>"$folder/log/$name" 2>&1 &
    pids[$name]=$!
}

start() {
    local keys=$folder/keys
    case $1 in
    etcd)
        program etcd etcd --data-dir /run/etcd --unsafe-no-fsync --log-level warn \
            --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
            --listen-peer-urls http://127.0.0.1:2380
        ;;
    apiserver)
        program apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
            --bind-address=0.0.0.0 --secure-port=6443 --advertise-address=$node_address \
            --tls-cert-file="$keys/apiserver.crt" --tls-private-key-file="$keys/apiserver.key" \
            --client-ca-file="$keys/ca.crt" --token-auth-file="$folder/tokens.csv" \
            --requestheader-client-ca-file="$keys/ca.crt" --requestheader-allowed-names=none \
            --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
            --requestheader-extra-headers-prefix=X-Remote-Extra- \
            --kubelet-client-certificate="$keys/admin.crt" --kubelet-client-key="$keys/admin.key" \
            --kubelet-preferred-address-types=InternalIP --allow-privileged=true \
            --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
            --service-account-issuer=https://kubernetes.default.svc \
            --service-account-key-file="$keys/accounts.pub" \
            --service-account-signing-key-file="$keys/accounts.key" \
            --service-cluster-ip-range=$service_network --profiling=false
        ;;
    manager)
        program manager kube-controller-manager --kubeconfig="$folder/manager.kubeconfig" \
            --authentication-kubeconfig="$folder/manager.kubeconfig" \
            --authorization-kubeconfig="$folder/manager.kubeconfig" --bind-address=127.0.0.1 \
            --leader-elect=false --kube-api-qps=1000 --kube-api-burst=2000 \
            --use-service-account-credentials=true --root-ca-file="$keys/ca.crt" \
            --service-account-private-key-file="$keys/accounts.key"
        ;;
    scheduler)
        program scheduler kube-scheduler --config="$folder/scheduler.yaml" --bind-address=127.0.0.1 \
            --authentication-kubeconfig="$folder/scheduler.kubeconfig" \
            --authorization-kubeconfig="$folder/scheduler.kubeconfig"
        ;;
    containerd)
        program containerd containerd --config "$folder/containerd.toml"
        ;;
    kubelet)
        program kubelet kubelet --config="$folder/kubelet.yaml" --kubeconfig="$folder/kubelet.kubeconfig" \
            --hostname-override=$node_name --node-ip=$node_address --v=2
        ;;
    *)
        say "no program is called $1"
        ;;
    esac
}

# stop NAME SIGNAL: comes back when it is gone, of which an API server with open watches has to be persuaded.
stop() {
    kill "-$2" "${pids[$1]}" || return 0
    case $2 in
    STOP | CONT) return ;;
    esac
    for _ in $(seq 50); do
        kill -0 "${pids[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "${pids[$1]}" 2>/dev/null || true
    wait "${pids[$1]}" || true
}

# Answers ok to the unknown only when its own roles are there; the controller manager must not start before.
is_ready() {
    printf 'GET /readyz HTTP/1.0\r\n\r\n' |
        openssl s_client -quiet -connect 127.0.0.1:6443 2>/dev/null | grep -q '^ok'
}

import_images() {
    until ctr version >/dev/null 2>&1; do sleep 0.1; done
    for image in "$folder"/images/*.tar; do
        ctr -n k8s.io images import "$image" >>"$folder/log/images" 2>&1
    done
}

# The processes of the pods and their shims; those that they leave become ours.
kill_pods() {
    local pid
    for pid in /proc/[0-9]*; do
        if grep -q kubepods "$pid/cgroup" 2>/dev/null || [ "$(cat "$pid/comm" 2>/dev/null)" = containerd-shim ]; then
            kill -KILL "${pid#/proc/}" 2>/dev/null || true
        fi
    done
}

unmount_below() {
    local at
    while read -r at; do
        umount -l "$at"
    done < <(awk -v below="$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
}

# As after a loss of power: disks keep what they have. The machine says that it was started anew by another boot id.
reboot() {
    local at
    for name in kubelet containerd; do
        kill -KILL "${pids[$name]}" 2>/dev/null || true
        wait "${pids[$name]}" || true
    done
    kill_pods
    sleep 0.2
    kill_pods
    for at in /run/containerd /run/netns /run/cni /run/cantaloupe /tmp/vgpulock; do
        unmount_below $at
        rm -rf $at
    done
    unmount_below /var/lib/kubelet/pods
    find /sys/fs/cgroup -depth -type d -path '*/kubepods/*' -exec rmdir {} + 2>/dev/null || true
    mkdir -p /run/netns /run/containerd
    cat /proc/sys/kernel/random/uuid >"$folder/boot-id"
    umount /proc/sys/kernel/random/boot_id 2>/dev/null || true
    mount --bind "$folder/boot-id" /proc/sys/kernel/random/boot_id
}

hostname $node_name
mount_own
make_network
mkfifo "$folder/control"
exec 3<>"$folder/control"
start etcd
start apiserver
if [ "$with_kubelet" = yes ]; then
    start containerd
    import_images
fi
until is_ready; do sleep 0.2; done
start manager
start scheduler
[ "$with_kubelet" = no ] || start kubelet
: >"$folder/ready"

# Each order is answered by a file, so that whoever gave it knows when it is done.
while read -r -u 3 order name signal answer; do
    case $order in
    start)
        start "$name"
        [ "$name" != apiserver ] || until is_ready; do sleep 0.1; done
        ;;
    stop) stop "$name" "$signal" ;;
    reboot) reboot ;;
    esac
    : >"$folder/answers/$answer"
done
