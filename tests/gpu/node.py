# SPDX-License-Identifier: Apache-2.0
"""The machine under test: slices, clients in them, and what NVML and the books say of both."""

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time

MIB = 1 << 20
GIB = 1 << 30
OUT_OF_MEMORY = 2
ANSWER_S = 90
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


def die_with_us():
    """In a child: nothing that a test starts outlives the test."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Client:
    """tests/tenant/client.c, told what to do."""

    def __init__(self, node, slice_, door="linked", extra=None, program="client"):
        self.node = node
        self.process = subprocess.Popen(
            [node.program(program), door], env=node.env(slice_, extra), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=node.errors, preexec_fn=die_with_us)
        self.pid = self.process.pid
        self.text = b""
        node.children.append(self.process)

    def tell(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        """(result, {key: value}); (None, {}) where it has ended or does not answer."""
        deadline = time.monotonic() + ANSWER_S
        out = self.process.stdout.fileno()
        while b"\n" not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return None, {}
            more = os.read(out, 65536)
            if not more:
                return None, {}
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        words = line.decode().split()
        return int(words[0]), dict(w.split("=", 1) for w in words[1:] if "=" in w)

    def ask(self, words):
        try:
            self.tell(words)
        except BrokenPipeError:
            return None, {}
        return self.answer()

    def all(self, *commands):
        """Each must succeed; the first result that is none is returned, else 0."""
        for words in commands:
            result, _ = self.ask(words)
            if result != 0:
                return "%s: %s" % (words, result)
        return 0

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self):
        self.process.kill()
        return self.process.wait()


class Slice:
    def __init__(self, node, name, memory, terms=""):
        self.name, self.memory = name, memory
        self.share = os.path.join(node.folder, name + ".share")
        self.region = os.path.join(node.folder, name + ".region")
        with open(self.share, "w", encoding="ascii") as file:
            file.write("vgpu-share 1\nslice %s\nregion %s\n%s\ndevice * memory %d\nend\n"
                       % (name, self.region, terms, memory))


class Node:
    def __init__(self, build, is_sim):
        self.build, self.is_sim = os.path.abspath(build), is_sim
        self.temporary = tempfile.TemporaryDirectory(prefix="vgpu-gpu-test-")
        self.folder = self.temporary.name
        self.errors_path = os.path.join(self.folder, "stderr")
        self.errors = open(self.errors_path, "ab")
        self.children = []
        self.library = (is_sim and os.environ.get("TENANT_LIBRARY")
                        or os.path.join(self.build, "src/tenant/libvgpu.so"))
        self.vgpu = os.path.join(self.build, "src/cli/vgpu")
        self.watcher = None
        self.slices = 0

    def program(self, name):
        return os.path.join(self.build, "tests/gpu", name)

    def env(self, slice_=None, extra=None):
        """The environment of a tenant of the slice; without one, of a program without the library."""
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
            env["VGPU_SHARE"] = slice_.share
        env.update(extra or {})
        return env

    def slice(self, memory, terms=""):
        self.slices += 1
        return Slice(self, "s%d" % self.slices, memory, terms)

    def client(self, slice_, *args, **kwargs):
        return Client(self, slice_, *args, **kwargs)

    def nvml_bytes(self, pids):
        """What NVML says that these processes use of the first device, asked from outside."""
        if not self.watcher:
            self.watcher = Client(self, None)
        self.watcher.tell("procs 0")
        deadline = time.monotonic() + ANSWER_S
        out = self.watcher.process.stdout
        if not select.select([out], [], [], deadline - time.monotonic())[0]:
            return None
        words = out.readline().decode().split()
        if not words or words[0] != "0":
            return None
        used = dict(map(int, w.split(":")) for w in words[1:])
        return sum(used.get(pid, 0) for pid in pids)

    def books_bytes(self, slice_):
        """What the slice's books say that it uses of the first device."""
        done = subprocess.run([self.vgpu, "list", "--json", "--region", slice_.region],
                              env=self.env(), capture_output=True, text=True, check=False)
        try:
            devices = json.loads(done.stdout)["slices"][0]["devices"]
            return next((d for d in devices if d["index"] == 0), devices[0])["used_bytes"]
        except (ValueError, KeyError, IndexError):
            return 0 if done.returncode == 0 else None

    def read_errors(self):
        with open(self.errors_path, encoding="utf-8", errors="replace") as file:
            return "".join(l for l in file if re.match("vgpu: level=(error|warn)", l))

    def close(self):
        if self.watcher:
            self.watcher.kill()
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        self.errors.close()
        self.temporary.cleanup()
