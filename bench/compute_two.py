# SPDX-License-Identifier: Apache-2.0
"""Section of bench/compute.py: two equal trainings beside each other."""

from compute_cost import lacking_models, steps
from compute_rig import S, Failure

# of model_steps.py, what it is, and after how many steps the made-up one of compute_load.c waits, and what it copies before each; without the
# first it is made up on a card, too
WAITS = [("train", "waited for every 5 steps", 5, 0), ("train-each", "waited for each step", 1, 0),
         (None, "with a copy of 8 MiB before each step", 5, 8192)]
TERMS = [("50 + 50", [{"cores": 50}] * 2), ("30 + 60", [{"cores": 30}, {"cores": 60}]), ("no limits", [{}] * 2)]
ROUNDS = {True: 2, False: 5}  # quick or not
GOAL_EACH = 48.0  # percent of its speed alone, at 50
GOAL_APART = 2.0  # percent, of each other
GOAL_TOGETHER = 1.05  # of what the driver's own time slices leave both
KERNELS = 100  # of a step that is made up: about 6 ms
WARM_S = 0.7


def made_up(rig, slices, each, copy_kib, seconds):
    """Steps a second, as steps() has them, of trainings that compute_load.c makes up; the host's part costs nothing there."""
    loads = rig.run(slices, seconds + WARM_S, shape="train", burst=KERNELS, each=each, copy_kib=copy_kib)
    return [(load.rate(load.start_ns + int(WARM_S * S), load.end_ns) / KERNELS, 0) for load in loads]


def measure(run, slices, shares, alone, native):
    seen, host_ms = zip(*run(slices))
    each = [100 * one / alone for one in seen]
    together = sum(seen) / sum(native)
    lost = 100 * (1 - min(one / share for one, share in zip(each, shares)))
    measured = {"steps/s": " ".join("%.1f" % one for one in seen), "% of alone": " ".join("%.1f" % one for one in each),
                "host ms/step": " ".join("%.1f" % one for one in host_ms),
                "% lost": lost, "together": together}
    if len(set(shares)) > 1:
        return measured, None, "none"
    apart = 100 * (max(seen) - min(seen)) / max(seen)
    measured["% apart"] = apart
    is_fair = min(each) >= GOAL_EACH and apart <= GOAL_APART
    return measured, is_fair and together >= GOAL_TOGETHER, \
        "each ≥ %g %%, ≤ %g %% apart, ≥ %.2f×" % (GOAL_EACH, GOAL_APART, GOAL_TOGETHER)


def shares_of(terms):
    return [one.get("cores", 100 / len(terms)) for one in terms]


def two(rig, args, report):
    report.section("two", "two equal trainings beside each other, as often as it is said")
    lacking = "" if rig.is_sim else lacking_models()
    for what, name, each, copy_kib in WAITS:
        why = lacking if what else ""

        def run(slices):
            return made_up(rig, slices, each, copy_kib, args.seconds) if rig.is_sim or not what \
                else steps(rig, slices, what, args.seconds)

        if why:
            report.skip("two trainings, %s" % name, why)
            continue
        try:
            (alone, host_ms), = run([None])
            native = [rate for rate, _ in run([None] * 2)]
        except Failure as error:
            report.skip("two trainings, %s" % name, str(error))
            continue
        report.say("\n%s: alone %.1f steps/s, of which the host needs %.1f ms each; by the driver's own time slices %.1f and %.1f\n"
                   % (name, alone, host_ms, native[0], native[1]))
        for number in range(1 if rig.is_sim else ROUNDS[args.quick]):
            for kind, terms in TERMS:
                slices = [rig.slice(turns=rig.turns, **one) for one in terms]
                report.row("%s, %s, run %d" % (kind, name, number + 1), {},
                           lambda: measure(run, slices, shares_of(terms), alone, native))
