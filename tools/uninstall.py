#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""uninstall.py BUILD: removes what `make install` put under DESTDIR and PREFIX, as that build folder knows it,
and the folders of ours that are empty then. The build may have been configured for another prefix since."""

import json
import os
import sys


def read(build, name):
    with open(os.path.join(build, "meson-info", name), encoding="utf-8") as f:
        return json.load(f)


def places(build):
    configured = next(o["value"] for o in read(build, "intro-buildoptions.json") if o["name"] == "prefix")
    prefix = os.path.normpath(os.environ.get("PREFIX") or configured)
    for place in read(build, "intro-installed.json").values():
        inside = os.path.relpath(place, configured)
        if inside.startswith(".."):
            yield place
        else:
            yield os.path.join(prefix, inside)


def main():
    root = os.environ.get("DESTDIR", "")
    folders = set()
    removed = 0
    for place in places(sys.argv[1]):
        full = root + place
        if os.path.lexists(full) and not os.path.isdir(full):
            os.remove(full)
            print("removed %s" % full)
            removed += 1
        folders.add(os.path.dirname(full))
    for folder in sorted(folders, key=len, reverse=True):
        while "vgpu" in os.path.basename(folder) or "cantaloupe" in os.path.basename(folder):
            if not os.path.isdir(folder) or os.listdir(folder):
                break
            os.rmdir(folder)
            print("removed %s" % folder)
            folder = os.path.dirname(folder)
    if not removed:
        print("nothing of ours is under %s%s" % (root, os.environ.get("PREFIX", "")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
