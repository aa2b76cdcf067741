#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that need a real GPU; see run.sh."""

import argparse
import os
import signal
import sys
import time

import abi
import books
import compute
import evict
import foreign
import frameworks
import hostile
import many
import mps
import names
import plugin
import sections
import view
from node import Node
from report import Report

SECTION_S = 780

SECTIONS = {
    "doors": sections.test_doors,
    "quota": sections.test_quota,
    "processes": sections.test_processes,
    "books": books.test_books,
    "compute": compute.test_compute,
    "mps": mps.test_mps,
    "foreign": foreign.test_foreign,
    "evict": evict.test_evict,
    "hostile-memory": hostile.test_memory,
    "hostile-time": hostile.test_time,
    "smi": sections.test_smi,
    "view": view.test_view,
    "frameworks": frameworks.test_frameworks,
    "many": many.test_many,
    "abi": abi.test_abi,
    "names": names.test_names,
    "plugin": plugin.test_plugin,
}


def give_up(_signal, _frame):
    raise TimeoutError("a section took more than %d s" % SECTION_S)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", action="store_true", help="on the simulated node")
    parser.add_argument("--include", metavar="FOLDER", help="where cuda.h and nvml.h are, for abi")
    parser.add_argument("build")
    parser.add_argument("section", nargs="*", help=", ".join(SECTIONS))
    args = parser.parse_args()
    unknown = set(args.section) - set(SECTIONS)
    if unknown:
        sys.exit("run.sh: there is no section %s" % ", ".join(sorted(unknown)))
    if args.include:
        os.environ["CUDA_INCLUDE"] = args.include
    node, report = Node(args.build, args.sim), Report()
    for needed in (node.library, node.vgpu, node.program("client")):
        if not os.path.exists(needed):
            sys.exit("run.sh: there is no %s; build it first" % needed)
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    try:
        for name, section in SECTIONS.items():
            if args.section and name not in args.section:
                continue
            start = time.monotonic()
            signal.alarm(SECTION_S)
            try:
                section(node, report)
            except TimeoutError:
                raise
            except Exception as error:  # one broken section must not hide the others
                report.check("section %s" % name, False, repr(error))
            print("(%s: %.1f s)" % (name, time.monotonic() - start))
        errors = node.read_errors()
        report.check("the library had nothing to say", not errors, errors[:2000])
    except TimeoutError as error:
        report.check("in time", False, str(error))
    finally:
        signal.alarm(0)
        node.close()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
