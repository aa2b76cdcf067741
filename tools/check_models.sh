#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has spin search every model in tests/model/ to the end: no error, no state left out.
#
# Each `ltl NAME` of a model is searched on its own. A model may carry lines
# `/* run: -DNAME ... */` for the variants to search, and `/* run-must-fail: -DNAME ... */` for
# variants with a fault planted, which the search must find.
set -eu
cd "$(dirname "$0")/.."
memory_mib=4000 # of one search
limit_s=300     # of one search

set -- tests/model/*.pml
if [ ! -f "$1" ]; then
    echo "skipped: no models in tests/model"
    exit 0
fi
if ! command -v spin >/dev/null 2>&1; then
    echo "skipped: no spin"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

# search MODEL right|wrong OPTIONS [CLAIM]
search() {
    model=$1 expected=$2 options=$3 claim=${4:-}
    rm -rf "$scratch"/*
    cp "$model" "$scratch/model.pml"
    rc=0
    (cd "$scratch" && spin $options -a model.pml && ${CC:-cc} -O2 -w -DCOLLAPSE \
        -DVECTORSZ=4096 -DMEMLIM=$memory_mib -o pan pan.c &&
        timeout $limit_s ./pan -m1000000 ${claim:+-a -N "$claim"}) >"$scratch/log" 2>&1 || rc=$?
    if [ $rc -eq 124 ]; then
        echo "$model:1: the search takes more than $limit_s s ($options); make the model smaller"
        status=1
        return
    elif [ $rc -ne 0 ]; then
        echo "$model:1: the search does not run ($options): $(tail -n 3 "$scratch/log")"
        status=1
        return
    fi
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$scratch/log")
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$scratch/log")
    if [ "$expected" = right ] && [ "$errors" != 0 ]; then
        echo "$model:1: spin finds an error ($options)"
        grep -A 3 '^pan:' "$scratch/log" || true
        status=1
    elif [ "$expected" = right ] && grep -q 'Search not completed' "$scratch/log"; then
        echo "$model:1: the search is too large for $memory_mib MiB ($options); make the model smaller"
        status=1
    elif [ "$expected" = wrong ] && [ "$errors" = 0 ]; then
        echo "$model:1: the planted fault ($options) is not found"
        status=1
    else
        echo "$model: ${options:-as it is}${claim:+, $claim}: $states states, errors: $errors"
    fi
}

for model; do
    searched=
    sed -n 's|.*/\* \(run[a-z-]*\): *\(.*\) *\*/.*|\1 \2|p' "$model" >"$scratch.variants"
    while read -r word options; do
        case $word in
        run) search "$model" right "$options" ;;
        run-must-fail) search "$model" wrong "$options" ;;
        esac
        searched=1
    done <"$scratch.variants"
    rm -f "$scratch.variants"
    [ -n "$searched" ] || search "$model" right ""
    for claim in $(sed -n 's/^ltl \([a-zA-Z0-9_]*\).*/\1/p' "$model"); do
        search "$model" right "" "$claim"
    done
done
exit $status
