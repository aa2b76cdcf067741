# SPDX-License-Identifier: Apache-2.0
"""A node with slices that live, vgpu-monitor on it with its page, and what asks for it."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

SUSPENDED, HELD_BACK = 2, 4


def request(port, path, method="GET", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def start(command, environment, mark):
    """The program, when it has said so in its log: the process and the port that stands there."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(mark + r".* port=(\d+)", line)
        if found:
            return process, int(found[1]), lines
    raise AssertionError("".join(lines))


def stop(process):
    process.terminate()
    code = process.wait(20)
    process.stderr.close()
    if code:
        raise AssertionError(f"it ended with {code}")


class Node:
    """BINARIES are the monitor, make_slices, and the simulated NVML."""

    def __init__(self, binaries, board="h200x2", flags=("--http=127.0.0.1:0",), metrics="", environment=None):
        self.binaries = binaries
        self.place = tempfile.TemporaryDirectory(prefix="vgpu-web-")
        self.hook = pathlib.Path(self.place.name)
        self.state_file = str(self.hook / "machine")
        known = {name: value for name, value in os.environ.items() if name not in ("NODE_NAME", "HOOK_PATH", "KUBECONFIG")}
        self.environment = {**known, "VGPU_SIM_STATE": self.state_file, "VGPU_SIM_BOARD": board,
                            "VGPU_STATE": str(self.hook / "state"), **(environment or {})}
        mark = "metrics are served" if metrics else "the page is served"
        self.process, self.port, self.lines = start(
            [binaries[0], f"--metrics-bind-address={metrics}", f"--hook-path={self.hook}", f"--nvml={binaries[2]}", *flags],
            self.environment, mark)
        self.maker = None

    def ask(self, path="/state.json", **more):
        return request(self.port, path, **more)

    def state(self):
        status, _, text = self.ask()
        assert status == 200, text
        return json.loads(text)

    def gpus(self):
        return self.state()["nodes"][0]["gpus"]

    def add(self, slices):
        """Each is a dict: pod, container, uuid, and figures by the names below."""
        self.maker = subprocess.Popen([self.binaries[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for item in slices:
            folder = self.hook / "containers" / f"{item['pod']}_{item.get('container', 'main')}"
            folder.mkdir(parents=True, exist_ok=True)
            figures = [item.get(name, 0) for name in ("used", "quota", "cores", "cap", "busy", "cap_wait", "turn_wait", "borrowed",
                                                      "refusals", "state")]
            print(folder / "x.cache", item["uuid"], *figures, file=self.maker.stdin)
        self.say("go")

    def say(self, words):
        print(words, file=self.maker.stdin, flush=True)
        assert self.maker.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.maker:
            self.maker.stdin.close()
            self.maker.stdout.close()
            self.maker.wait()
        stop(self.process)
        self.place.cleanup()


def some_slices(uuids):
    """What a node looks like on a day of work."""
    return [
        {"pod": "train-llm-0", "container": "trainer", "uuid": uuids[0], "used": 61000, "quota": 71680, "cores": 500, "cap": 0, "busy": 540,
         "turn_wait": 320, "borrowed": 60},
        {"pod": "inference-7c9f4d9b6-x2k8p", "container": "server", "uuid": uuids[0], "used": 18300, "quota": 24576, "cores": 250, "cap": 300,
         "busy": 296, "cap_wait": 410, "refusals": 3},
        {"pod": "notebook-ada", "uuid": uuids[0], "used": 512, "quota": 16384, "cores": 100, "cap": 200},
        {"pod": "batch-embed-5", "container": "worker", "uuid": uuids[1], "used": 7900, "quota": 8192, "cores": 300, "cap": 0, "busy": 120,
         "state": HELD_BACK},
        {"pod": "eval-nightly", "uuid": uuids[1], "used": 4000, "quota": 40960, "state": SUSPENDED, "cores": 200},
    ]


def many_slices(gpus):
    """Eight on each, with names as long as they may be."""
    return [{"pod": f"{g}-{s}-a-rather-long-name-of-a-deployment-that-somebody-gave-it"[:26 + 5 * s],
             "container": "container-" + "c" * 53, "uuid": gpu["uuid"], "used": 2000 * (s + 1), "quota": 2200 * (s + 1), "cores": 125, "cap": 250,
             "busy": 20 * s + 10 * g, "turn_wait": 15 * s, "cap_wait": 40 * (s % 3), "refusals": s % 2}
            for g, gpu in enumerate(gpus) for s in range(8)]


def wait_for(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"{what} did not come within {seconds} s")
        time.sleep(0.05)
