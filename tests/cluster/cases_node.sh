# SPDX-License-Identifier: Apache-2.0
# The cluster itself, and the plugin's client before its API server; read by e2e.sh.
# shellcheck shell=bash disable=SC2154

the_node_is_ready() {
    kubectl wait --for=condition=Ready node/$node_name --timeout=60s
}

a_pod_runs_to_its_end() {
    kubectl apply -f "$here/hello.yaml" && phase_is hello Succeeded 60 && says hello main "hello from hello" && gone hello
}

the_client_keeps_its_word() {
    [ -x "$build/tests/kube/test_api" ] || return 77
    "$build/tests/kube/test_api"
}

node_cases() {
    check "the node is ready" the_node_is_ready
    check "a pod runs to its end" a_pod_runs_to_its_end
    check "the client keeps its word before a real API server" the_client_keeps_its_word
}
