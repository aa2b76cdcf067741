# SPDX-License-Identifier: Apache-2.0
"""What a limited slice gets beside a process without the library, which takes no turns."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from compute import read_errors  # noqa: E402
from compute_rig import S, Failure, Rig, die_with_us  # noqa: E402

LIMIT = 30
# From the third second on, in windows of so long that begin so long after each other, to the last second; on a virtual clock, which
# costs little, to the 120th: there the driver's figures have been judged eight times.
FIRST_S = 2
WINDOW_S, STEP_S, LAST_S = 3, 3, 14
WINDOW_VIRTUAL_S, STEP_VIRTUAL_S, LAST_VIRTUAL_S = 5, 1, 120
NEAR = 3  # in points
LOOK_S = 0.2
ASK_S = 30
COUNTED = re.compile(r'^vgpu: level=info topic=compute .* msg="processes without time slices .* permille=(\d+)',
                     re.M)


class ForeignRig(Rig):
    """Slices in it say what of the time that passes they are charged."""

    def env(self, slice_=None):
        env = super().env(slice_)
        if slice_:
            env["VGPU_LOG"] = "compute=info"
        return env


def follow(child, heard, from_ns, to_ns):
    """Adds (when, permille) of what the child says until then, as it is heard."""
    while time.monotonic_ns() < to_ns:
        time.sleep(LOOK_S)
        said = COUNTED.findall(child.read(".err"))
        heard.extend((time.monotonic_ns() - from_ns, int(permille)) for permille in said[len(heard):])


def ask_samples(rig):
    """What the driver says of who kept the device busy, as the library asks; for the reader."""
    argv = [os.path.join(rig.build, "tests", "gpu", "client-found"), "dlopen"]
    done = subprocess.run(argv, env=rig.env(), input="samples 0 100\n", capture_output=True,
                          text=True, timeout=ASK_S, check=False, preexec_fn=die_with_us)
    return done.stdout.strip()


def measure(rig):
    """(rows of the table, [share of native in each window], what was heard)"""
    is_virtual = "TEST_CLOCK" in os.environ
    window_s, step_s, last_s = ((WINDOW_VIRTUAL_S, STEP_VIRTUAL_S, LAST_VIRTUAL_S) if is_virtual
                                else (WINDOW_S, STEP_S, LAST_S))
    run_s = last_s + 1
    load = {"duration_us": 200, "shape": "stream", "rate": rig.rate()}
    native = rig.native(**load)[0]
    tenant = rig.start(rig.slice(turns=rig.turns, cores=LIMIT), run_s, bin_us=10000, **load)
    other = rig.start(None, run_s, bin_us=10000, **load)
    start_ns = rig.begin([tenant, other])
    heard = []
    follow(tenant, heard, start_ns, start_ns + (run_s - 1) * S)
    print("samples, as PID:percent: %s" % ask_samples(rig))
    follow(tenant, heard, start_ns, start_ns + run_s * S)
    found = [child.load() for child in (tenant, other)]
    rows, shares = [], []
    for from_s in range(FIRST_S, last_s - window_s + 1, step_s):
        span = [start_ns + at_s * S for at_s in (from_s, from_s + window_s)]
        parts = [100 * each.rate(*span) / native for each in found]
        counted = [permille for at_ns, permille in heard if at_ns <= (from_s + window_s) * S]
        shares.append(parts[0])
        if not (from_s - FIRST_S) % window_s:
            rows.append(("%d to %d s" % (from_s, from_s + window_s), "%.1f" % parts[0],
                         "%.1f" % parts[1], counted[-1] if counted else 1000))
    return rows, shares, heard


def test_shares(rig, report):
    rows, shares, heard = measure(rig)
    report.table(("window", "slice of %d %%" % LIMIT, "neighbour %", "charged permille"), rows)
    print("said by the library: %s" %
          (", ".join("%d permille after %.1f s" % (permille, at_ns / S)
                     for at_ns, permille in heard) or "nothing"))
    report.check("a slice has its limit beside a neighbour", all(abs(share - LIMIT) <= NEAR for share in shares),
                 "%.1f to %.1f %% in %d windows" % (min(shares), max(shares), len(shares)))


def test_foreign(node, report):
    report.section("foreign: a slice of %d %% beside a busy process without the library" % LIMIT)
    folder = os.path.join(node.folder, "foreign")
    os.mkdir(folder)
    rig = ForeignRig(node.build, folder, node.is_sim)
    try:
        test_shares(rig, report)
    except Failure as error:
        report.check("every load runs to its end", False, str(error))
    finally:
        rig.clear()
    errors = read_errors(rig)
    report.check("the library warns of nothing beside a neighbour", not errors, errors[:2000])
