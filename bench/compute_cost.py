# SPDX-License-Identifier: Apache-2.0
"""Sections of bench/compute.py: what models get of their share, and what a launch costs."""

import importlib.util
import json
import os
import statistics
import sys

from compare import verdict
from compute_rig import S, Failure, sleep_until

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = [("train", "training"), ("decode", "decoding, eager"),
          ("decode-graph", "decoding, as a graph")]
GOAL_POINTS = 2.0
GOAL_WHOLE = 99.0
WHOLE = 99.9  # all but nothing, and yet a limit
PHASES = [None, 25, None, 50]
PHASE_ROUNDS = 4
PHASE_S = 1.2
PHASE_SETTLED = 0.3  # of a phase, before it counts
ROUNDS = {True: 7, False: 21}  # quick or not
GOAL_NS = {"no limit": 10, "limit of 99 %": 100}


def start_model(rig, slice_, what, seconds, each=0.5):
    return rig.start_program(slice_, [sys.executable, os.path.join(HERE, "model_steps.py"), what,
                                      "%g" % seconds, "@wait", "%g" % each], seconds)


def rates(child):
    """[(when it ended, steps a second, the host's ms for each)] of each stretch."""
    return [(float(at_s) * S, float(rate), float(host_ms)) for at_s, rate, host_ms in
            (line.split() for line in child.text().splitlines() if line != "ready")]


def steps(rig, slices, what, seconds):
    """(steps a second, the host's ms for each) of a model in each of the slices at once."""
    children = [start_model(rig, slice_, what, seconds) for slice_ in slices]
    rig.begin(children)
    found = [[seen for _, *seen in rates(child)] for child in children]
    if min(map(len, found)) < 3:
        raise Failure("only %d rates" % min(map(len, found)))
    # those at the edges are of another time than the others' processes'
    return [tuple(map(statistics.mean, zip(*one[1:-1]))) for one in found]


def measure_phases(rig, what):
    """
    One process whose limit comes and goes: {limit or None: [steps a second, in each of its phases]}. How
    fast the host gives work differs by a quarter from process to process and from second to second, so
    only phases beside each other can be compared.
    """
    order = [limit for _ in range(PHASE_ROUNDS) for limit in PHASES]
    slice_ = rig.slice()
    child = start_model(rig, slice_, what, len(order) * PHASE_S, PHASE_S / 10)
    start_ns = rig.begin([child])
    for number, limit in enumerate(order):
        sleep_until(start_ns + number * int(PHASE_S * S))
        slice_.write(cores=limit)
    said, found = rates(child), {limit: [] for limit in PHASES}
    for number, limit in enumerate(order):
        from_ns = start_ns + (number + PHASE_SETTLED) * PHASE_S * S
        to_ns = start_ns + (number + 1) * PHASE_S * S
        # each stretch begins where the one before it ends
        seen = [(end_ns - begin_ns, rate) for (begin_ns, *_), (end_ns, rate, _) in zip(said, said[1:])
                if begin_ns >= from_ns and end_ns <= to_ns]
        found[limit].append(sum(ns * rate for ns, rate in seen) / sum(ns for ns, _ in seen))
    return found


def measure_model(rig, what, limit, phases):
    if what not in phases:
        phases[what] = measure_phases(rig, what)
    free, limited = phases[what][None], phases[what][limit]
    # each limited phase stands between two without a limit, or behind the last
    before = free[PHASES[:PHASES.index(limit)].count(None) - 1::PHASES.count(None)]
    shares = [100 * one / other for one, other in zip(limited, before)]
    share, error = statistics.mean(shares), statistics.stdev(shares) / len(shares) ** 0.5
    return {"steps/s without a limit": statistics.mean(before), "steps/s": statistics.mean(limited),
            "share": share, "± points": error, "error": share - limit}, \
        abs(share - limit) <= GOAL_POINTS, "±%.1f" % GOAL_POINTS


def measure_whole(rig, args, what):
    """A limit that takes next to nothing, beside the driver by itself."""
    seconds = args.seconds + 2
    native, seen = (steps(rig, [slice_], what, seconds)[0][0]
                    for slice_ in (None, rig.slice(cores=WHOLE)))
    return {"steps/s native": native, "steps/s": seen, "share": 100 * seen / native}, \
        100 * seen / native >= GOAL_WHOLE, "≥ %d %%" % GOAL_WHOLE


def lacking_models():
    """What of the modules for models is not there, as a reason to skip; or nothing."""
    lacking = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
    return "no " + ", ".join(lacking) if lacking else ""


def models(rig, args, report):
    report.section("models", "what a model does in its share")
    why = "needs a card" if rig.is_sim else lacking_models()
    phases = {}

    def row(name, measure):
        if why:
            report.skip(name, why)
        else:
            report.row(name, {}, measure)

    for what, name in MODELS:
        for limit in PHASES[1::2]:
            row("%s, %d %%" % (name, limit), lambda: measure_model(rig, what, limit, phases))
    row("training, %g %%" % WHOLE, lambda: measure_whole(rig, args, "train"))


def added_ns(rig, slice_):
    """[(what a launch takes, how much more than the driver's own function)] in one process, by turns."""
    child = rig.start_program(slice_, [rig.program, "shape=cost", "seconds=1"], 1)
    pairs = json.loads(child.text())["launch_direct_ns"][2:]
    return [(named, named - direct) for named, direct in pairs]


def trimmed(values):
    """The mean without a tenth at either end: there the host was elsewhere."""
    cut = len(values) // 10
    return statistics.mean(sorted(values)[cut:len(values) - cut])


def measure_cost(kind, figures):
    """The mean and the median of all stretches of launches; how sure, by the means of the processes."""
    added = [trimmed([one for _, one in pairs]) for pairs in figures[kind]]
    all_ = [pair for pairs in figures[kind] for pair in pairs]
    error = statistics.stdev(added) / len(added) ** 0.5
    measured = {"launch ns": statistics.median(one for one, _ in all_), "added ns": statistics.mean(added),
                "± ns": error, "median ns": statistics.median(one for _, one in all_)}
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
