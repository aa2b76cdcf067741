#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py BUILD MINUTES SEED [REPORT]: random pods and random faults on the nodes of group soak, inside the cluster (e2e.sh).

Each minute faults are mended, and when the cluster is quiet all accounts must agree (accounts.py), each pod must run, or wait with
a reason, and none may be lost. REPORT is the file that the result is written to."""

import collections
import datetime
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import accounts
from server import Api

PODS = "/api/v1/namespaces/default/pods"
NODES = ("node1", "node2", "node3")
CARDS = {"node1": 2, "node2": 1, "node3": 4}
DAEMONS = {"vgpu-scheduler": "vgpu-scheduler", "vgpu-device-plu": "vgpu-device-plugin", "vgpu-monitor": "vgpu-monitor"}
PODS_AT_ONCE = 14
SWEPT_S = 400  # files of pods that are gone stay for six minutes at the most (docs/plugin.md); the rest is for asking
QUIET_S = 90  # a node that comes back takes half of it


def processes(*names):
    """[(pid, name, node)] of the programs of pods, by the cgroups that a node has."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text(encoding="utf-8").strip()
            groups = (folder / "cgroup").read_text(encoding="utf-8")
        except OSError:
            continue
        if name in names and "kubepods" in groups:
            node = next((one for one in NODES if f"/{one}/" in groups), "node1")
            found.append((int(folder.name), name, node))
    return found


def memory_of(pid):
    """(MiB, age in seconds)"""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    began = int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024, time.clock_gettime(time.CLOCK_BOOTTIME) - began


def cluster(*words):
    """An order, which waits 30 s; on a busy machine it is carried out later than that."""
    subprocess.run([os.environ["CLUSTER"], *words], check=False)


def on(program, node):
    return program if node == "node1" else f"{program}@{node}"


def why_refused(status):
    """In words that are the same for all pods."""
    said = status.get("message", "")
    found = re.search(r"desc = (.*), which", said) or re.search(r"due to (.*), which", said)
    return re.sub(r"(MIG|GPU)-[0-9a-f-]+|\d+(:\d+)?", "n", found.group(1) if found else status.get("reason", "no reason"))


class Soak:
    def __init__(self, build, minutes, seed):
        self.build, self.seed, self.random = build, seed, random.Random(seed)
        self.began = time.monotonic()
        self.ends = self.began + minutes * 60
        self.api, self.counts, self.findings = Api(), collections.Counter(), []
        self.pods, self.number = {}, 0
        self.mends = {}  # what is broken, a node or "apiserver": (when, how it is mended)
        self.slowest = 0.0

    def say(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def call(self, method, path, body=None, kind="application/json"):
        for _ in range(120):
            try:
                status, answer = self.api.ask(method, path, body, kind)
                if status < 500 or "webhook" in answer.get("message", ""):
                    return status, answer
            except (OSError, http.client.HTTPException, ValueError):
                self.api = Api()
            time.sleep(0.5)
        raise AssertionError("the API server is away for a minute")

    # Pods

    def request(self):
        """(limits, annotations)"""
        draw = self.random
        kind = draw.choice(("part", "part", "part", "percent", "pair", "mig", "mps", "whole"))
        self.counts[f"pods: {kind}"] += 1
        limits = {"gpu": 1, "gpumem": draw.randrange(1000, 20000, 100), "gpucores": draw.choice((0, 0, 10, 30, 60))}
        notes = {}
        if kind == "percent":
            limits = {"gpu": 1, "gpumem-percentage": draw.randrange(5, 60), "gpucores": 10}
        elif kind == "pair":
            limits["gpu"] = 2
        elif kind == "whole":
            limits = {"gpu": 1, "gpumem-percentage": 100, "gpucores": 100}
        elif kind == "mig":
            limits, notes = {"gpu": 1, "gpumem": draw.choice((5000, 9000, 19000, 39000))}, {"nvidia.com/vgpu-mode": "mig"}
        elif kind == "mps":
            limits["gpumem"] = draw.randrange(1000, 9000, 100)
            notes = {"nvidia.com/vgpu-mode": "mps"}
        return limits, notes

    def create(self):
        self.number += 1
        name, (limits, notes), draw = f"soak-{self.number}", self.request(), self.random
        blocks = draw.randrange(0, max(1, min(8, (limits.get("gpumem", 2000) - 900) // 256)))
        is_short = draw.random() < 0.3
        once = f"tenant --blocks {blocks} --hold {draw.randrange(100, 3000)}"
        environment = {"LD_LIBRARY_PATH": "/usr/lib/sim", "VGPU_SIM_STATE": "/sim/machine", "VGPU_SIM_TAG": name}
        status, said = self.call("POST", PODS, {
            "metadata": {"name": name, "annotations": notes, "labels": {"case": "soak"}},
            "spec": {"restartPolicy": "Never" if is_short else "Always", "terminationGracePeriodSeconds": draw.choice((0, 0, 1, 5)),
                     "volumes": [{"name": "sim", "hostPath": {"path": f"{accounts.FOLDER}/sim"}}],
                     "containers": [{
                         "name": "main", "image": "local.test/tenant:1", "imagePullPolicy": "Never",
                         "command": ["sh", "-c", once if is_short else f"while sleep 1; do tenant --blocks {blocks} --hold 600000; done"],
                         "env": [{"name": key, "value": value} for key, value in environment.items()],
                         "volumeMounts": [{"name": "sim", "mountPath": "/sim"}],
                         "resources": {"limits": {f"nvidia.com/{key}": str(value) for key, value in limits.items()}}}]}})
        if status == 201:
            self.pods[name] = limits
            self.counts["pods: created"] += 1
        else:  # no replica of the webhook is there: as it is told to fail
            self.counts["pods: refused, as the webhook was away"] += 1
            if "webhook" not in said.get("message", ""):
                self.findings.append(f"{name} was refused: {status} {said.get('message')}")
        return name

    def delete(self, name):
        self.pods.pop(name, None)
        self.call("DELETE", f"{PODS}/{name}")
        self.counts["pods: deleted"] += 1

    def resize(self, name):
        limits = self.pods[name]
        wish = {"gpumem": int(limits.get("gpumem", 4000) * self.random.uniform(0.5, 1.2)), "gpucores": self.random.choice((0, 10, 30))}
        self.call("PATCH", f"{PODS}/{name}", {"metadata": {"annotations": {"cantaloupe.io/resize": json.dumps({"main": wish})}}},
                  "application/merge-patch+json")
        self.counts["resizes"] += 1

    def act(self):
        if "apiserver" in self.mends:
            return
        chance = self.random.random()
        if len(self.pods) < PODS_AT_ONCE and chance < 0.55:
            self.create()
        elif self.pods and chance < 0.85:
            self.delete(self.random.choice(sorted(self.pods)))
        elif self.pods:
            self.resize(self.random.choice(sorted(self.pods)))

    # Faults

    def kill(self, comm):
        rows = [row for row in processes(comm) if row[2] not in self.mends]
        if not rows:
            return False
        pid, _, node = self.random.choice(rows)
        os.kill(pid, signal.SIGKILL)
        self.say(f"{comm} of {node} is killed")
        return True

    def breaks(self, what, seconds, mend):
        self.mends[what] = (time.monotonic() + seconds, mend)
        return True

    def a_kubelet(self):
        node = self.random.choice(NODES)
        if node in self.mends:
            return False
        cluster("stop", on("kubelet", node), "KILL")
        self.say(f"the kubelet of {node} is killed")
        return self.breaks(node, self.random.uniform(0, 15), lambda: cluster("start", on("kubelet", node)))

    def the_api_server(self):
        if "apiserver" in self.mends:
            return False
        cluster("stop", "apiserver", "KILL")
        self.say("the API server is killed")
        return self.breaks("apiserver", self.random.uniform(0, 8), lambda: cluster("start", "apiserver"))

    def a_node(self):
        node = self.random.choice(NODES[1:])
        if node in self.mends or "apiserver" in self.mends:
            return False
        cluster("stop", node, "KILL")
        self.say(f"{node} is lost")
        return self.breaks(node, self.random.uniform(0, 40), lambda: cluster("start", node))

    def a_card(self):
        node = self.random.choice(NODES)
        if node in self.mends:
            return False
        index = str(self.random.randrange(CARDS[node]))
        accounts.simulate(self.build, node, "card", "lose", "--device", index)
        self.say(f"card {index} of {node} is lost")
        return self.breaks(node, self.random.uniform(1, 15),
                           lambda: accounts.simulate(self.build, node, "card", "return", "--device", index))

    def an_allocate(self):
        """Pods are deleted while a plugin does not answer for them."""
        rows = [row for row in processes("vgpu-device-plu") if row[2] not in self.mends]
        if not rows or "apiserver" in self.mends:
            return False
        pid, _, node = self.random.choice(rows)
        os.kill(pid, signal.SIGSTOP)
        try:
            names = [self.create() for _ in range(2)]
            time.sleep(self.random.uniform(0.5, 3))
            for name in names:
                if name in self.pods:
                    self.delete(name)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.say(f"the plugin of {node} was stopped while pods came and went")
        return True

    def break_something(self):
        faults = {"plugin killed": lambda: self.kill("vgpu-device-plu"), "scheduler killed": lambda: self.kill("vgpu-scheduler"),
                  "kube-scheduler killed": lambda: self.kill("kube-scheduler"), "monitor killed": lambda: self.kill("vgpu-monitor"),
                  "kubelet killed": self.a_kubelet, "API server killed": self.the_api_server, "node lost": self.a_node,
                  "card lost": self.a_card, "pods deleted while Allocate runs": self.an_allocate}
        name = self.random.choice(sorted(faults))
        if faults[name]():
            self.counts[f"faults: {name}"] += 1

    def mend(self, is_all=False):
        # the API server first: kubelets begin with it
        for what in sorted(self.mends, key=lambda one: one != "apiserver"):
            due, mend = self.mends[what]
            if is_all or time.monotonic() > due:
                mend()
                del self.mends[what]
                self.say(f"{what} is mended")

    # Quiet points

    def unsettled(self):
        """What is wrong with pods by themselves; those that are over are put away."""
        items = {pod["metadata"]["name"]: pod for pod in
                 self.call("GET", f"{PODS}?labelSelector=case%3Dsoak")[1]["items"]}
        wrong = [f"{name} is lost" for name in self.pods if name not in items]
        for name, pod in items.items():
            status, phase = pod["status"], pod["status"].get("phase")
            if name not in self.pods:
                wrong.append(f"{name} was deleted, and is {phase}")
            elif phase in ("Succeeded", "Failed"):
                is_over = phase == "Succeeded" or pod["spec"]["restartPolicy"] == "Never" and "reason" not in status
                self.counts["pods: ran to their end" if is_over else f"pods: refused by the kubelet: {why_refused(status)}"] += 1
                self.delete(name)
                wrong.append(f"{name} was put away")
            elif not pod["spec"].get("nodeName"):
                if not any(one["type"] == "PodScheduled" and one.get("message") for one in status.get("conditions", [])):
                    wrong.append(f"{name} waits without a reason")
            elif not any(one["state"].get("running") for one in status.get("containerStatuses", [])):
                wrong.append(f"{name} does not run: {status.get('containerStatuses')}")
        return wrong

    def quiet_point(self, state="", seconds=QUIET_S):
        self.mend(True)
        began, waited_for = time.monotonic(), []
        while True:
            wrong = self.unsettled() or accounts.settle(self.build, 2, state)
            took = time.monotonic() - began
            if not wrong or took > seconds:
                break
            waited_for = wrong
            time.sleep(0.5)
        self.counts["quiet points"] += 1
        self.slowest = max(self.slowest, took if state != "swept" else 0)
        self.say(f"quiet after {took:.1f} s: {len(self.pods)} pods, {'all accounts agree' if not wrong else wrong}"
                 + (f"; it waited for {waited_for}" if took > 30 and not wrong else ""))
        if wrong:
            self.findings += [f"at {time.monotonic() - self.began:.0f} s: {one}" for one in wrong]
            self.keep_evidence()

    def keep_evidence(self):
        with open(f"{accounts.FOLDER}/log/soak-{len(self.findings)}", "w", encoding="utf-8") as file:
            for command in ("kubectl get pods -A -o wide", "kubectl get nodes -o yaml", "kubectl get pods -o yaml",
                            f"kubectl logs -n {accounts.SPACE} --all-containers --prefix --tail=400 -l app.kubernetes.io/instance=vgpu"):
                file.write(subprocess.run(command.split(), capture_output=True, text=True, check=False).stdout)

    def memory(self):
        """[(program, node, MiB, age)]"""
        return sorted((DAEMONS[name], node, *memory_of(pid)) for pid, name, node in processes(*DAEMONS))

    def run(self):
        self.say(f"seed {self.seed}")
        self.first = self.memory()
        next_fault = next_quiet = time.monotonic()
        while time.monotonic() < self.ends:
            next_quiet = time.monotonic() + 60
            while time.monotonic() < min(next_quiet, self.ends):
                self.act()
                self.mend()
                if time.monotonic() > next_fault:
                    self.break_something()
                    next_fault = time.monotonic() + self.random.uniform(1, 8)
                time.sleep(self.random.uniform(0.1, 0.8))
            self.quiet_point()
        self.minutes = (time.monotonic() - self.began) / 60
        for name in sorted(self.pods):
            self.delete(name)
        self.quiet_point("empty")
        self.last = self.memory()
        self.quiet_point("swept", SWEPT_S)

    def report(self):
        def mibs(rows, program):
            return ", ".join(f"{row[2]:.1f}" for row in rows if row[0] == program)

        lines = ["# A soak of the whole cluster", "",
                 "`make soak`: three nodes with simulated GPUs of three kinds (two H200; one A100 that is cut into instances; four L4, two of",
                 "them shared by MPS), everything of ours from the Helm chart with two schedulers. Random pods come and go beside random",
                 "faults. Each minute faults are mended, and when the cluster is quiet all accounts are compared: promises, schedulers'",
                 "books, share files, monitors, and what the simulated machines gave.", "",
                 "| | |", "|---|---|", f"| date | {datetime.date.today()} |", f"| seed | {self.seed} |", f"| minutes | {self.minutes:.1f} |",
                 f"| slowest quiet point, seconds | {self.slowest:.0f} |", f"| findings | {len(self.findings)} |"]
        lines += [f"| {name} | {count} |" for name, count in sorted(self.counts.items())]
        lines += ["", "Resident memory, MiB, of each process; those at the end are younger where they were killed or lost their node.", "",
                  "| program | at the start | at the end | age at the end, minutes |", "|---|---|---|---|"]
        for program in sorted(set(DAEMONS.values())):
            ages = ", ".join(f"{row[3] / 60:.0f}" for row in self.last if row[0] == program)
            lines.append(f"| {program} | {mibs(self.first, program)} | {mibs(self.last, program)} | {ages} |")
        return "\n".join(lines + ([""] + [f"- {one}" for one in self.findings] if self.findings else [])) + "\n"


def main():
    soak = Soak(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    soak.run()
    text = soak.report()
    print(text)
    if sys.argv[4:]:
        pathlib.Path(sys.argv[4]).write_text(text, encoding="utf-8")
    return bool(soak.findings)


if __name__ == "__main__":
    sys.exit(main())
