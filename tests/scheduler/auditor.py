#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the books of a cluster balance, from what its API says alone: `audit(nodes, pods, quotas)` gives what is wrong.

auditor.py [NODES PODS] reads two lists as `kubectl get -o json` prints them, from files or by kubectl itself. It counts by itself
what bound pods hold of each device and of its instances; and a pod that waits for its devices has its node's lock."""

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


def have_inits_ended(pod):
    """Sidecars do not end."""
    ended = [one["name"] for one in pod.get("status", {}).get("initContainerStatuses", [])
             if one.get("state", {}).get("terminated", {}).get("exitCode") == 0]
    return all(one["name"] in ended for one in pod["spec"].get("initContainers", []) if one.get("restartPolicy") != "Always")


def holds(pod):
    """{uuid: (slots, memory, cores)}: the most of any moment of its life that is still to come."""
    rows, moments, beside, is_begun = slots_of(pod), [], [], have_inits_ended(pod)
    for kind, slot in rows:
        if kind == "init":
            moments.append([] if is_begun else beside + slot)
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


def instances_of(pod):
    """(uuid, the places that it has) of each."""
    rows = json.loads(pod["metadata"].get("annotations", {}).get(PREFIX + "vgpu-mig-allocations") or "[]")
    return [(row["gpuUUID"], range(row["placement"]["start"], row["placement"]["start"] + row["placement"]["size"])) for row in rows]


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


def audit_instances(node, pods):
    """Those of one pod may be the same: its init containers' are there until it is gone. Of devices in MIG mode all is in instances."""
    found, taken = [], {}
    rows = json.loads(node["metadata"].get("annotations", {}).get(PREFIX + "node-nvidia-register") or "[]")
    cut = {row["id"]: row for row in rows if row.get("mode") == "mig"}
    for pod in pods:
        if not is_bound(pod) or pod["spec"]["nodeName"] != node["metadata"]["name"]:
            continue
        name, mine = pod["metadata"]["name"], instances_of(pod)
        given = sorted(one[0] for _, slot in slots_of(pod) for one in slot if one[0] in cut)
        if sorted(uuid for uuid, _ in mine) != given:
            found.append(f"{name} has parts of {given}, and instances {mine}")
        for uuid, places in mine:
            known = [range(place["start"], place["start"] + place["size"])
                     for one in cut.get(uuid, {}).get("migProfiles", []) for place in one["placements"]]
            if known and places not in known:
                found.append(f"{name} has an instance at {places} of {uuid}, which has none there")
        for uuid, place in {(uuid, place) for uuid, places in mine for place in places}:
            if (uuid, place) in taken:
                found.append(f"{name} and {taken[uuid, place]} have the place {place} of {uuid}")
            taken[uuid, place] = name
    return found


def audit_quota(quota, pods):
    """Of memory, which counts as the devices' books have it."""
    space, hard = quota["metadata"]["namespace"], quota["spec"].get("hard", {}).get("limits.nvidia.com/gpumem")
    held = [(pod["metadata"]["name"], sum(memory for _, memory, _ in holds(pod).values())) for pod in pods
            if is_bound(pod) and pod["metadata"].get("namespace") == space]
    if hard is None or sum(memory for _, memory in held) <= int(hard):
        return []
    return [f"the quota of {space} is {hard} MiB, and is exceeded by {held}"]


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


def audit(nodes, pods, quotas=()):
    """What is wrong, a sentence each."""
    return [words for node in nodes for words in audit_devices(node, pods) + audit_instances(node, pods) + audit_lock(node, pods)] + \
        [words for quota in quotas for words in audit_quota(quota, pods)] + [words for pod in pods for words in audit_pod(pod)]


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
