# SPDX-License-Identifier: Apache-2.0
"""Whether a slice is kept off its device, moved to the host's memory, and brought back: vgpu suspend."""

import json
import os
import re
import subprocess
import time

from node import GIB, MIB, die_with_us
from report import mib

NAME = "kept"
S = 1_000_000_000
COMMAND_S = 90  # a suspension waits 3 s for quiet, and 10 s more for the driver's lock
BEGIN_S = 60  # within which the program has filled its memory and works
GOES_ON_S = 10  # within which it works again
SETTLE_S = 10  # within which NVML's figure follows
END_S = 120  # within which the pattern is read again
STOP_NS = S // 2  # 0.1 s is promised; the simulated node shares its processors
OLD_DRIVER = "version 570 or later is right"
QUIET_S = 1.5  # for which nothing more may come
# What a context takes may not be the same to the byte when it was made anew.
NEAR_BYTES = 64 * MIB
# The driver holds more back for who works there; less than what is to come back.
FILL_ROOM_BYTES = 512 * MIB
FILL_STEP_BYTES = 128 * MIB


class Keeper:
    """tests/gpu/programs/keeper.c in a slice of vgpu run, told apart by its name."""

    def __init__(self, node, size):
        self.node, self.folder = node, os.path.join(node.folder, "evict")
        os.mkdir(self.folder)
        # turns of its own: pages are told apart by devices, and simulated ones are alike
        turns = os.path.join(self.folder, "turns")
        os.mkdir(turns)
        state = os.path.join(self.folder, "state")
        self.env = node.env(None, {"VGPU_STATE": state, "VGPU_TURNS": turns})
        self.region = os.path.join(state, NAME, "region")
        self.said = os.path.join(self.folder, "said")
        argv = self.vgpu("run", "--name", NAME, "--device", "0", "--memory", str(size + 2 * GIB),
                         "--cores", "50", "--", node.program("keeper"), str(size))
        with open(self.said, "wb") as out:
            self.process = subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE, stdout=out,
                                            stderr=node.errors, preexec_fn=die_with_us)
        node.children.append(self.process)

    def vgpu(self, command, *words):
        sim = ["--sim"] if self.node.is_sim and command in ("run", "suspend", "resume") else []
        return [self.node.vgpu, command] + sim + list(words)

    def do(self, command, *words):
        """(exit status or None for too late, stdout, stderr)"""
        try:
            done = subprocess.run(self.vgpu(command, *words), env=self.env, capture_output=True,
                                  text=True, timeout=COMMAND_S, check=False,
                                  preexec_fn=die_with_us)
        except subprocess.TimeoutExpired:
            return None, "", "not at its end after %d s" % COMMAND_S
        return done.returncode, done.stdout, done.stderr

    def lines(self, first):
        with open(self.said, encoding="ascii") as file:
            whole = file.read().rpartition("\n")[0]
        return [line.split() for line in whole.splitlines() if line.startswith(first + " ")]

    def steps_ns(self):
        """When kernels were waited for, by the clock that time.monotonic_ns() reads."""
        return [int(words[2]) for words in self.lines("step")]

    def works_after(self, at_ns, within_s):
        """Whether it works after that; it is waited for."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and self.process.poll() is None:
            if (self.steps_ns() or [0])[-1] > at_ns:
                return True
            time.sleep(0.05)
        return False

    def slice_of(self, text):
        """The slice as JSON has it; {} where it is not there."""
        try:
            return [s for s in json.loads(text)["slices"] if s["region"] == self.region][0]
        except (ValueError, KeyError, IndexError):
            return {}

    def books(self):
        """used_bytes, evicted_bytes, is suspended, state, and the process's PID."""
        found = self.slice_of(self.do("list", "--json")[1])
        device = (found.get("devices") or [{}])[0]
        process = (found.get("processes") or [{}])[0]
        return {"used": device.get("used_bytes"), "evicted": device.get("evicted_bytes"),
                "suspended": found.get("suspended"), "kinds": device.get("kind_bytes", {}),
                "state": device.get("compute", {}).get("state"), "pid": process.get("pid")}

    def end(self):
        """What it says of its pattern; {} where it does not come to its end."""
        self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        last = self.lines("end")
        return dict(word.split("=") for word in last[0][1:]) if last else {}


class Card:
    """What the driver says of the first device, to a program without the library."""

    def __init__(self, node):
        self.node, self.client = node, node.client(None)

    def nvml(self):
        said = self.client.ask("nvml 0")[1]
        return {key: int(said[key]) for key in ("used", "free")}

    def used_when(self, is_so):
        """The memory in use, when it is as asked or at last."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            used = self.nvml()["used"]
            if is_so(used) or time.monotonic() > deadline:
                return used
            time.sleep(0.05)

    def fill(self):
        """A program that holds nearly all that is free; its answer is 0, or what went wrong."""
        client = self.node.client(None)
        trouble = client.all("primary 0")
        size = self.nvml()["free"] - FILL_ROOM_BYTES
        while trouble == 0 and size > GIB and client.ask("alloc x %d" % size)[0] != 0:
            size -= FILL_STEP_BYTES
        return client, trouble or (0 if size > GIB else "nothing could be allocated")


def check_quiet(report, keeper, what, since_ns):
    """Nothing may come from soon after that on."""
    time.sleep(QUIET_S)
    late = [at for at in keeper.steps_ns() if at > since_ns + STOP_NS]
    return report.check("%s works no more" % what, not late,
                        "%d steps, the last %.0f ms later" % (len(late),
                        (late[-1] - since_ns) / 1e6) if late else "")


def stopped_ms(keeper, since_ns):
    after = [at for at in keeper.steps_ns() if at > since_ns]
    return (after[-1] - since_ns) / 1e6 if after else 0


def check_done(report, what, outcome):
    return report.check(what, outcome[0] == 0, "%s: %s" % (outcome[0], outcome[2].strip()))


def test_suspended(report, keeper):
    """Without --evict: the work stops, and the memory stays."""
    before = keeper.books()
    outcome = keeper.do("suspend", NAME)
    since_ns = time.monotonic_ns()
    if not check_done(report, "a slice is suspended", outcome):
        return
    check_quiet(report, keeper, "a suspended slice", since_ns)
    books = keeper.books()
    report.check("a suspended slice keeps its memory and is shown as suspended",
                 books["suspended"] is True and books["state"] == "suspended" and
                 books["used"] == before["used"] and books["evicted"] == 0, books)
    print("suspended: the last work ended %.0f ms later" % stopped_ms(keeper, since_ns))
    check_done(report, "a suspended slice is resumed", keeper.do("resume", NAME))
    report.check("a resumed slice works again",
                 keeper.works_after(time.monotonic_ns(), GOES_ON_S))


def check_evicted(report, keeper, before):
    """Whether the books and what is shown are those of a slice whose memory is away."""
    books = keeper.books()
    top = keeper.slice_of(keeper.do("top", "--once", "--json")[1])
    shown = (top.get("devices") or [{}])[0]
    is_good = books["used"] == 0 and books["evicted"] == before["used"] and \
        books["suspended"] is True and books["state"] == "evicted"
    report.check("what was evicted is not used in the books", is_good, books)
    report.check("nothing is shown by kind", not any(books["kinds"].values()), books["kinds"])
    report.check("vgpu top shows it as evicted",
                 top.get("suspended") is True and shown.get("used_bytes") == 0 and
                 shown.get("evicted_bytes") == before["used"] and
                 shown.get("compute", {}).get("state") == "evicted", top)
    table = keeper.do("list")[1]
    report.check("vgpu list shows it as evicted",
                 any(NAME in line and "evicted" in line for line in table.splitlines()), table)
    return books


def evict(report, keeper, card, before, used, size):
    """A row of what the driver and the books say when its memory is away; None where it is not."""
    start = time.monotonic()
    outcome = keeper.do("suspend", NAME, "--evict")
    since_ns = time.monotonic_ns()
    took_s = time.monotonic() - start
    if OLD_DRIVER in outcome[2]:
        report.skip("a slice is evicted", outcome[2].strip())
        return None
    if not check_done(report, "a slice is evicted", outcome):
        return None
    away = card.used_when(lambda now: used - now >= size)
    report.check("the driver has the memory back that a slice held", used - away >= size,
                 "%s MiB before, %s MiB now" % (mib(used), mib(away)))
    check_quiet(report, keeper, "an evicted slice", since_ns)
    books = check_evicted(report, keeper, before)
    return ("evicted", "%.2f" % took_s, mib(away), mib(books["used"]), mib(books["evicted"]))


def is_near(node, books, before):
    """A card's context may be of another size when it was made anew; kinds that the program has are not."""
    if node.is_sim:
        return books["used"] == before["used"] and books["kinds"] == before["kinds"]
    return books["used"] is not None and abs(books["used"] - before["used"]) <= NEAR_BYTES and \
        books["kinds"].get("plain") == before["kinds"].get("plain")


def check_back(report, keeper, card, before, used):
    """Whether all is as it was, after a resume that succeeded."""
    report.check("who was evicted works again", keeper.works_after(time.monotonic_ns(), GOES_ON_S))
    back = card.used_when(lambda now: now >= used - NEAR_BYTES)
    report.check("the memory is on the device again", abs(back - used) <= NEAR_BYTES,
                 "%s MiB before, %s MiB now" % (mib(used), mib(back)))
    books = keeper.books()
    report.check("the books are as before",
                 books["suspended"] is False and books["evicted"] == 0 and
                 books["state"] == before["state"] and is_near(keeper.node, books, before),
                 "%s, before %s" % (books, before))
    nvml = keeper.node.nvml_bytes([before["pid"]])
    report.check("the books are not below what NVML says",
                 nvml is not None and books["used"] is not None and books["used"] >= nvml,
                 "%s, NVML %s" % (books["used"], nvml))
    return back, books


def resume(report, keeper, card, before, used):
    start = time.monotonic()
    outcome = keeper.do("resume", NAME)
    took_s = time.monotonic() - start
    if not check_done(report, "an evicted slice is resumed", outcome):
        return None
    back, books = check_back(report, keeper, card, before, used)
    return ("resumed", "%.2f" % took_s, mib(back), mib(books["used"]), mib(books["evicted"]))


def says_room(why, free, evicted):
    """Whether the figures are those of the device and the books, as far as they stand still."""
    said = re.search(r"device \S+ has (\d+) MiB free, and (\d+) MiB are needed", why)
    return said and abs(int(said[1]) * MIB - free) <= NEAR_BYTES and \
        0 < int(said[2]) * MIB - evicted <= 2 * NEAR_BYTES


def test_no_room(report, keeper, card, before, used):
    """
    Somebody else has the memory meanwhile: the slice stays as it is, and can be resumed later. The driver
    must not even be asked: a process that it is to restore without room never comes back.
    """
    if not check_done(report, "a slice is evicted again", keeper.do("suspend", NAME, "--evict")):
        return [None]
    since_ns = time.monotonic_ns()
    away = keeper.books()
    other, trouble = card.fill()
    if not report.check("another program fills the device", trouble == 0, trouble):
        other.kill()
        return [resume(report, keeper, card, before, used)]
    full, start = card.nvml(), time.monotonic()
    status, _, why = keeper.do("resume", NAME)
    took_s = time.monotonic() - start
    print("a resume without room, %s MiB free: status %s after %.2f s: %s" %
          (mib(full["free"]), status, took_s, why.strip()))
    report.check("a resume without room is refused before the driver is asked, and says why",
                 status == 1 and "slice '%s' is not resumed" % NAME in why and
                 "no free memory for process %s " % away["pid"] in why and "CUDA_ERROR" not in why and
                 says_room(why, full["free"], away["evicted"]), "%s: %s" % (status, why))
    check_quiet(report, keeper, "a slice that could not be resumed", since_ns)
    books = keeper.books()
    report.check("it stays evicted", books == away, "%s, before %s" % (books, away))
    rows = [("no room", "%.2f" % took_s, mib(full["used"]), mib(books["used"]),
             mib(books["evicted"]))]
    other.end()
    card.used_when(lambda now: now < full["used"] - GIB)
    return rows + [resume(report, keeper, card, before, used)]


def test_end(report, keeper):
    said = keeper.end()
    launched = said.get("launched")
    report.check("what was in the memory is whole", said.get("wrong") == "0", said)
    report.check("no kernel was lost", launched and said["counted"] ==
                 ("0" if keeper.node.is_sim else launched), said)
    print("at the end: %s" % said)


def test_all(report, keeper, card, used_before, size):
    if not report.check("the program works", keeper.works_after(0, BEGIN_S)):
        return
    used, before = card.used_when(lambda now: now >= used_before + size), keeper.books()
    report.check("its memory is in the books and on the device",
                 (before["used"] or 0) >= size and used - used_before >= size, before)
    rows = [("at work", "-", mib(used), mib(before["used"]), mib(before["evicted"]))]
    test_suspended(report, keeper)
    rows.append(evict(report, keeper, card, before, used, size))
    if rows[-1]:
        rows.append(resume(report, keeper, card, before, used))
    if rows[-1]:
        rows += test_no_room(report, keeper, card, before, used)
    report.table(("", "took s", "device MiB", "books MiB", "evicted MiB"), list(filter(None, rows)))
    if rows[-1]:
        test_end(report, keeper)


def test_evict(node, report):
    report.section("evict: a slice that is suspended, moved to the host's memory, and resumed")
    size = 256 * MIB if node.is_sim else 2 * GIB
    card = Card(node)
    used_before = card.nvml()["used"]
    keeper = Keeper(node, size)
    try:
        test_all(report, keeper, card, used_before, size)
    finally:
        # the program's own end is tied to that of vgpu run
        if keeper.process.poll() is None:
            keeper.process.kill()
            keeper.process.wait()
