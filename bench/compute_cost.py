# SPDX-License-Identifier: Apache-2.0
"""Sections of bench/compute.py: what models get of their share, and what a launch costs."""

import importlib.util
import json
import os
import statistics
import sys

from compare import error_of_median, verdict
from compute_rig import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = [("train", "training"), ("decode", "decoding, eager"),
          ("decode-graph", "decoding, as a graph")]
GOAL_POINTS = 2.0
GOAL_WHOLE = 99.0
GOAL_TOGETHER = 1.05
WHOLE = 99.9  # all but nothing, and yet a limit
ROUNDS = {True: 7, False: 21}  # quick or not
GOAL_NS = {"no limit": 10, "limit of 99 %": 100}


def model_children(rig, slices, what, seconds):
    return [rig.start_program(slice_, [sys.executable, os.path.join(HERE, "model_steps.py"), what,
                                       "%g" % seconds, "@wait"], seconds) for slice_ in slices]


def steps(rig, slices, what, seconds):
    """Steps a second of a model in each of the slices at once."""
    children = model_children(rig, slices, what, seconds)
    rig.begin(children)
    found = []
    for child in children:
        rates = [float(line) for line in child.text().split() if line != "ready"]
        if len(rates) < 3:
            raise Failure("only %d rates" % len(rates))
        # those at the edges are of another time than the others' processes'
        found.append(statistics.mean(rates[1:-1]))
    return found


def measure_model(rig, args, what, limit, natives):
    seconds = args.seconds + 2
    if what not in natives:
        natives[what] = steps(rig, [None], what, seconds)[0]
    seen = steps(rig, [rig.slice(cores=limit)], what, seconds)[0]
    share = 100 * seen / natives[what]
    measured = {"steps/s native": natives[what], "steps/s": seen, "share": share,
                "error": share - limit}
    if limit == WHOLE:
        return measured, share >= GOAL_WHOLE, "≥ %d %%" % GOAL_WHOLE
    return measured, abs(share - limit) <= GOAL_POINTS, "±%.1f" % GOAL_POINTS


def measure_two(rig, args):
    seconds = args.seconds + 4
    native = steps(rig, [None, None], "train", seconds)
    slices = [rig.slice(turns=rig.turns, cores=50) for _ in range(2)]
    seen = steps(rig, slices, "train", seconds)
    ratio = sum(seen) / sum(native)
    return {"steps/s native": " ".join("%.2f" % one for one in native),
            "steps/s": " ".join("%.2f" % one for one in seen), "together": ratio}, \
        ratio >= GOAL_TOGETHER, "≥ %.2f×" % GOAL_TOGETHER


def models(rig, args, report):
    report.section("models", "what a model does in its share")
    lacking = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
    natives = {}
    for what, name in MODELS:
        for limit in (25, 50) + ((WHOLE,) if what == "train" else ()):
            row = "%s, %g %%" % (name, limit)
            if rig.is_sim or lacking:
                report.skip(row, "needs a card" if rig.is_sim else "no " + ", ".join(lacking))
            else:
                report.row(row, {}, lambda: measure_model(rig, args, what, limit, natives))
    if rig.is_sim or lacking:
        report.skip("two trainings, 50 + 50", "the same")
    else:
        report.row("two trainings, 50 + 50", {}, lambda: measure_two(rig, args))


def added_ns(rig, slice_):
    """(what a launch takes, how much more than the driver's own function) in one process."""
    child = rig.start_program(slice_, [rig.program, "shape=cost", "seconds=0.3"], 1)
    pairs = json.loads(child.text())["launch_direct_ns"][2:]
    return (statistics.median(named for named, _ in pairs),
            statistics.median(named - direct for named, direct in pairs))


def measure_cost(kind, figures):
    added = [one for _, one in figures[kind]]
    error = error_of_median(added)
    measured = {"launch ns": statistics.median(one for one, _ in figures[kind]),
                "added ns": statistics.median(added), "± ns": error}
    if kind not in GOAL_NS:
        return measured, None, "0: the library is not there"
    seen = verdict(measured["added ns"], error, GOAL_NS[kind])
    return measured, {"met": True, "NOT met": False}.get(seen), "+%d ns: %s" % (GOAL_NS[kind], seen)


def cost(rig, args, report):
    report.section("cost", "a launch of a kernel that does nothing")
    kinds = {"native": None, "no limit": rig.slice(), "limit of 99 %": rig.slice(cores=99)}
    figures = {kind: [] for kind in kinds}

    def measure_all(name):
        if name == "native":
            for number in range(ROUNDS[args.quick]):
                for kind in kinds if number % 2 == 0 else reversed(kinds):
                    figures[kind].append(added_ns(rig, kinds[kind]))
        return measure_cost(name, figures)

    for kind in kinds:
        report.row(kind, {}, lambda: measure_all(kind))
