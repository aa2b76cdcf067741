# SPDX-License-Identifier: Apache-2.0
# kube-scheduler with vgpu-scheduler as its extender; read by cases_scheduler.sh and by bench/scheduler.sh.
# shellcheck shell=bash

# configure_kube_scheduler CA PORT: as HAMi's chart has it: the profile's name, one extender, and resources that it does not
# count itself. But it counts slices: where they run out it looks for pods to preempt.
configure_kube_scheduler() {
    local name resources="{name: nvidia.com/gpu}, "
    for name in gpumem gpumem-percentage gpucores priority; do
        resources="$resources{name: nvidia.com/$name, ignoredByScheduler: true}, "
    done
    cat >"$CLUSTER_FOLDER/scheduler.yaml" <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $CLUSTER_FOLDER/scheduler.kubeconfig, qps: 5000, burst: 10000}
profiles: [{schedulerName: default-scheduler}, {schedulerName: hami-scheduler}]
extenders:
- urlPrefix: https://127.0.0.1:$2
  filterVerb: filter
  bindVerb: bind
  preemptVerb: preempt
  enableHTTPS: true
  tlsConfig: {caFile: $1}
  nodeCacheCapable: true
  weight: 1
  httpTimeout: 30s
  managedResources: [$resources]
END
    "$CLUSTER" stop scheduler && "$CLUSTER" start scheduler
}
