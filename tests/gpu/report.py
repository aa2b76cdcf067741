# SPDX-License-Identifier: Apache-2.0
"""Verdicts and tables of a run."""

import sys


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def section(self, title):
        print("\n== %s" % title, flush=True)

    def check(self, what, is_good, why=""):
        if is_good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED: %s%s" % (what, ": %s" % why if why else ""), flush=True)
        return is_good

    def skip(self, what, why):
        self.skipped += 1
        print("skipped: %s: %s" % (what, why), flush=True)

    def table(self, head, rows):
        cells = [[str(cell) for cell in row] for row in [head] + rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
        for row in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        sys.stdout.flush()

    def end(self):
        print("\n%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return 1 if self.failed else 0


def mib(size):
    return "-" if size is None else "%d" % round(size / (1 << 20))
