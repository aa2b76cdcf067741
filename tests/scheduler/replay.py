#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py PROGRAM VECTORS DIFFERENCES [ID...]: what HAMi v2.10.0 did in sequences of requests, binds and simulations
(vectors/README.md), asked of vgpu-scheduler before an API server in memory.

Each difference stands in differences.def with its reason; what stands there and does not differ is a failure, too."""

import calendar
import copy
import json
import pathlib
import re
import sys
import time

from cluster import LOCK, REGISTER, Scheduler, Town, wait_for

PROGRAM = sys.argv[1]
COUNT = "nvidia.com/gpu"
NODE = "hami.io/vgpu-node"


def read_differences(path, macro="DIFFERENCE"):
    """Recording: reason."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    found = {}
    for ids, reason in re.findall(r'\b' + macro + r'\(((?:\s*"[^"]*")+),((?:\s*"[^"]*")+)\)', text):
        for name in "".join(re.findall(r'"([^"]*)"', ids)).split():
            found[name] = "".join(re.findall(r'"([^"]*)"', reason))
    return found


def flags_of(vector, town):
    config = vector["config"]
    flags = list(config["flags"]) + ["--node-lock-retry-timeout=0"]
    if config["nvidia"]:
        path = pathlib.Path(town.folder.name, "config.yaml")
        path.write_text(json.dumps({"nvidia": config["nvidia"]}), encoding="utf-8")
        flags.append(f"--device-config-file={path}")
    return flags


def put_nodes(vector, town):
    for number, row in enumerate(vector["nodes"]):
        town.cluster.put("nodes", {
            "metadata": {"name": row["name"], "labels": row.get("labels", {}), "annotations": copy.deepcopy(row["annotations"])},
            "status": {"allocatable": dict(row["allocatable"])}})
        for holder in row["pods"]:
            item = copy.deepcopy(holder)
            item["metadata"].setdefault("namespace", "vectors")
            item["spec"].setdefault("nodeName", row["name"])
            item["metadata"]["uid"] = f"holder-{number}-{item['metadata']['name']}"
            town.cluster.put("pods", item)


def put_pod(town, item):
    item = copy.deepcopy(item)
    item["metadata"].setdefault("namespace", "vectors")
    item.setdefault("status", {"phase": "Pending"})
    town.cluster.put("pods", item)
    return item["metadata"]["name"]


def added(is_, was):
    return {key: value for key, value in is_.items() if key.startswith("hami.io/") and was.get(key) != value}


def timeless(annotations):
    said = dict(annotations)
    for key in ("hami.io/vgpu-time", "hami.io/bind-time"):
        if key in said and abs(int(said[key]) - time.time()) < 60:
            said[key] = "<unix seconds>"
    return said


def read_pod(town, name):
    return town.cluster.get("pods", f"vectors/{name}")


def ask(town, scheduler, name, names, was, is_promised):
    """The answer to a Filter in the recording's form. Ours writes what was promised a moment later."""
    town.tell(scheduler)
    answer = scheduler.filter(read_pod(town, name), names)
    if is_promised and answer["NodeNames"]:
        wait_for(lambda: read_pod(town, name)["metadata"].get("annotations", {}).get(NODE) == answer["NodeNames"][0],
                 "the promise")
    else:
        time.sleep(0.1)
    metadata = read_pod(town, name)["metadata"]
    said = {"nodeNames": answer["NodeNames"], "failedNodes": answer["FailedNodes"] or {}, "error": answer["Error"],
            "annotations": timeless(added(metadata.get("annotations", {}), was))}
    if metadata.get("labels"):
        said["labels"] = {key: value for key, value in metadata["labels"].items() if key.startswith("hami.io/")}
    return said


def recorded_filter(result):
    said = {key: result[key] for key in ("nodeNames", "failedNodes", "error", "annotations", "labels") if key in result}
    return {**said, "failedNodes": said["failedNodes"] or {}}


class Sequence:
    """Steps one after another; what changes the cluster between two Filters is done to it."""

    def __init__(self, vector, town, scheduler):
        self.vector, self.town, self.scheduler = vector, town, scheduler
        self.node = vector["nodes"][0]["name"]
        self.first = None

    def annotate(self, key, value):
        def change(item):
            if value is None:
                item["metadata"]["annotations"].pop(key, None)
            else:
                item["metadata"]["annotations"][key] = value
        self.town.cluster.change("nodes", self.node, change)

    def allocate(self, count):
        self.town.cluster.change("nodes", self.node, lambda item: item["status"]["allocatable"].update({COUNT: count}))

    def end_first(self):
        if "terminating" in self.vector["about"]:
            self.change_first(lambda item: item["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
        else:
            self.town.cluster.delete("pods", f"vectors/{self.first}")

    def change_first(self, function):
        self.town.cluster.change("pods", f"vectors/{self.first}", function)

    def end_inits(self):
        """Only a bound pod's containers run."""
        def change(item):
            item["spec"]["nodeName"] = self.node
            item["status"]["initContainerStatuses"] = [
                {"name": one["name"], "state": {"terminated": {"exitCode": 0}}} for one in item["spec"]["initContainers"]]
        self.change_first(change)

    def touch_holder(self):
        holder = self.vector["nodes"][0]["pods"][0]["metadata"]
        self.town.cluster.change("pods", f"{holder['namespace']}/{holder['name']}", lambda item: item["metadata"]["annotations"].update(other="1"))

    def filter(self, step):
        if isinstance(step["pod"], dict):
            name = put_pod(self.town, step["pod"])
            self.first = self.first or name
        else:
            name = self.first
        was = step["pod"]["metadata"].get("annotations", {}) if isinstance(step["pod"], dict) else {}
        is_promised = NODE in step["result"].get("annotations", {})
        return ask(self.town, self.scheduler, name, step["nodeNames"], was, is_promised), recorded_filter(step["result"])

    def timeline(self, step):
        """What it comes to in the end."""
        said = ask(self.town, self.scheduler, self.first, [self.node], {}, False)
        ours = "fits" if said["nodeNames"] else said["failedNodes"].get(self.node)
        return {"says": [ours]}, {"says": sorted({row[1] for row in step["timeline"]})}

    def do(self, step):
        """Ours and theirs; None where the step asks nothing."""
        what = step["do"]
        if what.startswith("filter"):
            return self.filter(step)
        if "asked every second" in what:
            return self.timeline(step)
        if what.startswith("register annotation becomes"):
            self.annotate(REGISTER, step["value"])
        elif what.startswith("node annotation hami.io/device-cordon"):
            self.annotate("hami.io/device-cordon", what.rpartition(" set to ")[2] if " set to " in what else None)
        elif what.startswith("allocatable of"):
            self.allocate(what.rpartition(" ")[2])
        elif what.startswith("pod of step 0 deleted"):
            self.end_first()
        elif what.startswith("init containers of the pod of step 0"):
            self.end_inits()
        elif what.startswith("any other annotation of the node's holder"):
            self.touch_holder()
        elif not what.startswith("wait"):
            raise AssertionError(f"what is to be done is not understood: {what}")
        return None


def replay_sequence(vector, town, scheduler):
    sequence = Sequence(vector, town, scheduler)
    pairs = [pair for pair in map(sequence.do, vector["steps"]) if pair]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def age_of(lock):
    """By its time when the recording was made."""
    at = calendar.timegm(time.strptime(lock["at"], "%Y-%m-%dT%H:%M:%SZ"))
    stamp, comma, rest = lock["value"].partition(",")
    try:
        age = at - calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return lock["value"]
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age)) + comma + rest


def put_lock(vector, town):
    lock = age_of(vector["lockBefore"])
    name = lock.split(",")[2] if lock.count(",") == 2 else None
    town.cluster.change("nodes", vector["nodes"][0]["name"], lambda item: item["metadata"]["annotations"].update({LOCK: lock}))
    if name and "does not exist" not in vector["about"]:
        phase = "Failed" if "Failed" in vector["about"] else "Pending"
        put_pod(town, {"metadata": {"name": name}, "spec": {"containers": []}, "status": {"phase": phase}})
    return lock


def replay_bind(vector, town, scheduler):
    name = put_pod(town, vector["pod"])
    is_promised = NODE in vector["result"]["filter"].get("annotations", {})
    ours = {"filter": ask(town, scheduler, name, [vector["nodes"][0]["name"]], {}, is_promised)}
    lock = put_lock(vector, town) if "lockBefore" in vector else None
    town.tell(scheduler)
    uid = vector["bind"]["PodUID"]
    if uid == "<the pod's>":
        uid = read_pod(town, name)["metadata"]["uid"]
    ours["body"] = scheduler.post("/bind", {**vector["bind"], "PodUID": uid})
    theirs = {key: vector["result"][key] for key in ("body", "podNode", "podAnnotations", "nodeAnnotations")}
    theirs["filter"] = recorded_filter(vector["result"]["filter"])
    theirs["events"] = sorted(vector["events"])
    # events are told, and what was promised is taken back, a moment later
    until = time.monotonic() + 20
    while True:
        look_at_bind(vector, town, name, lock, ours)
        if (ours == theirs) != vector["differs"] or time.monotonic() > until:
            return ours, theirs
        time.sleep(0.02)


def look_at_bind(vector, town, name, lock, ours):
    pod = read_pod(town, name)
    ours["podNode"] = pod["spec"].get("nodeName")
    ours["podAnnotations"] = timeless(added(pod["metadata"].get("annotations", {}), {}))
    is_ = town.cluster.annotations("nodes", vector["bind"]["Node"]).get(LOCK)
    ours["nodeAnnotations"] = {}
    if is_:
        word = "<RFC3339 as set>" if is_ == lock else "<RFC3339 now>"
        ours["nodeAnnotations"][LOCK] = word + "".join(is_.partition(",")[1:])
    ours["events"] = sorted(map(list, town.cluster.events(name)))


def replay_simulation(vector, town, scheduler):
    name = put_pod(town, vector["pod"])
    items = [town.cluster.get("nodes", node) for node in vector["given"]["nodes"]]
    answer = scheduler.post("/filter", {"Pod": read_pod(town, name), "Nodes": {"metadata": {}, "items": items},
                                        "NodeNames": vector["given"]["nodeNames"]})
    nodes = [item["metadata"]["name"] for item in (answer["Nodes"] or {"items": []})["items"]]
    ours = {"nodeNames": answer["NodeNames"], "failedNodes": answer["FailedNodes"] or {}, "error": answer["Error"],
            "nodes": nodes, "annotations": added(read_pod(town, name)["metadata"].get("annotations", {}), {})}
    return ours, vector["result"]


def replay_raw(vector, _, scheduler):
    asked = vector["http"]
    body = asked["body"]
    status, text = scheduler.ask(asked["method"], asked["path"], body if isinstance(body, str) or body is None else json.dumps(body))
    return {"http": status, "body": text}, vector["result"]


def replay_raw_pod(vector, town, scheduler):
    name = put_pod(town, vector["pod"])
    status, _ = scheduler.ask("POST", "/filter", json.dumps({"Pod": read_pod(town, name), "Nodes": None, "NodeNames": None}))
    return {"http": status}, vector["result"]


REPLAYS = {"sequence": replay_sequence, "bind": replay_bind, "simulate": replay_simulation, "raw": replay_raw,
           "rawpod": replay_raw_pod}


def replay(vector):
    with Town() as town:
        put_nodes(vector, town)
        with Scheduler(PROGRAM, town, *flags_of(vector, town)) as scheduler:
            return REPLAYS[vector["request"]](vector, town, scheduler)


def main():
    differences = read_differences(sys.argv[3])
    checked = failed = 0
    with open(sys.argv[2], encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]
    for vector in vectors:
        if vector["request"] not in REPLAYS or (sys.argv[4:] and vector["id"] not in sys.argv[4:]):
            continue
        checked += 1
        reason = differences.get(vector["id"])
        vector["differs"] = bool(reason)
        ours, theirs = replay(vector)
        if (ours == theirs) == (reason is None):
            continue
        failed += 1
        print(f"{vector['id']} ({vector['about']}) {vector.get('defect', '')}: {'is the same after all' if reason else ''}")
        print(f"    ours   {json.dumps(ours)}\n    theirs {json.dumps(theirs)}", flush=True)
    print(f"{checked} recordings, {failed} failed")
    return failed != 0 or not checked


if __name__ == "__main__":
    sys.exit(main())
