# SPDX-License-Identifier: Apache-2.0
"""Programs that mean harm (tests/hostile): each starts itself with and without a slice, and says what it got."""

import glob
import os
import subprocess

from node import die_with_us

RUN_S = 150
SKIPPED = 77
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile")


def of_source(program, word):
    with open(os.path.join(SOURCES, name_of(program) + ".c"), encoding="utf-8") as file:
        return word in file.read()


def name_of(program):
    return os.path.basename(program)[len("hostile-"):]


def find_programs(node):
    """Those that want more memory, then those that want more time; not what only other programs start."""
    found = sorted(p for p in glob.glob(os.path.join(node.build, "tests/hostile/hostile-*"))
                   if os.path.isfile(p) and os.access(p, os.X_OK))
    return [p for judge in ("hostile_main(", "served_main(") for p in found if of_source(p, judge)]


def run(program, env, report):
    name = name_of(program)
    try:
        done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=RUN_S,
                              check=False, preexec_fn=die_with_us)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"") + (error.stderr or b"")
        report.check(name, False, "it takes too long\n" + said.decode(errors="replace"))
        return
    print(done.stdout.strip(), flush=True)
    if done.returncode == SKIPPED:
        report.skip(name, "this machine has not what it needs")
    else:
        report.check(name, done.returncode == 0, "exit status %d\n%s" % (done.returncode, done.stderr))


def test_hostile(node, report):
    report.section("hostile: each way above the quota or the cap that is known, and what it leads to")
    env = node.env(extra={"TENANT_LIBRARY": node.library})
    env.pop("TENANT_DRIVER", None)
    if node.is_sim:
        env["TENANT_DRIVER"] = env["LD_LIBRARY_PATH"]
    programs = find_programs(node)
    report.check("there are programs", programs, "build the target gpu-programs")
    for program in programs:
        run(program, env, report)
