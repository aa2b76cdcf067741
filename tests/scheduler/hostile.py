#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile.py PROGRAM [SECONDS [SEED]]: bodies and annotations that nobody would write, before vgpu-scheduler.

Requests are made wrong in one or a few places: another type, a text of another kind, a member less, a cut body, odd bytes. It
must answer each, keep serving those that are right, and end well when it is told to."""

import copy
import http.client
import json
import random
import sys
import time

from cluster import LOCK, REGISTER, Scheduler, Town, device, node, pod

PROGRAM = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 3
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1

TEXTS = ["", " ", ",", ";", ":", "\0", "é", "x" * 300, "../..", "a/b", "%2e%2e", "-1", "0", "1e9", "9223372036854775807",
         "18446744073709551616", "nan", "1Ei", "true", "GPU-0", "GPU-0,NVIDIA,1000,0:;", "GPU-0,NVIDIA,-5,1:", ":;" * 600,
         "GPU-0,NVIDIA,2147483648,0:;", "[]", "{}", "[" * 300, '[{"gpuUUID":"GPU-0","placement":{"start":255,"size":255}}]',
         "mig", "topology-aware,mutex", "slot=1,core=0,memory=0", "2026-01-01T00:00:00Z,a,b", "2026-01-01T00:00:00Z,,", "n1"]
VALUES = [None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -2**63, 1.5, 1e300, [], {}, [[]], [None], {"a": {}}]
KEYS = ["hami.io/vgpu-node", "hami.io/vgpu-time", "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate",
        "hami.io/vgpu-mig-allocations", "hami.io/bind-phase", "hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy",
        "hami.io/device-scoring-weights", "nvidia.com/use-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode",
        "nvidia.com/numa-bind", REGISTER, LOCK, "hami.io/node-nvidia-score", "hami.io/device-cordon"]


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def spoil(random_, value):
    """A copy that is wrong somewhere."""
    value = copy.deepcopy(value)
    for _ in range(random_.randint(1, 3)):
        path = random_.choice(list(places(value)))
        if not path:
            continue
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        what = random_.randint(0, 4)
        if what == 0:
            del inner[path[-1]]
        elif what == 1:
            inner[path[-1]] = copy.deepcopy(random_.choice(VALUES))
        elif what == 2 and isinstance(inner, dict):
            inner[random_.choice(KEYS)] = random_.choice(TEXTS)
        else:
            inner[path[-1]] = random_.choice(TEXTS)
    return value


def right_requests(town):
    item = pod("p", annotations={key: "" for key in KEYS[6:8]})
    town.cluster.put("pods", item)
    item = town.cluster.get("pods", "default/p")
    item["spec"]["initContainers"] = [dict(item["spec"]["containers"][0], restartPolicy="Always")]
    names = {"Pod": item, "Nodes": None, "NodeNames": ["n1", "n2"]}
    nodes = {"Pod": item, "Nodes": {"metadata": {}, "items": [node("n1", [device(0), device(1)])]}, "NodeNames": None}
    bind = {"PodName": "p", "PodNamespace": "default", "PodUID": item["metadata"]["uid"], "Node": "n1"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
              "request": {"uid": "r", "operation": "CREATE", "namespace": "default", "object": item, "oldObject": item,
                          "userInfo": {"username": "u"}}}
    change = {**review, "request": {**review["request"], "operation": "UPDATE"}}
    preempt = {"Pod": item, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}, {"UID": "v"}], "NumPDBViolations": 1}}}
    return [("/filter", names), ("/filter", nodes), ("/bind", bind), ("/webhook", review), ("/guard", review), ("/guard", change),
            ("/preempt", preempt)]


def odd_body(random_, body):
    text = json.dumps(body).encode()
    what = random_.randint(0, 9)
    if what == 0:
        return text[:random_.randint(0, len(text))]
    if what == 1:
        at = random_.randint(0, len(text) - 1)
        return text[:at] + bytes([random_.randint(0, 255)]) + text[at + 1:]
    return text


def spoil_cluster(random_, town):
    """What the API server tells is odd, too; names and versions are its own and right."""
    kind, key = random_.choice([("nodes", "n1"), ("nodes", "n2"), ("pods", "default/p"), ("resourcequotas", "default/q")])

    def change(item):
        metadata = dict(item["metadata"])
        spoiled = spoil(random_, item)
        item.clear()
        item.update(spoiled)
        fresh = item.get("metadata") if isinstance(item.get("metadata"), dict) else {}
        item["metadata"] = {**fresh, **{name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")
                                        if name in metadata}}
    town.cluster.change(kind, key, change)


def put_right(town):
    town.cluster.put("nodes", node("n1", [device(0), device(1, mode="mig")]))
    town.cluster.put("nodes", node("n2", [device(2)]))
    town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                        "spec": {"hard": {"limits.nvidia.com/gpumem": "50000"}}})


def main():
    random_ = random.Random(SEED)
    count = 0
    with Town() as town:
        put_right(town)
        with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=0", "--kube-timeout=1s") as scheduler:
            until = time.monotonic() + SECONDS
            requests = right_requests(town)
            connection = http.client.HTTPConnection("127.0.0.1", scheduler.port, timeout=30)
            while time.monotonic() < until:
                if count % 40 == 0:
                    put_right(town)
                    requests = right_requests(town)
                spoil_cluster(random_, town)
                path, body = random_.choice(requests)
                connection.request("POST", path, odd_body(random_, spoil(random_, body) if random_.random() < 0.9 else body))
                answer = connection.getresponse()
                text = answer.read()
                count += 1
                if answer.status not in (200, 400):
                    raise AssertionError(f"{path}: {answer.status} {text!r}")
            put_right(town)
            town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {}}})
            fresh = pod("fresh", uid="fresh")
            town.cluster.put("pods", fresh)
            town.tell(scheduler)
            said = scheduler.filter(fresh, ["n2"])
            if said["Error"] or "n2" not in (said["NodeNames"] or []) + list(said["FailedNodes"]):
                raise AssertionError(f"it does not serve what is right: {said}")
    print(f"{count} requests of seed {SEED}")


if __name__ == "__main__":
    main()
