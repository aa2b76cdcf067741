#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay_program.py PROGRAM VECTORS DIFFERENCES [ID...]: the recorded questions of Filter and of the webhook, asked of vgpu-scheduler
itself: with the status and the version of an answer, its error, and the events, which test_vectors.c does not see.

What is decided otherwise stands in differences.def as DIFFERENCE, what is told otherwise of the same decision as TOLD."""

import base64
import concurrent.futures
import json
import sys
import time

from cluster import Scheduler, Town, wait_for
from daemon import equal
from replay import NODE, PROGRAM, added, flags_of, put_nodes, put_pod, read_differences, timeless

PART = 40  # that one scheduler is asked


def space_of(vector):
    return vector["pod"]["metadata"].get("namespace", "vectors")


def put_quotas(vector, town):
    for number, hard in enumerate(vector.get("quota", [])):
        town.cluster.put("resourcequotas", {"metadata": {"name": f"quota-{number}", "namespace": space_of(vector)}, "spec": {"hard": hard}})


def events_of(vector, town, name):
    """Ours come a moment after the answer, in any order."""
    theirs, began = sorted(vector.get("events", [])), time.monotonic()
    least_s = 0.3 if vector["isToldOtherwise"] or vector["isDecidedOtherwise"] else 0
    while True:
        ours, took_s = sorted(map(list, town.cluster.events(name))), time.monotonic() - began
        is_done = vector["isDecidedOtherwise"] or (ours == theirs) != vector["isToldOtherwise"]
        if took_s > 10 or (is_done and took_s >= least_s):
            return ours, theirs
        time.sleep(0.005)


def replay_filter(vector, town, scheduler):
    was = vector["pod"]["metadata"].get("annotations", {})
    name, result = put_pod(town, vector["pod"]), vector["result"]
    key = f"{space_of(vector)}/{name}"
    town.tell(scheduler)
    answer = scheduler.filter(town.cluster.get("pods", key), vector["nodeNames"])
    if answer["NodeNames"] and result["annotations"]:
        wait_for(lambda: town.cluster.annotations("pods", key).get(NODE) == answer["NodeNames"][0], "the promise")
    annotations = town.cluster.annotations("pods", key)
    ours = {"nodeNames": answer["NodeNames"], "failedNodes": answer["FailedNodes"] or {}, "isError": bool(answer["Error"]),
            "annotations": timeless(added(annotations, was))}
    theirs = {"nodeNames": result["nodeNames"], "failedNodes": result["failedNodes"] or {}, "isError": bool(result["error"]),
              "annotations": result["annotations"]}
    events = events_of(vector, town, name)
    return (ours, theirs), ({"error": answer["Error"], "events": events[0]}, {"error": result["error"], "events": events[1]})


def status_of(response):
    """An empty member, and 200 of what is allowed, say nothing."""
    status = {key: value for key, value in (response.get("status") or {}).items() if value}
    return None if status == {"code": 200} else status or None


def patch_of(response):
    patch = response.get("patch")
    if isinstance(patch, str):
        patch = json.loads(base64.b64decode(patch))
    return sorted(patch or [], key=lambda one: one["path"])


def review(vector, scheduler, version):
    admission = vector["admission"]
    status, text = scheduler.ask("POST", "/webhook", json.dumps({
        "apiVersion": version, "kind": "AdmissionReview",
        "request": {"uid": vector["id"], "operation": admission["operation"], "object": admission["object"]}}))
    return status, json.loads(text)


def replay_webhook(vector, town, scheduler):
    """The recordings are of v1beta1; v1 is answered with the same, as v1."""
    town.tell(scheduler)
    result = vector["result"]
    status, answer = review(vector, scheduler, vector["admission"]["apiVersion"])
    response = answer["response"]
    equal(review(vector, scheduler, "admission.k8s.io/v1"), (status, {**answer, "apiVersion": "admission.k8s.io/v1"}))

    def decided(of):
        return {"allowed": of["allowed"], "patch": patch_of(of), "message": (of.get("status") or {}).get("message")}
    return (decided(response), decided(result)), (
        {"http": status, "apiVersion": answer["apiVersion"], "kind": answer["kind"], "uid": response["uid"],
         "patchType": response.get("patchType"), "status": status_of(response)},
        {"http": result["http"], "apiVersion": result["apiVersion"], "kind": "AdmissionReview", "uid": vector["id"],
         "patchType": result["patchType"], "status": status_of(result)})


def replay(vector, town, scheduler):
    put_nodes(vector, town)
    put_quotas(vector, town)
    pairs = (replay_filter if vector["request"] == "filter" else replay_webhook)(vector, town, scheduler)
    for collection in ("pods", "nodes", "resourcequotas"):
        for key in list(town.cluster.objects.get(collection, {})):
            town.cluster.delete(collection, key)
    return pairs


def judge(vector, pairs):
    """What is wrong. Where it is decided otherwise, other things are told."""
    (ours, theirs), (ours_told, theirs_told) = pairs
    if vector["isDecidedOtherwise"]:
        return None if (ours, ours_told) != (theirs, theirs_told) else "is the same after all"
    if ours != theirs:
        return f"\n    ours   {json.dumps(ours)}\n    theirs {json.dumps(theirs)}"
    if (ours_told != theirs_told) != vector["isToldOtherwise"]:
        return f"\n    ours   {json.dumps(ours_told)}\n    theirs {json.dumps(theirs_told)}"
    return None


def main():
    differences, told = read_differences(sys.argv[3], "DIFFERENCE"), read_differences(sys.argv[3], "TOLD")
    groups = {}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for vector in map(json.loads, lines):
            is_asked = vector["request"] == "filter" or "admission" in vector
            if is_asked and (not sys.argv[4:] or vector["id"] in sys.argv[4:]):
                vector.update(isDecidedOtherwise=vector["id"] in differences, isToldOtherwise=vector["id"] in told)
                groups.setdefault(json.dumps(vector["config"]), []).append(vector)
    parts = [vectors[i:i + PART] for vectors in groups.values() for i in range(0, len(vectors), PART)]

    def replay_part(vectors):
        with Town() as town, Scheduler(PROGRAM, town, *flags_of(vectors[0], town)) as scheduler:
            return [(vector, judge(vector, replay(vector, town, scheduler))) for vector in vectors]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        judged = [pair for part in pool.map(replay_part, parts) for pair in part]
    failed = [(vector, wrong) for vector, wrong in judged if wrong]
    for vector, wrong in failed:
        print(f"{vector['id']} ({vector['about']}): {wrong}")
    print(f"{len(judged)} recordings, {len(failed)} failed")
    return bool(failed) or not judged


if __name__ == "__main__":
    sys.exit(main())
