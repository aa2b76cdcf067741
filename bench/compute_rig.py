# SPDX-License-Identifier: Apache-2.0
"""Slices and the processes in them, for bench/compute.py; and what of a device they got."""

import ctypes
import json
import os
import signal
import subprocess
import time

S = 1_000_000_000
MS = 1_000_000
STARTUP_S = 60  # until a process is ready; many at once are slow
AFTER_S = 60  # beyond the time that it was told to run: what it gave is yet to be done
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


def sleep_until(at_ns):
    time.sleep(max(0, at_ns - time.monotonic_ns()) / S)


def die_with_us():
    """In a child: nothing that is started here outlives this."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Failure(Exception):
    """A process did not do what it was told; says why."""


class Slice:
    """A share file; written anew when a limit changes."""

    def __init__(self, rig, name, turns=None, priority=None, **terms):
        self.path = os.path.join(rig.folder, name + ".share")
        self.head = ["vgpu-share 1", "slice %s" % name,
                     "region %s" % os.path.join(rig.folder, name + ".region")]
        if turns:
            self.head.append("turns %s" % turns)
        if priority is not None:
            self.head.append("priority %d" % priority)
        self.write(**terms)

    def write(self, is_suspended=False, **terms):
        """cores, cap, weight; in one step, so that nobody reads half a file. Returns when."""
        words = " ".join("%s %g" % pair for pair in terms.items() if pair[1] is not None)
        lines = self.head + (["suspended"] if is_suspended else [])
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write("\n".join(lines + ["device * memory 16g %s" % words, "end", ""]))
        os.rename(self.path + ".new", self.path)
        return time.monotonic_ns()


class Load:
    """What a process of bench/compute_load.c said."""

    def __init__(self, said):
        self.said = said
        self.start_ns, self.end_ns, self.bin_ns = said["start_ns"], said["end_ns"], said["bin_ns"]
        self.kernels = [n / 1e6 for n in said["bin_microkernels"]]
        self.busy_ns = [n * 1000 for n in said["bin_busy_us"]]
        times = [self.start_ns + us * 1000 for us in said["busy_spans_us"]]
        self.spans = list(zip(times[::2], times[1::2]))

    def cut(self, values, from_ns, to_ns):
        first = max(0, round((from_ns - self.start_ns) / self.bin_ns))
        return values[first:max(first, round((to_ns - self.start_ns) / self.bin_ns))]

    def rate(self, from_ns, to_ns):
        """Kernels a second."""
        return sum(self.cut(self.kernels, from_ns, to_ns)) * S / (to_ns - from_ns)

    def busy(self, from_ns, to_ns):
        """The part of the time in which any of its kernels ran."""
        return sum(self.cut(self.busy_ns, from_ns, to_ns)) / (to_ns - from_ns)

    def longest_gap_ns(self, from_ns, to_ns):
        """The longest time without a kernel, to two bins."""
        longest = gap = 0
        for value in self.cut(self.busy_ns, from_ns, to_ns):
            gap = 0 if value else gap + self.bin_ns
            longest = max(longest, gap)
        return longest

    def launch_max_ms(self):
        return self.said.get("launch_us", {}).get("max", 0) / 1000

    def latency_us(self, part):
        return self.said.get("latency_us", {}).get(part, 0)


class Child:
    """A process, what it says in files, so that no pipe can be full."""

    def __init__(self, rig, argv, env, name, run_s):
        self.base, self.run_s = os.path.join(rig.folder, name), run_s
        with open(self.base + ".out", "wb") as out, open(self.base + ".err", "wb") as err:
            self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, preexec_fn=die_with_us)

    def read(self, ending):
        with open(self.base + ending, encoding="utf-8", errors="replace") as file:
            return file.read()

    def fail(self, why):
        self.kill()
        raise Failure("%s; %s" % (why, " / ".join(self.read(".err").splitlines()[-3:])))

    def wait_ready(self):
        deadline = time.monotonic() + STARTUP_S
        while not self.read(".out").startswith("ready"):
            if self.process.poll() is not None:
                self.fail("ended with %s before it began" % self.process.returncode)
            if time.monotonic() > deadline:
                self.fail("not ready after %d s" % STARTUP_S)
            time.sleep(0.002)

    def begin(self, at_ns):
        with open(self.base + ".new", "w", encoding="ascii") as file:
            file.write("%d\n" % at_ns)
        os.rename(self.base + ".new", self.base + ".wait")

    def signal(self, number):
        self.process.send_signal(number)
        return time.monotonic_ns()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def text(self):
        """What it said to its end."""
        try:
            status = self.process.wait(self.run_s + AFTER_S)
        except subprocess.TimeoutExpired:
            self.fail("not at its end after %d s" % (self.run_s + AFTER_S))
        if status != 0:
            self.fail("ended with %d" % status)
        return self.read(".out")

    def load(self):
        return Load(json.loads(self.text().splitlines()[-1]))


class Rig:
    def __init__(self, build, folder, is_sim):
        self.build, self.folder, self.is_sim = os.path.abspath(build), folder, is_sim
        self.program = os.path.join(self.build, "bench", "compute-load")
        self.library = (is_sim and os.environ.get("TENANT_LIBRARY")
                        or os.path.join(self.build, "src", "tenant", "libvgpu.so"))
        self.turns = os.path.join(folder, "turns")
        os.mkdir(self.turns)
        self.count, self.children, self.natives, self.known_rate = 0, [], {}, None

    def name(self, what):
        self.count += 1
        return "%s-%d" % (what, self.count)

    def slice(self, **terms):
        return Slice(self, self.name("slice"), **terms)

    def env(self, slice_=None):
        """Of a tenant of the slice; without one, of a program without the library."""
        env = {k: v for k, v in os.environ.items()
               if k != "LD_PRELOAD" and not k.startswith(("VGPU_", "CUDA_DEVICE_MEMORY"))}
        if self.is_sim:
            env["LD_LIBRARY_PATH"] = "%s/sim/cuda:%s/sim/nvml" % (self.build, self.build)
            env["VGPU_SIM_STATE"] = os.path.join(self.folder, "machine")
            env["VGPU_SIM_BOARD"] = "h200"
        # the library of a virtual clock is for every process
        preload = [os.environ.get("TEST_CLOCK_LIBRARY"), self.library if slice_ else None]
        if any(preload):
            env["LD_PRELOAD"] = ":".join(filter(None, preload))
        if slice_:
            env["VGPU_SHARE"] = slice_.path
        return env

    def start_program(self, slice_, argv, run_s):
        """A program that is ready to begin, or on its way to it."""
        name = self.name("child")
        argv = [a.replace("@wait", os.path.join(self.folder, name + ".wait")) for a in argv]
        child = Child(self, argv, self.env(slice_), name, run_s)
        self.children.append(child)
        return child

    def start(self, slice_, seconds, **options):
        words = ["%s=%s" % pair for pair in options.items()]
        return self.start_program(
            slice_, [self.program, "wait=@wait", "seconds=%g" % seconds] + words, seconds)

    def begin(self, children, after_ms=30):
        """All of them at the same time, which is returned."""
        for child in children:
            child.wait_ready()
        at_ns = time.monotonic_ns() + after_ms * MS
        for child in children:
            child.begin(at_ns)
        return at_ns

    def run(self, slices, seconds, **options):
        """The same load in each of the slices, at once; None is a process without the library."""
        children = [self.start(slice_, seconds, **options) for slice_ in slices]
        self.begin(children)
        return [child.load() for child in children]

    def rate(self):
        """How many turns a µs a kernel makes that counts turns; 0 on the simulated node."""
        if self.known_rate is None:
            child = self.start_program(None, [self.program, "shape=calibrate"], 5)
            self.known_rate = json.loads(child.text())["rate"]
        return self.known_rate

    def native(self, processes=1, **options):
        """
        Kernels a second of so many processes without the library, and the part of the time in which any
        ran; measured once.
        """
        key = (processes,) + tuple(sorted(options.items()))
        if key not in self.natives:
            loads = self.run([None] * processes, 1.5, **options)
            from_ns, to_ns = loads[0].start_ns + 300 * MS, loads[0].end_ns
            self.natives[key] = (sum(load.rate(from_ns, to_ns) for load in loads),
                                 busy_part(together(loads), from_ns, to_ns))
        return self.natives[key]

    def clear(self):
        """Ends what a failed row has left."""
        for child in self.children:
            child.kill()
        self.children = []


def together(loads):
    """The spans in which a kernel of any of them ran."""
    found = []
    for start_ns, end_ns in sorted(span for load in loads for span in load.spans):
        if found and start_ns <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end_ns)
        else:
            found.append([start_ns, end_ns])
    return found


def busy_part(spans, from_ns, to_ns):
    """The part of the time that the spans cover, which do not overlap."""
    return sum(max(0, min(end_ns, to_ns) - max(start_ns, from_ns))
               for start_ns, end_ns in spans) / (to_ns - from_ns)


def whole_periods(loads, from_ns, to_ns):
    """
    A window from the begin of a burst to the begin of another, so that the edges do not count
    periods by half: a limit that is kept in few long steps would seem to be missed. All of the time
    where the load has no bursts.
    """
    bins = [sum(values) for values in zip(*(load.cut(load.kernels, from_ns, to_ns)
                                            for load in loads))]
    quiet, begins = 0, []
    for place, value in enumerate(bins):
        if value and quiet >= 2:
            begins.append(place)
        quiet = 0 if value else quiet + 1
    if len(begins) < 2 or (begins[-1] - begins[0]) * 2 < len(bins):
        return from_ns, to_ns
    bin_ns = loads[0].bin_ns
    return from_ns + begins[0] * bin_ns, from_ns + begins[-1] * bin_ns
