#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# serve.sh NAMESPACE: in the place of a kube-proxy, which the test cluster has not: the service of the scheduler leads to its pod as
# soon as that has an address. Inside a cluster, until it is ended.
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
. "$here/api.sh"
last=
while sleep 0.2; do
    service=$(api GET "/api/v1/namespaces/$1/services/vgpu-scheduler" | jq -r .spec.clusterIP) &&
        address=$(api GET "/api/v1/namespaces/$1/endpoints/vgpu-scheduler" | jq -r '.subsets[0].addresses[0].ip // empty') || continue
    [ -n "$service" ] && [ -n "$address" ] && [ "$address" != "$last" ] || continue
    [ -z "$last" ] || iptables -t nat -D OUTPUT -d "$service" -p tcp --dport 443 -j DNAT --to "$last:9443"
    iptables -t nat -A OUTPUT -d "$service" -p tcp --dport 443 -j DNAT --to "$address:9443"
    last=$address
done 2>/dev/null
