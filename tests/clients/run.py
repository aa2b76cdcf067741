#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients of NVML and CUDA in a slice on the simulated node: what each was asked, and what it saw.

Each client is installed into a folder of its own below --into and stays there. A client that cannot be
installed is skipped with the reason. Whoever shows a slice must show its quota and refuse what is beyond.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
QUOTA_MIB = 2048
RUN_S, INSTALL_S = 60, 900
GO_VERSIONS = {"github.com/NVIDIA/go-nvml": "v0.13.4-1", "github.com/NVIDIA/go-nvlib": "v0.13.0"}


class Skipped(Exception):
    """The client is not to be had here; says why."""


def call(words, timeout_s, **options):
    """The output of a command, or an exception with its last line."""
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=timeout_s, stdin=subprocess.DEVNULL, check=False, **options)
    if run.returncode != 0:
        lines = [line for line in run.stdout.splitlines() if line.strip()] or ["no output"]
        raise RuntimeError("exit code %d: %s" % (run.returncode, lines[-1].strip()))
    return run.stdout


def install(words, what, **options):
    """Runs an installer. What fails there says nothing of the slice."""
    try:
        return call(words, INSTALL_S, **options)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        raise Skipped("%s cannot be installed: %s" % (what, error)) from error


class Client:
    """A client: how it comes, and what it is asked."""

    def __init__(self, name, asked, is_default=True):
        self.name, self.asked, self.is_default = name, asked, is_default

    def install(self, folder, build):
        """Brings the client into the folder; answers its version."""
        raise NotImplementedError

    def command(self, folder):
        """What runs in the slice and prints JSON: total_mib, and is_refused where it takes memory."""
        raise NotImplementedError

    def read(self, output):
        return json.loads(output[output.index("{"):])


class Python(Client):
    """A package of PyPI, asked by a script of this folder or by its own program."""

    def __init__(self, package, version, script, asked, is_default=True, more=()):
        super().__init__(package, asked, is_default)
        self.version, self.script, self.more = version, script, more

    def install(self, folder, build):
        mark = os.path.join(folder, "installed-%s" % self.version)
        if not os.path.exists(mark):
            shutil.rmtree(folder, ignore_errors=True)
            install([sys.executable, "-m", "pip", "install", "-q", "--target", folder,
                     "--no-compile", "--no-cache-dir", "--disable-pip-version-check",
                     "--retries", "1", "--timeout", "10",
                     "%s==%s" % (self.name, self.version), *self.more], self.name)
            self.finish(folder, build)
            open(mark, "w", encoding="utf-8").close()
        return self.version

    def finish(self, folder, build):
        pass

    def command(self, folder):
        return ["env", "PYTHONPATH=" + folder, sys.executable, os.path.join(HERE, self.script)]


class Torch(Python):
    """PyTorch names its runtime's folder in each of its libraries, so ours takes its place there."""

    def finish(self, folder, build):
        for top, _, names in os.walk(folder):
            for name in names:
                ours = os.path.join(build, "sim/cuda", name)
                if re.match(r"libcudart\.so\.\d+$", name) and os.path.exists(ours):
                    os.replace(os.path.join(top, name), os.path.join(top, name + ".nvidia"))
                    os.symlink(os.path.abspath(ours), os.path.join(top, name))


class Gpustat(Python):
    def command(self, folder):
        return ["env", "PYTHONPATH=" + folder, sys.executable, "-m", "gpustat", "--json"]

    def read(self, output):
        return {"total_mib": super().read(output)["gpus"][0]["memory.total"]}


class Nvitop(Python):
    def command(self, folder):
        return ["env", "PYTHONPATH=" + folder, sys.executable, "-m", "nvitop", "--once"]

    def read(self, output):
        found = re.search(r"B\s*/\s*([\d.]+)([MG])iB", output)
        if not found:
            raise RuntimeError("no figure of memory in its table")
        return {"total_mib": float(found.group(1)) * (1024 if found.group(2) == "G" else 1)}


class Go(Client):
    def install(self, folder, build):
        go = shutil.which("go")
        if not go:
            raise Skipped("no Go here")
        os.makedirs(folder, exist_ok=True)
        environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
        if not os.path.exists(os.path.join(folder, "ask")):
            shutil.copy(os.path.join(HERE, "ask.go"), os.path.join(folder, "main.go"))
            with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as file:
                file.write("module clients\n\ngo 1.20\n\nrequire (\n%s)\n" % "".join(
                    "\t%s %s\n" % row for row in GO_VERSIONS.items()))
            install([go, "build", "-o", "ask", "."], self.name, cwd=folder, env=environment)
        return GO_VERSIONS["github.com/NVIDIA/go-nvml"]

    def command(self, folder):
        return [os.path.join(folder, "ask")]


class Nvtop(Client):
    """A program of Debian: unpacked, not installed."""

    def install(self, folder, build):
        if not shutil.which("apt-get"):
            raise Skipped("no apt-get here")
        if not os.path.exists(os.path.join(folder, "usr/bin/nvtop")):
            os.makedirs(folder, exist_ok=True)
            install(["apt-get", "download", "nvtop"], self.name, cwd=folder)
            package = [n for n in os.listdir(folder) if n.endswith(".deb")][0]
            install(["dpkg", "-x", package, "."], self.name, cwd=folder)
        return call([os.path.join(folder, "usr/bin/nvtop"), "--version"], RUN_S).split()[-1]

    def command(self, folder):
        return [os.path.join(folder, "usr/bin/nvtop"), "--snapshot"]

    def read(self, output):
        rows = json.loads(output[output.index("["):])
        return {"total_mib": int(rows[0]["mem_total"]) // 1048576}


CLIENTS = [
    Python("nvidia-ml-py", "13.615.71", "ask_nvml.py", "memory, processes, 30 questions of NVML"),
    Gpustat("gpustat", "1.1.1", "", "its table as JSON"),
    Nvitop("nvitop", "1.7.2", "", "its table"),
    Python("cuda-bindings", "13.0.3", "ask_bindings.py", "memory, more than the quota, a stream"),
    Go("go-nvml", "go-nvlib's list of devices and MIG profiles, memory, an event"),
    Nvtop("nvtop", "a snapshot"),
    Python("numba-cuda", "0.30.4", "ask_numba.py", "an array there and back, more than the quota"),
    Torch("torch", "2.15.0", "ask_torch.py", "tensors, a graph, more than the quota",
          is_default=False, more=["numpy"]),
]


def ask(client, folder, build, scratch):
    """What the client says in a slice of QUOTA_MIB: (outcome, what it saw)."""
    words = [os.path.join(build, "src/cli/vgpu"), "run", "--sim", "--device", "0", "--name",
             "client-" + client.name, "--memory", "%dm" % QUOTA_MIB, "--"]
    environment = {**os.environ, "VGPU_SIM_STATE": os.path.join(scratch, "machine")}
    output = call(words + client.command(folder), RUN_S, env=environment)
    said = client.read(output)
    seen = "%d MiB" % said["total_mib"]
    if "is_refused" in said:
        seen += ", beyond " + ("refused" if said["is_refused"] else "GIVEN")
    is_right = said["total_mib"] == QUOTA_MIB and said.get("is_refused", True)
    return "right" if is_right else "WRONG", seen


def try_client(client, into, build, scratch):
    folder = os.path.join(into, client.name)
    version = "-"
    try:
        version = client.install(folder, build)
        return (version, *ask(client, folder, build, scratch))
    except Skipped as reason:
        return version, "skipped", str(reason)
    except (RuntimeError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
        return version, "FAILED", str(error)


def scratch_folder():
    """Where a machine's locks last: a container's own root does not keep them."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--into", default="build/clients", help="where clients are installed")
    parser.add_argument("--clients", default=" ".join(c.name for c in CLIENTS if c.is_default),
                        help="which, between spaces; %s" % " ".join(c.name for c in CLIENTS))
    args = parser.parse_args()
    names = args.clients.split()
    unknown = set(names) - {c.name for c in CLIENTS}
    if unknown:
        parser.error("no such client: %s" % ", ".join(sorted(unknown)))
    chosen = [c for c in CLIENTS if c.name in names]
    outcomes, reasons = [], []
    print("%-14s %-10s %-8s %-32s %s" % ("CLIENT", "VERSION", "OUTCOME", "SAW", "WAS ASKED"))
    with tempfile.TemporaryDirectory(prefix="clients-", dir=scratch_folder()) as scratch:
        for client in chosen:
            version, outcome, saw = try_client(client, os.path.abspath(args.into), args.build,
                                               scratch)
            outcomes.append(outcome)
            reasons += [saw] if outcome == "skipped" else []
            print("%-14s %-10s %-8s %-32s %s" % (client.name, version, outcome,
                                                 saw if outcome in ("right", "WRONG") else "-",
                                                 client.asked), flush=True)
            if outcome in ("skipped", "FAILED"):
                print("    %s" % saw, flush=True)
    if outcomes and all(outcome == "skipped" for outcome in outcomes):
        print("skipped: %s" % reasons[0])
    return 1 if {"WRONG", "FAILED"} & set(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
