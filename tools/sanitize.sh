#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sanitize.sh address|thread FOLDER [WERROR]: builds with sanitizers and runs the tests that can be
# run so.
#
# A sanitizer cannot be preloaded into strangers, so the suite `tenant`, whose programs run under
# the library, stays out. The thread sanitizer has nothing to see in `cli` and `fuzz`, which start no
# threads.
#
# The address sanitizer builds everything, with clang where it is installed, so that its warnings are
# seen, too. meson itself looks for ccache only where nobody names the compiler.
set -eu
kind=$1
folder=$2
werror=${3:-false}

if [ "$kind" = address ]; then
    flags=address,undefined
    suites="--suite unit --suite sim --suite stress"
    if [ -z "${CC:-}" ] && command -v clang >/dev/null 2>&1; then
        CC=$(command -v ccache >/dev/null 2>&1 && echo "ccache clang" || echo clang)
        export CC
    fi
else
    flags=thread
    suites="--suite unit --suite stress --no-suite cli --no-suite fuzz"
    # these compute, and do not wait
    MESON_TESTTHREADS=$(nproc)
    export MESON_TESTTHREADS
fi

# Old thread sanitizers cannot live with today's address space randomization; setarch switches it
# off for the tests, where this is allowed.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int main(void) { return 0; }' >"$scratch/probe.c"
if ! ${CC:-cc} -fsanitize=$flags "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null; then
    echo "skipped: ${CC:-cc} has no $kind sanitizer here"
    exit 0
fi
runs_all_right() {
    for try in 1 2 3 4 5 6 7 8; do
        "$@" "$scratch/probe" >/dev/null 2>&1 || return 1
    done
}
set --
if ! runs_all_right; then
    if runs_all_right setarch -R; then
        set -- --wrapper "setarch -R"
    else
        echo "skipped: programs with the $kind sanitizer do not start here"
        exit 0
    fi
fi

export ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0
tools/configure.sh "$folder" -Dbuildtype=debugoptimized -Db_sanitize=$flags -Db_lundef=false \
    -Dtests=enabled -Dwerror="$werror"
[ "$kind" = thread ] || meson compile -C "$folder" --ninja-args=-k0
meson test -C "$folder" --print-errorlogs --timeout-multiplier 5 "$@" $suites
