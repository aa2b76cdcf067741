#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""many.py CASE [ARGUMENT...]: pods on nodes that are node objects alone; inside a cluster (e2e.sh).

Their devices are what a device plugin would have registered, and this program does what it and the kubelet would do to a
pod that is bound: its devices are handed out, and the node's lock goes. kube-scheduler, vgpu-scheduler, the webhook and the API
server are real. Each case ends with the audit: what pods have on each device is no more than there is, and counted once."""

import collections
import http.client
import itertools
import json
import subprocess
import sys
import threading
import time

from server import Api

PODS = "/api/v1/namespaces/default/pods"
NODES = ("many-a", "many-b", "many-c")
PREFIX = "hami.io/"
LOCK = PREFIX + "mutex.lock"


def device(node, index, **more):
    return {"id": f"GPU-{node}-{index}", "index": index, "count": 10, "devmem": 10000, "devcore": 100, "type": "NVIDIA A100",
            "mode": "hami-core", "health": True, **more}


def put_node(api, name, devices, **annotations):
    api.ask("DELETE", f"/api/v1/nodes/{name}")
    slots = str(sum(one["count"] for one in devices))
    room = {"nvidia.com/gpu": slots, "cpu": "1000", "memory": "1000Gi", "pods": "1000"}
    api.must("POST", "/api/v1/nodes", {
        "metadata": {"name": name, "labels": {"many": name, "kind": name.split("-")[0]},
                     "annotations": {PREFIX + "node-nvidia-register": json.dumps(devices), **annotations}},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}})


def make_pod(name, limits, kind="many", **annotations):
    limits = {f"nvidia.com/{key}": str(value) for key, value in limits.items()}
    return {"metadata": {"name": name, "labels": {"case": "many"}, "annotations": annotations},
            "spec": {"nodeSelector": {"kind": kind}, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]}}


class Plugins(threading.Thread):
    """What device plugins and kubelets of these nodes do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.api = Api()

    def serve(self, pod):
        metadata = pod["metadata"]
        node, said = pod["spec"].get("nodeName"), metadata.get("annotations", {})
        if not node or said.get(PREFIX + "bind-phase") != "allocating":
            return
        self.api.ask("PATCH", f"{PODS}/{metadata['name']}", {"metadata": {"uid": metadata["uid"], "annotations": {
            PREFIX + "bind-phase": "success", PREFIX + "vgpu-devices-to-allocate": ";"}}}, "application/merge-patch+json")
        lock = self.api.ask("GET", f"/api/v1/nodes/{node}")[1]["metadata"].get("annotations", {}).get(LOCK, "")
        if lock.endswith(f",{metadata['namespace']},{metadata['name']}"):
            self.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {LOCK: None}}})

    def run(self):
        while True:
            try:
                watcher = Api()
                for pod in watcher.watch(f"{PODS}?labelSelector=case%3Dmany"):
                    self.serve(pod)
            except (OSError, http.client.HTTPException, AssertionError, ValueError, KeyError):
                time.sleep(0.2)  # the API server is away
                self.api = Api()


def pods_of(api):
    return api.must("GET", f"{PODS}?labelSelector=case%3Dmany")["items"]


def bound_nodes(api):
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods_of(api)}


def wait_bound(api, count, seconds=120):
    until = time.monotonic() + seconds
    while True:
        try:
            nodes = bound_nodes(api)
            found = sum(node is not None for node in nodes.values())
            if found >= count:
                return nodes
        except (OSError, http.client.HTTPException, AssertionError):
            found = None
            api = Api()
        if time.monotonic() > until:
            raise AssertionError(f"{found} of {count} pods are bound after {seconds} s")
        time.sleep(0.1)


def audit(api):
    """Of the API alone: no device has more than it can, and every bound pod has its devices on its own node."""
    used = collections.defaultdict(lambda: [0, 0, 0])
    has = {}
    for node in api.must("GET", "/api/v1/nodes?labelSelector=many")["items"]:
        for one in json.loads(node["metadata"]["annotations"][PREFIX + "node-nvidia-register"]):
            has[one["id"]] = (node["metadata"]["name"], [one["count"], one["devmem"], one["devcore"]])
    for pod in pods_of(api):
        where, said = pod["spec"].get("nodeName"), pod["metadata"].get("annotations", {})
        if not where:
            continue
        devices = [one.split(",") for one in said[PREFIX + "vgpu-devices-allocated"].replace(";", "").split(":") if one]
        wanted = int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        if said[PREFIX + "vgpu-node"] != where or len(devices) != wanted or any(has[one[0]][0] != where for one in devices):
            raise AssertionError(f"{pod['metadata']['name']} is on {where} and has {said}")
        for one in devices:
            for i, amount in enumerate((1, int(one[2]), int(one[3]))):
                used[one[0]][i] += amount
    for uuid, amounts in used.items():
        if any(amount > room for amount, room in zip(amounts, has[uuid][1])):
            raise AssertionError(f"{uuid} has {has[uuid][1]} and gave {amounts}")
    return used


def create(api, pods):
    for pod in pods:
        api.must("POST", PODS, pod)


def clear(api):
    api.must("DELETE", f"{PODS}?labelSelector=case%3Dmany", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    while pods_of(api):
        time.sleep(0.05)


def equal(is_, should_be):
    if is_ != should_be:
        raise AssertionError(f"is {is_}, should be {should_be}")


def setup(api):
    for name in NODES:
        put_node(api, name, [device(name, i) for i in range(8)])


def spread_and_pack(api):
    for policy, count in (("binpack", 1), ("spread", 3)):
        create(api, [make_pod(f"{policy}-{i}", {"gpu": 1, "gpumem": 1000}, **{PREFIX + "node-scheduler-policy": policy}) for i in range(3)])
        equal((policy, len(set(wait_bound(api, 3).values()))), (policy, count))
        audit(api)
        clear(api)


def gang(api):
    """240 slices are there; all pods come at once."""
    began = time.monotonic()
    create(api, [make_pod(f"gang-{i}", {"gpu": 1, "gpumem": 1000}) for i in range(100)])
    wait_bound(api, 100)
    equal(sum(amounts[0] for amounts in audit(api).values()), 100)
    clear(api)
    return f"100 pods in {time.monotonic() - began:.1f} s"


def topology(api, board, wanted, scores):
    """A pod gets those devices of a board that its own plugin says are joined best. The first device is out, so that they are not the first."""
    scores = json.loads(scores)
    devices = [{**device(board, i, health=i > 0), "id": one["uuid"]} for i, one in enumerate(scores)]
    near = {one["uuid"]: one["score"] for one in scores}

    def joined(uuids):
        return sum(near[one][other] for one, other in itertools.combinations(uuids, 2))

    put_node(api, f"{board}-a", devices, **{PREFIX + "node-nvidia-score": json.dumps(scores)})
    create(api, [make_pod("joined", {"gpu": int(wanted), "gpumem": 1000}, board, **{PREFIX + "gpu-scheduler-policy": "topology-aware"})])
    wait_bound(api, 1)
    equal(joined(sorted(audit(api))), max(map(joined, itertools.combinations(list(near)[1:], int(wanted)))))
    clear(api)
    api.must("DELETE", f"/api/v1/nodes/{board}-a")  # boards have cards of the same names


def wait_for_quota(api):
    """The API server holds nobody to it before its controller has counted."""
    until = time.monotonic() + 60
    while not api.must("GET", "/api/v1/namespaces/default/resourcequotas/many").get("status", {}).get("hard"):
        if time.monotonic() > until:
            raise AssertionError("the quota is not counted")
        time.sleep(0.1)


def quota(api):
    api.must("POST", "/api/v1/namespaces/default/resourcequotas", {
        "metadata": {"name": "many"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "3000"}}})
    try:
        wait_for_quota(api)
        create(api, [make_pod("within", {"gpu": 1, "gpumem": 2000})])
        wait_bound(api, 1)
        status, said = api.ask("POST", PODS, make_pod("beyond", {"gpu": 1, "gpumem": 2000}))
        equal((status, "exceeding resource quota" in said.get("message", "")), (403, True))
    finally:
        api.must("DELETE", "/api/v1/namespaces/default/resourcequotas/many")
        clear(api)


def why(api, name):
    for condition in api.must("GET", f"{PODS}/{name}")["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition["message"]
    return None


def wait_refused(api, name, reason):
    until = time.monotonic() + 60
    while reason not in (why(api, name) or ""):
        if time.monotonic() > until:
            raise AssertionError(f"{name}: {why(api, name)}, and not {reason}")
        time.sleep(0.1)


def exclusive(api):
    """One card: who asks for it alone has it alone."""
    put_node(api, "one-a", [device("one", 0)])
    create(api, [make_pod("whole", {"gpu": 1}, "one")])
    wait_bound(api, 1)
    equal(list(audit(api).values()), [[1, 10000, 100]])
    create(api, [make_pod("part", {"gpu": 1, "gpumem": 10}, "one")])
    wait_refused(api, "part", "1/1 Card")
    clear(api)
    create(api, [make_pod("part", {"gpu": 1, "gpumem": 10}, "one")])
    wait_bound(api, 1)
    create(api, [make_pod("whole", {"gpu": 1}, "one")])
    wait_refused(api, "whole", "1/1 Card")
    clear(api)


def modes(api):
    """A card in mode MIG, and one in mode MPS: each pod gets the kind that it names."""
    profiles = [{"name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1, "placements": [{"start": i, "size": 1} for i in range(7)]}]
    put_node(api, "mode-a", [device("mode", 0, mode="mig", migProfiles=profiles, count=7, devmem=40000), device("mode", 1, mode="mps")])
    key = "nvidia.com/vgpu-mode"
    create(api, [make_pod(f"cut-{i}", {"gpu": 1, "gpumem": 4000}, "mode", **{key: "mig"}) for i in range(2)])
    create(api, [make_pod("served", {"gpu": 1, "gpumem": 4000}, "mode", **{key: "mps"})])
    wait_bound(api, 3)
    equal(dict(audit(api)), {"GPU-mode-0": [2, 9728, 30], "GPU-mode-1": [1, 4000, 0]})
    said = [json.loads(pod["metadata"]["annotations"][PREFIX + "vgpu-mig-allocations"])[0] for pod in pods_of(api)
            if pod["metadata"]["name"].startswith("cut")]
    equal((sorted(one["placement"]["start"] for one in said), {one["profile"] for one in said}), ([5, 6], {"1g.5gb"}))
    clear(api)


def room_comes_and_goes(api):
    """By eviction; and a node that was lost has what its pods have when it comes back."""
    put_node(api, "lost-a", [device("lost", 0)])
    create(api, [make_pod("old", {"gpu": 1, "gpumem": 6000}, "lost")])
    wait_bound(api, 1)
    create(api, [make_pod("new", {"gpu": 1, "gpumem": 6000}, "lost")])
    wait_refused(api, "new", "1/1 CardInsufficientMemory")
    api.must("DELETE", "/api/v1/nodes/lost-a")
    put_node(api, "lost-a", [device("lost", 0)])
    time.sleep(1)
    equal(bound_nodes(api)["new"], None)
    api.must("POST", f"{PODS}/old/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "old"}})
    equal(wait_bound(api, 1), {"new": "lost-a"})
    audit(api)
    clear(api)


def forged(api):
    """What a pod has been given is changed by nobody but the scheduler and the device plugin, and a new pod brings none."""
    brought = make_pod("brought", {"gpu": 1, "gpumem": 1000}, **{PREFIX + "vgpu-devices-allocated": "GPU-many-a-0,NVIDIA,1,1:;",
                                                                PREFIX + "vgpu-node": "many-a"})
    create(api, [brought])
    wait_bound(api, 1)
    equal([one[1:] for one in audit(api).values()], [[1000, 0]])
    for change in ("vgpu-devices-allocated=GPU-many-a-0,NVIDIA,1,1:;", "bind-phase-"):
        said = subprocess.run(["kubectl", "annotate", "--overwrite", "--as=tenant", "--as-group=system:masters", "pod/brought", PREFIX + change],
                              capture_output=True, text=True, check=False)
        equal((said.returncode, "the scheduler and the device plugin" in said.stderr), (1, True))
    subprocess.run(["kubectl", "annotate", "--as=tenant", "--as-group=system:masters", "pod/brought", "other=one"], check=True, capture_output=True)
    clear(api)


def interrupted(api, *command):
    """In the middle of a burst the command is run; afterwards nothing is lost, and nothing given twice."""
    create(api, [make_pod(f"burst-{i}", {"gpu": 1, "gpumem": 1000}) for i in range(40)])
    wait_bound(api, 5)
    before = sum(node is not None for node in bound_nodes(api).values())
    began = time.monotonic()
    subprocess.run(command, check=True)
    wait_bound(api, 40)
    took = time.monotonic() - began
    api = Api()
    equal(sum(amounts[0] for amounts in audit(api).values()), 40)
    clear(api)
    return f"{before} of 40 were bound before, and all {took:.1f} s after"


def teardown(api):
    for node in api.must("GET", "/api/v1/nodes?labelSelector=many")["items"]:
        api.must("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def main():
    api = Api()
    if sys.argv[1] not in ("setup", "teardown"):
        Plugins().start()
    said = globals()[sys.argv[1]](api, *sys.argv[2:])
    if said:
        print(said)


main()
