#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# search.sh [SECONDS]: searches with clang's libFuzzer for so long in all (60 unless told), all targets
# alike, as many at once as there are processors. What it finds lies in the working folder as crash-*; a
# new corpus file belongs into corpus/TARGET.
set -eu
targets="parse ptx region share snapshot text assignment"
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
clang=${CLANG:-clang}
if ! command -v "$clang" >/dev/null 2>&1; then
    echo "skipped: no clang"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sources= libraries= network=
if pkg-config --exists yaml-0.1 jansson 2>/dev/null; then
    targets="$targets config instances objects filter admission arguments lock prune"
    sources=$(ls "$root"/src/plugin/config/*.c "$root"/src/kube/base64.c "$root"/src/kube/instances.c "$root"/src/kube/prune.c "$root"/src/kube/wish.c \
        "$root"/src/kube/quantity.c "$root"/tests/scheduler/case.c)
    if pkg-config --exists libmicrohttpd gnutls 2>/dev/null; then
        targets="$targets http"
        sources="$sources $root/src/net/address.c $root/src/net/http_server.c $root/src/net/loop.c"
        network=$(pkg-config --libs libmicrohttpd gnutls)
    fi
    for name in admission arguments booked_pod books demand enlarge filter nodelock object preempt quotas registry reservation settings settings_file; do
        sources="$sources $root/src/scheduler/$name.c"
    done
    for name in decide document imagine placement priority reader template victims world; do
        sources="$sources $root/src/plan/$name.c"
    done
    libraries="$(pkg-config --libs yaml-0.1 jansson) $network"
fi
flags="-std=gnu17 -O1 -g -D_GNU_SOURCE -fno-strict-aliasing -fno-sanitize-recover=all -I$root -I$root/src"

printf '%s\n' "$root"/src/base/*.c "$root"/src/policy/*.c "$root"/src/region/*.c "$root"/src/cli/json.c \
    "$root"/src/kube/assignment.c $sources |
    xargs -P "$(nproc)" -I {} sh -c 'cd "$1" && name=$(echo "$2" | tr / _) && shift 2 && "$@" -o "$name.o"' \
        - "$scratch" {} $(command -v ccache || true) "$clang" $flags -fsanitize=fuzzer-no-link,address,undefined -c {}
printf '%s\n' $targets | xargs -P "$(nproc)" -I {} sh -c 'target=$1 scratch=$2 here=$3 seconds=$4 libraries=$5 && shift 5 &&
    # of the command line, json.c has a name that jansson has, too
    objects=$(ls "$scratch"/*.o | { [ "$target" = text ] && cat || grep -v src_cli_json; }) &&
    "$@" -o "$scratch/$target" "$here/fuzz_$target.c" $objects $libraries && mkdir "$scratch/new-$target" &&
    "$scratch/$target" -max_total_time="$seconds" -max_len=4096 -verbosity=0 -print_final_stats=1 \
        "$scratch/new-$target" "$here/corpus/$target"' \
    - {} "$scratch" "$here" $((${1:-60} / $(echo $targets | wc -w))) "$libraries" "$clang" $flags -fsanitize=fuzzer,address,undefined
