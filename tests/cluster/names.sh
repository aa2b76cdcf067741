# SPDX-License-Identifier: Apache-2.0
# Versions, names and addresses that the parts of the test cluster agree on; read by all of them.
# shellcheck shell=bash

kubernetes_version=1.35.4 # as in programs/go.mod; 1.35 is the last minor that runs with containerd 1.6 and cgroups v1
programs="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl"

# What is built once lies outside the tree, by version.
cache=${CANTALOUPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cantaloupe}
binaries=$cache/kubernetes-$kubernetes_version

# CLUSTER_CONTAINERD=2: that containerd, which knows CDI, in the place of the machine's own; as in containerd/go.mod.
containerd_version=2.1.9
containerd_binaries=$cache/containerd-$containerd_version
# Helm installs the chart; as in helm/go.mod.
helm_version=3.20.2
helm_binaries=$cache/helm-$helm_version
is_own_containerd() {
    [ "${CLUSTER_CONTAINERD:-}" != 2 ]
}

# What bundle.sh brings in the place of the machine's own, where that has none: runc, busybox, ip and network plugins.
brought=$cache/brought
PATH=$PATH:$brought/bin
network_plugins=/usr/lib/cni
[ -d $network_plugins ] || network_plugins=$brought/cni

# Documentation addresses (RFC 5737). They exist in the cluster's network namespace only. The first of four nodes has the
# control plane; CLUSTER_NODE is the number of this one.
node_number=${CLUSTER_NODE:-1}
node_name=node$node_number
server_address=192.0.2.10
node_address=192.0.2.$((9 + node_number))
pod_network=198.51.100.$((64 * (node_number - 1)))/26
service_network=203.0.113.0/24
service_address=203.0.113.1 # the API server's own service, always the first of the network

# node_folder: what belongs to this node alone, in the cluster's $folder.
node_folder() {
    [ "$node_number" = 1 ] && echo "$folder" || echo "$folder/nodes/$node_name"
}

# Kernel settings that the kubelet changes, and that no namespace has: saved before, restored after.
kubelet_settings="vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops
kernel/keys/root_maxkeys kernel/keys/root_maxbytes"

say() {
    printf 'cluster: %s\n' "$*" >&2
}

fail() {
    say "$@"
    exit 1
}
