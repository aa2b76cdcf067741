#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether bench/compute.py counts right: made-up loads, and a real one of each shape on the simulated node.

    bench/test_compute.py BUILD
"""

import sys
import tempfile
import unittest

import compute_change
import compute_share
from compute_rig import MS, S, Failure, Load, Rig, busy_part, together, whole_periods

KERNELS_A_SECOND = 5000  # of 200 µs each


def made_up(is_busy, seconds=3):
    """A load whose kernels ran in each ms for which is_busy(ms) says how much of it."""
    parts = [float(is_busy(ms)) for ms in range(seconds * 1000)]
    return Load({"start_ns": S, "end_ns": (1 + seconds) * S, "bin_ns": MS,
                 "bin_microkernels": [part * KERNELS_A_SECOND * 1000 for part in parts],
                 "bin_busy_us": [part * 1000 for part in parts],
                 "busy_spans_us": [us for ms, part in enumerate(parts) if part
                                   for us in (ms * 1000, (ms + part) * 1000)]})


class Counting(unittest.TestCase):
    def test_edges_do_not_count_periods_by_half(self):
        for period, on, phase in ((117, 35, 0), (117, 35, 90), (700, 35, 500)):
            load = made_up(lambda ms: (ms + phase) % period < on)
            span = whole_periods([load], load.start_ns, load.end_ns)
            self.assertAlmostEqual(load.rate(*span) / KERNELS_A_SECOND, on / period, 4)

    def test_a_load_without_bursts_counts_whole(self):
        load = made_up(lambda ms: 0.3)
        self.assertEqual(whole_periods([load], S, 4 * S), (S, 4 * S))
        self.assertAlmostEqual(load.busy(S, 4 * S), 0.3)

    def test_a_new_share_is_found_when_it_is_kept(self):
        load = made_up(lambda ms: 0.2 if ms < 1030 else 0.8)
        took = compute_change.settled_ms(load, 2 * S, KERNELS_A_SECOND,
                                         lambda share: abs(share - 80) <= 5)
        self.assertTrue(20 <= took <= 30, took)
        self.assertIsNone(compute_change.settled_ms(load, 2 * S, KERNELS_A_SECOND,
                                                    lambda share: share < 10))

    def test_the_longest_gap_is_found(self):
        load = made_up(lambda ms: not 1200 <= ms < 1240)
        self.assertEqual(load.longest_gap_ns(2 * S, 3 * S), 40 * MS)

    def test_what_processes_do_at_once_is_busy_once(self):
        loads = [made_up(lambda ms: ms % 10 < 4), made_up(lambda ms: 2 <= ms % 10 < 6)]
        self.assertAlmostEqual(busy_part(together(loads), 2 * S, 3 * S), 0.6)

    def test_the_choice_has_every_kernel_with_every_limit_and_shape(self):
        rows = compute_share.quick_matrix()
        self.assertEqual(len({row[:2] for row in rows}), 28)
        self.assertEqual(len({row[1:] for row in rows}), 40)
        self.assertTrue(set(rows) <= set(compute_share.matrix()))


class Running(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-bench-test-")
        self.rig = Rig(BUILD, self.folder.name, True)

    def tearDown(self):
        self.rig.clear()
        self.folder.cleanup()

    def test_each_shape_says_what_it_did(self):
        for shape in ("stream", "streams4", "graph", "coop", "sync", "periodic"):
            slice_ = self.rig.slice(turns=self.rig.turns)
            load = self.rig.run([slice_], 0.2, shape=shape, graph=2, burst=2, duration_us=500)[0]
            self.assertGreater(load.said["launches"], 0, shape)
            self.assertGreater(load.rate(load.start_ns, load.end_ns), 0, shape)
            self.assertGreater(load.said["launch_us"]["max"], 0, shape)

    def test_a_load_that_fails_says_why(self):
        child = self.rig.start(None, 1, shape="none")
        with self.assertRaisesRegex(Failure, "shape=none is no option"):
            self.rig.begin([child])

    def test_a_launch_is_compared_with_the_drivers_own(self):
        child = self.rig.start_program(self.rig.slice(), [self.rig.program, "shape=cost",
                                                          "seconds=0.05"], 1)
        self.assertIn('"launch_direct_ns": [[', child.text())


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
