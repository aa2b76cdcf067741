#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh build|kube|test|ci|e2e|aarch64: what the build needs and this machine lacks is installed with apt-get, by
# name, and said before. Where nothing is missing nothing is done and no network is needed.
#
#   build   a C compiler, the C library's headers, meson >= 1.0, ninja
#   kube    and what the programs for Kubernetes link with
#   test    and cmocka, pkg-config, python3
#   ci      and clang with its sanitizers, clang-format 14, spin, runc, debootstrap, musl-gcc, what the daemons link with; without these,
#           CI skips a step, or builds no daemons; and ccache, without which it takes longer
#   e2e     and what a Kubernetes cluster on this machine is made of, as far as packages have it
#   aarch64 and a compiler for that processor, qemu, and the keys of Debian's packages
set -eu

set_name=${1:-build}
case $set_name in
build | kube | test | ci | e2e | aarch64) ;;
*)
    echo "usage: $0 build|kube|test|ci|e2e|aarch64" >&2
    exit 2
    ;;
esac
meson_at_least=1.0.0

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/probe.c" <<END
#include <linux/futex.h>
#include <stdio.h>
int main(void)
{
    return puts("") < 0;
}
END

have() {
    command -v "$1" >/dev/null 2>&1
}

compiler() {
    for name in ${CC:-cc gcc clang}; do
        if have "$name"; then
            echo "$name"
            return
        fi
    done
}

# One line a piece: its packages, a tab, what was looked for.
missing_build() {
    cc=$(compiler)
    if [ -z "$cc" ]; then
        case ${CC:-gcc} in
        gcc | gcc-[0-9]* | clang | clang-[0-9]*)
            printf '%s libc6-dev\t%s\n' "${CC:-gcc}" "a C compiler (${CC:-cc, gcc, clang})"
            ;;
        *)
            printf '\t%s\n' "the C compiler that CC names ($CC)"
            ;;
        esac
    elif ! ${CC:-$cc} "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null; then
        printf 'libc6-dev\t%s\n' "<stdio.h> and <linux/futex.h>"
    fi
    version=$(meson --version 2>/dev/null || true)
    if [ -z "$version" ]; then
        printf 'meson\tmeson >= %s\n' "$meson_at_least"
    elif [ "$(printf '%s\n' "$version" $meson_at_least | sort -V | head -n 1)" != \
        $meson_at_least ]; then
        printf '\tmeson >= %s (here is %s; pip install meson brings a newer one)\n' \
            "$meson_at_least" "$version"
    fi
    have ninja || have ninja-build || have samu || printf 'ninja-build\tninja\n'
}

missing_test() {
    have pkg-config || printf 'pkg-config\tpkg-config\n'
    pkg-config --exists cmocka 2>/dev/null ||
        printf 'libcmocka-dev\tcmocka (by pkg-config)\n'
    have python3 || printf 'python3\tpython3\n'
}

# missing_module NAME-BY-PKG-CONFIG PACKAGE
missing_module() {
    pkg-config --exists "$1" 2>/dev/null || printf '%s\t%s\n' "$2" "$1 (by pkg-config)"
}

missing_daemons() {
    have pkg-config || printf 'pkg-config\tpkg-config\n'
    missing_module libcurl libcurl4-openssl-dev
    missing_module jansson libjansson-dev
    missing_module yaml-0.1 libyaml-dev
    missing_module libmicrohttpd libmicrohttpd-dev
    missing_module gnutls libgnutls28-dev
    missing_module grpc_unsecure libgrpc-dev
    missing_module libprotobuf-c libprotobuf-c-dev
    [ -e /usr/include/uthash.h ] || printf 'uthash-dev\t<uthash.h>\n'
    have protoc-c || printf 'protobuf-c-compiler\tprotoc-c\n'
}

missing_ci() {
    if ! have clang; then
        printf 'clang\tclang\n'
    elif ! clang -fsanitize=address "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null; then
        major=$(clang -dumpversion | cut -d. -f1)
        printf 'libclang-rt-%s-dev\tsanitizers of clang\n' "$major"
    fi
    if ! have clang-format-14 && ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        printf 'clang-format-14\tclang-format 14\n'
    fi
    have spin || printf 'spin\tspin\n'
    have runc || printf 'runc\trunc\n'
    have debootstrap || printf 'debootstrap\tdebootstrap\n'
    have musl-gcc || printf 'musl-tools\tmusl-gcc\n'
    have git || printf 'git\tgit\n'
    have ccache || printf 'ccache\tccache\n'
    missing_daemons
}

missing_e2e() {
    missing_daemons
    have containerd || printf 'containerd\tcontainerd\n'
    have runc || printf 'runc\trunc\n'
    [ -x /usr/lib/cni/bridge ] || printf 'containernetworking-plugins\t/usr/lib/cni/bridge\n'
    [ -x /bin/busybox ] || printf 'busybox-static\t/bin/busybox\n'
    have ip || printf 'iproute2\tip\n'
    have iptables || printf 'iptables\tiptables\n'
    have openssl || printf 'openssl\topenssl\n'
    have curl || printf 'curl\tcurl\n'
    have jq || printf 'jq\tjq\n'
    have nsenter || printf 'util-linux\tnsenter\n'
    have go || python3 -m pip --version >/dev/null 2>&1 || printf 'python3-pip\tgo, or pip to get it\n'
}

missing_aarch64() {
    have aarch64-linux-gnu-gcc || printf 'gcc-aarch64-linux-gnu\taarch64-linux-gnu-gcc\n'
    have qemu-aarch64-static || printf 'qemu-user-static\tqemu-aarch64-static\n'
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        printf 'debian-archive-keyring\tthe keys of Debian\n'
    have protoc-c || printf 'protobuf-c-compiler\tprotoc-c\n'
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

apt_install() {
    as_root apt-get install -y --no-install-recommends "$@" >"$scratch/log" 2>&1
}

# provide NAME-OF-FUNCTION: looks, installs, looks again. Prints what is still missing.
provide() {
    "$1" >"$scratch/missing"
    [ -s "$scratch/missing" ] || return 0
    packages=$(cut -f1 "$scratch/missing" | tr '\n' ' ' | sed 's/  */ /g; s/^ //; s/ $//')
    if [ -n "$packages" ] && have apt-get; then
        if [ "$(id -u)" -ne 0 ] && ! have sudo; then
            echo "setup: not root and no sudo; as root: apt-get install $packages" >&2
        else
            echo "setup: installing with apt-get: $packages (missing)"
            if ! apt_install $packages; then
                as_root apt-get update >"$scratch/update" 2>&1 || tail -n 5 "$scratch/update" >&2
                apt_install $packages || tail -n 15 "$scratch/log" >&2
            fi
        fi
        hash -r
        "$1" >"$scratch/missing"
    elif [ -n "$packages" ]; then
        echo "setup: no apt-get here; install these by this system's own means" >&2
    fi
    [ -s "$scratch/missing" ] || return 0
    cut -f2 "$scratch/missing" | sed 's/^/setup: looked for and not found: /' >&2
    return 1
}

provide missing_build || exit 1
[ "$set_name" != kube ] || provide missing_daemons || exit 1
[ "$set_name" = build ] || [ "$set_name" = kube ] || provide missing_test || exit 1
[ "$set_name" != e2e ] || provide missing_e2e || exit 1
[ "$set_name" != aarch64 ] || provide missing_aarch64 || echo "setup: what needs these is skipped"
if [ "$set_name" = ci ]; then
    # Twice: which sanitizer package fits is known when clang is there.
    provide missing_ci || provide missing_ci || echo "setup: CI does without these, or skips what needs them"
fi
