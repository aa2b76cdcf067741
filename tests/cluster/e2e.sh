#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# e2e.sh BUILD [GROUP...]: what must be true of a real cluster; runs inside one (`cluster.sh run --node`). One line a
# case, and a count at the end. BUILD is a folder that was built with tests. A group is a file cases_GROUP.sh, whose
# function GROUP_cases has its cases; all of them where none is named.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
. "$here/api.sh"
. "$here/pods.sh"
. "$here/plugin.sh"
build=$(readlink -f "$1")
shift
groups=${*:-slices hostile life health strategies scheduler exchange node mig monitor resize roles many} # many last: it ends the API server, and a kubelet takes its time to come back to it
log=$(mktemp)
figures=$(mktemp)
passed=0 failed=0 skipped=0

# All files are read, and of two functions with one name the later would be both.
twice=$(grep -hoE '^[a-z_0-9]+\(\)' "$here"/{api,pods,plugin,e2e,cases_*}.sh | sort | uniq -d)
[ -z "$twice" ] || { echo "e2e.sh: defined twice:" $twice >&2; exit 2; }

# Whatever was stopped must be able to end.
leave() {
    stop_plugin
    stop_theirs
    stop_watching
    stop_scheduler
    stop_recording
    stop_monitor
    stop_pairs
    rm -f "$log" "$figures"
}
trap leave EXIT
trap 'exit 130' INT TERM HUP

# figure TEXT: stands behind the sentence of the case.
figure() {
    printf '; %s' "$*" >>"$figures"
}

# check SENTENCE COMMAND...: 77 says that it could not be tried.
check() {
    local sentence=$1 code=0 began=$SECONDS
    shift
    : >"$figures"
    "$@" >"$log" 2>&1 || code=$?
    sentence="$(printf '%3ds' $((SECONDS - began)))  $sentence$(cat "$figures")"
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
    return $code
}

for file in "$here"/cases_*.sh; do
    . "$file"
done
for group in $groups; do
    "${group}_cases"
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
