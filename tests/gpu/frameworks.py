# SPDX-License-Identifier: Apache-2.0
"""PyTorch, CuPy and JAX in a slice: what they see, how they are refused, that they work."""

import importlib.util
import json
import os
import select
import subprocess
import sys
import time

from node import GIB, die_with_us
from report import mib

HERE = os.path.dirname(os.path.abspath(__file__))
QUOTA = 8 * GIB
WORD_S = 120

# name, script, its argument, environment
CASES = [
    ("PyTorch", "torch", "default", {}),
    ("PyTorch, expandable segments", "torch", "default",
     {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ("PyTorch, cudaMallocAsync", "torch", "default",
     {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("CuPy", "cupy", "default", {}),
    ("CuPy, cudaMallocAsync", "cupy", "async", {}),
    ("JAX, preallocating", "jax", "default", {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}),
    ("JAX, growing", "jax", "default", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
]


class Program:
    """A script of programs/: it says one JSON line at a time and goes on at a line of input."""

    def __init__(self, node, slice_, script, argument, extra):
        self.errors = os.path.join(node.folder, "framework-stderr")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-u", os.path.join(HERE, "programs", "use_%s.py" % script), argument],
                env=node.env(slice_, extra), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, preexec_fn=die_with_us)
        node.children.append(self.process)
        self.text = b""

    def word(self):
        """The next thing it says, or {} where it has ended or says nothing."""
        deadline = time.monotonic() + WORD_S
        out = self.process.stdout.fileno()
        while b"\n" not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return {}
            more = os.read(out, 65536)
            if not more:
                return {}
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError:
            return {}

    def go_on(self):
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def end(self):
        try:
            status = self.process.wait(WORD_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        return status

    def complaint(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]


def test_case(node, report, case):
    name, script, argument, extra = case
    slice_ = node.slice(QUOTA)
    program = Program(node, slice_, script, argument, extra)
    full = program.word()
    nvml, books = node.nvml_bytes([program.process.pid]), node.books_bytes(slice_)
    program.go_on()
    after = program.word()
    status = program.end()
    complaint = "" if full and after and status == 0 else program.complaint()
    report.check("%s sees the quota" % name, full.get("total") == QUOTA,
                 "%s %s" % (full, complaint))
    report.check("%s is refused in its ordinary way" % name, full.get("is_ordinary") is True,
                 str(full.get("error")))
    report.check("%s holds no more than the quota" % name,
                 nvml is not None and nvml <= QUOTA and books is not None and nvml <= books,
                 "NVML %s, books %s" % (nvml, books))
    report.check("%s works before the limit and after" % name,
                 full.get("works") is True and after.get("works") is True and status == 0,
                 "%s, status %s" % (after, status))
    with open(program.errors, encoding="utf-8", errors="replace") as file:
        ours = [line for line in file if line.startswith("vgpu: level=error")]
    report.check("%s: the library is silent" % name, not ours, "".join(ours))
    beside = mib(nvml - books) if nvml is not None and books is not None else "-"
    return (name, mib(full.get("total")), full.get("blocks", "-"), full.get("error", "-"), mib(nvml),
            mib(books), beside)


def test_frameworks(node, report):
    report.section("frameworks: a slice of 8 GiB, blocks of 256 MiB until refused")
    rows = []
    for case in CASES:
        if node.is_sim or not importlib.util.find_spec(case[1]):
            report.skip(case[0], "not installed" if not node.is_sim else "needs a real card")
            continue
        rows.append(test_case(node, report, case))
    if rows:
        report.table(("framework", "total MiB", "blocks", "refused by", "NVML MiB", "books MiB",
                      "NVML - books"), rows)
