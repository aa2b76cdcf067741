# SPDX-License-Identifier: Apache-2.0
"""Whether the table of coverage says something of every function of this driver."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_names(node, report):
    report.section("names: what this driver exports beside src/gpu/coverage.def")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/check_coverage.py"), "--root",
                           ROOT, "--system"], env=node.env(), capture_output=True, text=True,
                          check=False)
    print(done.stdout, end="")
    report.check("the driver's libraries are found", "/libcuda.so." in done.stdout, done.stderr)
    report.check("every function of the driver is classified", done.returncode == 0, done.stderr)
