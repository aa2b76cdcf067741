# SPDX-License-Identifier: Apache-2.0
"""Sections of bench/compute.py: what happens in time, and who goes first."""

import importlib.util
import os
import random
import signal
import sys
import time

from compute_rig import MS, S, sleep_until

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOW_NS = 100 * MS  # in which a share is looked at
NEAR_POINTS = 5  # a share in so short a time
GOAL_CHANGE_MS = 100
GOAL_RETURN_MS = 20
GOAL_GAP_MS = 50
GOAL_P99 = 1.3
TIMES = 5  # each of what happens in time


def busy_load(rig):
    return {"duration_us": 200, "shape": "stream", "rate": rig.rate()}


def settled_ms(load, at_ns, native, is_right):
    """From at_ns until the share, in percent, is right for two windows; None: not within 700 ms."""
    for after_ns in range(0, 700 * MS, load.bin_ns):
        begin = at_ns + after_ns
        if all(is_right(100 * load.rate(at, at + WINDOW_NS) / native)
               for at in (begin, begin + WINDOW_NS)):
            return after_ns / MS
    return None


def times(found):
    """Figures for a row, of times in ms that may lack."""
    if None in found:
        return {"each ms": " ".join("-" if one is None else "%.0f" % one for one in found),
                "worst ms": "never"}
    return {"each ms": " ".join("%.0f" % one for one in found), "worst ms": float(max(found))}


def is_within(found, goal_ms):
    return all(one is not None and one <= goal_ms for one in found)


def measure_switches(rig, terms):
    """One slice whose share file is written anew every second: a term, and the share it means."""
    load = busy_load(rig)
    native = rig.native(**load)[0]
    slice_ = rig.slice(turns=rig.turns, **terms[-1][0])
    child = rig.start(slice_, TIMES + 2, **load)
    start_ns, written = rig.begin([child]), []
    for number in range(TIMES):
        sleep_until(start_ns + (number + 1) * S + random.randrange(100 * MS))
        term, share = terms[number % len(terms)]
        written.append((slice_.write(**term), share))
    sleep_until(written[-1][0] + 800 * MS)
    slice_.write(**terms[-1][0])  # a process that is suspended would not come to its end
    found = child.load()
    took = [settled_ms(found, at_ns, native, lambda seen: abs(seen - share) <= NEAR_POINTS)
            for at_ns, share in written]
    return times(took), is_within(took, GOAL_CHANGE_MS), "≤ %d ms" % GOAL_CHANGE_MS


def measure_return(rig):
    """One slice borrows all; another that is sure of half begins and ends, some times."""
    load = busy_load(rig)
    native = rig.native(**load)[0]
    terms = {"turns": rig.turns, "cores": 50, "cap": 100}
    borrower = rig.start(rig.slice(**terms), TIMES + 1.5, **load)
    owner = rig.slice(**terms)
    others = [rig.start(owner, 0.5, **load) for _ in range(TIMES)]
    for other in others:
        other.wait_ready()
    start_ns = rig.begin([borrower])
    for number, other in enumerate(others):
        sleep_until(start_ns + (number + 1) * S - 100 * MS)
        other.begin(start_ns + (number + 1) * S)
    seen, loads = borrower.load(), [other.load() for other in others]
    took = [settled_ms(seen, one.said["first_launch_ns"], native,
                       lambda share: share <= 50 + NEAR_POINTS) for one in loads]
    begun = [one.longest_gap_ns(one.start_ns, one.start_ns + 100 * MS) / MS for one in loads]
    alone = 100 * seen.rate(start_ns + 300 * MS, start_ns + 900 * MS) / native
    return dict(times(took), **{"owner's longest wait ms": max(begun), "borrowed": alone}), \
        is_within(took, GOAL_RETURN_MS) and alone >= 90, "≤ %d ms" % GOAL_RETURN_MS


def measure_end(rig, number):
    """Two slices take turns; a process of one of them gets a signal, some times."""
    load = busy_load(rig)
    terms = {"turns": rig.turns, "cores": 50, "cap": 100}
    kept = rig.start(rig.slice(**terms), TIMES + 1.5, **load)
    other_slice = rig.slice(**terms)
    others = [rig.start(other_slice, 30, **load) for _ in range(TIMES)]
    for other in others:
        other.wait_ready()
    start_ns, moments, steady = rig.begin([kept]), [], []
    for place, other in enumerate(others):
        begin_ns = start_ns + int((place + 0.6) * S)
        sleep_until(begin_ns - 50 * MS)
        other.begin(begin_ns)
        sleep_until(begin_ns + 300 * MS + random.randrange(50 * MS))
        moments.append(other.signal(number))
        steady.append((begin_ns + 50 * MS, moments[-1]))
        sleep_until(moments[-1] + 500 * MS)
        other.kill()
    seen = kept.load()
    gaps = [seen.longest_gap_ns(at_ns, at_ns + 500 * MS) / MS for at_ns in moments]
    before = max(seen.longest_gap_ns(*span) for span in steady) / MS
    return dict(times(gaps), **{"longest before ms": before,
                                "longest launch ms": seen.launch_max_ms()}), \
        is_within(gaps, GOAL_GAP_MS), "≤ %d ms" % GOAL_GAP_MS


def change(rig, args, report):
    report.section("change", "how soon what")
    report.row("a limit of 20 becomes 80 and 20 again", {}, lambda: measure_switches(
        rig, [({"cores": 80}, 80), ({"cores": 20}, 20)]))
    report.row("a slice of 50 is suspended and goes on", {}, lambda: measure_switches(
        rig, [({"cores": 50, "is_suspended": True}, 0), ({"cores": 50}, 50)]))
    report.row("who borrowed gives back", {}, lambda: measure_return(rig))
    report.row("the other process is killed", {}, lambda: measure_end(rig, signal.SIGKILL))
    report.row("the other process is stopped", {}, lambda: measure_end(rig, signal.SIGSTOP))


INFERENCE = {"shape": "periodic", "duration_us": 50, "burst": 20, "period_us": 5000}


def training_child(rig, slice_, seconds):
    return rig.start_program(slice_, [sys.executable, os.path.join(HERE, "model_steps.py"), "train",
                                      "%g" % seconds, "@wait"], seconds)


def measure_priority(rig, args, start_other):
    load = dict(INFERENCE, rate=rig.rate())
    first = {"turns": rig.turns, "priority": 0, "cores": 30, "cap": 100}
    second = {"turns": rig.turns, "priority": 1, "cores": 50, "cap": 100}
    measured = {}
    for name, is_limited, is_beside in (
            ("native alone", False, False), ("native beside", False, True),
            ("alone", True, False), ("beside", True, True)):
        child = rig.start(rig.slice(**first) if is_limited else None, args.seconds, **load)
        if is_beside:
            other = start_other(rig.slice(**second) if is_limited else None, args.seconds + 1)
            rig.begin([other])
            time.sleep(0.5)
        rig.begin([child])
        measured["P99 µs " + name] = child.load().latency_us("p99")
        rig.clear()
    ratio = measured["P99 µs beside"] / measured["P99 µs alone"]
    return dict(measured, ratio=ratio), ratio <= GOAL_P99, "≤ %.1f×" % GOAL_P99


def priority(rig, args, report):
    report.section("priority", "inference of 1 ms every 5 ms, that goes first")
    report.row("beside kernels of 200 µs", {}, lambda: measure_priority(
        rig, args, lambda slice_, seconds: rig.start(slice_, seconds, **busy_load(rig))))
    if importlib.util.find_spec("torch") and not rig.is_sim:
        report.row("beside a training", {}, lambda: measure_priority(
            rig, args, lambda slice_, seconds: training_child(rig, slice_, seconds)))
    else:
        report.skip("beside a training", "there is no PyTorch")
