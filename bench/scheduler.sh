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
. "$cluster/extender.sh"
(
    # shellcheck disable=SC2034
    folder=$CLUSTER_FOLDER
    . "$cluster/configure.sh"
    certificate webhook /CN=vgpu-scheduler IP:127.0.0.1
)
"$CLUSTER" stop manager # it would taint nodes that have no kubelet

# Those that make the calls are service accounts, as in a cluster: the API server looks a token up, but verifies a
# certificate's signature anew at each call.
# account FILE: the kubeconfig names one in the place of a certificate.
account() {
    local name=bench-${1%.*}
    kubectl -n kube-system create serviceaccount "$name" >/dev/null
    kubectl create clusterrolebinding "$name" --clusterrole=cluster-admin --serviceaccount="kube-system:$name" >/dev/null
    sed -i "/client-certificate:/d; s/client-key:.*/token: $(kubectl -n kube-system create token "$name" --duration 2h)/" \
        "$CLUSTER_FOLDER/$1"
}
cp "$KUBECONFIG" "$CLUSTER_FOLDER/extender.kubeconfig"
account extender.kubeconfig
account scheduler.kubeconfig

# shellcheck disable=SC2086
KUBECONFIG=$CLUSTER_FOLDER/extender.kubeconfig "$build/src/scheduler/vgpu-scheduler" --http_bind 127.0.0.1:$port --cert_file "$CLUSTER_FOLDER/keys/webhook.crt" \
    --key_file "$CLUSTER_FOLDER/keys/webhook.key" --scheduler-name hami-scheduler \
    --metrics-bind-address 127.0.0.1:9395 ${SCHEDULER_FLAGS:-} >"$CLUSTER_FOLDER/log/vgpu-scheduler" 2>&1 &
scheduler=$!
trap 'kill $scheduler' EXIT
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
configure_kube_scheduler "$CLUSTER_FOLDER/keys/ca.crt" $port
python3 "$here/scheduler.py" "https://$server_address:6443" "$CLUSTER_FOLDER/keys/ca.crt" \
    "$(sed -n 's/.*token: //p' "$CLUSTER_FOLDER/extender.kubeconfig")" http://127.0.0.1:9395/metrics $scheduler "$@"
