#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the tenant library still loads into old images: no symbol newer than the floor.

The library is loaded into whatever image the tenant brings; one symbol of a newer glibc, and no
program of that image starts. Says what it found, also when all is well.
"""

import argparse
import os
import re
import subprocess
import sys

FLOOR = (2, 17)
FLOOR_NAME = "GLIBC_2.17"
NEEDED = {"libc.so.6"}
TOLERATED = {"libpthread.so.0", "libdl.so.2"}


def readelf(option, library):
    run = subprocess.run(["readelf", "-W", option, library], stdout=subprocess.PIPE, text=True,
                         check=True, env={**os.environ, "LC_ALL": "C"})
    return run.stdout


def parse(version):
    """(2, 17) for GLIBC_2.17; None for what is no numbered glibc version."""
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
    return tuple(int(n) for n in match.group(1).split(".")) if match else None


def name_of(number):
    return "GLIBC_" + ".".join(str(n) for n in number)


def check(library):
    findings = []
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", readelf("-d", library))
    for name in needed:
        if name not in NEEDED | TOLERATED:
            findings.append("needs %s; only %s is in every image" % (name, ", ".join(NEEDED)))
    symbols = {}
    for line in readelf("--dyn-syms", library).splitlines():
        match = re.search(r"\sUND\s+([^\s@]+)@+(\S+)", line)
        if match:
            symbols.setdefault(match.group(2), []).append(match.group(1))
    newest = (0,)
    versions = set(symbols)
    versions |= set(re.findall(r"\bName: (\S+)\s+Flags:", readelf("-V", library)))
    for version in sorted(versions):
        number = parse(version)
        who = ", ".join(sorted(symbols.get(version, ["the linker itself"])))
        if number is None:
            findings.append("%s asks for %s, which old systems lack" % (who, version))
        elif number > FLOOR:
            findings.append("%s asks for %s; nothing newer than %s is in every image" %
                            (who, version, FLOOR_NAME))
        if number:
            newest = max(newest, number)
    return findings, newest, needed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libvgpu.so, or the build folder that has it")
    library = parser.parse_args().library
    if os.path.isdir(library):
        library = os.path.join(library, "src/tenant/libvgpu.so")
    if not os.path.isfile(library):
        print("%s:1: not built; build it before this check" % library)
        return 1
    findings, newest, needed = check(library)
    for what in findings:
        print("%s:1: %s" % (library, what))
    print("%s: newest symbol version %s (floor %s); needs %s" %
          (library, name_of(newest) if newest != (0,) else "none", FLOOR_NAME,
           " ".join(needed) or "nothing"))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
