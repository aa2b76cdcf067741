#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# search.sh BUILD [SECONDS]: searches with clang's libFuzzer for so long in all (60 unless told), all targets
# alike, as many at once as there are processors. BUILD is set up for that. What it finds lies in the working folder as
# crash-*; a new corpus file belongs into corpus/TARGET.
set -eu
build=$1 seconds=${2:-60}
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
CC=${CLANG:-clang}
if ! command -v "$CC" >/dev/null 2>&1; then
    echo "skipped: no clang"
    exit 0
fi
! command -v ccache >/dev/null 2>&1 || CC="ccache $CC" # where the compiler is named, meson does not look for it
export CC CFLAGS="-O1 -fsanitize=fuzzer-no-link -fno-sanitize-recover=all"
tools/configure.sh "$build" -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dfuzzer=true -Dtests=enabled
log=$(ninja -C "$build" fuzzers 2>&1) || { echo "$log" | tail -n 30; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
find "$build/tests/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' >"$scratch/targets"
each=$((seconds / $(wc -l <"$scratch/targets")))
[ "$each" -gt 0 ] || each=1 # 0 would be without end
xargs -P "$(nproc)" -I {} sh -c 'target=${1##*/fuzz_} && mkdir "$2/$target" &&
    "$1" -max_total_time="$3" -max_len=4096 -verbosity=0 -print_final_stats=1 "$2/$target" "$4/$target"' \
    - {} "$scratch" "$each" "$corpus" <"$scratch/targets"
