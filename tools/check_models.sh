#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_models.sh [NAME...]: has spin search every model in tests/model/, or those named, to the end: no error, no state left
# out. As many searches run at once as there are processors.
#
# Each `ltl NAME` of a model is searched on its own. A model may carry lines
# `/* run: -DNAME ... */` for the variants to search, and `/* run-must-fail: -DNAME ... */` for
# variants with a fault planted, which the search must find.
set -eu
cd "$(dirname "$0")/.."
memory_mib=4000 # of one search
limit_s=600     # of one search
compiler=${CC:-$(command -v ccache || true) cc}

# search MODEL right|wrong OPTIONS [CLAIM], in a folder of its own
search() {
    model=$1 expected=$2 options=$3 claim=${4:-}
    folder=$(mktemp -d "$MODELS_SCRATCH/search-XXXXXX")
    cp "$model" "$folder/model.pml"
    # Without a claim about what happens at last, single states are all that matters.
    flags=
    [ -n "$claim" ] || flags="-DSAFETY -DNOFAIR"
    rc=0
    (cd "$folder" && spin $options -a model.pml && $compiler -O2 -w -DCOLLAPSE $flags \
        -DVECTORSZ=4096 -DMEMLIM=$memory_mib -c pan.c && $compiler -o pan pan.o &&
        timeout $limit_s ./pan -m1000000 ${claim:+-a -N "$claim"}) >"$folder/log" 2>&1 || rc=$?
    if [ $rc -eq 124 ]; then
        echo "$model:1: the search takes more than $limit_s s ($options); make the model smaller"
        return 1
    elif [ $rc -ne 0 ]; then
        echo "$model:1: the search does not run ($options): $(tail -n 3 "$folder/log")"
        return 1
    fi
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$folder/log")
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$folder/log")
    if [ "$expected" = right ] && [ "$errors" != 0 ]; then
        echo "$model:1: spin finds an error ($options)"
        grep -A 3 '^pan:' "$folder/log" || true
        return 1
    elif [ "$expected" = right ] && grep -q 'Search not completed' "$folder/log"; then
        echo "$model:1: the search is too large for $memory_mib MiB ($options); make the model smaller"
        return 1
    elif [ "$expected" = wrong ] && [ "$errors" = 0 ]; then
        echo "$model:1: the planted fault ($options) is not found"
        return 1
    fi
    echo "$model: ${options:-as it is}${claim:+, $claim}: $states states, errors: $errors"
}

# The arguments of every search, in quotes, a line each; the large ones, which find nothing, first.
list() {
    for model; do
        lines=$(sed -n 's|.*/\* \(run[a-z-]*\): *\(.*\) *\*/.*|\1 \2|p' "$model")
        echo "${lines:-run}" | sed 's/ *$//' | sed -n "s|^run \\(.*\\)|1 $model right '\\1'|p; s|^run$|1 $model right ''|p
            s|^run-must-fail \\(.*\\)|2 $model wrong '\\1'|p"
        sed -n "s|^ltl \\([a-zA-Z0-9_]*\\).*|1 $model right '' \\1|p" "$model"
    done | sort -s -k 1,1 | cut -d ' ' -f 2-
}

if [ "${1:-}" = --search ]; then
    shift
    search "$@"
    exit
fi
for name; do
    if [ ! -f "tests/model/$name.pml" ]; then
        echo "$0: there is no model '$name'; there are:" $(cd tests/model && ls *.pml | sed 's/\.pml$//') >&2
        exit 2
    fi
    shift
    set -- "$@" "tests/model/$name.pml"
done
[ $# -gt 0 ] || set -- tests/model/*.pml
if [ ! -f "$1" ]; then
    echo "skipped: no models in tests/model"
    exit 0
fi
if ! command -v spin >/dev/null 2>&1; then
    echo "skipped: no spin"
    exit 0
fi
MODELS_SCRATCH=$(mktemp -d)
export MODELS_SCRATCH
trap 'rm -rf "$MODELS_SCRATCH"' EXIT
list "$@" | xargs -P "$(nproc)" -L 1 "$0" --search
