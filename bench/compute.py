#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how exactly the tenant library divides a device's compute time, and what that costs.

    bench/compute.py [--quick] [--sections NAME,...] [--part I/N] [--write] BUILD

A share is how much of a load was done in comparison to the same load without the library, measured in
the same run. "busy" is the part of the time in which a kernel ran.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time

import compute_change
import compute_cost
import compute_share
import compute_two
from compare import machine_name
from compute_rig import Failure, Rig

HERE = os.path.dirname(os.path.abspath(__file__))
SECTIONS = {
    "alone": compute_share.alone,
    "beside": compute_share.beside,
    "long": compute_share.long,
    "change": compute_change.change,
    "priority": compute_change.priority,
    "cost": compute_cost.cost,
    "models": compute_cost.models,
    "two": compute_two.two,
}


def part(text):
    one, _, all_ = text.partition("/")
    if not 1 <= int(one) <= int(all_):
        raise argparse.ArgumentTypeError("%s is no part" % text)
    return int(one), int(all_)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", action="store_true", help="on the simulated node")
    parser.add_argument("--quick", action="store_true", help="a choice of rows")
    parser.add_argument("--sections", default=",".join(SECTIONS), help=",".join(SECTIONS))
    parser.add_argument("--rows", default="", help="only rows whose name has this in it")
    parser.add_argument("--but", default="-", metavar="ROWS", help="no rows whose name has this in it")
    parser.add_argument("--part", type=part, default=(1, 1), help="of the rows of alone: 2/4")
    parser.add_argument("--seconds", type=float, default=3, help="of a row (3)")
    parser.add_argument("--turns", action="store_true", help="slices that are alone take turns, too")
    parser.add_argument("--deadline", type=float, default=1e9, metavar="S",
                        help="no row is begun after so many seconds")
    parser.add_argument("--json", metavar="FILE", help="the rows, written after each")
    parser.add_argument("--write", action="store_true", help="keep the tables in bench/results/")
    parser.add_argument("build", help="a build folder")
    args = parser.parse_args()
    unknown = set(args.sections.split(",")) - set(SECTIONS)
    if unknown:
        parser.error("there is no section %s" % ", ".join(sorted(unknown)))
    return args


def cell(value):
    if isinstance(value, float):
        return "%.3f" % value if abs(value) < 2 else "%.2f" % value if abs(value) < 100 else "%.1f" % value
    return str(value)


class Report:
    """Rows as they come, as markdown and as JSON."""

    def __init__(self, args, rig):
        self.args, self.rig, self.rows, self.lines = args, rig, [], []
        self.start, self.name, self.keys = time.monotonic(), "", None

    def say(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def section(self, name, title):
        self.name, self.keys = name, None
        self.say("\n## %s: %s\n" % (name, title))

    def is_asked(self, name):
        return self.args.rows in name and self.args.but not in name

    def row(self, name, about, measure):
        """measure() gives ({what: figure}, whether the goal is met, the goal); None: has no goal."""
        if not self.is_asked(name):
            return
        if time.monotonic() - self.start > self.args.deadline:
            self.skip(name, "the deadline has passed")
            return
        start = time.monotonic()
        try:
            measured, is_good, goal = measure()
        except (Failure, OSError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
            measured, is_good, goal = {}, False, "FAILED: %s" % str(error or repr(error))[:300]
        finally:
            self.rig.clear()
        self.add(name, about, measured, is_good, goal, time.monotonic() - start)

    def skip(self, name, why):
        if self.is_asked(name):
            self.add(name, {}, {}, None, "not run: %s" % why, 0)

    def add(self, name, about, measured, is_good, goal, took_s):
        if measured and self.keys != list(measured):
            if self.keys is not None:
                self.say("")
            self.keys = list(measured)
            self.say("| row | %s | goal | |" % " | ".join(self.keys))
            self.say("|" + " --- |" * (len(self.keys) + 3))
        if not measured:
            self.say("%s- %s: %s" % ("" if self.keys is None else "\n", name, goal))
            self.keys = self.keys and []
        verdict = "" if is_good is None else "ok" if is_good else "MISSED"
        if measured:
            values = [cell(measured[key]) for key in self.keys]
            self.say("| %s |" % " | ".join([name] + values + [goal, verdict]))
        self.rows.append(dict(about, section=self.name, row=name, measured=measured, goal=goal,
                              ok=is_good, seconds=round(took_s, 1)))
        if self.args.json:
            with open(self.args.json, "w", encoding="utf-8") as file:
                json.dump({"machine": machine(self.args), "rows": self.rows}, file, indent=1)

    def end(self):
        good = sum(row["ok"] is True for row in self.rows)
        bad = [row for row in self.rows if row["ok"] is False]
        self.say("\n%d rows ok, %d missed, %d without a goal or not run; %d s"
                 % (good, len(bad), len(self.rows) - good - len(bad),
                    time.monotonic() - self.start))
        for row in bad:
            self.say("- MISSED: %s: %s" % (row["section"], row["row"]))


def machine(args):
    return machine_name(argparse.Namespace(gpu=not args.sim))


def write(args, report):
    path = os.path.join(HERE, "results", "compute-%s" % machine(args))
    with open(path + ".md", "w", encoding="utf-8") as file:
        file.write("# How compute time is divided: %s\n\n" % machine(args))
        file.write("`bench/compute.py %s`, %s, %d processors, %s.\n"
                   % (" ".join(word for word in sys.argv[1:-1] if word != "--write"),
                      platform.machine(), os.cpu_count(), datetime.date.today().isoformat()))
        file.write("\n".join(report.lines) + "\n")
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({"machine": machine(args), "rows": report.rows}, file, indent=1)
        file.write("\n")
    print("written: %s.md, .json" % os.path.relpath(path))


def main():
    args = parse()
    with tempfile.TemporaryDirectory(prefix="vgpu-bench-") as folder:
        rig = Rig(args.build, folder, args.sim)
        for needed in (rig.program, rig.library):
            if not os.path.exists(needed):
                sys.exit("compute.py: there is no %s; build it first" % needed)
        report = Report(args, rig)
        try:
            for name in args.sections.split(","):
                SECTIONS[name](rig, args, report)
        finally:
            rig.clear()
    report.end()
    if args.write:
        write(args, report)


if __name__ == "__main__":
    main()
