#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ends.sh: what is left of a run of cluster.sh that is told to end, twice, or killed: nothing; or nothing that runs, and the next
# run removes the rest. Clusters without a kubelet are enough for that.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"
known=/run/cantaloupe-cluster
scratch=$(mktemp -d)
leader=
trap 'trap "" INT TERM HUP; [ -z "$leader" ] || kill -TERM -- "-$leader" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# begin: a run in a group of its own, and what it is known by.
begin() {
    rm -f "$scratch/folder"
    # shellcheck disable=SC2016
    setsid "$here/cluster.sh" run sh -c 'echo "$CLUSTER_FOLDER" >"$0"; sleep 600' "$scratch/folder" >"$scratch/log" 2>&1 &
    leader=$!
    for _ in $(seq 900); do
        [ ! -s "$scratch/folder" ] && kill -0 "$leader" 2>/dev/null || break
        sleep 0.1
    done
    [ -s "$scratch/folder" ] || fail "the cluster is not up: $(tail -n 5 "$scratch/log")"
    folder=$(cat "$scratch/folder")
    files=$known/$(tr / _ <<<"$folder")
    read -r first birth <"$files.first"
    cgroups=$(cat "$files.cgroups")
}

# The first process of the namespaces, with which all others end.
await_end() {
    for _ in $(seq 100); do
        [ "$(cut -d ' ' -f 22 "/proc/$first/stat" 2>/dev/null)" = "$birth" ] || return 0
        sleep 0.1
    done
    fail "processes of $folder still run"
}

check_removed() {
    local at
    ! ls "$files".* 2>/dev/null || fail "$folder is still known"
    for at in $cgroups; do
        [ ! -d "$at" ] || fail "$at is still there"
    done
    [ -z "$(find "$folder" -mindepth 1 -maxdepth 1 ! -name log 2>/dev/null)" ] || fail "$folder still has files"
    rm -rf "$folder"
}

begin
kill -TERM -- "-$leader"
kill -TERM "$leader" 2>/dev/null || true
wait "$leader" || true
leader=
await_end
check_removed
echo "a run that is told to end, twice, leaves nothing"

begin
kill -KILL "$leader"
wait "$leader" 2>/dev/null || true
leader=
await_end
"$here/cluster.sh" run true
check_removed
echo "of a run that is killed nothing goes on, and the next run removes the rest"
