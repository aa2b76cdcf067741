#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh FOLDER TARGET: installs a build under DESTDIR. Makes the target first, which builds what is not built, and does that
# as the user behind sudo, so that no file in the build folder ever belongs to root. A program that begins goes without limits past
# a library that is not there, so each file is put beside the old one and renamed: meson removes the old one first.
set -eu
folder=$1
target=$2

if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
    sudo -u "$SUDO_USER" env PATH="$PATH" ${CC:+CC="$CC"} "${MAKE:-make}" --no-print-directory \
        "$target" PREFIX="$PREFIX"
else
    "${MAKE:-make}" --no-print-directory "$target" PREFIX="$PREFIX"
fi
if ! command -v meson >/dev/null 2>&1; then
    echo "install: root does not see meson; try: sudo env PATH=\"\$PATH\" make install" >&2
    exit 1
fi
log=$(mktemp)
stage=$(mktemp -d)
trap 'rm -rf "$log" "$stage"' EXIT
if ! DESTDIR=$stage meson install -C "$folder" --no-rebuild >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
umask 022
(cd "$stage" && find . ! -type d) | sort | while read -r file; do
    to=${DESTDIR:-}${file#.}
    beside=${to%/*}/.${to##*/}.new
    mkdir -p "${to%/*}"
    rm -f "$beside"
    cp -P --preserve=mode,timestamps "$stage/$file" "$beside"
    mv -fT "$beside" "$to"
    echo "Installing $to"
done
