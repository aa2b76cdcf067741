# SPDX-License-Identifier: Apache-2.0
# The certificates and configurations of one cluster, below $folder; read by cluster.sh.
# shellcheck shell=bash

# certificate NAME SUBJECT [ALTERNATIVE-NAMES]: signed by the cluster's own authority.
certificate() {
    local at=$folder/keys/$1
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
        -keyout "$at.key" -out "$at.request" 2>/dev/null
    {
        echo "keyUsage=digitalSignature,keyEncipherment"
        echo "extendedKeyUsage=serverAuth,clientAuth"
        [ -z "${3:-}" ] || echo "subjectAltName=$3"
    } >"$at.extensions"
    openssl x509 -req -days 30 -in "$at.request" -extfile "$at.extensions" -out "$at.crt" \
        -CA "$folder/keys/ca.crt" -CAkey "$folder/keys/ca.key" -CAcreateserial 2>/dev/null
}

# kubeconfig NAME SUBJECT: whoever has the file is that user.
kubeconfig() {
    certificate "$1" "$2"
    cat >"$folder/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context: {cluster: test, user: $1}
clusters:
- name: test
  cluster:
    server: https://$server_address:6443
    certificate-authority: $folder/keys/ca.crt
users:
- name: $1
  user:
    client-certificate: $folder/keys/$1.crt
    client-key: $folder/keys/$1.key
END
}

write_keys() {
    mkdir -p "$folder/keys"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=cluster \
        -keyout "$folder/keys/ca.key" -out "$folder/keys/ca.crt" 2>/dev/null
    certificate apiserver /CN=kube-apiserver \
        "IP:127.0.0.1,IP:$server_address,IP:$service_address,DNS:localhost,DNS:kubernetes.default.svc"
    openssl ecparam -name prime256v1 -genkey -noout -out "$folder/keys/accounts.key" 2>/dev/null
    openssl ec -in "$folder/keys/accounts.key" -pubout -out "$folder/keys/accounts.pub" 2>/dev/null
    kubeconfig admin /O=system:masters/CN=admin
    kubeconfig manager /CN=system:kube-controller-manager
    kubeconfig scheduler /CN=system:kube-scheduler
    # two tokens of one user, for tests of rotation
    printf '%s,rotating,1001,"system:masters"\n' first-token second-token >"$folder/tokens.csv"
}

write_scheduler() {
    cat >"$folder/scheduler.yaml" <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $folder/scheduler.kubeconfig, qps: 1000, burst: 2000}
END
}

# The thresholds of eviction are low: a CI machine's disk may be nearly full. What ends is started again at once.
write_kubelet() {
    cat >"$folder/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  x509: {clientCAFile: $folder/keys/ca.crt}
  webhook: {enabled: true}
  anonymous: {enabled: false}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
nodeStatusUpdateFrequency: 1s
nodeLeaseDurationSeconds: 8
featureGates: {KubeletCrashLoopBackOffMax: true}
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
END
}

# With CLUSTER_SIMULATES=yes containers that ask for NVIDIA's devices are given the simulated driver of $folder/sim.
write_runtime() {
    [ "${CLUSTER_SIMULATES:-}" = yes ] || return 0
    cat >"$folder/runtime" <<END
#!/bin/sh
exec python3 "$here/sim_runtime.py" "$folder/sim" "\$@"
END
    chmod 755 "$folder/runtime"
    cat <<END
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$folder/runtime"
END
}

# restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not lower it, and no sandbox would start.
write_containerd() {
    local at
    at=$(node_folder)
    cat >"$at/containerd.toml" <<END
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "local.test/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
$(write_runtime)
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$network_plugins"
    conf_dir = "$at/cni"
END
    mkdir -p "$at/cni"
    cat >"$at/cni/10-pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni",
            "ranges": [[{"subnet": "$pod_network"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
}

# write_node: what a node has of its own.
write_node() {
    kubeconfig "kubelet-$node_name" "/O=system:nodes/CN=system:node:$node_name"
    write_containerd
}

write_configuration() {
    write_keys
    write_scheduler
    write_kubelet
    write_node
}
