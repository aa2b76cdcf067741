# SPDX-License-Identifier: Apache-2.0
"""Slices side by side under NVIDIA's Multi-Process Service: vgpu run --mps."""

import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from compute_rig import MS, Failure, Rig  # noqa: E402
from node import GIB, die_with_us  # noqa: E402

RUN_S = 2.0
WARM_NS = 400 * MS
ENDED_S = 20  # within which a daemon must be gone
# of what one alone does with its half; in turns it would be half
LEAST_PART = 0.75
BLOCKS = 66  # half of an H200's multiprocessors


class MpsRig(Rig):
    """Its slices are options of vgpu run --mps."""

    def __init__(self, node, folder):
        super().__init__(node.build, folder, node.is_sim)
        self.vgpu, self.state = node.vgpu, os.path.join(folder, "state")

    def env(self, slice_=None):
        env = super().env(None)
        for name in [name for name in env if name.startswith("CUDA_MPS_")]:
            del env[name]
        env["VGPU_STATE"] = self.state
        return env

    def command(self, slice_, argv):
        sim = ["--sim"] if self.is_sim else []
        return [self.vgpu, "run", "--mps", "--device", "0"] + sim + slice_ + ["--"] + argv

    def start_program(self, slice_, argv, run_s):
        return super().start_program(None, self.command(slice_, argv) if slice_ else argv, run_s)

    def daemons(self):
        try:
            return [name for name in os.listdir(self.state) if name.startswith(".mps-")]
        except FileNotFoundError:
            return []


def rates(rig, slices, **options):
    """Kernels a second of each, at the same time."""
    return [load.rate(load.start_ns + WARM_NS, load.end_ns)
            for load in rig.run(slices, RUN_S, **options)]


def test_side_by_side(rig, report):
    """Each has blocks for its half of the multiprocessors, so that one does not hinder the other."""
    half = ["--memory", "4g", "--cores", "50"]
    load = {"duration_us": 200, "shape": "stream", "rate": rig.rate(), "blocks": BLOCKS}
    alone = rates(rig, [half], **load)[0]
    both = rates(rig, [half, half], **load)
    report.table(("load", "kernels/s"), [("alone", "%.0f" % alone)] +
                 [("side by side", "%.0f" % rate) for rate in both])
    report.check("two slices of half run side by side", min(both) >= LEAST_PART * alone,
                 "%.0f and %.0f of %.0f" % (both[0], both[1], alone))


def test_memory(node, rig, report):
    """The library's books, and without the library the driver's own limit."""
    rows = []
    for name, words in (("books", []), ("driver", ["env", "-u", "LD_PRELOAD"])):
        argv = rig.command(["--memory", "4g", "--cores", "50"],
                           words + [node.program("client"), "linked"])
        done = subprocess.run(argv, env=rig.env(), capture_output=True, text=True, timeout=60,
                              input="primary 0\nfill 64m\n", check=False, preexec_fn=die_with_us)
        said = dict(w.split("=", 1) for w in done.stdout.split() if "=" in w)
        count = int(said.get("count", -1))
        rows.append((name, count))
        report.check("memory above the quota is refused by the %s" % name,
                     0 < count <= 4 * GIB // (64 << 20), done.stdout + done.stderr)
    report.table(("refused by", "blocks of 64 MiB"), rows)


def test_mps(node, report):
    report.section("mps: slices side by side")
    if not node.is_sim and not shutil.which("nvidia-cuda-mps-control"):
        report.skip("mps", "there is no nvidia-cuda-mps-control")
        return
    folder = os.path.join(node.folder, "mps")
    os.mkdir(folder)
    rig = MpsRig(node, folder)
    try:
        test_side_by_side(rig, report)
        test_memory(node, rig, report)
    except Failure as error:
        report.check("every load runs to its end", False, str(error))
    finally:
        rig.clear()
    deadline = time.monotonic() + ENDED_S
    while rig.daemons() and time.monotonic() < deadline:
        subprocess.run([rig.vgpu, "list"], env=rig.env(), capture_output=True, check=False)
        time.sleep(0.1)
    report.check("no daemon is left", not rig.daemons(), " ".join(rig.daemons()))
