#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the books of a cluster balance, from what its API says alone: `audit(nodes, pods)` gives what is wrong.

auditor.py [NODES PODS] reads two lists as `kubectl get -o json` prints them, from files or by kubectl itself. It counts by itself
what bound pods hold of each device; and a pod that waits for its devices has its node's lock."""

import json
import subprocess
import sys

PREFIX = "hami.io/"


def slots_of(pod):
    """(kind, [(uuid, memory, cores)]) of each container; what is over runs beside the others."""
    text = pod["metadata"].get("annotations", {}).get(PREFIX + "vgpu-devices-allocated", "")
    slots = [[(one.split(",")[0], int(one.split(",")[2]), int(one.split(",")[3])) for one in slot.split(":") if "," in one]
             for slot in text.split(";")[:-1]]
    kinds = ["sidecar" if c.get("restartPolicy") == "Always" else "init" for c in pod["spec"].get("initContainers", [])]
    return list(zip(kinds + ["app"] * len(slots), slots))


def holds(pod):
    """{uuid: (slots, memory, cores)}: the most of any moment of its life."""
    rows, moments, beside = slots_of(pod), [], []
    for kind, slot in rows:
        if kind == "init":
            moments.append(beside + slot)
        elif kind == "sidecar":
            beside = beside + slot
    moments.append(beside + [one for kind, slot in rows if kind == "app" for one in slot])
    most = {}
    for moment in moments:
        for uuid in {one[0] for one in moment}:
            mine = [one for one in moment if one[0] == uuid]
            now = (len(mine), sum(one[1] for one in mine), sum(one[2] for one in mine))
            most[uuid] = tuple(map(max, zip(most.get(uuid, (0, 0, 0)), now)))
    return most


def is_bound(pod):
    return pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def asks(pod):
    return any("nvidia.com/gpu" in (c.get("resources", {}).get("limits") or {})
               for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"])


def audit_devices(node, pods):
    name, found = node["metadata"]["name"], []
    rows = json.loads(node["metadata"].get("annotations", {}).get(PREFIX + "node-nvidia-register") or "[]")
    held = {}
    for pod in pods:
        if is_bound(pod) and pod["spec"]["nodeName"] == name:
            for uuid, amount in holds(pod).items():
                held.setdefault(uuid, []).append((pod["metadata"]["name"], amount))
    for row in rows:
        mine = held.pop(row["id"], [])
        sums = [sum(amount[at] for _, amount in mine) for at in range(3)]
        if any(is_ > limit for is_, limit in zip(sums, (row["count"], row["devmem"], row.get("devcore", 0)))):
            found.append(f"{row['id']} of {name} is over-booked: slots, memory, cores are {sums} of {mine}")
    return found + [f"{name} has no {uuid}, which is held by {mine}" for uuid, mine in held.items()]


def audit_pod(pod):
    name, annotations, found = pod["metadata"]["name"], pod["metadata"].get("annotations", {}), []
    if not is_bound(pod) or not asks(pod):
        return []
    if annotations.get(PREFIX + "vgpu-node") != pod["spec"]["nodeName"]:
        found.append(f"{name} runs on {pod['spec']['nodeName']}, and its devices are on {annotations.get(PREFIX + 'vgpu-node')}")
    if annotations.get(PREFIX + "bind-phase") not in ("allocating", "success"):
        found.append(f"{name} is bound in the phase {annotations.get(PREFIX + 'bind-phase')}")
    containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
    wanted = [int((c.get("resources", {}).get("limits") or {}).get("nvidia.com/gpu", 0)) for c in containers]
    given = [len(slot) for _, slot in slots_of(pod)]
    if wanted != given:
        found.append(f"{name} wants {wanted} devices in its containers, and has {given}")
    return found


def audit_lock(node, pods):
    """The lock says whose devices are handed out next. One that is left behind is for the next bind to judge."""
    name, lock = node["metadata"]["name"], node["metadata"].get("annotations", {}).get(PREFIX + "mutex.lock", "")
    return [f"{pod['metadata']['name']} waits for its devices on {name}, which has the lock {lock or 'of nobody'}" for pod in pods
            if is_bound(pod) and pod["spec"]["nodeName"] == name and asks(pod)
            and pod["metadata"].get("annotations", {}).get(PREFIX + "bind-phase") == "allocating"
            and lock.split(",")[1:] != [pod["metadata"].get("namespace"), pod["metadata"]["name"]]]


def audit(nodes, pods):
    """What is wrong, a sentence each."""
    return [words for node in nodes for words in audit_devices(node, pods) + audit_lock(node, pods)] + \
        [words for pod in pods for words in audit_pod(pod)]


def read(what, path):
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["items"]
    command = ["kubectl", "get", what, "--all-namespaces", "-o", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["items"]


def main():
    paths = sys.argv[1:3] if sys.argv[2:] else (None, None)
    found = audit(read("nodes", paths[0]), read("pods", paths[1]))
    print("\n".join(found) or "the books balance")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
