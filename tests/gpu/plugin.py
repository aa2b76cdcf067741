# SPDX-License-Identifier: Apache-2.0
"""The device plugin on this machine's devices, and processes in what it answers.

The plugin, its client and their libraries come from this build, or from that of VGPU_PLUGIN_BUILD, where libraries are missing here
(tests/cluster/bundle.sh). Its API server and its kubelet are the client's (tests/plugin/grant_one.c).
"""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import time

from node import GIB, MIB, die_with_us

ANSWER_S = 30
RUN_S = 60
MEMORY_MIB = 8192
BLOCK_MIB = 64


class Plugin:
    """It and its client, which is told what to do."""

    def __init__(self, node, build, mode):
        self.node, self.build = node, build
        env = node.env()
        if node.is_sim:
            env["PATH"] = "%s/sim/mps:%s" % (build, env["PATH"])
        self.process = subprocess.Popen(
            [os.path.join(build, "tests/plugin/grant-one"), os.path.join(build, "src/plugin/vgpu-device-plugin"),
             node.library, mode], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=node.errors,
            preexec_fn=die_with_us)
        node.children.append(self.process)
        self.text = b""
        self.devices = self.answer()

    def answer(self):
        """The next line of JSON, or {}."""
        deadline, out = time.monotonic() + ANSWER_S, self.process.stdout.fileno()
        while True:
            while b"\n" in self.text:
                line, self.text = self.text.split(b"\n", 1)
                if line.startswith(b"{"):
                    return json.loads(line)
            left = deadline - time.monotonic()
            more = os.read(out, 65536) if left > 0 and select.select([out], [], [], left)[0] else b""
            if not more:
                return {}
            self.text += more

    def ask(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            return self.process.wait()

    def run(self, answer, argv, text=None):
        """A program to its end, with the environment and the mounts of the answer and no others, over this machine's files."""
        folder = os.path.join(self.node.folder, "root")
        os.makedirs(folder, exist_ok=True)
        lines = ["set -e", "mount --make-rprivate /", "mount -t tmpfs tmpfs %s" % folder, "cd %s" % folder,
                 "mkdir u w m", "mount -t overlay -o lowerdir=/,upperdir=u,workdir=w overlay m"]
        # what is mounted on the lower folder is not in the overlay
        lines += ["[ ! -d %s ] || mount --rbind %s m%s" % (at, at, at)
                  for at in ("/proc", "/sys", "/dev", "/usr/local/nvidia", self.node.folder)]
        if self.node.is_sim:
            machine = self.devices["folder"] + "/machine"
            lines.append("mount --bind %s m%s" % (machine, machine))
        for mount in sorted(answer["mounts"], key=lambda mount: mount["at"]):
            source, at = shlex.quote(mount["from"]), shlex.quote("m" + mount["at"])
            lines.append("if [ -d %s ]; then mkdir -p %s; elif [ ! -e %s ]; then mkdir -p $(dirname %s); touch %s; fi"
                         % (source, at, at, at, at))
            lines.append("mount --bind %s %s" % (source, at))
            if mount["read_only"]:
                lines.append("mount -o remount,bind,ro %s" % at)
        env = {k: v for k, v in self.node.env().items() if k in ("PATH", "LD_LIBRARY_PATH")}
        if self.node.is_sim:
            env.update(VGPU_SIM_STATE=self.devices["folder"] + "/machine", VGPU_SIM_BOARD="h200x2")
        env.update(answer["envs"])
        words = ["%s=%s" % pair for pair in env.items()] + argv
        lines.append("exec chroot m env -i " + " ".join(shlex.quote(word) for word in words))
        return subprocess.run(["unshare", "--mount", "sh", "-c", "\n".join(lines)], input=text, capture_output=True,
                              text=True, timeout=RUN_S, check=False, preexec_fn=die_with_us)


def test_inventory(node, report, plugin):
    registered = plugin.devices["registered"]
    rows = [(d["id"], d["type"], d["devmem"], d["count"], d["mode"]) for d in registered]
    report.table(("UUID", "type", "MiB", "slices", "mode"), rows)
    if not node.is_sim:
        text = subprocess.run(["nvidia-smi", "--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits"],
                              env=node.env(), capture_output=True, text=True, timeout=RUN_S, check=False).stdout
        seen = [tuple(line.split(", ")) for line in text.splitlines()]
        report.check("the devices are as nvidia-smi says", seen == [(r[0], r[1], str(r[2])) for r in rows], text)
    want = ["%s-%d" % (d["id"], i) for d in registered for i in range(d["count"])]
    report.check("each has its slices", sorted(plugin.devices["slices"]) == sorted(want))


def test_process(node, report, plugin, name, rows):
    """What a process is refused, and how long an answer takes."""
    uuid = plugin.devices["registered"][0]["id"]
    start = time.monotonic()
    answer = plugin.ask("bind %s %s %d 30" % (name, uuid, MEMORY_MIB))
    took_ms = (time.monotonic() - start) * 1000
    if not report.check("%s: Allocate answers" % name, answer.get("status") == 0, str(answer)):
        return None
    done = plugin.run(answer, [node.program("client"), "linked"], "primary 0\nfill %dm\n" % BLOCK_MIB)
    said = dict(w.split("=", 1) for w in done.stdout.split() if "=" in w)
    count = int(said.get("count", -1))
    rows.append((name, count, "%.0f" % took_ms, " ".join(answer["devices"])))
    report.check("%s: a process in it is refused beyond its quota" % name,
                 0 < count * BLOCK_MIB < MEMORY_MIB and count * BLOCK_MIB > MEMORY_MIB - 2 * GIB // MIB,
                 done.stdout + done.stderr)
    smi = shutil.which("nvidia-smi", path=node.env()["PATH"])
    if smi and not node.is_sim:
        done = plugin.run(answer, [smi, "--query-gpu=memory.total", "--format=csv,noheader,nounits"])
        report.check("%s: nvidia-smi shows the slice" % name, done.stdout.strip() == str(MEMORY_MIB),
                     done.stdout + done.stderr)
    return answer


def test_mode(node, report, build, mode, rows):
    plugin = Plugin(node, build, mode)
    if not report.check("the plugin in mode %s registers" % mode, "registered" in plugin.devices):
        return
    if mode == "hami-core":
        test_inventory(node, report, plugin)
    answer = test_process(node, report, plugin, mode, rows)
    if answer and mode == "mps":
        pipe = "%s/mps/%s/pipe" % (plugin.devices["folder"], plugin.devices["registered"][0]["id"])
        with open(pipe + "/nvidia-cuda-mps-control.pid", encoding="ascii") as file:
            daemon = int(file.read())
        os.kill(daemon, 0)
        report.check("its process is under the control daemon",
                     answer["envs"].get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == "30", str(answer["envs"]))
        plugin.ask("unbind " + mode)
        report.check("the daemon of no client ends", ends(daemon), str(daemon))
    report.check("the plugin in mode %s ends" % mode, plugin.end() == 0)


def ends(pid):
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_plugin(node, report):
    report.section("plugin: its devices, its answers, processes in them")
    build = os.environ.get("VGPU_PLUGIN_BUILD", node.build)
    if not os.path.exists(os.path.join(build, "tests/plugin/grant-one")):
        report.skip("plugin", "it is not built here")
        return
    if os.geteuid():
        report.skip("plugin", "it takes root")
        return
    rows = []
    for mode in ("hami-core", "mps"):
        if mode == "mps" and not node.is_sim and not shutil.which("nvidia-cuda-mps-control"):
            report.skip("mps", "there is no nvidia-cuda-mps-control")
            continue
        test_mode(node, report, build, mode, rows)
    report.table(("mode", "blocks of %d MiB" % BLOCK_MIB, "ms, with the reservation", "files"), rows)
