#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that all that libvgpu.so imports is bound to the C library's own, or named here with a reason.

A program may have a function of any name (docs/decisions/0044-own-imports.md)."""

import re
import subprocess
import sys

# Allocation, whose memory is as good as the C library's, and what the linker's own files ask for, which may be absent.
OTHERS = {"malloc", "calloc", "realloc", "free", "__cxa_atexit", "__cxa_finalize", "__gmon_start__",
          "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "_r_debug"}

def symbols(path, *options):
    text = subprocess.run(["nm", "-D", *options, path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        found = re.match(r"(?:[0-9a-f]+)?\s*(\w)\s+([^@\s]+)", line)
        if found:
            yield found.group(2), found.group(1)


def libc_of(library):
    text = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    return re.search(r"libc\.so\.6 => (\S+)", text).group(1)


def main():
    library = sys.argv[1]
    libc = libc_of(library)
    known = {name for name, kind in symbols(libc, "--defined-only") if kind in "TWi"} | OTHERS
    strange = sorted({name for name, _ in symbols(library, "--undefined-only")} - known)
    for name in strange:
        print("%s: %s is no function of the C library, so another object may have it; "
              "see tools/check_imports.py" % (library, name))
    sys.exit(1 if strange else 0)


if __name__ == "__main__":
    main()
