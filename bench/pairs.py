#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tenant libraries add to pairs of calls: several at once beside none, told by turns.

    bench/pairs.py [--gpu] [--library FILE]... [--case NAME]... [--seconds S] [--cold KIB] BUILD

Each library, and native, is a process of its own that lives all the time; each is told a burst of 10 ms in turn. So
what the machine does besides hits all alike. --cold reads so many KiB before each round of the VMM case, as a driver's
system calls empty the caches on a card.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from compare import environment, error_of_median

# case, what it is, samples of a burst, operations of a sample
CASES = [
    ("plain", "cuMemAlloc + cuMemFree 4 KiB", 100, 100),
    ("async", "cuMemAllocAsync + cuMemFreeAsync 1 MiB, warm, null stream", 100, 100),
    ("async-stream", "the same on a stream", 100, 100),
    ("vmm", "reserve, create, map, setAccess, unmap, release, addressFree 2 MiB", 50, 1),
]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="this machine's card, not a simulated one")
    parser.add_argument("--library", action="append", metavar="FILE", help="a libvgpu.so (BUILD's)")
    parser.add_argument("--case", action="append", metavar="NAME", choices=[c[0] for c in CASES],
                        help="this one alone; may be given again (all)")
    parser.add_argument("--seconds", type=float, default=40, help="in all (40)")
    parser.add_argument("--cold", type=int, default=0, metavar="KIB", help="read before each VMM round (0)")
    parser.add_argument("--board", default="h200", help="of the simulated node (h200)")
    parser.add_argument("build", help="a build folder")
    return parser.parse_args()


class Worker:
    """A process of bench/pairs.c."""

    def __init__(self, name, program, env):
        self.name = name
        self.samples = {}
        self.medians = {}
        self.process = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self):
        if self.process.stdout.readline() != "ready\n":
            sys.exit("pairs: %s does not begin" % self.name)

    def burst(self, case, samples, operations, cold):
        self.process.stdin.write("%s %d %d %d\n" % (case, samples, operations, cold))
        self.process.stdin.flush()
        ns = [float(word) for word in self.process.stdout.readline().split()]
        if len(ns) != samples:
            sys.exit("pairs: %s ended in %s" % (self.name, case))
        self.samples.setdefault(case, []).extend(ns)
        self.medians.setdefault(case, []).append(statistics.median(ns))


def start(args, folder):
    program = os.path.join(args.build, "bench", "pairs")
    libraries = args.library or [os.path.join(args.build, "src", "tenant", "libvgpu.so")]
    for needed in [program] + libraries:
        if not os.path.exists(needed):
            sys.exit("pairs: there is no %s; build it first" % needed)
    common = {} if args.gpu else {"VGPU_SIM_STATE": os.path.join(folder, "machine"), "VGPU_SIM_BOARD": args.board}
    workers = [Worker("native", program, dict(environment(args, folder), **common))]
    for number, library in enumerate(libraries):
        # a slice of its own: their regions may be of different versions
        own = os.path.join(folder, str(number))
        os.mkdir(own)
        env = dict(environment(args, own), LD_PRELOAD=os.path.abspath(library), **common)
        workers.append(Worker(os.path.relpath(library), program, env))
    for worker in workers:
        worker.wait()
    return workers


def report(workers, cases):
    native = workers[0]
    for case, what, _, _ in cases:
        print("%s: %s" % (case, what))
        for worker in workers:
            ns = worker.samples[case]
            line = "  %-40s min %9.1f ns  median %9.1f ns" % (worker.name, min(ns), statistics.median(ns))
            if worker is not native:
                more = [a - b for a, b in zip(worker.medians[case], native.medians[case])]
                line += "  added: min %+8.1f  median %+8.1f  by turns %+8.1f ±%.1f" % (
                    min(ns) - min(native.samples[case]),
                    statistics.median(ns) - statistics.median(native.samples[case]),
                    statistics.median(more), error_of_median(more))
            print(line)


def main():
    args = parse()
    cases = [c for c in CASES if not args.case or c[0] in args.case]
    with tempfile.TemporaryDirectory(prefix="vgpu-pairs-") as folder:
        workers = start(args, folder)
        end, turn = time.monotonic() + args.seconds, 0
        while time.monotonic() < end or turn < 3:
            for case, _, samples, operations in cases:
                for i in range(len(workers)):
                    worker = workers[(turn + i) % len(workers)]
                    worker.burst(case, samples, operations, args.cold * 1024 if case == "vmm" else 0)
            turn += 1
            if turn == 2:  # the first two warm everything up
                for worker in workers:
                    worker.samples, worker.medians = {}, {}
        for worker in workers:
            worker.process.stdin.close()
            worker.process.wait()
    print("%d bursts of each" % (turn - 2))
    report(workers, cases)


if __name__ == "__main__":
    main()
