#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many pods a second are bound: a real etcd, API server and kube-scheduler on this machine, vgpu-scheduler as extender
# and webhook, and node objects with registered devices. There is no kubelet; what the device plugin does to a pod and to
# its node's lock is done by the bench. Needs root, and what tests/cluster needs.
#
#   bench/scheduler.sh BUILD [OPTION...]   options are those of scheduler.py
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cluster=$here/../tests/cluster
build=$(readlink -f "${1:?a build folder}")
shift
port=9443

if [ -z "${CLUSTER_FOLDER:-}" ]; then
    exec "$cluster/cluster.sh" run env VGPU_IN_CLUSTER=yes "$0" "$build" "$@"
fi

. "$cluster/names.sh"
(
    # shellcheck disable=SC2034
    folder=$CLUSTER_FOLDER
    . "$cluster/configure.sh"
    certificate webhook /CN=vgpu-scheduler IP:127.0.0.1
)
"$CLUSTER" stop manager # it would taint nodes that have no kubelet

# shellcheck disable=SC2086
"$build/src/scheduler/vgpu-scheduler" --http_bind 127.0.0.1:$port --cert_file "$CLUSTER_FOLDER/keys/webhook.crt" \
    --key_file "$CLUSTER_FOLDER/keys/webhook.key" --scheduler-name hami-scheduler \
    --metrics-bind-address 127.0.0.1:9395 ${SCHEDULER_FLAGS:-} >"$CLUSTER_FOLDER/log/vgpu-scheduler" 2>&1 &
scheduler=$!
trap 'kill $scheduler' EXIT
resources=
for name in gpu gpumem gpumem-percentage gpucores priority; do
    resources="$resources{name: nvidia.com/$name, ignoredByScheduler: true}, "
done
cat >"$CLUSTER_FOLDER/scheduler.yaml" <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $CLUSTER_FOLDER/scheduler.kubeconfig, qps: 5000, burst: 10000}
profiles: [{schedulerName: default-scheduler}, {schedulerName: hami-scheduler}]
extenders:
- urlPrefix: https://127.0.0.1:$port
  filterVerb: filter
  bindVerb: bind
  enableHTTPS: true
  tlsConfig: {caFile: $CLUSTER_FOLDER/keys/ca.crt}
  nodeCacheCapable: true
  weight: 1
  httpTimeout: 30s
  managedResources: [$resources]
END
kubectl apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: vgpu-scheduler}
webhooks:
- name: vgpu.hami.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  objectSelector: {matchExpressions: [{key: hami.io/webhook, operator: NotIn, values: [ignore]}]}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  clientConfig:
    url: https://127.0.0.1:$port/webhook
    caBundle: $(base64 -w 0 "$CLUSTER_FOLDER/keys/ca.crt")
END
"$CLUSTER" stop scheduler
"$CLUSTER" start scheduler
python3 "$here/scheduler.py" "https://$node_address:6443" "$CLUSTER_FOLDER/keys" http://127.0.0.1:9395/metrics $scheduler "$@"
