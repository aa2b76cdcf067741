#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# configure.sh FOLDER [MESON OPTIONS]: sets up a build folder, or leaves it alone where it was set
# up with the same options, compiler and meson for the same tree. Anything else is set up anew, so
# that no build ever mixes two sets of options, or looks for a tree that was moved or is gone.
set -eu
folder=$1
shift

stamp=$folder/configured-with
now="tree=$PWD CC=${CC:-} CFLAGS=${CFLAGS:-} LDFLAGS=${LDFLAGS:-} meson=$(meson --version) $*"
if [ -f "$folder/build.ninja" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
    exit 0
fi
# A folder that has something in it and is no build folder of ours stays as it is.
if [ -d "$folder" ] && [ ! -d "$folder/meson-private" ] && [ -n "$(ls -A "$folder")" ]; then
    echo "$folder: there are files here that no build made; move them away" >&2
    exit 1
fi
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! meson setup "$folder" "$@" >"$log" 2>&1; then
    grep -v "supports arguments" "$log" >&2
    exit 1
fi
[ -z "${V:-}" ] || cat "$log"
grep -E 'WARNING|^C compiler' "$log" || true
echo "$now" >"$stamp"
