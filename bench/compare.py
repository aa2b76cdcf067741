#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench/overhead with and without the tenant library, by turns, and compares the medians.

By turns, so that a machine that grows slower meanwhile slows both; the spread beside a figure (half of
the middle half of its runs) and the standard error beside a difference say how much is noise.
"""

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# case, what it is, the goal: most added ns, or highest ratio
CASES = [
    ("pair-4k-0", "alloc + free 4 KiB, nothing else live", ("ns", 200)),
    ("pair-4k-1000", "the same, 1,000 live", ("ns", 200)),
    ("pair-4k-100000", "the same, 100,000 live", ("ns", 200)),
    ("pair-2m-0", "alloc + free 2 MiB, nothing else live", ("ns", 200)),
    ("pair-2m-1000", "the same, 1,000 live", ("ns", 200)),
    ("pair-2m-100000", "the same, 100,000 live", ("ns", 200)),
    ("threads-1", "alloc + free 4 KiB in 1 thread", ("ns", 200)),
    ("threads-8", "in 8 threads at once, of all together", ("ns", 200)),
    ("threads-64", "in 64 threads at once", ("ns", 200)),
    ("pair-vmm", "create, map, unmap, release 2 MiB", ("ns", 300)),
    ("pair-async", "alloc + free 1 MiB asynchronous, warm", ("ns", 100)),
    ("launch", "kernel launch, no compute limit", ("ns", 10)),
    ("procaddr", "cuGetProcAddress_v2", ("ns", 100)),
    ("dlsym-foreign", "dlsym of a foreign name", ("ns", 20)),
    ("info", "cuMemGetInfo", None),
    ("init", "cuInit, first in a process", ("ns", 5000000)),
    ("context", "primary context, first in a process", None),
    ("start-cuda", "100 processes that call cuInit, at once", ("ratio", 1.2)),
    ("start-true", "100 times /bin/true, at once", ("ratio", 1.2)),
]
PROCESSES = 100
# cuInit of one process takes 60 to 180 ms on a card, whoever asks: it needs more samples than a round
INITS = 6


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="this machine's card, not a simulated one")
    parser.add_argument("--write", action="store_true", help="keep the table in bench/results/")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each kind (9)")
    parser.add_argument("build", help="a build folder")
    return parser.parse_args()


def environment(args, folder):
    """What both kinds of run have."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("CUDA_DEVICE_MEMORY", "VGPU_")) and k != "LD_PRELOAD"}
    share = os.path.join(folder, "share")
    with open(share, "w", encoding="ascii") as file:
        file.write("vgpu-share 1\nregion %s/region\ndevice * memory 64g\nend\n" % folder)
    env["VGPU_SHARE"] = share
    if not args.gpu:
        sim = os.path.join(os.path.abspath(args.build), "sim")
        env["LD_LIBRARY_PATH"] = "%s/cuda:%s/nvml" % (sim, sim)
        env["VGPU_SIM_STATE"] = os.path.join(folder, "machine")
    return env


def run_once(argv, env):
    """One run of every case, or of those that argv names: {case: ns}."""
    output = subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
    return {name: float(ns) for name, ns in (line.split() for line in output.splitlines())}


def start_many(argv, env):
    """Nanoseconds from the first start to the last end."""
    start = time.monotonic_ns()
    children = [subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL) for _ in range(PROCESSES)]
    results = {child.wait() for child in children}
    if results != {0}:
        sys.exit("bench: %s ended with %s" % (argv, sorted(results)))
    return time.monotonic_ns() - start


def measure(args, folder):
    """{case: ([ns without], [ns with])}"""
    program = os.path.join(args.build, "bench", "overhead")
    library = os.path.join(os.path.abspath(args.build), "src", "tenant", "libvgpu.so")
    for needed in (program, library):
        if not os.path.exists(needed):
            sys.exit("bench: there is no %s; build it first" % needed)
    without = environment(args, folder)
    kinds = (without, dict(without, LD_PRELOAD=library))
    figures = {name: ([], []) for name, _, _ in CASES}
    run_once([program], without)
    for number in range(args.rounds):
        for kind in ((0, 1) if number % 2 == 0 else (1, 0)):
            env = kinds[kind]
            for name, ns in run_once([program], env).items():
                figures[name][kind].append(ns)
            figures["start-cuda"][kind].append(start_many([program, "init"], env))
            figures["start-true"][kind].append(start_many(["/bin/true"], env))
        for single in range(2 * INITS):
            kind = (number + single) % 2
            figures["init"][kind].append(run_once([program, "init"], kinds[kind])["init"])
    return figures


def figure(ns):
    if ns >= 1e6:
        return "%.2f ms" % (ns / 1e6)
    return "%.2f µs" % (ns / 1e3) if ns >= 1e4 else "%.1f ns" % ns


def spread(values):
    """Half the width of the middle half."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2
    quarters = statistics.quantiles(values, n=4)
    return (quarters[2] - quarters[0]) / 2


def error_of_median(values):
    """The standard error of the median, from the spread: 1.25 sigma / sqrt(n), sigma = spread / 0.67."""
    return 1.86 * spread(values) / len(values) ** 0.5


def verdict(added, error, goal):
    """A goal is met or missed only where the noise lets it be seen: by two standard errors."""
    if added - 2 * error > goal:
        return "NOT met"
    return "met" if added + 2 * error <= goal else "within the noise"


def rows(figures):
    for name, what, goal in CASES:
        without, with_it = figures[name]
        if not without or not with_it:
            yield (what, "-", "-", "-", "-", "-", "skipped")
            continue
        a, b = statistics.median(without), statistics.median(with_it)
        error = (error_of_median(without) ** 2 + error_of_median(with_it) ** 2) ** 0.5
        wanted, seen = "", ""
        if goal and goal[0] == "ns":
            wanted, seen = "+%s" % figure(goal[1]), verdict(b - a, error, goal[1])
        elif goal:
            wanted, seen = "%.1f×" % goal[1], verdict(b / a, error / a, goal[1])
        yield (what, "%s ±%s" % (figure(a), figure(spread(without))),
               "%s ±%s" % (figure(b), figure(spread(with_it))),
               "%s%s ±%s" % ("+" if b >= a else "-", figure(abs(b - a)), figure(error)),
               "%.2f×" % (b / a), wanted, seen)


HEAD = ("case", "without", "with", "added", "ratio", "goal", "")


def text_table(table):
    widths = [max(len(row[i]) for row in [HEAD] + table) for i in range(len(HEAD))]
    for row in [HEAD] + table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def machine_name(args):
    if not args.gpu:
        return "simulated"
    query = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False)
    name = (query.stdout.strip().splitlines() or ["gpu"])[0]
    return name.lower().replace("nvidia ", "").replace(" ", "-")


def write_page(args, table):
    name = machine_name(args)
    folder = os.path.join(HERE, "results")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# What the tenant library adds: %s\n\n" % name)
        file.write("`bench/run.sh%s --rounds %d`, %s, %d processors, %s. Medians of %d runs by "
                   "turns; ± is half the "
                   "middle half of the runs, beside a difference its standard error.\n\n"
                   % (" --gpu" if args.gpu else "", args.rounds, platform.machine(),
                      os.cpu_count(), datetime.date.today().isoformat(), args.rounds))
        file.write("| " + " | ".join(HEAD).rstrip() + " |\n")
        file.write("|" + " --- |" * len(HEAD) + "\n")
        for row in table:
            file.write("| " + " | ".join(row).rstrip() + " |\n")
    print("written: %s" % os.path.relpath(path))


def main():
    args = parse()
    with tempfile.TemporaryDirectory(prefix="vgpu-bench-") as folder:
        table = list(rows(measure(args, folder)))
    print("\n".join(text_table(table)))
    if args.write:
        write_page(args, table)


if __name__ == "__main__":
    main()
