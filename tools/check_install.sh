#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_install.sh: installs into an empty folder, looks at what lies there, uninstalls, and looks
# again.
set -eu
cd "$(dirname "$0")/.."
root=$(mktemp -d)
log=$(mktemp)
trap 'rm -rf "$root" "$log"' EXIT
prefix=/usr/local
status=0

# Which sizes a file has, until another one comes that ends it.
WATCH='
import os, sys
sizes, missing, end = set(), 0, False
print("begins", flush=True)
while not end:
    end = os.path.exists(sys.argv[2])
    try:
        sizes.add(os.stat(sys.argv[1]).st_size)
    except FileNotFoundError:
        missing += 1
os.lseek(1, 0, 0); os.ftruncate(1, 0)
print(f"{len(sizes)} sizes, {missing} times missing")
'

wrong() {
    echo "$1"
    status=1
}

${MAKE:-make} --no-print-directory install DESTDIR="$root" PREFIX=$prefix >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
(cd "$root" && find . ! -type d | sort)
library=$root$prefix/lib/vgpu/libvgpu.so
tool=$root$prefix/bin/vgpu
[ -f "$library" ] || wrong "$prefix/lib/vgpu/libvgpu.so: not installed; expected there"
[ -x "$tool" ] || wrong "$prefix/bin/vgpu: not installed; expected there"
if [ -f "$library" ]; then
    LD_PRELOAD=$library /bin/true 2>"$log" || wrong "$library: a program under it fails"
    [ ! -s "$log" ] || wrong "$library: a program without a GPU is told: $(cat "$log")"
    if readelf -d "$library" | grep -qE 'RPATH|RUNPATH'; then
        wrong "$library: has a run path; remove it"
    fi
fi
if [ -x "$tool" ]; then
    "$tool" help >/dev/null || wrong "vgpu help: fails"
fi
# While another one is put over it the library is there and whole, the old one or the new.
cp "$library" "$root/longer" && echo more >>"$root/longer" && cp "$root/longer" "$library"
python3 -c "$WATCH" "$library" "$root/longer.end" >"$root/seen" &
watcher=$!
until [ -s "$root/seen" ]; do sleep 0.01; done
for _ in 1 2 3; do
    ${MAKE:-make} --no-print-directory install DESTDIR="$root" PREFIX=$prefix >"$log" 2>&1 || wrong "install over what is there fails: $(cat "$log")"
done
touch "$root/longer.end"
wait "$watcher"
[ "$(cat "$root/seen")" = "2 sizes, 0 times missing" ] || wrong "while it is installed anew the library has $(cat "$root/seen")"
rm "$root/longer" "$root/longer.end" "$root/seen"
[ -z "$(find "$root" -name '.*.new')" ] || wrong "install leaves what it put beside"
# Under another prefix there is nothing, and nothing goes.
before=$(cd "$root" && find . ! -type d | wc -l)
${MAKE:-make} --no-print-directory uninstall DESTDIR="$root" PREFIX=/opt/other >/dev/null
[ "$before" = "$(cd "$root" && find . ! -type d | wc -l)" ] || wrong "uninstall PREFIX=/opt/other empties $prefix"
mkdir -p "$root/opt" && mv "$root$prefix" "$root/opt/moved"
${MAKE:-make} --no-print-directory uninstall DESTDIR="$root" PREFIX=/opt/moved >/dev/null
left=$(cd "$root" && find . ! -type d)
[ -z "$left" ] || wrong "uninstall leaves: $left"
exit $status
