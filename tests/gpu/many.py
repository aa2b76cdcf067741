# SPDX-License-Identifier: Apache-2.0
"""Programs that pass natively must pass in a slice, and say the same: many of them, side by side."""

import concurrent.futures
import os
import shutil
import subprocess
import sys

from node import GIB, MIB, die_with_us

HERE = os.path.dirname(os.path.abspath(__file__))
QUOTA = 16 * GIB
RUN_S = 150
AT_ONCE = 6


def run(argv, env):
    """(exit status, stdout, the end of stderr)"""
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=RUN_S,
                              check=False, preexec_fn=die_with_us)
        return done.returncode, done.stdout, done.stderr[-1500:]
    except subprocess.TimeoutExpired:
        return None, "", "more than %d s" % RUN_S


def python_programs():
    script = os.path.join(HERE, "programs", "many.py")
    names = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return [("python %s" % name, [sys.executable, script, name]) for name in names.stdout.split()]


def runtime_programs(node, report):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        report.skip("programs for the CUDA runtime", "there is no nvcc")
        return []
    program = os.path.join(node.folder, "runtime")
    status, _, errors = run([nvcc, "-arch=native", "-rdc=true", "-std=c++17", "-w", "-o", program,
                             os.path.join(HERE, "programs", "runtime.cu"), "-lcudadevrt"],
                            dict(os.environ))
    report.check("the programs for the CUDA runtime compile", status == 0, errors)
    if status:
        return []
    names = subprocess.run([program], capture_output=True, text=True, check=False).stdout.split()
    return [("runtime %s" % name, [program, name]) for name in names]


def test_many(node, report):
    report.section("programs that must do in a slice what they do without")
    if node.is_sim:
        report.skip("programs", "they need a card")
        return
    programs = runtime_programs(node, report) + python_programs()
    slice_ = node.slice(QUOTA)
    # Without the library nothing keeps JAX from taking three quarters of the card from the others.
    modest = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        native = list(pool.map(lambda p: run(p[1], node.env(None, modest)), programs))
        inside = list(pool.map(lambda p: run(p[1], node.env(slice_, modest)), programs))
    works = []
    for (name, _), without, with_it in zip(programs, native, inside):
        if without[0] != 0:
            report.skip(name, "it fails without the library too: %s" % without[2][-200:])
            continue
        report.check(name, with_it[:2] == without[:2],
                     "without: %s\nwith: %s %s" % (without[:2], with_it[:2], with_it[2]))
        works.append(name)
    books = node.books_bytes(slice_) or 0
    report.check("after all of them the books are empty", books == 0, "%d MiB" % (books // MIB))
    print("the same with and without: %s" % ", ".join(works))
