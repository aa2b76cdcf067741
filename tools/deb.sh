#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh BUILD FOLDER: the Debian packages cantaloupe (vgpu, the library, the simulated node) and cantaloupe-kube (what serves a
# cluster), of a build with prefix /usr, into FOLDER. The same build gives the same bytes; SOURCE_DATE_EPOCH is their time.
# DEBFULLNAME and DEBEMAIL say who makes them.
set -euo pipefail
build=$(readlink -f "$1")
mkdir -p "$2"
to=$(readlink -f "$2")
cd "$(dirname "$0")/.."
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
version=$(meson introspect --projectinfo "$build" | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
machine=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
maintainer="${DEBFULLNAME:-Cantaloupe} <${DEBEMAIL:-cantaloupe@users.noreply.github.com}>"

DESTDIR=$stage/all meson install -C "$build" --no-rebuild >/dev/null

# move PACKAGE PLACE...: what is not moved is cantaloupe's.
move() {
    local package=$1 place
    shift
    for place in "$@"; do
        mkdir -p "$stage/$package/$(dirname "$place")"
        mv "$stage/all/$place" "$stage/$package/$place"
    done
}

# libraries_of FOLDER: packages of the libraries that its programs load.
libraries_of() {
    mkdir -p "$stage/shlibs/debian"
    printf 'Source: cantaloupe\n\nPackage: cantaloupe\nArchitecture: any\n' >"$stage/shlibs/debian/control"
    (cd "$stage/shlibs" && find "$1/usr" -type f -path '*/bin/*' -exec dpkg-shlibdeps -O --ignore-missing-info {} +) |
        sed -n 's/^shlibs:Depends=//p'
}

# package NAME SUMMARY DEPENDS DESCRIPTION: of what lies in its folder.
package() {
    local at=$stage/$1 documents
    documents=$at/usr/share/doc/$1
    find "$at" -type f \( -path '*/bin/*' -o -name 'lib*.so*' -o -name nvidia-cuda-mps-control \) -exec strip --strip-unneeded --remove-section=.comment --remove-section=.note {} +
    find "$at" -type f -path '*/bin/*' -exec chmod 755 {} +
    find "$at" -type f -name 'lib*.so*' -exec chmod 644 {} +
    find "$at" -type d -exec chmod 755 {} +
    mkdir -p "$documents" "$at/DEBIAN"
    cat >"$documents/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: cantaloupe
Source: see the version's archive (make dist)

Files: *
Copyright: 2026 the authors of Cantaloupe
License: Apache-2.0
 On Debian systems the whole text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
END
    printf 'cantaloupe (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- %s  %s\n' "$version" "$maintainer" \
        "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.gz"
    find "$at/usr/share/man" -type f ! -name '*.gz' -exec gzip -9n {} +
    cat >"$at/DEBIAN/control" <<END
Package: $1
Source: cantaloupe
Version: $version
Architecture: $machine
Maintainer: $maintainer
Installed-Size: $(du -k -s --apparent-size --exclude=DEBIAN "$at" | cut -f 1)
Depends: $3$(libraries_of "$at")
Section: admin
Priority: optional
Description: $2
$4
END
    (cd "$at" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
    find "$at" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$at" "$to/$1_${version}_$machine.deb" >/dev/null
    echo "$to/$1_${version}_$machine.deb: $(du -k "$to/$1_${version}_$machine.deb" | cut -f 1) KiB"
}

move cantaloupe-kube usr/bin/vgpu-scheduler usr/bin/vgpu-device-plugin usr/bin/vgpu-monitor usr/bin/vgpu-plan usr/share/man/man8 \
    usr/lib/systemd/system/vgpu-monitor.service usr/share/man/man1/vgpu-plan.1 usr/share/man/man1/vgpu-explain.1
mv "$stage/all" "$stage/cantaloupe"
# systemd's own folder, before and after /lib became /usr/lib
for name in cantaloupe cantaloupe-kube; do
    mkdir -p "$stage/$name/lib/systemd"
    mv "$stage/$name/usr/lib/systemd/system" "$stage/$name/lib/systemd/system"
    rmdir "$stage/$name/usr/lib/systemd"
    rmdir --ignore-fail-on-non-empty "$stage/$name/usr/lib"
done
mv "$stage/cantaloupe/usr/share/zsh/site-functions" "$stage/cantaloupe/usr/share/zsh/vendor-completions"
mkdir -p "$stage/cantaloupe/DEBIAN"
cat >"$stage/cantaloupe/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
# the folders that users share, now and not only after the next start
if [ "$1" = configure ] && command -v systemd-tmpfiles >/dev/null; then
	systemd-tmpfiles --create vgpu.conf || true
fi
END
chmod 755 "$stage/cantaloupe/DEBIAN/postinst"
package cantaloupe "GPU slices with a memory quota and a part of the compute time" "" " Programs run in slices of a GPU: what they take of its memory and of its
 time is limited, whoever else runs on it. A library is preloaded, and no
 change of the program or the driver is needed. A simulated GPU is there,
 too, to see how it works without one."
package cantaloupe-kube "GPU slices for Kubernetes" "cantaloupe (= $version), " " The scheduler's extender and webhook, the device plugin and the monitor,
 which hand slices of GPUs out to pods, and \"vgpu plan\" and \"vgpu explain\",
 which say where pods would go and why they wait."
