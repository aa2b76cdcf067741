# SPDX-License-Identifier: Apache-2.0
"""Whether compute time is limited and divided: a few seconds of what bench/compute.py measures."""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from compute_rig import MS, S, Failure, Rig, sleep_until, whole_periods  # noqa: E402

RUN_S = 1.7
WARM_NS = 400 * MS
# in points; the simulated node shares its processors with whatever else runs there, a virtual clock does not
NEAR_CARD, NEAR_SIM, NEAR_VIRTUAL = 3, 10, 1.2
FOLLOW_NS = 300 * MS  # after which a new limit must be the one that is kept
GAP_MS = 150  # longest wait of a slice beside one that ended or was stopped
SHAPES = [
    ("kernels of a full grid", 1, {"shape": "stream"}),
    ("kernels of one block", 1, {"shape": "stream", "blocks": 1}),
    ("four streams", 1, {"shape": "streams4"}),
    ("graphs of 20 kernels", 1, {"shape": "graph"}),
    ("cooperative kernels", 1, {"shape": "coop"}),
    ("two processes", 2, {"shape": "stream"}),
]


def test_waits(rig, report, near):
    """The processor's part of the time is the program's own, so the device's part is what counts."""
    load = rig.run([rig.slice(cores=30)], RUN_S, shape="sync", duration_us=200)[0]
    busy = load.rate(load.start_ns + WARM_NS, load.end_ns) * 200 / 1e6 * 100
    report.check("launches that are waited for keep to 30 %", abs(busy - 30) <= near, "%.1f %%" % busy)


def with_kernels(rig, options):
    return dict({"duration_us": 200, "rate": rig.rate()}, **options)


def run_shares(rig, slices, **options):
    """What each of the slices gets, in percent of what one process without the library does."""
    options = with_kernels(rig, options)
    native = rig.native(**options)[0]
    loads = rig.run(slices, RUN_S, **options)
    span = whole_periods(loads, loads[0].start_ns + WARM_NS, loads[0].end_ns)
    return [100 * load.rate(*span) / native for load in loads]


def kept_part(rig, processes, **options):
    """
    What so many processes do together without the library, of what one does: the device is the slice's
    while the driver changes from one of its processes to another.
    """
    options = with_kernels(rig, options)
    return min(1, rig.native(processes, **options)[0] / rig.native(**options)[0])


def test_shapes(rig, report, near):
    rows = []
    for name, processes, options in SHAPES:
        slice_ = rig.slice(cores=30)
        share = sum(run_shares(rig, [slice_] * processes, **options))
        least = 30 * kept_part(rig, processes, **options)
        rows.append((name, "30", "%.1f" % share))
        report.check("%s keep to 30 %%" % name, least - near <= share <= 30 + near,
                     "%.1f %%" % share)
    for name, terms, least in (("no limit", {}, 97), ("30 up to 100", {"cores": 30, "cap": 100}, 90)):
        share = run_shares(rig, [rig.slice(turns=rig.turns, **terms)])[0]
        rows.append(("alone, %s" % name, "100", "%.1f" % share))
        report.check("a slice alone with %s has the device" % name, share >= least - near,
                     "%.1f %%" % share)
    report.table(("load", "granted", "share"), rows)


def test_beside(rig, report, near):
    for limits in ((50, 50), (20, 60)):
        shares = run_shares(rig, [rig.slice(turns=rig.turns, cores=limit) for limit in limits])
        report.check("two slices have %d and %d %%" % limits,
                     all(abs(share - limit) <= near for share, limit in zip(shares, limits)),
                     " ".join("%.1f" % share for share in shares))


def test_changes(rig, report, near):
    """20, then 80, then suspended, then 50; each for a second."""
    load = {"duration_us": 200, "shape": "stream", "rate": rig.rate()}
    native = rig.native(**load)[0]
    slice_ = rig.slice(cores=20)
    child = rig.start(slice_, 4, **load)
    start_ns = rig.begin([child])
    begins = [start_ns]
    for number, terms in enumerate(({"cores": 80}, {"cores": 50, "is_suspended": True},
                                    {"cores": 50})):
        sleep_until(start_ns + (number + 1) * S)
        begins.append(slice_.write(**terms))
    found = child.load()
    for begin_ns, share in zip(begins, (20, 80, 0, 50)):
        seen = 100 * found.rate(begin_ns + FOLLOW_NS, begin_ns + 950 * MS) / native
        report.check("a slice has %d %% soon after that is written" % share,
                     abs(seen - share) <= near, "%.1f %%" % seen)


def test_ends(rig, report):
    load = {"duration_us": 200, "shape": "stream", "rate": rig.rate()}
    for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        kept, other = [rig.start(rig.slice(turns=rig.turns, cores=50, cap=100), 2, **load)
                       for _ in range(2)]
        start_ns = rig.begin([kept, other])
        sleep_until(start_ns + S)
        at_ns = other.signal(number)
        sleep_until(at_ns + 700 * MS)
        other.kill()
        gap_ms = kept.load().longest_gap_ns(at_ns, at_ns + 700 * MS) / MS
        report.check("who is beside a %s process goes on" % name, gap_ms <= GAP_MS,
                     "%.0f ms" % gap_ms)


def read_errors(rig):
    found = []
    for name in os.listdir(rig.folder):
        if name.endswith(".err"):
            with open(os.path.join(rig.folder, name), encoding="utf-8", errors="replace") as file:
                found += [l for l in file if re.match("vgpu: level=(error|warn)", l)]
    return "".join(found)


def test_compute(node, report):
    report.section("compute: shares of the device's time")
    folder = os.path.join(node.folder, "compute")
    os.mkdir(folder)
    rig = Rig(node.build, folder, node.is_sim)
    near = NEAR_CARD
    if node.is_sim:
        near = NEAR_VIRTUAL if "TEST_CLOCK" in os.environ else NEAR_SIM
    try:
        test_shapes(rig, report, near)
        test_waits(rig, report, near)
        test_beside(rig, report, near)
        test_changes(rig, report, near)
        test_ends(rig, report)
    except Failure as error:
        report.check("every load runs to its end", False, str(error))
    finally:
        rig.clear()
    errors = read_errors(rig)
    report.check("the library has nothing to say of compute", not errors, errors[:2000])
