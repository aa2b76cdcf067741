#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# e2e.sh BUILD: what must be true of a real cluster; runs inside one (`cluster.sh run --node`). One line a case, and a
# count at the end. BUILD is a folder that was built with tests.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
build=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

# check SENTENCE COMMAND...: 77 says that it could not be tried.
check() {
    local sentence=$1 code=0
    shift
    "$@" >"$log" 2>&1 || code=$?
    case $code in
    0)
        echo "passed   $sentence"
        passed=$((passed + 1))
        ;;
    77)
        echo "SKIPPED  $sentence"
        skipped=$((skipped + 1))
        ;;
    *)
        echo "FAILED   $sentence: exit code $code"
        tail -n 40 "$log" | sed 's/^/    | /'
        failed=$((failed + 1))
        ;;
    esac
}

the_node_is_ready() {
    kubectl wait --for=condition=Ready node/$node_name --timeout=5s
}

a_pod_runs_to_its_end() {
    kubectl apply -f "$here/hello.yaml" &&
        kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/hello --timeout=60s &&
        [ "$(kubectl logs hello)" = "hello from hello" ] &&
        kubectl delete pod/hello --timeout=30s
}

# program NAME: a test's own, where it was built.
program() {
    [ -x "$build/$1" ] || return 77
    "$build/$1"
}

check "the node is ready" the_node_is_ready
check "a pod runs to its end" a_pod_runs_to_its_end
check "the client keeps its word before a real API server" program tests/kube/test_api
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
