# SPDX-License-Identifier: Apache-2.0
"""The clock of a scheduler under test (stepped_clock.c), whose library is the argument behind the program's."""

import pathlib
import sys
import threading

PROGRAM, LIBRARY = sys.argv[1], sys.argv.pop(2)
SLOWLY = 400  # a promise is written when nothing is promised or bound for 50 ms, which are 20 s then


class Clock:
    """The wall clock, or the one that counts on, or how slowly that does."""

    def __init__(self, town, variable="STEPPED_CLOCK"):
        self.file, self.variable = pathlib.Path(town.folder.name, "step"), variable
        self.set(0)

    def set(self, number):
        """In one piece: the scheduler reads it at any moment. From any thread."""
        fresh = self.file.with_suffix(f".{threading.get_ident()}")
        fresh.write_text(str(number), encoding="ascii")
        fresh.rename(self.file)

    def program(self):
        return ["env", f"LD_PRELOAD={LIBRARY}", f"{self.variable}={self.file}", PROGRAM]
