# SPDX-License-Identifier: Apache-2.0
"""Whether the books say what the device holds, where each lost its way once; by calls in a row, and what is left behind."""

import time

from node import GIB, MIB, OUT_OF_MEMORY
from report import mib

ROUNDS = 3
OPENED = 65537  # more often than 16 bits can count
NEAR_BYTES = 32 * MIB  # that the books may have beyond NVML: what is shared by blocks, streams and code
FAR = 1 << 50


class Case:
    """A slice and its client, and what was seen."""

    def __init__(self, node, report, rows, quota=2 * GIB, door="linked", terms=""):
        self.node, self.report, self.rows = node, report, rows
        self.slice = node.slice(quota, terms)
        self.client = node.client(self.slice, door)

    def held(self):
        """(what NVML shows for the client, what the books say of its slice)"""
        return self.node.nvml_bytes([self.client.pid]), self.node.books_bytes(self.slice)

    def judge(self, what, trouble, is_good=True, note=""):
        nvml, books = self.held()
        is_true = nvml is not None and books is not None and nvml <= books <= nvml + NEAR_BYTES
        self.rows.append((what, mib(nvml), mib(books), note))
        self.report.check(what, trouble == 0 and is_good and is_true,
                          trouble or "NVML %s, books %s, %s" % (nvml, books, note))

    def end(self):
        self.client.end()


def test_green(node, report, rows):
    """The array's memory is the primary context's, and stays charged until that ends."""
    case = Case(node, report, rows)
    for number in range(ROUNDS):
        trouble = case.client.all("green g 0", "usegreen g", "array a 256m", "endgreen g", "reset 0")
        case.judge("array of a green context that is destroyed, round %d" % (number + 1), trouble)
        case.client.ask("primary 0")
    case.end()


def test_opened(node, report, rows):
    maker, user = Case(node, report, rows), Case(node, report, rows, quota=1 * GIB, terms="imports any")
    trouble = maker.client.all("primary 0", "alloc a 256m") or user.client.all("primary 0")
    _, alone = user.held()
    _, said = maker.client.ask("ipcget a")
    _, again = maker.client.ask("ipcget a")
    report.check("memory has one handle, however often it is asked for", said == again, "%s, %s" % (said, again))
    start = time.monotonic()
    trouble = trouble or user.client.all("ipcopens a %s %d" % (said.get("handle"), OPENED))
    took_s = time.monotonic() - start
    _, opened = user.held()
    trouble = trouble or user.client.all("ipcclose a")
    nvml, books = user.held()
    is_good = None not in (alone, opened, books, nvml) and opened >= alone + 256 * MIB and \
        books == opened and nvml <= books
    rows.append(("opened %d times, closed once" % OPENED, mib(nvml), mib(books), "%.1f s" % took_s))
    report.check("memory that is opened %d times stays charged when it is closed once" % OPENED,
                 trouble == 0 and is_good,
                 trouble or "alone %s, opened %s, closed %s, NVML %s" % (alone, opened, books, nvml))
    result, said = user.client.ask("fill 64m")
    nvml, books = user.held()
    report.check("and its slice has no room for more", result == OUT_OF_MEMORY and
                 books is not None and nvml is not None and nvml <= books <= 1 * GIB,
                 "result %s, %s blocks, NVML %s, books %s" % (result, said, nvml, books))
    user.end()
    maker.end()


def test_capture(node, report, rows):
    """In a thread's own default stream, as programs built for that have it: nothing is taken before a launch."""
    case = Case(node, report, rows, quota=1 * GIB, door="linked-thread")
    trouble = case.client.all("primary 0", "alloc b 16m", "capture 0", "async a 300m 0", "freeasync a 0", "endcapture 0 g")
    case.judge("allocation in a captured per-thread default stream", trouble)
    trouble = case.client.all("instantiate e g", "glaunch e", "sync", "endexec e", "endgraph g", "gtrim 0")
    case.judge("and its graph, launched and ended", trouble)
    case.end()


def test_far(node, report, rows):
    """How long is told, and no verdict: the driver looks at the addresses alone."""
    took, results = [], []
    for slice_ in (None, node.slice(1 * GIB)):
        client = node.client(slice_)
        trouble = client.all("primary 0", "vmm v 64m")
        start = time.monotonic()
        result, _ = client.ask("call cuMemUnmap v %d" % FAR)
        took.append("%.6f" % (time.monotonic() - start))
        results.append(trouble or result)
        client.end()
    rows.append(("cuMemUnmap of 1 PiB", "-", "-", "%s s, %s s without the library" % (took[1], took[0])))
    report.check("cuMemUnmap of 1 PiB answers as without the library", results[0] == results[1],
                 "%s, %s without" % (results[1], results[0]))


# what the context is, how it is made, and how it ends
BROKEN = [
    ("a context that its kernel broke", ["init", "newctx c 0", "alloc a 512m"], "endctx c"),
    ("a primary context that its kernel broke", ["primary 0", "alloc a 512m"], "reset 0"),
]


def test_broken(node, report, rows):
    for what, before, end in BROKEN:
        case = Case(node, report, rows)
        trouble = case.client.all(*before)
        result, _ = case.client.ask("stray")
        ended, _ = case.client.ask(end)
        native = node.client(None)
        native.all(*before)
        expected = (native.ask("stray")[0], native.ask(end)[0])
        native.end()
        is_good = (result, ended) == expected and result not in (0, None)
        case.judge("%s, ended" % what, trouble, is_good,
                   "kernel %s, end %s; %s and %s without the library" % ((result, ended) + expected))
        case.end()
        nvml, books = case.held()
        report.check("%s, when the process has ended" % what, books == 0, "books %s" % books)


def test_books(node, report):
    report.section("books: what is charged is what is held, by ways in which it was not")
    rows = []
    for test in (test_green, test_opened, test_capture, test_far, test_broken):
        test(node, report, rows)
    report.table(("way", "NVML MiB", "books MiB", ""), rows)
