#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""uninstall.py BUILD: removes what `make install` put under DESTDIR, as that build folder knows it,
and the folders of ours that are empty then."""

import json
import os
import sys


def main():
    with open(os.path.join(sys.argv[1], "meson-info/intro-installed.json"), encoding="utf-8") as f:
        places = json.load(f).values()
    root = os.environ.get("DESTDIR", "")
    folders = set()
    for place in places:
        full = root + place
        if os.path.lexists(full) and not os.path.isdir(full):
            os.remove(full)
            print("removed %s" % full)
        folders.add(os.path.dirname(full))
    for folder in sorted(folders, key=len, reverse=True):
        while "vgpu" in os.path.basename(folder) or "cantaloupe" in os.path.basename(folder):
            if not os.path.isdir(folder) or os.listdir(folder):
                break
            os.rmdir(folder)
            print("removed %s" % folder)
            folder = os.path.dirname(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
