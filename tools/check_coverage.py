#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the table of coverage (src/gpu/coverage.def) says something of every driver function.

Held against the recorded names of a driver's exports, the hook tables and the simulated driver.
Where libraries are given (libcuda.so.1, libnvidia-ml.so.1), or found with --system, also against
what they export: with a new driver this says what is new. Needs nm for that.
"""

import argparse
import ctypes
import os
import re
import sys

import check_exports
import coverage
import csource

SYSTEM = ("libcuda.so.1", "libnvidia-ml.so.1")
SIMULATED = [("sim/cuda/entry.def", "sim/cuda/unsupported.def", "cu"),
             ("sim/nvml/entry.def", "sim/nvml/unsupported.def", "nvml")]


def check_table(table, names):
    """Rows that say something twice, or of nothing that exists."""
    known = {coverage.base_of(n) for n in names} | set(names)
    for name, row in table.twice:
        yield coverage.TABLE, row.line, "%s is classified twice; once is enough" % name
    for name, row in table.of_base.items():
        if name not in known:
            yield coverage.TABLE, row.line, "no driver that we know exports %s" % name


def check_hooks(table, hooks):
    for name, (path, line) in hooks.items():
        row = table.row_of(name)
        if not row:
            yield path, line, "%s is hooked, and no row of %s names it" % (name, coverage.TABLE)
        elif row.macro in ("HARMLESS", "OUTSIDE"):
            yield (coverage.TABLE, row.line, "%s is hooked, so it is not %s; move it to another "
                   "class" % (name, row.macro))


def check_forms(table, hooks, names):
    """Each form that we know of a function to be hooked is hooked."""
    for name in names:
        row = table.row_of(name)
        if row and row.macro in coverage.TO_BE_HOOKED and name not in hooks:
            yield coverage.TABLE, row.line, "%s is %s, and is not hooked" % (name, row.macro)


def check_names(table, root):
    """Every function of CUDA has a row; of NVML those that are in no row pass through."""
    if not coverage.read_names(root, "cu"):
        yield coverage.NAMES["cu"], 1, "no names; the exports of a driver are expected here"
    for name in coverage.read_names(root, "cu"):
        if not table.row_of(name):
            yield coverage.TABLE, 1, "no row names %s, which the driver exports" % name


def check_simulated(root):
    """The simulated driver has every function of the real one, each once, and no other."""
    for real, unsupported, library in SIMULATED:
        names, seen = set(coverage.read_names(root, library)), set()
        if not names or not all(os.path.isfile(os.path.join(root, p)) for p in (real, unsupported)):
            continue
        for path in real, unsupported:
            for row in csource.rows(csource.read(root, path), "ENTRY", "UNSUPPORTED", "UNLISTED",
                                    "VARIABLE"):
                name = row.args[0]
                if name not in names:
                    yield path, row.line, "no driver that we know exports %s" % name
                if name in seen:
                    yield path, row.line, "%s has a row already; with a body it has none here" % name
                seen.add(name)
        for name in sorted(names - seen):
            yield unsupported, 1, "the driver exports %s, and the simulated one does not" % name


def check_library(path, table, hooks, names):
    """What a library exports that nobody has looked at yet."""
    for name in sorted(check_exports.exports(path)):
        row = table.row_of(name)
        if not coverage.library_of(name) or name in names or name in hooks:
            continue
        if not row:
            yield path, 1, "new: no row of %s names %s" % (coverage.TABLE, name)
        elif row.macro in coverage.TO_BE_HOOKED:
            yield path, 1, "new: %s is a form of a function to be hooked (%s:%d), and is not" % (
                name, coverage.TABLE, row.line)


def system_libraries():
    """The paths of the driver's libraries, where they can be loaded."""
    for name in SYSTEM:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        with open("/proc/self/maps", encoding="utf-8") as maps:
            for match in re.finditer(r"(/\S*/%s[\w.]*)$" % re.escape(name[:-2]), maps.read(), re.M):
                yield match.group(1)
                break


def check(root, libraries):
    table, hooks = coverage.Coverage(root), coverage.read_hooks(root)
    names = {n for library in coverage.NAMES for n in coverage.read_names(root, library)}
    findings = [*check_table(table, names), *check_hooks(table, hooks),
                *check_forms(table, hooks, names), *check_names(table, root),
                *check_simulated(root)]
    for path in libraries:
        findings += check_library(path, table, hooks, names)
    return sorted(set(findings))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--system", action="store_true", help="this machine's driver too")
    parser.add_argument("library", nargs="*")
    args = parser.parse_args()
    libraries = args.library + (list(system_libraries()) if args.system else [])
    findings = check(args.root, libraries)
    for path, line, what in findings:
        print("%s:%d: %s" % (path, line, what))
    if not findings and libraries:
        print("nothing new in %s" % ", ".join(libraries))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
