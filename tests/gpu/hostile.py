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


def find_programs(node, judge):
    """Those that are judged so; not what only other programs start."""
    return sorted(p for p in glob.glob(os.path.join(node.build, "tests/hostile/hostile-*"))
                  if os.path.isfile(p) and os.access(p, os.X_OK) and of_source(p, judge))


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


def run_all(node, report, judge):
    env = node.env(extra={"TENANT_LIBRARY": node.library})
    env.pop("TENANT_DRIVER", None)
    if node.is_sim:
        env["TENANT_DRIVER"] = env["LD_LIBRARY_PATH"]
    programs = find_programs(node, judge)
    report.check("there are programs", programs, "build the target gpu-programs")
    for program in programs:
        run(program, env, report)


def test_memory(node, report):
    report.section("hostile-memory: each way above the quota that is known, and what it leads to")
    run_all(node, report, "hostile_main(")


def test_time(node, report):
    report.section("hostile-time: each way above the cap that is known, and what it leads to")
    run_all(node, report, "served_main(")
