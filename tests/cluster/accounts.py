#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""accounts.py BUILD [SECONDS] [empty|swept]: whether all accounts of a cluster agree, inside of it (e2e.sh).

What pods were promised by their annotations = what each scheduler counts = the share files of the plugins = what monitors
compare processes with; and what monitors show as used = what the simulated machines gave. The cluster has SECONDS to become quiet.
empty: no pod has a slice, and no device is used. swept: and no file of a slice is left on a node, which takes plugins six minutes."""

import collections
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from server import FOLDER, Api

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scheduler"))
import auditor  # noqa: E402

SPACE = "gpu-system"
MIB = 1 << 20
SAMPLE = re.compile(r"^([a-z_]+)\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def disk_of(node):
    return pathlib.Path(FOLDER) if node == "node1" else pathlib.Path(FOLDER, "nodes", node)


def machine_of(node):
    return str(disk_of(node) / "sim" / "machine")


def simulate(build, node, *words):
    said = subprocess.run([f"{build}/sim/tool/vgpu-sim", *words], env={**os.environ, "VGPU_SIM_STATE": machine_of(node)},
                          capture_output=True, text=True, check=True).stdout
    return json.loads(said) if "--json" in words else said


def is_ready(item):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", []))


def samples(pod, port):
    """{family: [(labels, value)]}, of one of our programs' pods."""
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    found = collections.defaultdict(list)
    for name, labels, value in SAMPLE.findall(text):
        found[name].append((dict(LABEL.findall(labels)), float(value)))
    return found


class Accounts:
    def __init__(self, build):
        self.build, api = build, Api()
        self.nodes = api.must("GET", "/api/v1/nodes")["items"]
        everything = api.must("GET", "/api/v1/pods")["items"]
        self.pods = [pod for pod in everything if auditor.asks(pod)]
        own = [pod for pod in everything if pod["metadata"]["namespace"] == SPACE and not pod["metadata"].get("deletionTimestamp")]
        self.own = {part: [pod for pod in own if pod["metadata"]["labels"].get("app.kubernetes.io/component") == part]
                    for part in ("scheduler", "device-plugin")}
        self.bound = [pod for pod in self.pods if auditor.is_bound(pod)]
        self.found = auditor.audit(self.nodes, self.pods)

    def equal(self, what, is_, should_be):
        for key in sorted(set(is_) | set(should_be), key=str):
            if is_.get(key) != should_be.get(key):
                self.found.append(f"{what}: {key} is {is_.get(key)}, should be {should_be.get(key)}")

    def compare_books(self):
        promised = {(pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"]["nodeName"], uuid): amount[1:]
                    for pod in self.bound for uuid, amount in auditor.holds(pod).items()}
        for pod in self.own["scheduler"]:
            told, books = samples(pod, 9395), {}
            for family, at, unit in (("hami_vgpu_memory_allocated_bytes", 0, MIB), ("hami_vgpu_core_allocated_ratio", 1, 1)):
                for labels, value in told[family]:
                    key = tuple(labels[name] for name in ("namespace", "pod", "node", "device_uuid"))
                    books.setdefault(key, [None, None])[at] = int(value) // unit
            self.equal(f"books of {pod['metadata']['name']}", {key: tuple(row) for key, row in books.items()}, promised)

    def slots(self, node):
        """{folder of a container: {uuid: MiB}}, of containers that run."""
        begun = {}
        for pod in self.bound:
            if pod["spec"]["nodeName"] != node:
                continue
            names = [one["name"] for one in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]]
            status = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
            running = {one["name"] for one in status if "running" in one["state"]}
            for name, (_, slot) in zip(names, auditor.slots_of(pod)):
                if slot and name in running:
                    begun[f"{pod['metadata']['uid']}_{name}"] = {uuid: memory for uuid, memory, _ in slot}
        return begun

    def with_wishes(self, whole, shares):
        """What shares are to say: a slice that was made smaller than what it holds is allocated that until it gives it back."""
        wished = {}
        for pod in self.bound:
            wish = json.loads(pod["metadata"].get("annotations", {}).get("cantaloupe.io/resize") or "{}")
            for name, amounts in wish.items():
                wished[f"{pod['metadata']['uid']}_{name}"] = amounts.get("gpumem", float("inf"))
        return {folder: {uuid: wished[folder] if folder in wished and shares.get(folder, {}).get(uuid) == wished[folder] < memory else memory
                         for uuid, memory in slot.items()} for folder, slot in whole.items()}

    def compare_node(self, node):
        name = node["metadata"]["name"]
        rows = json.loads(node["metadata"].get("annotations", {}).get(auditor.PREFIX + "node-nvidia-register") or "[]")
        self.found += [f"{row['id']} of {name} is not healthy" for row in rows if not row["health"]]
        cut = {row["id"] for row in rows if row.get("mode") == "mig"}
        begun = self.slots(name)
        whole = {folder: slot for folder, slot in begun.items() if not set(slot) & cut}
        shares = {}
        for path in (disk_of(name) / "host-var-lib-cantaloupe" / "shares").glob("*/share"):
            words = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
            shares[path.parent.name] = {line[1]: int(line[3]) // MIB for line in words if line[0] == "device"}
        self.equal(f"shares of {name}", {folder: slot for folder, slot in shares.items() if folder in whole},
                   self.with_wishes(whole, shares))
        self.compare_instances(name)
        monitors = [pod for pod in self.own["device-plugin"] if pod["spec"]["nodeName"] == name]
        if [is_ready(pod) for pod in monitors] != [True]:
            self.found.append(f"{name} has {len(monitors)} pods of ours, or one that is not ready")
            return
        self.compare_machine(name, {row["id"]: row.get("index", 0) for row in rows}, cut, samples(monitors[0], 9394))

    def compare_instances(self, name):
        given = collections.Counter()
        for pod in self.bound:
            if pod["spec"]["nodeName"] == name:
                for one in json.loads(pod["metadata"]["annotations"].get(auditor.PREFIX + "vgpu-mig-allocations") or "[]"):
                    given[(one["gpuUUID"], one["placement"]["start"], one["placement"]["size"])] += 1
        uuids = {one.get("index", 0): one["id"] for node in self.nodes if node["metadata"]["name"] == name for one in
                 json.loads(node["metadata"]["annotations"].get(auditor.PREFIX + "node-nvidia-register") or "[]")}
        made = collections.Counter((uuids.get(card["index"]), one["start"], one["size"])
                                   for card in simulate(self.build, name, "mig", "--json") for one in card["instances"])
        self.equal(f"instances of {name}", made, given)

    def compare_machine(self, name, indices, cut, told):
        used, held = collections.Counter(), collections.Counter()
        promised = {(pod["metadata"]["name"], uuid): amount[1] * MIB for pod in self.bound if pod["spec"]["nodeName"] == name
                    for uuid, amount in auditor.holds(pod).items()}
        for labels, value in told["vgpu_container_quota_bytes"]:
            if value != promised.get((labels["pod"], labels["device_uuid"])):
                self.found.append(f"monitors compare {labels} with {value}")
        for labels, value in told["vgpu_slice_memory_used_bytes"]:
            used[indices.get(labels["device_uuid"])] += int(value)
        truth = simulate(self.build, name, "truth", "--json")
        for process in truth["processes"]:
            held[process["device"]] += process["held_bytes"]
        for uuid, index in indices.items():
            if uuid not in cut and used[index] != held[index]:
                self.found.append(f"device {index} of {name} holds {held[index]} bytes, and monitors show {used[index]}")
        for labels, value in told["vgpu_container_is_violating"]:
            if value:
                self.found.append(f"{labels} on {name} is said to violate")

    def find_users(self):
        self.found += [f"{pod['metadata']['name']} is still there" for pod in self.pods]
        for node in self.nodes:
            name = node["metadata"]["name"]
            self.found += [f"{name} has a process {row}" for row in simulate(self.build, name, "truth", "--json")["processes"]]
            if auditor.PREFIX + "mutex.lock" in node["metadata"].get("annotations", {}):
                self.found.append(f"{name} has still a lock")

    def find_files(self):
        for node in self.nodes:
            name = node["metadata"]["name"]
            kept = disk_of(name) / "host-var-lib-cantaloupe"
            folders = [*kept.glob("shares/*"), *kept.glob("containers/*"), *(disk_of(name) / "host-usr-local-vgpu").glob("containers/*"),
                       *turns_of(name).glob("*/*")]
            self.found += [f"{path} is left on {name}" for path in folders]


def turns_of(node):
    first = pathlib.Path(FOLDER, "nodes", node, "first")
    root = f"/proc/{first.read_text(encoding='utf-8').strip()}/root" if node != "node1" else ""
    return pathlib.Path(f"{root}/run/cantaloupe/turns")


def find(build, state=""):
    """What does not agree, a sentence each."""
    try:
        accounts = Accounts(build)
        accounts.compare_books()
        for node in accounts.nodes:
            if is_ready(node):
                accounts.compare_node(node)
            else:
                accounts.found.append(f"{node['metadata']['name']} is not ready")
        if state:
            accounts.find_users()
        if state == "swept":
            accounts.find_files()
        return accounts.found
    except (OSError, http.client.HTTPException, AssertionError, KeyError, subprocess.CalledProcessError) as error:
        return [f"the accounts are not to be had: {error!r}"]


def settle(build, seconds, state=""):
    """The same, when the cluster had SECONDS to become quiet; it is asked twice, so that no instant passes for quiet."""
    until, quiet = time.monotonic() + seconds, 0
    while True:
        found = find(build, state)
        quiet = 0 if found else quiet + 1
        if quiet == 2 or (found and time.monotonic() > until):
            return found
        time.sleep(0.5)


def main():
    found = settle(sys.argv[1], float((sys.argv[2:] or ["20"])[0]), (sys.argv[3:] or [""])[0])
    print("\n".join(found) or "all accounts agree")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
