# SPDX-License-Identifier: Apache-2.0
"""Programs that mean harm (tests/hostile): each starts itself with and without a slice, and says what was held."""

import glob
import os
import subprocess

from node import die_with_us

RUN_S = 150
SKIPPED = 77


def test_hostile(node, report):
    report.section("hostile: each way above the quota that is known, and what it leads to")
    env = node.env(extra={"TENANT_LIBRARY": node.library})
    env.pop("TENANT_DRIVER", None)
    if node.is_sim:
        env["TENANT_DRIVER"] = env["LD_LIBRARY_PATH"]
    programs = sorted(p for p in glob.glob(os.path.join(node.build, "tests/hostile/hostile-*"))
                      if os.path.isfile(p) and os.access(p, os.X_OK))
    report.check("there are programs", programs, "build the target gpu-programs")
    for program in programs:
        name = os.path.basename(program)[len("hostile-"):]
        done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=RUN_S,
                              check=False, preexec_fn=die_with_us)
        print(done.stdout.strip(), flush=True)
        if done.returncode == SKIPPED:
            report.skip(name, "this machine has not what it needs")
        else:
            report.check(name, done.returncode == 0, (done.stderr or "")[-2000:])
