# SPDX-License-Identifier: Apache-2.0
"""Section of bench/compute.py: two equal trainings beside each other."""

from compute_cost import lacking_models, steps
from compute_rig import Failure

# of model_steps.py, and what it is
WAITS = [("train", "waited for every 5 steps"), ("train-each", "waited for each step")]
ROUNDS = {True: 2, False: 5}  # quick or not
GOAL_EACH = 48.0  # percent of its speed alone, at 50
GOAL_APART = 2.0  # percent, of each other
GOAL_TOGETHER = 1.05  # of what the driver's own time slices leave both


def measure(rig, args, what, slices, alone, native):
    seen = steps(rig, slices, what, args.seconds)
    each = [100 * one / alone for one in seen]
    apart = 100 * (max(seen) - min(seen)) / max(seen)
    together = sum(seen) / sum(native)
    is_fair = min(each) >= GOAL_EACH and apart <= GOAL_APART
    return {"steps/s": " ".join("%.1f" % one for one in seen),
            "% of alone": " ".join("%.1f" % one for one in each), "% apart": apart,
            "together": together}, is_fair and together >= GOAL_TOGETHER, \
        "each ≥ %g %%, ≤ %g %% apart, ≥ %.2f×" % (GOAL_EACH, GOAL_APART, GOAL_TOGETHER)


def two(rig, args, report):
    report.section("two", "two equal trainings beside each other, as often as it is said")
    why = "needs a card" if rig.is_sim else lacking_models()
    for what, name in WAITS:
        if why:
            report.skip("two trainings, %s" % name, why)
            continue
        try:
            alone, native = steps(rig, [None], what, args.seconds)[0], steps(rig, [None] * 2, what, args.seconds)
        except Failure as error:
            report.skip("two trainings, %s" % name, str(error))
            continue
        report.say("\n%s: alone %.1f steps/s, by the driver's own time slices %.1f and %.1f\n"
                   % (name, alone, native[0], native[1]))
        for number in range(ROUNDS[args.quick]):
            for terms, kind in (({"cores": 50}, "50 + 50"), ({}, "no limits")):
                slices = [rig.slice(turns=rig.turns, **terms) for _ in range(2)]
                report.row("%s, %s, run %d" % (kind, name, number + 1), {},
                           lambda: measure(rig, args, what, slices, alone, native))
