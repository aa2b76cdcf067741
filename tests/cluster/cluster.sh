#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Kubernetes on this machine, in namespaces of its own: its ports, routes, mounts and processes are seen by nobody
# else, it has no way out, and the end of one process is the end of all of it. Needs root.
#
#   cluster.sh lacks                    says what this machine lacks for a cluster, and cannot get; else nothing
#   cluster.sh build                    builds the programs, where they are missing
#   cluster.sh run [--node] COMMAND...  up, COMMAND inside, down; the exit code is COMMAND's. When it is told to end, all of it ends at
#                                       once; when it is killed, its processes do, and the next run or up removes the rest
#   cluster.sh up [--node]              starts etcd, API server, controller manager and scheduler; with
#                                       --node containerd and a kubelet, too
#   cluster.sh exec COMMAND...          runs COMMAND inside; kubectl is in its PATH
#   cluster.sh image REF FILE[:PLACE]...  an image of busybox, files and their libraries
#   cluster.sh stop PROGRAM [SIGNAL]    of etcd apiserver manager scheduler containerd kubelet; KILL after 5 s, apiserver 1 s; kubelet@node2 is
#                                       another node's, and node2 by KILL that node: it loses power
#   cluster.sh start PROGRAM            inside, too, where $CLUSTER is this script; node2, node3, node4: another node, with namespaces,
#                                       a disk and a simulated machine (FOLDER/nodes/NAME/sim) of its own
#   cluster.sh reboot                   the node loses power: containerd, kubelet and pods are gone, and what lay in /run
#   cluster.sh down                     ends it and removes all but FOLDER/log
#
# CLUSTER_FOLDER   one cluster's files (/tmp/cantaloupe-cluster; run: a new one, whose logs stay after a failure)
# CANTALOUPE_CACHE what is built once (~/.cache/cantaloupe)
# CLUSTER_OWNER    of up: a process whose cluster it is. When that is gone, the next run or up removes the cluster
# CLUSTER_SIMULATES yes: containers that ask for NVIDIA's devices are given the simulated driver of FOLDER/sim
# CLUSTER_CONTAINERD 2: containerd 2, which knows CDI, in the place of the machine's
set -euo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$self")
. "$here/names.sh"
. "$here/configure.sh"
folder=$(readlink -m "${CLUSTER_FOLDER:-/tmp/cantaloupe-cluster}")
owner=${CLUSTER_OWNER:-} is_run=no

# What a cluster changes outside its folder is known here, for down, which works without the folder, too: NAME.first,
# NAME.cgroups, NAME.owner; and for all of them together the kernel's settings as they were before the first.
known=/run/cantaloupe-cluster

# own KIND: this cluster's file.
own() {
    echo "$known/$(tr / _ <<<"$folder").$1"
}

# A PID alone may be another process's by now.
birth_of() {
    cut -d ' ' -f 22 "/proc/$1/stat" 2>/dev/null
}

# lives FILE: whether the process that it names is there.
lives() {
    local pid birth
    [ -s "$1" ] && read -r pid birth _ <"$1" && [ "$(birth_of "$pid")" = "$birth" ]
}

is_up() {
    lives "$(own first)"
}

# unified_above PATH: the nearest cgroup of version 2 that hands down what a kubelet needs. Below one with processes of its
# own, as the caller's is, nothing has controllers.
unified_above() {
    local path=${1%/} have
    while [ -n "$path" ]; do
        have=" $(cat "/sys/fs/cgroup$path/cgroup.subtree_control") "
        [[ $have != *" cpu "* || $have != *" memory "* || $have != *" pids "* ]] || break
        path=${path%/*}
    done
    echo "$path"
}

# A folder for the cluster in each hierarchy, below the caller's own.
cgroup_folders() {
    local controllers path
    while IFS=: read -r _ controllers path; do
        controllers=${controllers#name=}
        if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
            [ -n "$controllers" ] || echo "/sys/fs/cgroup$(unified_above "$path")/cluster-$$"
        elif [ -n "$controllers" ] && [ -d "/sys/fs/cgroup/$controllers$path" ]; then
            echo "/sys/fs/cgroup/$controllers${path%/}/cluster-$$"
        fi
    done </proc/self/cgroup
}

make_cgroups() {
    local at setting
    cgroup_folders >"$(own cgroups)"
    while read -r at; do
        mkdir "$at"
        for setting in cpuset.cpus cpuset.mems; do
            # version 1 takes no process before these are set
            [ -e "$folder/unified" ] || [ ! -e "$at/$setting" ] || cat "${at%/*}/$setting" >"$at/$setting"
        done
    done <"$(own cgroups)"
}

remove_cgroups() {
    local at try
    while read -r at; do
        for try in $(seq 50); do
            [ ! -d "$at" ] || find "$at" -depth -type d -exec rmdir {} + 2>/dev/null || true
            [ -d "$at" ] || break
            sleep 0.1
        done
        [ ! -d "$at" ] || say "$at is still in use after try $try"
    done <"$(own cgroups)"
}

any_lives() {
    for file in "$known"/*.first; do
        ! lives "$file" || return 0
    done
    return 1
}

# The first cluster saves them, the last restores them; this shell stands for a cluster that is about to start.
save_settings() (
    flock 9
    if ! any_lives; then
        for name in $kubelet_settings; do
            echo "$name $(cat "/proc/sys/$name")"
        done >"$known/settings"
    fi
    echo "$$ $(birth_of $$)" >"$(own first)"
) 9>"$known/lock"

restore_settings() (
    flock 9
    rm -f "$(own first)"
    ! any_lives && [ -e "$known/settings" ] || return 0
    while read -r name value; do
        [ "$(cat "/proc/sys/$name")" = "$value" ] || echo "$value" >"/proc/sys/$name"
    done <"$known/settings"
    rm "$known/settings"
) 9>"$known/lock"

# Of a cluster whose owner was killed. Two that look at once do it one after another.
remove_leftovers() (
    flock 8
    for file in "$known"/*.owner; do
        [ -e "$file" ] && ! lives "$file" || continue
        read -r _ _ folder <"$file"
        say "removes what is left in $folder; its owner was killed"
        down
    done
) 8>"$known/leftovers"

# The namespaces' first process is the child of unshare, which waits for it, and which in a run ends with this shell. What it
# started as is told by $!, never by name.
start_namespaces() {
    local outer first= cgroups dies=
    [ $is_run = no ] || dies="setpriv --pdeathsig KILL"
    cgroups=$(own cgroups) # before: the first child of what follows must be the namespaces' first process
    (
        while read -r at; do
            echo $BASHPID >"$at/cgroup.procs"
        done <"$cgroups"
        exec $dies setsid unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child=KILL --mount-proc \
            "$here/node.sh" "$folder" "$1"
    ) </dev/null >"$folder/log/node" 2>&1 &
    outer=$!
    for _ in $(seq 300); do
        read -r first _ <"/proc/$outer/task/$outer/children" || true
        [ -z "$first" ] || break
        sleep 0.1
    done
    [ -n "$first" ] || fail "namespaces did not start: $(cat "$folder/log/node")"
    echo "$first $(birth_of "$first")" >"$(own first)"
    [ ! -e "$folder/unified" ] || leave_to_pods "$outer"
}

# leave_to_pods PID: a cgroup of version 2 with a process of its own hands no controllers down, and from inside nobody can
# move unshare, which is outside.
leave_to_pods() {
    local at
    at=$(cat "$(own cgroups)")
    mkdir "$at/outside"
    echo "$1" >"$at/outside/cgroup.procs"
}

wait_for_node() {
    is_up || fail "ended while it started: $(tail -n 5 "$folder/log/node")"
    inside kubectl wait --for=create serviceaccount/default --timeout=180s >/dev/null
    [ "$1" = yes ] || return 0
    inside kubectl wait --for=create node/$node_name --timeout=180s >/dev/null
    inside kubectl wait --for=condition=Ready node/$node_name --timeout=180s >/dev/null
}

up() {
    local with_kubelet=no
    [ "${1:-}" != --node ] || with_kubelet=yes
    mkdir -p "$known"
    remove_leftovers
    ! is_up || fail "$folder: is up already"
    [ -z "$owner" ] || echo "$owner $(birth_of "$owner") $folder" >"$(own owner)"
    "$here/build.sh"
    rm -rf "$folder"
    mkdir -p "$folder/log" "$folder/answers" "$folder/images"
    [ ! -e /sys/fs/cgroup/cgroup.controllers ] || : >"$folder/unified"
    write_configuration
    if [ $with_kubelet = yes ]; then
        make_image local.test/pause:1 "$(command -v busybox):/pause"
        make_image local.test/busybox:1
    fi
    save_settings
    make_cgroups
    start_namespaces $with_kubelet
    for _ in $(seq 1800); do
        [ ! -e "$folder/ready" ] && is_up || break
        sleep 0.1
    done
    [ -e "$folder/ready" ] || fail "not ready in 180 s; logs are in $folder/log"
    wait_for_node $with_kubelet
}

inside() {
    local pid
    read -r pid _ <"$(own first)"
    is_own_containerd || PATH=$containerd_binaries:$PATH
    nsenter -t "$pid" --mount --net --pid --ipc --uts --cgroup \
        env -C "$PWD" PATH="$binaries:$helm_binaries:$PATH" KUBECONFIG="$folder/admin.kubeconfig" \
        CLUSTER_FOLDER="$folder" CLUSTER="$self" "$@"
}

make_image() {
    python3 "$here/image.py" "$folder/images/$(tr '/:' '__' <<<"$1").tar" "$@"
}

image() {
    make_image "$@"
    inside ctr -n k8s.io images import "$folder/images/$(tr '/:' '__' <<<"$1").tar" >/dev/null
}

# order start|stop|reboot PROGRAM SIGNAL: is carried out when this returns.
order() {
    local answer=$$-$RANDOM at=$folder
    [[ $2 != *@* ]] || at=$folder/nodes/${2#*@}
    echo "$1 ${2%@*} ${3:-TERM} $answer" >"$at/control"
    for _ in $(seq 1200); do
        [ ! -e "$folder/answers/$answer" ] || return 0
        sleep 0.1
    done
    fail "$1 $2: not done in 120 s"
}

# A cluster that did not get as far as namespaces is this shell by its file.
down() {
    local pid
    if is_up; then
        read -r pid _ <"$(own first)"
        [ "$pid" = $$ ] || kill -KILL "$pid"
        for _ in $(seq 100); do
            [ "$pid" != $$ ] && is_up || break
            sleep 0.1
        done
    fi
    [ ! -e "$(own cgroups)" ] || remove_cgroups
    rm -f "$(own cgroups)"
    [ ! -e "$(own first)" ] || restore_settings
    [ ! -d "$folder" ] || find "$folder" -mindepth 1 -maxdepth 1 ! -name log -exec rm -rf {} +
    rm -f "$(own owner)"
}

# Nothing is waited for in the foreground: a shell that waits so takes no signal.
run() {
    local result=0 option=
    is_run=yes owner=$$
    if [ "${1:-}" = --node ]; then
        option=$1
        shift
    fi
    folder=$(mktemp -d "${TMPDIR:-/tmp}/cantaloupe-cluster-XXXXXX")
    trap 'trap "" INT TERM HUP; down' EXIT # who ends it may say so twice
    trap 'exit 130' INT TERM HUP
    up $option
    inside "$@" <&0 &
    wait $! || result=$?
    down
    trap - EXIT
    if [ $result -eq 0 ]; then
        rm -rf "$folder"
    else
        say "logs are in $folder/log"
    fi
    return $result
}

lacks() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "it takes root"
    elif ! unshare --mount --net --pid --ipc --uts --cgroup --fork true 2>/dev/null; then
        echo "it takes namespaces, which cannot be made here"
    elif ! "$here/../../tools/setup.sh" e2e >/dev/null 2>&1; then
        echo "packages are missing that apt-get does not install; see tools/setup.sh e2e"
    elif ! "$here/build.sh" fetch >/dev/null 2>&1; then
        echo "Kubernetes' modules cannot be downloaded; see tests/cluster/build.sh fetch"
    fi
}

command=${1:-}
[ $# -eq 0 ] || shift
[ "$command" != lacks ] || {
    lacks
    exit
}
[ "$(id -u)" -eq 0 ] || fail "needs root"
case $command in
build) "$here/build.sh" ;;
up) up "$@" ;;
run) run "$@" ;;
exec) is_up && inside "$@" ;;
image) image "$@" ;;
start | stop) order "$command" "$@" ;;
reboot) order reboot node ;;
down) down ;;
*)
    sed -n '3,25s/^# \{0,1\}//p' "$self" >&2
    exit 2
    ;;
esac
