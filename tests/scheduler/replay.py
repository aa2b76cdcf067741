#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py PROGRAM VECTORS DIFFERENCES ANSWERS [ID...]: what HAMi v2.10.0 did in sequences of requests, binds and simulations
(vectors/README.md), asked of vgpu-scheduler before an API server in memory.

Each difference stands in differences.def with its reason, and in answers.jsonl with the answer that is right instead. Any other
answer is a failure, and so is a difference that is none."""

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


def read_answers(path, differences):
    """Recording: the parts of it that are otherwise. There is one for each difference, and no other."""
    with open(path, encoding="utf-8") as lines:
        found = {answer.pop("id"): answer for answer in map(json.loads, lines)}
    if found.keys() != set(differences):
        raise AssertionError(f"in one of the two alone: {sorted(found.keys() ^ set(differences))}")
    return found


def corrected(vector, answer):
    """The recording with the answer that is right."""
    steps = [{**step, **other} for step, other in zip(vector.get("steps", []), answer.get("steps", []), strict="steps" in answer)]
    return {**vector, **answer, **({"steps": steps} if steps else {})}


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


def ask(town, scheduler, name, names, was, right):
    """
    The answer to a Filter in the recording's form. Ours writes what was promised a moment later, and takes it back so, too.
    right: the annotations that it should have then, None where nobody asks.
    """
    town.tell(scheduler)
    answer = scheduler.filter(read_pod(town, name), names)
    if not right or NODE not in right:
        time.sleep(0.1)  # nothing is written that should not be
    until = time.monotonic() + 20
    while right is not None and timeless(added(read_pod(town, name)["metadata"].get("annotations", {}), was)) != right and time.monotonic() < until:
        time.sleep(0.02)
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
        return ask(self.town, self.scheduler, name, step["nodeNames"], was, step["result"].get("annotations", {}))

    def timeline(self):
        """What it comes to in the end."""
        said = ask(self.town, self.scheduler, self.first, [self.node], {}, None)
        return {"says": ["fits" if said["nodeNames"] else said["failedNodes"].get(self.node)]}

    def do(self, step):
        """What is said; None where the step asks nothing."""
        what = step["do"]
        if what.startswith("filter"):
            return self.filter(step)
        if "asked every second" in what:
            return self.timeline()
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
    return [said for said in map(sequence.do, vector["steps"]) if said]


def recorded_sequence(vector):
    return [{"says": sorted({row[1] for row in step["timeline"]})} if "timeline" in step else recorded_filter(step["result"])
            for step in vector["steps"] if "timeline" in step or "result" in step]


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
    right = vector["result"]["filter"].get("annotations", {})
    ours = {"filter": ask(town, scheduler, name, [vector["nodes"][0]["name"]], {}, right)}
    lock = put_lock(vector, town) if "lockBefore" in vector else None
    town.tell(scheduler)
    uid = vector["bind"]["PodUID"]
    if uid == "<the pod's>":
        uid = read_pod(town, name)["metadata"]["uid"]
    ours["body"] = scheduler.post("/bind", {**vector["bind"], "PodUID": uid})
    # events are told, and what was promised is taken back, a moment later
    until, right = time.monotonic() + 20, recorded_bind(vector)
    while True:
        look_at_bind(vector, town, name, lock, ours)
        if ours == right or time.monotonic() > until:
            return ours
        time.sleep(0.02)


def recorded_bind(vector):
    said = {key: vector["result"][key] for key in ("body", "podNode", "podAnnotations", "nodeAnnotations")}
    return {**said, "filter": recorded_filter(vector["result"]["filter"]), "events": sorted(vector["events"])}


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
    return {"nodeNames": answer["NodeNames"], "failedNodes": answer["FailedNodes"] or {}, "error": answer["Error"],
            "nodes": nodes, "annotations": added(read_pod(town, name)["metadata"].get("annotations", {}), {})}


def replay_raw(vector, _, scheduler):
    asked = vector["http"]
    body = asked["body"]
    status, text = scheduler.ask(asked["method"], asked["path"], body if isinstance(body, str) or body is None else json.dumps(body))
    return {"http": status, "body": text}


def replay_raw_pod(vector, town, scheduler):
    name = put_pod(town, vector["pod"])
    status, text = scheduler.ask("POST", "/filter", json.dumps({"Pod": read_pod(town, name), "Nodes": None, "NodeNames": None}))
    return {"http": status, "body": text}


def recorded_result(vector):
    return vector["result"]


# How it is asked, and what was recorded in the same form.
REPLAYS = {"sequence": (replay_sequence, recorded_sequence), "bind": (replay_bind, recorded_bind),
           "simulate": (replay_simulation, recorded_result), "raw": (replay_raw, recorded_result),
           "rawpod": (replay_raw_pod, recorded_result)}


def judge(vector, answer):
    """What is wrong with ours."""
    replay, recorded = REPLAYS[vector["request"]]
    right = corrected(vector, answer) if answer else vector
    if answer and recorded(right) == recorded(vector):
        return " is said to differ, and does not"
    with Town() as town:
        put_nodes(right, town)
        with Scheduler(PROGRAM, town, *flags_of(right, town)) as scheduler:
            ours = replay(right, town, scheduler)
    return None if ours == recorded(right) else f"\n    ours  {json.dumps(ours)}\n    right {json.dumps(recorded(right))}"


def main():
    differences = read_differences(sys.argv[3])
    answers = read_answers(sys.argv[4], {**differences, **read_differences(sys.argv[3], "TOLD")})
    checked = failed = 0
    with open(sys.argv[2], encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]
    for vector in vectors:
        if vector["request"] not in REPLAYS or (sys.argv[5:] and vector["id"] not in sys.argv[5:]):
            continue
        checked += 1
        wrong = judge(vector, answers.get(vector["id"]))
        if wrong:
            failed += 1
            print(f"{vector['id']} ({vector['about']}) {vector.get('defect', '')}: {wrong}", flush=True)
    print(f"{checked} recordings, {failed} failed")
    return failed != 0 or not checked


if __name__ == "__main__":
    sys.exit(main())
