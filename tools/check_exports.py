#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the libraries export, held against the hook tables.

libvgpu.so exports its hooks, dlsym and dlvsym, and nothing else: one name more would be taken for
the host program's own. The simulated node exports only driver names, and has every name that a
table mentions, so that no row stays untested.
"""

import argparse
import os
import re
import subprocess
import sys

import csource

DOORS = {"dlsym", "dlvsym"}
SIDES = [
    # table, simulated library, what its names look like
    ("src/gpu/cuda.def", "sim/cuda/libcuda.so.1", r"cu(dbg)?[A-Z]\w*$"),
    ("src/gpu/nvml.def", "sim/nvml/libnvidia-ml.so.1", r"nvml[A-Z]\w*$"),
    ("src/gpu/nvml_node.def", "sim/nvml/libnvidia-ml.so.1", r"nvml[A-Z]\w*$"),
]
TENANT = "src/tenant/libvgpu.so"


def exports(library):
    run = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE,
                         text=True, check=True)
    names = (line.split()[-1] for line in run.stdout.splitlines() if line.strip())
    return {name.split("@")[0] for name in names}


def table(root, path):
    """Symbol to (macro, line); a table that is not there has no rows."""
    if not os.path.isfile(os.path.join(root, path)):
        return {}
    found = csource.rows(csource.read(root, path), r"HOOK\w*", r"CALL\w*")
    return {row.args[0]: (row.macro, row.line) for row in found}


def check(root, build):
    findings, hooks = [], {}
    for path, library, pattern in SIDES:
        names = table(root, path)
        if not names:
            findings.append((path, 1, "no rows; the table of hooks is expected here"))
        for name, (macro, line) in names.items():
            if macro.startswith("HOOK"):
                hooks[name] = (path, line)
        simulated = os.path.join(build, library)
        if not os.path.exists(simulated):
            findings.append((simulated, 1, "not built; build it before this check"))
            continue
        there = exports(simulated)
        for name in sorted(there):
            if not re.match(pattern, name):
                findings.append((simulated, 1, "exports %s, which is no driver name; make it "
                                 "static or hidden" % name))
        for name, (macro, line) in names.items():
            if name not in there:
                findings.append((path, line, "%s is missing from %s; add it there" %
                                 (name, library)))
    tenant = os.path.join(build, TENANT)
    if not os.path.exists(tenant):
        findings.append((tenant, 1, "not built; build it before this check"))
        return sorted(findings), 0
    there = exports(tenant)
    for name in sorted(there - set(hooks) - DOORS):
        findings.append((tenant, 1, "exports %s, which is no HOOK row; make it static or hidden"
                         % name))
    for name in sorted(set(hooks) - there):
        path, line = hooks[name]
        findings.append((path, line, "%s is not exported; its body needs HOOK_BODY" % name))
    for name in sorted(DOORS - there):
        findings.append((tenant, 1, "does not export %s, one of the doors" % name))
    return sorted(findings), len(there)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--root", default=".")
    args = parser.parse_args()
    findings, count = check(args.root, args.build)
    for path, line, what in findings:
        print("%s:%d: %s" % (path, line, what))
    if not findings:
        print("%s exports its %d names and no other" % (TENANT, count))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
