#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAMi's scheduler and device plugin as far as others see them: what they write, and how they read what is written.

theirs.py register VERSION              its plugin registers the node's devices, which are in CLUSTER_FOLDER/their-devices
theirs.py bind POD VERSION SLOTS        its scheduler promises a pod these slots, locks the node and binds it there; a slot for each
                                        container, init containers first, as "GPU-a,NVIDIA,3000,30:;;"
theirs.py allocate IDS...               its plugin's answer to the kubelet, for other-plugin; IDS of a container; it is of the version
                                        that has bound the pod
theirs.py usage                         what pods hold of each device, as its scheduler counts after a restart
theirs.py agree                         whether vgpu-scheduler counts the same, within ten seconds
theirs.py reads POD                     whether it understands a pod that others have bound
theirs.py watch                         a line for each state of the node: registered devices, and slices that the kubelet has

Versions are 2.6, 2.8, 2.9 and 2.10. It is written from the protocol, and shares nothing with the programs that stand beside it."""

import datetime
import json
import os
import pathlib
import re
import struct
import sys
import time
import urllib.request
import uuid

from server import FOLDER, Api

PREFIX = "hami.io/"
ALLOCATED, TO_ALLOCATE = PREFIX + "vgpu-devices-allocated", PREFIX + "vgpu-devices-to-allocate"
NODE, LOCK, REGISTER = PREFIX + "vgpu-node", PREFIX + "mutex.lock", PREFIX + "node-nvidia-register"
PHASE, BIND_TIME, HANDSHAKE = PREFIX + "bind-phase", PREFIX + "bind-time", PREFIX + "node-handshake"
VERSION = "test/version"
NODE_NAME = os.environ.get("THEIR_NODE", "node1")
HOOK = pathlib.Path(FOLDER, "hook", "vgpu")
MIB = 1 << 20
PODS, NODE_PATH = "/api/v1/namespaces/default/pods/", f"/api/v1/nodes/{NODE_NAME}"


class Refused(Exception):
    pass


def annotations(item):
    return item["metadata"].get("annotations", {})


def annotate(api, path, values, **metadata):
    return api.merge(path, {"metadata": {"annotations": values, **metadata}})


def inits(pod):
    return pod["spec"].get("initContainers", [])


def decode(text):
    """Slots of devices (UUID, word, MiB, percent); there is an empty one behind the last semicolon."""
    slots = []
    for slot in text.split(";"):
        devices = [token.split(",") for token in slot.split(":") if "," in token]
        if any(len(fields) < 4 for fields in devices):
            raise Refused(f"{text} has a device with fewer than four fields")
        slots.append([(fields[0], fields[1], int(fields[2]), int(fields[3])) for fields in devices])
    return slots


def encode(slots):
    return "".join("".join(f"{','.join(map(str, device))}:" for device in slot) + ";" for slot in slots)


# ----- the scheduler -----

def written(pod, version, slots):
    """Up to 2.8 there are slots of app containers alone; 2.10 leaves empty ones out."""
    if version in ("2.6", "2.8"):
        slots = slots[len(inits(pod)):]
    if version == "2.10":
        slots = [slot for slot in slots if slot]
    return encode(slots)


def lock_text(pod, version):
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return now if version == "2.6" else f"{now},{pod['metadata']['namespace']},{pod['metadata']['name']}"


def set_lock(api, text, node):
    """False where the node is not as it was read any more: the kubelet writes there, too."""
    body = {"metadata": {"annotations": {LOCK: text}, "resourceVersion": node["metadata"]["resourceVersion"]}}
    status, answer = api.ask("PATCH", NODE_PATH, body, "application/merge-patch+json")
    if status >= 300 and status != 409:
        raise AssertionError(f"the node's lock: {status} {answer.get('message')}")
    return status < 300


def bind(api, name, version, slots):
    """A lock that is there stays as long as its owner wants it."""
    pod = api.must("GET", PODS + name)
    text, now = written(pod, version, decode(slots)[:-1]), str(int(time.time()))
    annotate(api, PODS + name, {NODE: NODE_NAME, PREFIX + "vgpu-time": now, ALLOCATED: text, TO_ALLOCATE: text, VERSION: version},
             labels={NODE: NODE_NAME})
    until = time.monotonic() + 20
    node = api.must("GET", NODE_PATH)
    while LOCK in annotations(node) or not set_lock(api, lock_text(pod, version), node):
        if time.monotonic() > until:
            raise Refused(f"node lock contention: {annotations(node).get(LOCK)}")
        time.sleep(0.1)
        node = api.must("GET", NODE_PATH)
    annotate(api, PODS + name, {PHASE: "allocating", BIND_TIME: now})
    api.must("POST", f"{PODS}{name}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": pod["metadata"]["uid"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME}})


def collapse(pod):
    """{uuid: [slots, MiB, cores]}, as 2.10 counts: init containers first, the most of them or the sum of the others."""
    most, total, count = {}, {}, len(inits(pod))
    for at, slot in enumerate(decode(annotations(pod)[ALLOCATED])):
        for gpu, _, memory, cores in slot:
            if at < count:
                most[gpu] = [1] + [max(pair) for pair in zip(most.get(gpu, (1, 0, 0))[1:], (memory, cores))]
            else:
                total[gpu] = [sum(pair) for pair in zip(total.get(gpu, (0, 0, 0)), (1, memory, cores))]
    return {gpu: [max(pair) for pair in zip(most.get(gpu, (0, 0, 0)), total.get(gpu, (0, 0, 0)))] for gpu in {*most, *total}}


def usage(api):
    """Pods whose annotation names a node, and that are not over, count."""
    held = {}
    for pod in api.must("GET", "/api/v1/pods")["items"]:
        if annotations(pod).get(NODE) == NODE_NAME and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for gpu, amount in collapse(pod).items():
                held[gpu] = [sum(pair) for pair in zip(held.get(gpu, (0, 0, 0)), amount)]
    return dict(sorted(held.items()))


def counted():
    """What vgpu-scheduler's metrics say."""
    with urllib.request.urlopen("http://127.0.0.1:9395/metrics", timeout=5) as answer:
        text, found = answer.read().decode(), {}
    for at, (name, unit) in enumerate((("shared_count", 1), ("memory_allocated_bytes", MIB), ("core_allocated_ratio", 1))):
        for gpu, value in re.findall(f"hami_gpu_{name}" + r'\{[^}]*device_uuid="([^"]+)"[^}]*\} (\S+)', text):
            found.setdefault(gpu, [0, 0, 0])[at] = int(float(value)) // unit
    return {gpu: amount for gpu, amount in sorted(found.items()) if any(amount)}


def agree(api):
    until = time.monotonic() + 10
    while (ours := counted()) != (theirs := usage(api)):
        if time.monotonic() > until:
            raise Refused(f"vgpu-scheduler counts {ours}, theirs {theirs}")
        time.sleep(0.1)
    print(f"; {json.dumps(list(theirs.values()))}", end="")


def reads(api, name):
    pod = api.must("GET", PODS + name)
    its = annotations(pod)
    names = [one["name"] for one in inits(pod) + pod["spec"]["containers"]]
    if its[NODE] != pod["spec"]["nodeName"] or pod["metadata"]["labels"][NODE] != its[NODE]:
        raise Refused(f"{name} is bound to {pod['spec']['nodeName']}, and says {its[NODE]}")
    if not (its[PREFIX + "vgpu-time"].isdigit() and its[BIND_TIME].isdigit() and its[PHASE] == "success"):
        raise Refused(f"{name} has times and a phase that are none: {its}")
    if len(decode(its[ALLOCATED])) != len(names) + 1 or any(decode(its[TO_ALLOCATE])):
        raise Refused(f"{name} has {len(names)} containers, {its[ALLOCATED]} is allocated, and {its[TO_ALLOCATE]} is left")
    if any(word != "NVIDIA" for slot in decode(its[ALLOCATED]) for _, word, _, _ in slot):
        raise Refused(f"{its[ALLOCATED]} is of another vendor")


# ----- the device plugin -----

def register(api, version):
    rows = json.loads(pathlib.Path(FOLDER, "their-devices").read_text(encoding="utf-8"))
    now = datetime.datetime.now()
    if version == "2.6":
        text = "".join(f"{row['id']},{row['count']},{row['devmem']},{row['devcore']},NVIDIA-{row['type']},{row.get('numa', 0)},true:"
                       for row in rows)
        handshake = f"Reported {now} +0000 UTC m=+30.000000001"
    else:
        rows = [{key: row[key] for key in ("id", "index", "count", "devmem", "devcore", "type", "numa") if row.get(key)} |
                {"mode": "hami-core", "health": True} for row in reversed(rows)]
        if version != "2.10":
            rows = [row | {"devicepairscore": {}} for row in rows]
        text, handshake = json.dumps(rows, separators=(",", ":")), now.strftime("Requesting_%Y-%m-%d %H:%M:%S")
    annotate(api, NODE_PATH, {REGISTER: text, HANDSHAKE: handshake})


def is_waiting(pod):
    its = annotations(pod)
    return pod["status"]["phase"] == "Pending" and BIND_TIME in its and its.get(PHASE) in ("allocating", "success") and \
        its.get(NODE) == NODE_NAME


def find_pod(api):
    """By the lock; by a search where it has no owner."""
    lock = annotations(api.must("GET", NODE_PATH)).get(LOCK, "")
    if "," in lock:
        stamp, space, name = lock.split(",")
        datetime.datetime.fromisoformat(re.sub(r"\.\d+", "", stamp).replace("Z", "+00:00"))
        return api.must("GET", f"/api/v1/namespaces/{space}/pods/{name}")
    for pod in api.must("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE_NAME}")["items"]:
        if is_waiting(pod):
            return pod
    raise Refused(f"no binding pod found on node {NODE_NAME}")


def release(api, pod):
    owner = f",{pod['metadata']['namespace']},{pod['metadata']['name']}"
    while True:
        node = api.must("GET", NODE_PATH)
        lock = annotations(node).get(LOCK)
        if not lock or ("," in lock and not lock.endswith(owner)) or set_lock(api, None, node):
            return


def write_region(path, version, slot):
    """As its library has it when a process has taken half of what it may."""
    size, count, uuids, limits, processes, used, status, tail = \
        (2008952, 56, 64, 1600, 1856, 8, 1928, 2008896) if version else (1197896, 48, 56, 1592, 1848, 8, 1160, 1197880)
    data = bytearray(size)
    struct.pack_into("<iii", data, 0, 19920718, *((1, 2) if version else (0, 0)))
    struct.pack_into("<Q", data, count, len(slot))
    for at, (gpu, _, memory, _) in enumerate(slot):
        data[uuids + 96 * at:uuids + 96 * at + len(gpu)] = gpu.encode()
        struct.pack_into("<Q", data, limits + 8 * at, memory * MIB)
        half = memory * MIB // 2
        struct.pack_into("<5Q", data, processes + used + (64 if version else 40) * at, 0, 0, half, 0, half)
    struct.pack_into("<i", data, processes + status, 1)
    struct.pack_into("<iiii", data, tail, 1, 1, 0, 1)
    path.write_bytes(data)


def give(pod, name, slot):
    """The lines of one container."""
    folder, cache = HOOK / "containers" / f"{pod['metadata']['uid']}_{name}", f"{uuid.uuid4()}.cache"
    for path in (folder, pathlib.Path(FOLDER, "vgpulock")):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
    region = annotations(pod).get("test/region")
    if region:
        write_region(folder / cache, int(region), slot)
    yield f"env NVIDIA_VISIBLE_DEVICES {','.join(gpu for gpu, _, _, _ in slot)}"
    for at, (_, _, memory, _) in enumerate(slot):
        yield f"env CUDA_DEVICE_MEMORY_LIMIT_{at} {memory}m"
    yield f"env CUDA_DEVICE_SM_LIMIT {slot[0][3]}"
    yield f"env CUDA_DEVICE_MEMORY_SHARED_CACHE {HOOK}/{cache}"
    yield f"mount {HOOK}/libvgpu.so {HOOK}/libvgpu.so.2.10.0 ro"
    yield f"mount {HOOK} {folder} rw"
    yield f"mount /tmp/vgpulock {FOLDER}/vgpulock rw"
    yield f"mount /etc/ld.so.preload {HOOK}/ld.so.preload ro"


def serve(api, pod, requests):
    text = annotations(pod).get(TO_ALLOCATE)
    if text is None:
        raise Refused("device request not found")
    slots, lines = decode(text), []
    before = 0 if annotations(pod).get(VERSION) in ("2.6", "2.8") else len(inits(pod))
    names = [one["name"] for one in inits(pod)[:before] + pod["spec"]["containers"]]
    for ids in requests:
        at = next((at for at, slot in enumerate(slots) if slot), None)
        if at is None:
            raise Refused("no pending device allocation found")
        if len(slots[at]) != len(ids.split(",")):
            raise Refused("device number not matched")
        lines.append("\n".join(give(pod, names[at], slots[at])))
        slots[at] = []
    path = PODS + pod["metadata"]["name"]
    annotate(api, path, {TO_ALLOCATE: encode(slots)})
    if "NVIDIA" not in annotations(api.must("GET", path))[TO_ALLOCATE]:
        annotate(api, path, {PHASE: "success"})
        release(api, pod)
    return "\nnext\n".join(lines)


def allocate(api, *requests):
    pod = find_pod(api)
    try:
        print(serve(api, pod, requests))
    except (AssertionError, Refused):
        annotate(api, PODS + pod["metadata"]["name"], {PHASE: "failed"})
        release(api, pod)
        raise


def watch(api):
    for node in api.watch("/api/v1/nodes?fieldSelector=metadata.name%3D" + NODE_NAME):
        text = annotations(node).get(REGISTER, "")
        print(text.count("GPU-"), node["status"].get("allocatable", {}).get("nvidia.com/gpu"), flush=True)


def main():
    what, words = sys.argv[1], sys.argv[2:]
    account = {"register": "hami-device-plugin", "allocate": "hami-device-plugin", "bind": "hami-scheduler"}
    if what not in ("register", "bind", "allocate", "usage", "agree", "reads", "watch"):
        sys.exit(__doc__)
    try:
        said = globals()[what](Api(account.get(what, "admin")), *words)
    except (AssertionError, Refused, KeyError) as error:
        print(f"{what}: {error!r}")
        return 1
    if what == "usage":
        print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
