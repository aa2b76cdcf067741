#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# search.sh [SECONDS]: searches with clang's libFuzzer for so long in all (60 unless told), all targets
# alike. What it finds lies in the working folder as crash-*; a new corpus file belongs into
# corpus/TARGET.
set -eu
targets="parse region share snapshot"
seconds=$((${1:-60} / 4)) # a target
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
if ! command -v "${CLANG:-clang}" >/dev/null 2>&1; then
    echo "skipped: no clang"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for target in $targets; do
    "${CLANG:-clang}" -std=gnu17 -O1 -g -D_GNU_SOURCE -fno-strict-aliasing -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=all -I"$root" -I"$root/src" -o "$scratch/$target" \
        "$here/fuzz_$target.c" "$root"/src/base/*.c "$root"/src/policy/*.c "$root"/src/region/*.c
    mkdir "$scratch/new-$target"
    "$scratch/$target" -max_total_time="$seconds" -max_len=4096 -verbosity=0 -print_final_stats=1 \
        "$scratch/new-$target" "$here/corpus/$target"
done
