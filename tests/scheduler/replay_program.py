#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay_program.py PROGRAM VECTORS DIFFERENCES ANSWERS [ID...]: the recorded questions of Filter and of the webhook, asked of vgpu-scheduler
itself: with the status and the version of an answer, its error, and the events, which test_vectors.c does not see.

What is decided otherwise stands in differences.def as DIFFERENCE, what is told otherwise of the same decision as TOLD; the answer
that is right instead stands in answers.jsonl."""

import base64
import concurrent.futures
import json
import sys
import time

from cluster import Scheduler, Town, wait_for
from daemon import equal
from replay import NODE, PROGRAM, added, corrected, flags_of, put_nodes, put_pod, read_answers, read_differences, timeless

PART = 40  # that one scheduler is asked
DECIDED, TOLD = range(2)


def space_of(vector):
    return vector["pod"]["metadata"].get("namespace", "vectors")


def put_quotas(vector, town):
    for number, hard in enumerate(vector.get("quota", [])):
        town.cluster.put("resourcequotas", {"metadata": {"name": f"quota-{number}", "namespace": space_of(vector)}, "spec": {"hard": hard}})


def events_of(vector, town, name):
    """Ours come a moment after the answer, in any order."""
    right, until = sorted(vector.get("events", [])), time.monotonic() + 60
    while True:
        ours = sorted(map(list, town.cluster.events(name)))
        if ours == right or time.monotonic() > until:
            return ours
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
    decided = {"nodeNames": answer["NodeNames"], "failedNodes": answer["FailedNodes"] or {}, "isError": bool(answer["Error"]),
               "annotations": timeless(added(annotations, was))}
    return decided, {"error": answer["Error"], "events": events_of(vector, town, name)}


def recorded_filter(vector):
    result = vector["result"]
    decided = {"nodeNames": result["nodeNames"], "failedNodes": result["failedNodes"] or {}, "isError": bool(result["error"]),
               "annotations": result["annotations"]}
    return decided, {"error": result["error"], "events": sorted(vector.get("events", []))}


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
    status, answer = review(vector, scheduler, vector["admission"]["apiVersion"])
    response = answer["response"]
    equal(review(vector, scheduler, "admission.k8s.io/v1"), (status, {**answer, "apiVersion": "admission.k8s.io/v1"}))

    return decided_of(response), {
        "http": status, "apiVersion": answer["apiVersion"], "kind": answer["kind"], "uid": response["uid"],
        "patchType": response.get("patchType"), "status": status_of(response)}


def decided_of(response):
    return {"allowed": response["allowed"], "patch": patch_of(response), "message": (response.get("status") or {}).get("message")}


def recorded_webhook(vector):
    result = vector["result"]
    return decided_of(result), {
        "http": result["http"], "apiVersion": result["apiVersion"], "kind": "AdmissionReview", "uid": vector["id"],
        "patchType": result["patchType"], "status": status_of(result)}


# How it is asked, and what was recorded in the same form: what is decided, and what is told of it.
REPLAYS = {"filter": (replay_filter, recorded_filter), "webhook": (replay_webhook, recorded_webhook)}


def judge(vector, town, scheduler):
    """What is wrong with ours."""
    replay, recorded = REPLAYS[vector["request"]]
    right = recorded(corrected(vector, vector["answer"]))
    differs = [a != b for a, b in zip(right, recorded(vector))]
    if vector["part"] is not None and not differs[vector["part"]]:
        return "is said to differ, and does not"
    if vector["part"] == TOLD and differs[DECIDED]:
        return "is said to be told otherwise, and is decided otherwise"
    put_nodes(vector, town)
    put_quotas(vector, town)
    ours = replay(corrected(vector, vector["answer"]), town, scheduler)
    for collection in ("pods", "nodes", "resourcequotas"):
        for key in list(town.cluster.objects.get(collection, {})):
            town.cluster.delete(collection, key)
    return None if ours == right else f"\n    ours  {json.dumps(ours)}\n    right {json.dumps(right)}"


def main():
    differences, told = read_differences(sys.argv[3], "DIFFERENCE"), read_differences(sys.argv[3], "TOLD")
    answers = read_answers(sys.argv[4], {**differences, **told})
    groups = {}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for vector in map(json.loads, lines):
            is_asked = vector["request"] == "filter" or "admission" in vector
            if is_asked and (not sys.argv[5:] or vector["id"] in sys.argv[5:]):
                vector["answer"] = answers.get(vector["id"], {})
                vector["part"] = DECIDED if vector["id"] in differences else TOLD if vector["id"] in told else None
                groups.setdefault(json.dumps(vector["config"]), []).append(vector)
    parts = [vectors[i:i + PART] for vectors in groups.values() for i in range(0, len(vectors), PART)]

    def replay_part(vectors):
        with Town() as town, Scheduler(PROGRAM, town, *flags_of(vectors[0], town)) as scheduler:
            return [(vector, judge(vector, town, scheduler)) for vector in vectors]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        judged = [pair for part in pool.map(replay_part, parts) for pair in part]
    failed = [(vector, wrong) for vector, wrong in judged if wrong]
    for vector, wrong in failed:
        print(f"{vector['id']} ({vector['about']}): {wrong}")
    print(f"{len(judged)} recordings, {len(failed)} failed")
    return bool(failed) or not judged


if __name__ == "__main__":
    sys.exit(main())
