#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_deb.py BUILD: the Debian packages of a build with prefix /usr: the same each time, right as lintian sees them, and what is
in them runs."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/deb.sh")


def make(folder, umask):
    previous = os.umask(umask)
    try:
        subprocess.run([TOOL, BUILD, folder], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        os.umask(previous)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.made = make(os.path.join(cls.folder.name, "one"), 0o022)
        cls.root = os.path.join(cls.folder.name, "root")
        for package in cls.made:
            subprocess.run(["dpkg-deb", "-x", package, cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_made_again_they_are_the_same(self):
        again = make(os.path.join(self.folder.name, "two"), 0o077)
        self.assertEqual(len(again), 2)
        for one, other in zip(self.made, again):
            self.assertTrue(filecmp.cmp(one, other, shallow=False), one)

    @unittest.skipUnless(shutil.which("lintian"), "no lintian here")
    def test_lintian_finds_nothing(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *self.made], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_they_do_not_say_where_they_were_built(self):
        tree = os.path.realpath(os.path.join(os.path.dirname(TOOL), "..")).encode()
        for folder, _, names in os.walk(self.root):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(tree, f.read(), name)

    def test_programs_run(self):
        for program in ("vgpu", "vgpu-sim", "vgpu-scheduler", "vgpu-device-plugin", "vgpu-monitor"):
            done = subprocess.run([os.path.join(self.root, "usr/bin", program), "--version"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_slice_runs_on_the_simulated_node(self):
        state = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "VGPU_SIM_STATE": os.path.join(self.folder.name, "machine"),
                 "VGPU_TURNS": os.path.join(self.folder.name, "turns")}
        tenant = os.path.join(BUILD, "examples/tenant")
        done = subprocess.run([os.path.join(self.root, "usr/bin/vgpu"), "run", "--sim", "--memory", "3000m", "--", tenant],
                              env=state, capture_output=True, text=True, check=False)
        self.assertIn("took 9 x 256 MiB", done.stdout, done.stderr)

    def test_each_program_has_its_page(self):
        pages = {name for _, _, names in os.walk(os.path.join(self.root, "usr/share/man")) for name in names}
        for program in os.listdir(os.path.join(self.root, "usr/bin")):
            self.assertTrue({program + ".1.gz", program + ".8.gz"} & pages, program)

    def test_units_name_programs_that_are_there(self):
        folder = os.path.join(self.root, "lib/systemd/system")
        units = os.listdir(folder)
        self.assertEqual(sorted(units), ["vgpu-metrics.service", "vgpu-metrics.timer", "vgpu-monitor.service", "vgpu-prepare.service"])
        for unit in units:
            with open(os.path.join(folder, unit), encoding="utf-8") as f:
                for program in re.findall(r"/usr\S*/bin/vgpu[a-z-]*", f.read()):
                    self.assertTrue(os.access(self.root + program, os.X_OK), f"{unit}: {program}")
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root=" + self.root, *units], capture_output=True, text=True, check=False)
            ours = [line for line in done.stderr.splitlines() if "vgpu" in line and "not found" not in line and "No such file" not in line]
            self.assertEqual(ours, [])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
