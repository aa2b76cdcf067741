#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# node.sh FOLDER yes|no|alone: the first process of the cluster's namespaces. It mounts what the programs expect, starts
# them, and then starts and stops them as FOLDER/control says. Its end is the end of everything in here.
# yes: with containerd and a kubelet; no: the control plane alone; alone: containerd and a kubelet, as the node CLUSTER_NODE,
# in namespaces of its own inside of those of the first.
set -euo pipefail
folder=$1 with_kubelet=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
. "$here/configure.sh"
disk=$(node_folder)
PATH=$binaries:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$brought/bin
is_own_containerd || PATH=$containerd_binaries:$PATH
declare -A pids

# What lies in memory only is gone with the namespace. Places that programs have built in: the kubelet's
# folder of device plugins, the links of container logs, the shims' sockets.
mount_own() {
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /var/lib/kubelet /var/lib/containerd /run/netns /run/containerd /run/etcd "$folder/log"
    chmod 700 /run/etcd
    if [ "$with_kubelet" = alone ]; then
        mount_kept /var/lib/kubelet /var/lib/containerd /tmp/vgpulock
        mount --bind "$disk/sim" "$folder/sim" # its own machine
        tell_boot
    else
        mount -t tmpfs -o mode=755 tmpfs /var/lib/kubelet
        mount -t tmpfs -o mode=755 tmpfs /var/lib/containerd
    fi
    mount_kept /var/log /usr/local/vgpu /var/lib/cantaloupe # the last two are the chart's plugin's
    mount -t sysfs sysfs /sys # else /sys/class/net is the host's
    mount_cgroups
    mount --make-rshared / # the kubelet and runc ask for shared propagation
}

# In the place of the machine's own, on its disk, and there until the cluster goes.
mount_kept() {
    local at kept
    for at in "$@"; do
        kept=$disk/host${at//\//-}
        mkdir -p "$at" "$kept"
        mount --bind "$kept" "$at"
    done
}

mount_cgroups() {
    if [ -e "$folder/unified" ]; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        # processes live in leaves only
        mkdir -p /sys/fs/cgroup/programs
        echo 0 >/sys/fs/cgroup/programs/cgroup.procs
        until [ -d /sys/fs/cgroup/outside ] && [ ! -s /sys/fs/cgroup/cgroup.procs ]; do sleep 0.1; done
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
# API server at its service address by two rules, where there is iptables; other services do not work here.
make_network() {
    ip link set lo up
    [ "$with_kubelet" != alone ] || { join_network; return; }
    ip link add node0 address 02:00:00:00:00:01 type bridge # else it has the least of its links', and changes it when nodes come
    ip address add "$node_address/24" dev node0
    ip address add "$service_address/32" dev node0
    ip link set node0 up
    ip route add default dev node0
    echo 1 >/proc/sys/net/ipv4/ip_forward
    [ "$with_kubelet" = yes ] && command -v iptables >/dev/null || return 0
    for chain in PREROUTING OUTPUT; do
        iptables -t nat -A $chain -d $service_address -p tcp --dport 443 -j REDIRECT --to-ports 6443
    done
}

# The first node gives the link, and leads to the API server's service.
join_network() {
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.1; done
    ip address add "$node_address/24" dev eth0
    ip link set eth0 up
    ip route add default via $server_address
    echo 1 >/proc/sys/net/ipv4/ip_forward
}

# program NAME COMMAND...: in the background, with its own log.
program() {
    local name=$1 log=$1
    shift
    [ "$with_kubelet" != alone ] || log=$name-$node_name
    "$@" >>"$folder/log/$log" 2>&1 &
    pids[$name]=$!
}

# node_cgroups NAME: its folder in each hierarchy.
node_cgroups() {
    awk -v name="$1" '$3 ~ /^cgroup/ && $2 ~ /^\/sys\/fs\/cgroup/ { print $2 "/" name }' /proc/mounts | sort -u
}

make_node_cgroups() {
    local at setting
    for at in $(node_cgroups "$1"); do
        mkdir -p "$at"
        find "$at" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true # of its last life
        for setting in cpuset.cpus cpuset.mems; do
            [ -e "$folder/unified" ] || [ ! -e "$at/$setting" ] || cat "${at%/*}/$setting" >"$at/$setting"
        done
    done
}

# start_node NUMBER: another node, whose disk lasts as long as the cluster.
start_node() {
    local name=node$1 at=$folder/nodes/node$1 outer first= groups
    if [ ! -d "$at" ]; then
        mkdir -p "$at" "$folder/sim"
        mount -t tmpfs -o mode=755 tmpfs "$at"
        mkdir "$at/sim"
        CLUSTER_NODE=$1 bash -euc 'folder=$1 here=$2; . "$here/names.sh"; . "$here/configure.sh"; write_node' - "$folder" "$here"
    fi
    rm -f "$at/control" "$at/ready"
    make_node_cgroups "$name"
    ip link delete "link-$name" 2>/dev/null || true
    groups=$(node_cgroups "$name") # before: the first child of what follows must be the node's first process
    (
        for group in $groups; do
            echo $BASHPID >"$group/cgroup.procs"
        done
        CLUSTER_NODE=$1 exec unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child=KILL --mount-proc \
            "$here/node.sh" "$folder" alone
    ) </dev/null >>"$folder/log/$name" 2>&1 &
    outer=$!
    pids[$name]=$outer
    until [ -n "$first" ]; do
        sleep 0.1
        read -r first _ <"/proc/$outer/task/$outer/children" || true
    done
    if [ -e "$folder/unified" ]; then
        mkdir -p "/sys/fs/cgroup/$name/outside"
        echo "$outer" >"/sys/fs/cgroup/$name/outside/cgroup.procs"
    fi
    echo "$first" >"$at/first"
    ip link add "link-$name" type veth peer name eth0 netns "$first"
    ip link set "link-$name" master node0 up
    ip route replace "198.51.100.$((64 * ($1 - 1)))/26" via "192.0.2.$((9 + $1))"
    until [ -e "$at/ready" ]; do
        kill -0 "$outer"
        sleep 0.1
    done
}

start() {
    local keys=$folder/keys
    case $1 in
    node[2-4])
        start_node "${1#node}"
        ;;
    etcd)
        program etcd etcd --data-dir /run/etcd --unsafe-no-fsync --log-level warn \
            --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
            --listen-peer-urls http://127.0.0.1:2380
        ;;
    apiserver)
        program apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
            --bind-address=0.0.0.0 --secure-port=6443 --advertise-address=$server_address \
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
            --leader-elect=false --node-monitor-grace-period=20s --kube-api-qps=1000 --kube-api-burst=2000 \
            --use-service-account-credentials=true --root-ca-file="$keys/ca.crt" \
            --service-account-private-key-file="$keys/accounts.key"
        ;;
    scheduler)
        program scheduler kube-scheduler --config="$folder/scheduler.yaml" --bind-address=127.0.0.1 \
            --authentication-kubeconfig="$folder/scheduler.kubeconfig" \
            --authorization-kubeconfig="$folder/scheduler.kubeconfig"
        ;;
    containerd)
        program containerd containerd --config "$disk/containerd.toml"
        ;;
    kubelet)
        program kubelet kubelet --config="$folder/kubelet.yaml" --kubeconfig="$folder/kubelet-$node_name.kubeconfig" \
            --hostname-override=$node_name --node-ip=$node_address --v=2
        ;;
    *)
        say "no program is called $1"
        ;;
    esac
}

# stop NAME SIGNAL: comes back when it is gone. An API server with open watches does not go by itself, and is not waited for.
stop() {
    local tenths=50
    [ "$1" != apiserver ] || tenths=10
    kill "-$2" "${pids[$1]}" || return 0
    case $2 in
    STOP | CONT) return ;;
    esac
    for _ in $(seq $tenths); do
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
    [ ! -e "$disk/imported" ] || return 0
    for image in "$folder"/images/*.tar; do
        ctr -n k8s.io images import "$image" >>"$folder/log/images" 2>&1
    done
    : >"$disk/imported"
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

tell_boot() {
    cat /proc/sys/kernel/random/uuid >"$disk/boot-id"
    mount --bind "$disk/boot-id" /proc/sys/kernel/random/boot_id
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
    umount /proc/sys/kernel/random/boot_id 2>/dev/null || true
    tell_boot
}

hostname $node_name
mount_own
make_network
mkfifo "$disk/control"
exec 3<>"$disk/control"
if [ "$with_kubelet" != alone ]; then
    start etcd
    start apiserver
fi
if [ "$with_kubelet" != no ]; then
    start containerd
    import_images
fi
if [ "$with_kubelet" != alone ]; then
    until is_ready; do sleep 0.2; done
    start manager
    start scheduler
fi
[ "$with_kubelet" = no ] || start kubelet
: >"$disk/ready"

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
