# SPDX-License-Identifier: Apache-2.0
"""Random nodes with pods on them, and a random pod: `random_case(random.Random)`, in the form of the recordings."""

import json

TYPES = ("NVIDIA A30", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA-NVIDIA A30")
MEMORIES = (24576, 40960, 81559, 16384, 8192, 1000)
SPACES = ("a", "b")


def profile(name, memory, cores, slices, starts, size):
    return {"name": name, "memoryMB": memory, "core": cores, "sliceCount": slices,
            "placements": [{"start": start, "size": size} for start in starts]}


MIG = {
    "NVIDIA H100 80GB HBM3": (81559, [
        profile("1g.10gb", 9856, 14, 1, range(7), 1), profile("2g.20gb", 20096, 28, 2, (0, 2, 4), 2),
        profile("3g.40gb", 40448, 42, 3, (0, 4), 4), profile("7g.80gb", 80768, 100, 7, (0,), 8)]),
    "NVIDIA A30": (24576, [
        profile("1g.6gb", 5856, 25, 1, range(4), 1), profile("2g.12gb", 11904, 50, 2, (0, 2), 2),
        profile("4g.24gb", 24062, 100, 4, (0,), 4)]),
}


def bare(row):
    """3.6: what is zero, false or empty is left out."""
    return {key: value for key, value in row.items() if value or key == "id"}


def random_devices(r, name):
    count = r.choice((1, 2, 2, 3, 4, 4, 6, 8)) if r.random() < 0.99 else 12
    kind, memory, split = r.choice(TYPES), r.choice(MEMORIES), r.choice((10, 10, 4, 2, 1))
    is_alike, is_halved = r.random() < 0.6, r.random() < 0.5
    mode = r.choice(("hami-core",) * 6 + ("mig", "mps"))
    rows = []
    for at in range(count):
        if not is_alike:
            kind, memory, split = r.choice(TYPES), r.choice(MEMORIES), r.choice((10, 4, 2))
            mode = r.choice(("hami-core",) * 5 + ("mig", "mig", ""))
        row = {"id": f"GPU-{name}-{at}", "index": at, "count": split, "devmem": memory, "type": kind, "mode": mode,
               "devcore": r.choice((100,) * 9 + (200, 50, 0)) if r.random() < 0.2 else 100,
               "numa": (at * 2 // count if is_halved else at % 2) if r.random() < 0.95 else 3, "health": r.random() < 0.95}
        if mode == "mig":
            row["type"] = r.choice(list(MIG))
            row["devmem"], profiles = MIG[row["type"]]
            row["migProfiles"] = r.sample(profiles, len(profiles)) if r.random() < 0.9 else profiles[:r.randrange(len(profiles))]
        rows.append(row)
    if r.random() < 0.2:
        r.shuffle(rows)
    return rows


def write_register(r, rows):
    if r.random() < 0.03 and not any(row["mode"] in ("mig", "") for row in rows):
        return "".join(f"{d['id']},{d['count']},{d['devmem']},{d['devcore']},{d['type']},{d['numa']},{'true' if d['health'] else 'false'},"
                       f"{d['index']},{d['mode']}:" for d in rows)
    if r.random() < 0.01:
        return r.choice(("", "[]", "[", "nonsense", "null"))
    return json.dumps([bare(row) for row in rows])


def random_limits(r, is_holder=False):
    """What a container asks for; often nothing special."""
    if r.random() < 0.15:
        return {}
    limits = {"nvidia.com/gpu": str(r.choice((1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 0)))}
    draw = r.random()
    if draw < 0.6:
        limits["nvidia.com/gpumem"] = str(r.choice((500, 1000, 1000, 2000, 4000, 5000, 8000, 10000, 12000, 20000, 24576, 0)))
    elif draw < 0.8:
        limits["nvidia.com/gpumem-percentage"] = str(r.choice((1, 10, 25, 33, 50, 75, 100, 0, 101)))
    if r.random() < 0.5:
        limits["nvidia.com/gpucores"] = str(r.choice((0, 0, 5, 5, 10, 10, 25, 30, 50, 60, 100, 101)))
    if r.random() < 0.04 and not is_holder:
        limits[r.choice(list(limits))] = r.choice(("1k", "2Ki", "1.5", "500m", "2147483647", "2147483648", "-1", "3", "7"))
    return limits


def random_containers(r, is_holder=False):
    """(init containers, containers)"""
    inits = [{"name": f"i{at}", "image": "x"} for at in range(r.choice((0,) * 5 + (1, 1, 2, 3)))]
    apps = [{"name": f"c{at}", "image": "x"} for at in range(r.choice((1, 1, 1, 2, 2, 3)))]
    for one in inits + apps:
        limits = random_limits(r, is_holder)
        if limits:
            one["resources"] = {"limits" if r.random() < 0.9 else "requests": limits}
    for one in inits:
        if r.random() < 0.4:
            one["restartPolicy"] = "Always"
    return inits, apps


class Holders:
    """Pods on one node. Instances of MIG devices do not overlap."""

    def __init__(self, r, node, rows):
        self.r, self.node, self.rows, self.busy = r, node, rows, {}

    def instance(self, row):
        for one in self.r.sample(row["migProfiles"], len(row["migProfiles"])):
            for place in one["placements"]:
                span = set(range(place["start"], place["start"] + place["size"]))
                if not span & self.busy.get(row["id"], set()):
                    self.busy.setdefault(row["id"], set()).update(span)
                    return one, place
        return None

    def entry(self, row, instances, at, number):
        """One device as the annotation has it, or None."""
        r = self.r
        if row["mode"] != "mig":
            return f"{row['id']},NVIDIA,{r.choice((500, 1000, 1000, 2000, 4000, 9000, row['devmem']))},{r.choice((0, 0, 0, 5, 10, 10, 30, 50, 100))}"
        found = self.instance(row) if row.get("migProfiles") else None
        if not found:
            return None
        instances.append({"containerIndex": at, "deviceIndex": number, "gpuUUID": row["id"], "profile": found[0]["name"],
                          "placement": found[1]})
        return f"{row['id']},NVIDIA,{found[0]['memoryMB']},{found[0]['core']}"

    def pod(self, number):
        r = self.r
        inits, apps = random_containers(r, True)
        slots, instances = [], []
        for at, one in enumerate(inits + apps):
            one.pop("resources", None)
            chosen = r.sample(self.rows, min(len(self.rows), r.choice((0, 1, 1, 1, 2)))) if self.rows else []
            entries = []
            for row in chosen:
                entry = self.entry(row, instances, at, len(entries))
                entries += [entry] if entry else []
            if entries:
                one["resources"] = {"limits": {"nvidia.com/gpu": str(len(entries)), "nvidia.com/gpumem": "1000"}}
            slots.append("".join(entry + ":" for entry in entries))
        if r.random() < 0.1:
            slots = [slot for slot in slots if slot]
        text = "".join(slot + ";" for slot in slots)
        if r.random() < 0.02:
            text = r.choice((text.replace("NVIDIA,", ""), text.replace("GPU-", "GPU-x"), "", text.replace(",NVIDIA", ",NVIDIA,x"),
                             text.replace(":", ",more,9:"), "x:" + text, text + ";"))
        annotations = {"hami.io/vgpu-node": self.node, "hami.io/vgpu-devices-allocated": text}
        if instances and r.random() < 0.97:
            annotations["hami.io/vgpu-mig-allocations"] = json.dumps(instances)
        elif r.random() < 0.01:
            annotations["hami.io/vgpu-mig-allocations"] = r.choice(("x", "[]", json.dumps([{
                "containerIndex": 0, "deviceIndex": 0, "gpuUUID": r.choice(self.rows)["id"] if r.random() < 0.5 else "GPU-other",
                "profile": "1g.10gb", "placement": {"start": 1, "size": 1}}])))
        status = {"phase": r.choice(("Running",) * 12 + ("Pending", "Succeeded", "Failed"))}
        if inits and r.random() < 0.5:
            status["initContainerStatuses"] = [
                {"name": one["name"], "state": {"terminated": {"exitCode": r.choice((0, 0, 0, 1))}} if r.random() < 0.8 else
                 {"running": {}}} for one in inits]
        item = {"metadata": {"name": f"{self.node}-h{number}", "namespace": r.choice(SPACES), "annotations": annotations},
                "spec": {"nodeName": self.node, "containers": apps}, "status": status}
        if inits:
            item["spec"]["initContainers"] = inits
        if r.random() < 0.05:
            item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return item


def random_node(r, name):
    rows = random_devices(r, name)
    uuids = [row["id"] for row in rows]
    annotations = {"hami.io/node-nvidia-register": write_register(r, rows)}
    if r.random() < 0.05:
        annotations["hami.io/device-cordon"] = ",".join(r.sample(uuids, r.randrange(1, len(uuids) + 1)))
    if r.random() < 0.5:
        annotations["hami.io/node-nvidia-score"] = json.dumps(random_pairs(r, uuids))
    slots = sum(row["count"] for row in rows)
    allocatable = {"nvidia.com/gpu": str(slots if r.random() < 0.98 else 0)} if r.random() < 0.99 else {}
    holders = Holders(r, name, rows)
    return {"name": name, "annotations": annotations, "allocatable": allocatable,
            "pods": [holders.pod(number) for number in range(r.choice((0, 0, 0, 1, 1, 2, 3, 5)))]}


def random_pairs(r, uuids):
    table, values = {}, r.choice(((0, 10, 10, 20, 100), (10, 20), range(100)))
    for at, a in enumerate(uuids):
        for b in uuids[at + 1:]:
            if r.random() < 0.97:
                table[a, b] = table[b, a] = r.choice(values)
    return [{"uuid": a, "score": {b: table[a, b] for b in uuids if (a, b) in table}} for a in uuids]


def random_wishes(r, uuids):
    """The pod's own annotations; in half of the cases a policy alone."""
    is_calm = r.random() < 0.5
    annotations = {}
    policies = ("binpack", "spread", "mutex", "topology-aware", "numa", "binpack,numa", "numa,spread", "spread,numa", "mutex,binpack",
                "topology-aware,binpack", "numa,binpack", "binpack,spread", "mutex,topology-aware", "nonsense", "", "BINPACK", "a,b")

    def say(probability, key, values):
        if r.random() < probability and ("policy" in key or not is_calm):
            annotations[key] = r.choice(values)
    say(0.5, "hami.io/gpu-scheduler-policy", policies)
    say(0.4, "hami.io/node-scheduler-policy", ("binpack", "spread", "spread", "nonsense"))
    say(0.1, "hami.io/device-scoring-weights", ("slot=1,core=0,memory=0", "memory=3, core=2 ,slot=1", "slot=0,core=0,memory=1",
                                                 "slot=1,core=1", "slot=0,core=0,memory=0", "slot=1,core=1,memory=x", ""))
    for key in ("nvidia.com/use-gputype", "nvidia.com/nouse-gputype"):
        say(0.07, key, ("A30", "a100,h100", "T4", "NVIDIA", "V100", ",", "", " ", "A30,", "h100, A30"))
    for key in ("nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"):
        say(0.06, key, [",".join(r.sample(uuids, r.randrange(1, len(uuids) + 1))), r.choice(uuids) + " , x", ",", "", " "])
    say(0.06, "nvidia.com/vgpu-mode", ("hami-core", "mig", "mps", "hami-core,mig", "x"))
    say(0.2, "nvidia.com/numa-bind", ("true", "1", "T", "false", "yes", "true"))
    return annotations


def random_case(r):
    names = r.sample(["n1", "n2", "n3", "n4", "m1", "m2"], r.choice((1, 1, 2, 2, 3, 4)))
    nodes = [random_node(r, name) for name in names]
    uuids = [f"GPU-{name}-{at}" for name in names for at in range(4)]
    asked = names + (["gone"] if r.random() < 0.03 else [])
    r.shuffle(asked)
    if len(asked) > 1 and r.random() < 0.1:
        asked.pop()
    inits, apps = random_containers(r)
    pod = {"metadata": {"name": "p", "namespace": r.choice(SPACES), "annotations": random_wishes(r, uuids)}, "spec": {"containers": apps}}
    if inits:
        pod["spec"]["initContainers"] = inits
    case = {"config": {"flags": [], "nvidia": {}}, "nodes": nodes, "pod": pod, "nodeNames": asked}
    if r.random() < 0.15:
        case["config"]["nvidia"] = {"defaultMemory": r.choice((0, 3000)), "defaultCores": r.choice((0, 20, 100)),
                                    "memoryFactor": r.choice((0, 1, 2, 10))}
    if r.random() < 0.1:
        case["config"]["flags"] = [r.choice(("--gpu-scheduler-policy=binpack", "--gpu-scheduler-policy=mutex",
                                              "--node-scheduler-policy=spread", "--gpu-scheduler-policy=topology-aware"))]
    if r.random() < 0.25:
        case["quota"] = [{f"limits.nvidia.com/{what}": str(r.choice((0, 10, 50, 100, 4000, 9000, 20000, 50000, 100000, 200000)))
                          for what in r.choice((("gpumem",), ("gpucores",), ("gpumem", "gpucores")))} for _ in range(r.choice((1, 1, 2)))]
    return case
