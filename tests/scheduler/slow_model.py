# SPDX-License-Identifier: Apache-2.0
"""A slow model of what Filter decides, from the specification's words and not from the program's code.

`decide(case)` has a case in the form of the recordings (vectors/README.md) and gives what differential.py compares. Numbers of
paragraphs are the specification's. `case["hazard"]` says afterwards whether two scores were equal but for rounding."""

import itertools
import json
import re
from collections import Counter, namedtuple
from fractions import Fraction

COUNT, MEMORY, PERCENTAGE, CORES = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")
INT32 = 2**31 - 1
SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": Fraction(1, 1000)}

Request = namedtuple("Request", "count memory percentage cores")
Pick = namedtuple("Pick", "uuid memory cores profile placement")


class Wrong(Exception):
    """The pod's own words are not understood."""


# 2.1, 5.2: what a container asks for


def quantity(value):
    """A whole number, or None."""
    found = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(k|M|G|Ki|Mi|Gi|m|)", str(value))
    number = Fraction(found[1]) * SUFFIXES[found[2]] if found else None
    return int(number) if number is not None and number.denominator == 1 else None


def resource(container, name):
    """(is there, its whole number)"""
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        if name in (resources.get(part) or {}):
            return True, quantity(resources[part][name])
    return False, None


def read_request(config, container):
    factor = max(config.get("memoryFactor", 0), 1)
    count = resource(container, COUNT)[1]
    if count is None or count <= 0:
        return None
    is_there, memory = resource(container, MEMORY)
    if is_there and (memory is None or memory < 0 or memory > INT32 // factor):
        return None
    memory = (memory or 0) * factor
    percentage = resource(container, PERCENTAGE)[1]
    percentage = None if percentage is None or percentage <= 0 else min(percentage, 100)
    if percentage is None and not memory:
        memory = config.get("defaultMemory", 0)
        percentage = None if memory else 100
    cores = resource(container, CORES)[1]
    return Request(count, memory, percentage, max(0, min(config.get("defaultCores", 0) if cores is None else cores, 100)))


def containers_of(pod):
    """(kind, container), init containers first."""
    spec = pod["spec"]
    inits = [("sidecar" if c.get("restartPolicy") == "Always" else "init", c) for c in spec.get("initContainers") or []]
    return inits + [("app", c) for c in spec.get("containers") or []]


# 5.6: what a pod takes of each device


def collapse(rows):
    """rows: (kind, [(uuid, memory, cores)]) in order. {uuid: [slots, memory, cores]}"""
    phases, sidecars = [], []
    for kind, entries in rows:
        if kind == "init":
            phases.append(sidecars + entries)
        elif kind == "sidecar":
            sidecars = sidecars + entries
    phases.append(sidecars + [entry for kind, entries in rows if kind == "app" for entry in entries])
    taken = {}
    for phase in phases:
        sums = {}
        for uuid, memory, cores in phase:
            row = sums.setdefault(uuid, [0, 0, 0])
            row[0], row[1], row[2] = row[0] + 1, row[1] + memory, row[2] + cores
        for uuid, row in sums.items():
            taken[uuid] = [max(pair) for pair in zip(taken.get(uuid, [1, 0, 0]), row)]
    return taken


# 3.6, 5.4.1: the devices of a node


class Device:  # pylint: disable=too-many-instance-attributes
    def __init__(self, at, row):
        self.at, self.uuid = at, row["id"]
        self.count, self.memory, self.cores = row.get("count", 0), row.get("devmem", 0), row.get("devcore", 0)
        self.type, self.numa, self.mode = row.get("type", ""), row.get("numa", 0), row.get("mode", "")
        self.is_healthy, self.profiles = row.get("health", False), row.get("migprofiles") or []
        self.used = self.used_memory = self.used_cores = 0
        self.placements, self.ended = [], []

    def copy(self):
        other = object.__new__(Device)
        other.__dict__.update(self.__dict__)
        other.placements, other.ended = list(self.placements), list(self.ended)
        return other

    def charge(self, slots, memory, cores):
        self.used, self.used_memory, self.used_cores = self.used + slots, self.used_memory + memory, self.used_cores + cores


def read_csv(text):
    rows = []
    for part in text.split(":"):
        fields = part.split(",")
        if len(fields) not in (7, 9):
            if part:
                raise ValueError(part)
            continue
        uuid, count, memory, cores, kind, numa, health = fields[:7]
        rows.append({"id": uuid, "count": int(count), "devmem": int(memory), "devcore": int(cores), "type": kind, "numa": int(numa),
                     "health": health == "true", "index": int(fields[7]) if fields[7:] else 0,
                     "mode": fields[8] if fields[8:] else "hami-core"})
    return rows


KINDS = {"id": str, "index": int, "count": int, "devmem": int, "devcore": int, "type": str, "numa": int, "mode": str, "health": bool,
         "migprofiles": list}


def read_row(row):
    """Names of members are read in any case; a value of another kind makes the whole register none."""
    row = {key.lower(): value for key, value in row.items()}
    for key, kind in KINDS.items():
        if not isinstance(row.get(key, kind()), kind):
            raise ValueError(key)
    return row


def read_register(text):
    if not text:
        return []
    try:
        rows = [read_row(row) for row in json.loads(text)] if text.lstrip().startswith("[") else read_csv(text)
    except ValueError:
        return []
    unique = {row["id"]: row for row in reversed(rows)}
    return [Device(at, row) for at, row in enumerate(row for row in rows if unique[row["id"]] is row)]


def decode(text):
    """3.2: the slots, [(uuid, memory, cores)] each."""
    slots = []
    for slot in text.split(";"):
        entries = []
        for token in slot.split(":"):
            if "," not in token:
                continue
            fields = token.split(",")
            if len(fields) < 4:
                raise ValueError(token)
            memory, cores = int(fields[2]), int(fields[3])
            if not (-INT32 <= memory <= INT32 and -INT32 <= cores <= INT32):
                raise ValueError(token)
            entries.append((fields[0], memory, cores))
        slots.append(entries)
    return slots[:-1] if text.endswith(";") else slots


def decode_instances(text):
    """3.3: (container, uuid, start, size); None where it is not understood."""
    if not text:
        return []
    try:
        rows = json.loads(text)
        found = [(row["containerIndex"], row["gpuUUID"], row["placement"]["start"], row["placement"]["size"]) for row in rows]
        keys = [(row["containerIndex"], row["deviceIndex"]) for row in rows]
        if len(set(keys)) < len(keys) or any(c < 0 or not uuid or size <= 0 for c, uuid, _, size in found):
            return None
        return found
    except (ValueError, KeyError, TypeError):
        return None


def kinds_of_slots(config, pod, slots):
    """What kind of container each slot is of. Writers have a slot for each container, or none for init containers (2.8), or none
    for those without devices (D1): the first of these by which each slot has as many devices as its container asks for. Where none
    does, a slot for each is by place; else each slot is of a container that runs beside the others."""
    all_of = containers_of(pod)
    requests = [read_request(config, c) for _, c in all_of]
    everybody = list(range(len(all_of)))
    apps = [at for at in everybody if all_of[at][0] == "app"]
    asking = [at for at in everybody if requests[at]]
    filled = [at for at, slot in enumerate(slots) if slot]
    for among in (everybody, apps, asking):
        if among is asking and filled != list(range(len(filled))):
            continue
        if all(at < len(among) and requests[among[at]] and requests[among[at]].count == len(slots[at]) for at in filled):
            return [all_of[among[at]][0] if at in filled else "app" for at in range(len(slots))]
    return [all_of[at][0] if len(slots) == len(all_of) else "app" for at in range(len(slots))]


class Holder:
    """A pod that was there before: its devices, and its instances."""

    def __init__(self, config, pod):
        annotations = pod["metadata"].get("annotations", {})
        self.node = annotations.get("hami.io/vgpu-node")
        self.space = pod["metadata"].get("namespace", "")
        self.taken, self.instances, self.is_doubtful = {}, [], False
        if not self.node or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return
        if pod["spec"].get("nodeName", self.node) != self.node:
            return
        try:
            text = annotations.get("hami.io/vgpu-devices-allocated", "")
            slots = decode(text)
        except ValueError:
            return
        statuses = {row["name"] for row in pod.get("status", {}).get("initContainerStatuses", [])
                    if row.get("state", {}).get("terminated", {}).get("exitCode") == 0}
        is_over = all(c.get("name") in statuses for kind, c in containers_of(pod) if kind == "init")
        kinds = kinds_of_slots(config, pod, slots)
        self.taken = collapse([(kind, slot) for kind, slot in zip(kinds, slots) if kind != "init" or not is_over])
        self.instances = decode_instances(annotations.get("hami.io/vgpu-mig-allocations", "")) if text else []
        self.is_doubtful = self.instances is None
        self.instances = [row[1:] for row in self.instances or []]  # they are there until the pod is gone

    def charge(self, devices):
        by_uuid = {device.uuid: device for device in devices}
        for uuid, (slots, memory, cores) in self.taken.items():
            device = by_uuid.get(uuid)
            if not device:
                continue
            device.charge(slots, memory, cores)
            has_instance = any(row[0] == uuid for row in self.instances)
            if (device.mode == "mig") != has_instance:
                device.is_healthy = False
        if self.is_doubtful or any(row[0] not in by_uuid for row in self.instances):
            for device in devices:
                device.is_healthy = device.is_healthy and device.mode != "mig"
        for uuid, start, size in self.instances:
            if uuid not in by_uuid:
                continue
            if by_uuid[uuid].mode != "mig":
                by_uuid[uuid].is_healthy = False
            else:
                by_uuid[uuid].placements.append((start, size))


# 3.4: what the pod says of devices


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


class Wishes:
    def __init__(self, pod, flags):
        annotations = pod["metadata"].get("annotations", {})
        default = next((flag.split("=")[1] for flag in flags if flag.startswith("--gpu-scheduler-policy=")), "spread")
        self.policy = annotations.get("hami.io/gpu-scheduler-policy", default)
        default = next((flag.split("=")[1] for flag in flags if flag.startswith("--node-scheduler-policy=")), "binpack")
        self.is_node_spread = annotations.get("hami.io/node-scheduler-policy", default) == "spread"
        parts = self.policy.split(",")
        self.is_mutex, self.is_topology = "mutex" in parts, "topology-aware" in parts
        self.is_bound = annotations.get("nvidia.com/numa-bind") in ("1", "t", "T", "TRUE", "true", "True")
        self.mode = annotations.get("nvidia.com/vgpu-mode")
        self.lists = {key: annotations.get("nvidia.com/" + key, "")
                      for key in ("use-gputype", "nouse-gputype", "use-gpuuuid", "nouse-gpuuuid")}
        self.weights = read_weights(annotations.get("hami.io/device-scoring-weights"))

    def takes_type(self, device):
        use, nouse = self.lists["use-gputype"], self.lists["nouse-gputype"]
        model = device.type.lower()
        if any(word.lower() in model for word in words(nouse)):
            return False
        if use.strip() and not any(word.lower() in model for word in words(use)):
            return False
        return self.mode is None or device.mode in self.mode

    def takes_uuid(self, device):
        if device.uuid in words(self.lists["nouse-gpuuuid"]):
            return False
        return not self.lists["use-gpuuuid"].strip() or device.uuid in words(self.lists["use-gpuuuid"])


def read_weights(text):
    if text is None:
        return 1, 1, 1
    found = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in ("slot", "core", "memory") or key in found or not re.fullmatch(r"\d+", value):
            raise Wrong(text)
        found[key] = int(value)
    if len(found) != 3 or not any(found.values()):
        raise Wrong(text)
    return found["slot"], found["core"], found["memory"]


# 5.5: scores


def largest_profile(device):
    return max((profile["memoryMB"] for profile in device.profiles), default=0)


def wanted_memory(device, request):
    if request.memory > 0:
        return request.memory
    whole = largest_profile(device) if device.mode == "mig" else device.memory
    return whole * request.percentage // 100


def score_parts(device, request):
    """With the request counted; on a MIG device it is the profile that counts."""
    memory, cores = wanted_memory(device, request), request.cores
    found = choose_instance(device, memory) if device.mode == "mig" else None
    if found:
        memory, cores = found[0]["memoryMB"], found[0]["core"]
    return ((device.used + 1, device.count), (device.used_cores + cores, device.cores),
            (device.used_memory + memory, device.memory))


def score(parts, weights=(1, 1, 1)):
    if any(not below for _, below in parts):
        return 0.0
    return 10 * sum(weight * above / below for weight, (above, below) in zip(weights, parts))


def is_near(rows):
    """Of (score, parts): are two the same but for rounding?"""
    rows = sorted(rows)
    return any(b[0] - a[0] < 1e-4 and a[1] != b[1] for a, b in zip(rows, rows[1:]))


def sort_devices(devices, request, wishes, hazards):
    """The first choice first (5.5.2); of equals always the later."""
    parts = {device.at: score_parts(device, request) for device in devices}
    scores = {at: score(row, wishes.weights) for at, row in parts.items()}
    names = wishes.policy.split(",")
    is_list = len(names) > 1 or wishes.policy == "numa"
    keys = {"binpack": lambda d: -scores[d.at], "spread": lambda d: scores[d.at], "numa": lambda d: -d.numa,
            "used": lambda d: d.used, "low numa": lambda d: d.numa}
    if is_list:
        order = [name for name in names if name in ("binpack", "spread", "numa")] or ["spread"]
        order = (["numa"] if wishes.is_bound else []) + order
    elif wishes.policy == "mutex":
        order = ["numa", "used"] if wishes.is_bound else ["used", "numa"]  # D38
    elif wishes.policy == "binpack":
        order = ["low numa", "binpack"] if wishes.is_bound else ["binpack", "numa"]
    else:
        order = ["numa", "spread"] if wishes.is_bound else ["spread", "numa"]
    if "binpack" in order or "spread" in order:
        hazards.append(is_near([(scores[at], parts[at]) for at in parts]))
    return sorted(devices, key=lambda d: [keys[name](d) for name in order] + [-d.at])


# 5.4: fit


def overlaps(a, b):
    return a[0] < b[0] + b[1] and b[0] < a[0] + a[1]


def choose_instance(device, memory):
    """5.4.5: (profile, placement) or None. All instances of a pod are made before its first container starts: one that an init
    container has had is another's only as it is."""
    for profile in sorted(device.profiles, key=lambda p: (p["memoryMB"], p.get("sliceCount", 0))):
        if profile["memoryMB"] < memory:
            continue
        for name, place in device.ended:  # what is there anyhow
            if name == profile["name"] and not any(overlaps(place, one) for one in device.placements):
                return profile, place
        places = sorted((place.get("start", 0), place.get("size", 0)) for place in profile["placements"])
        for place in reversed(places) if profile["name"][:3] in ("1g.", "3g.") else places:
            if not any(overlaps(place, one) for one in device.placements + [ended for _, ended in device.ended]):
                return profile, place
    return None


class Fit:
    """One container on a node."""

    def __init__(self, case, devices, rows, kind, request):
        self.case, self.devices, self.rows, self.kind, self.request = case, devices, rows, kind, request
        self.reasons = Counter()

    def exceeds_quota(self, picks):
        entries = [(pick.uuid, pick.memory, pick.cores) for pick in picks]
        taken = collapse(self.rows + [(self.kind, entries)])
        for at, limit in self.case.limits.items():
            if self.case.quota_used[at] + sum(row[at] for row in taken.values()) > limit:
                return True
        return False

    def reject(self, device, picks):
        """The reason, or a Pick; tests 4 to 12."""
        case, request = self.case, self.request
        memory, cores = wanted_memory(device, request), request.cores
        found = None
        if not case.wishes.takes_uuid(device):
            return "CardUuidMismatch"
        if device.count <= device.used:
            return "CardTimeSlicingExhausted"
        if case.wishes.is_mutex and device.used > 0:
            return "ExclusiveDeviceAllocateConflict"
        pick = Pick(device.uuid, memory, cores, None, None)
        if device.mode == "mig":
            found = choose_instance(device, memory)
            if found:
                pick = Pick(device.uuid, found[0]["memoryMB"], found[0]["core"], found[0]["name"], found[1])
        if self.exceeds_quota(picks + [pick]):
            return "ResourceQuotaNotFit"
        if device.memory - device.used_memory < pick.memory:  # D29
            return "CardInsufficientMemory"
        if device.cores - device.used_cores < cores:
            return "CardInsufficientCore"
        if device.cores == 100 and cores == 100 and device.used > 0:
            return "ExclusiveDeviceAllocateConflict"
        if device.cores and device.used_cores == device.cores and not cores:
            return "CardComputeUnitsExhausted"
        if device.mode == "mig" and not found:
            return "CardMigTopologyInfeasible"
        return pick

    def early(self, device):
        if not device.is_healthy:
            return "CardNotHealth"
        if device.uuid in self.case.cordoned:
            return "CardCordoned"
        if self.request.count > 1 and device.mode == "mps":  # a process has one daemon
            return "CardTypeMismatch"
        return None if self.case.wishes.takes_type(device) else "CardTypeMismatch"

    def run(self):
        """Picks, or the reason."""
        wishes, count = self.case.wishes, self.request.count
        if count > len(self.devices) and not any(device.mode == "mig" for device in self.devices):
            return "NodeInsufficientDevice"
        order = sort_devices(self.devices, self.request, wishes, self.case.hazards)
        picks = self.walk_best(order) if wishes.is_topology else self.walk(order)
        if len(picks) == count:
            return picks
        self.reasons["AllocatedCardsInsufficientRequest"] += len(picks)
        return ", ".join(sorted(f"{k}/{len(order)} {reason}" for reason, k in self.reasons.items() if k))

    def walk(self, order):
        """Takes what it meets until there is enough."""
        picks, last, is_bound = [], None, self.case.wishes.is_bound
        for device in order:
            reason = self.early(device)
            if reason:
                self.reasons[reason] += 1
                continue
            if is_bound and device.numa != last:
                self.reasons["NumaNotFit"] += len(picks)
                picks, last = [], device.numa
            while True:
                pick = self.reject(device, picks)
                if isinstance(pick, str):
                    self.reasons[pick] += 1
                    break
                picks.append(pick)
                if len(picks) == self.request.count:
                    return picks
                if device.mode != "mig":
                    break
                device = device.copy()  # what it has given counts when it is visited again
                device.charge(1, pick.memory, pick.cores)
                device.placements.append(pick.placement)
        return picks

    def walk_best(self, order):
        """Of those that would do alone the best; of the first NUMA node that has enough (D27)."""
        groups, picks = {}, []
        for device in order:
            reason = self.early(device)
            if reason:
                self.reasons[reason] += 1
                continue
            group = groups.setdefault(device.numa if self.case.wishes.is_bound else 0, [])
            pick = self.reject(device, [])
            if isinstance(pick, str):
                self.reasons[pick] += 1
            else:
                group.append(device)
        for group in groups.values():
            is_bound, self.case.wishes.is_bound = self.case.wishes.is_bound, False
            picks = self.walk(self.best_set(group) if len(group) > self.request.count else group)
            self.case.wishes.is_bound = is_bound
            if len(picks) == self.request.count:
                break
        return picks

    def pair(self, a, b):
        pairs = self.case.pairs
        return pairs.get(a.uuid, {}).get(b.uuid, pairs.get(b.uuid, {}).get(a.uuid, 0))

    def best_set(self, group):
        """5.5.2, topology-aware; the first among equals."""
        if self.request.count == 1:
            return [min(group, key=lambda a: sum(self.pair(a, b) for b in group if b is not a))]
        self.case.hazards.append(len(group) > 8)
        return list(max(itertools.combinations(group, self.request.count),
                        key=lambda some: sum(self.pair(a, b) for a, b in itertools.combinations(some, 2))))


def charge_picks(devices, picks, kind):
    by_uuid = {device.uuid: device for device in devices}
    for pick in picks:
        if kind == "init":
            if pick.placement:
                by_uuid[pick.uuid].ended.append((pick.profile, pick.placement))
            continue
        by_uuid[pick.uuid].charge(1, pick.memory, pick.cores)
        if pick.placement:
            by_uuid[pick.uuid].placements.append(pick.placement)


def fit_node(case, devices):
    """The picks of each container, or the reason (5.4.2; a sidecar stays beside those after it)."""
    standing = [device.copy() for device in devices]
    rows, found = [], []
    for kind, request in case.requests:
        picks = []
        if request:
            picks = Fit(case, standing, rows, kind, request).run()
            if isinstance(picks, str):
                return picks
            charge_picks(standing, picks, kind)
        rows = rows + [(kind, [(pick.uuid, pick.memory, pick.cores) for pick in picks])]
        found.append(picks)
    return found


def node_parts(devices):
    return tuple((sum(getattr(d, a) for d in devices), sum(getattr(d, b) for d in devices))
                 for a, b in (("used", "count"), ("used_cores", "cores"), ("used_memory", "memory")))


class Case:
    """What all nodes have in common."""

    def __init__(self, case):
        self.config, pod = case["config"].get("nvidia", {}), case["pod"]
        self.requests = [(kind, read_request(self.config, c)) for kind, c in containers_of(pod)]
        self.asks = any(request for _, request in self.requests)
        self.hazards, self.cordoned, self.pairs = [], [], {}
        if not self.asks:
            return
        self.wishes = Wishes(pod, case["config"].get("flags", []))
        self.limits = {}
        factor = max(self.config.get("memoryFactor", 0), 1)
        for hard in case.get("quota") or []:
            for at, name, times in ((1, MEMORY, factor), (2, CORES, 1)):
                limit = quantity(hard["limits." + name]) if "limits." + name in hard else None
                if limit is not None:
                    self.limits[at] = min(limit * times, self.limits.get(at, INT32 * INT32))
        self.holders = [Holder(self.config, one) for node in case["nodes"] for one in node["pods"]]
        mine = [holder for holder in self.holders if holder.space == pod["metadata"].get("namespace")]
        self.quota_used = [sum(row[at] for holder in mine for row in holder.taken.values()) for at in range(3)]


def devices_of(node, holders):
    devices = read_register(node["annotations"].get("hami.io/node-nvidia-register"))
    if not quantity(node["allocatable"].get(COUNT, 0)):
        return []
    for holder in holders:
        if holder.node == node["name"]:
            holder.charge(devices)
    return devices


def read_pairs(text):
    try:
        return {row["uuid"]: row["score"] for row in json.loads(text)} if text else {}
    except (ValueError, KeyError, TypeError):
        return {}


def written(found):
    """3.2 and 3.3."""
    devices = "".join("".join(f"{p.uuid},NVIDIA,{p.memory},{p.cores}:" for p in picks) + ";" for picks in found)
    instances = [{"containerIndex": c, "deviceIndex": d, "gpuUUID": pick.uuid, "profile": pick.profile,
                  "placement": {"start": pick.placement[0], "size": pick.placement[1]}}
                 for c, picks in enumerate(found) for d, pick in enumerate(picks) if pick.placement]
    return devices, instances


def decide(raw):
    try:
        case = Case(raw)
    except Wrong:
        return {"error": True}
    if not case.asks:
        return {"asks": False}
    fits, failed = {}, {}
    nodes = {node["name"]: node for node in raw["nodes"]}
    for name in raw["nodeNames"]:
        devices = devices_of(nodes[name], case.holders) if name in nodes else []
        if not devices:
            failed[name] = "node unregistered"
            continue
        case.cordoned = words(nodes[name]["annotations"].get("hami.io/device-cordon", ""))
        case.pairs = read_pairs(nodes[name]["annotations"].get("hami.io/node-nvidia-score"))
        found = fit_node(case, devices)
        if isinstance(found, str):
            failed[name] = found
        else:
            fits[name] = (score(node_parts(devices)), node_parts(devices), found)
    raw["hazard"] = any(case.hazards) or is_near([row[:2] for row in fits.values()])
    if not fits:
        return {"failed": failed}
    sign = 1 if case.wishes.is_node_spread else -1
    node = min(fits, key=lambda name: (sign * fits[name][0], name))
    devices, instances = written(fits[node][2])
    return {"node": node, "devices": devices, "instances": instances, "scores": {name: round(row[0], 2) for name, row in fits.items()}}
