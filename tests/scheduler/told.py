#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""told.py PROGRAM [TEST...]: what vgpu-scheduler tells of its work: in numbers and in events."""

import http.client
import re
import sys
import threading

from cluster import LOCK, Scheduler, device, node, pod, wait_for
from daemon import NODE, PROGRAM, equal, finish, main, one_node, put_pod, stamp


def numbers(scheduler):
    """The metrics of the scheduler's own work, by name and labels."""
    connection = http.client.HTTPConnection("127.0.0.1", scheduler.metrics_port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^vgpu_scheduler_(\S+) (\S+)$", text, re.MULTILINE)}


def buckets(said, verb):
    """The counts of a histogram's buckets, in the order of their bounds."""
    found = [(float(bound), count) for key, count in said.items()
             for of, bound in re.findall(r'^request_duration_seconds_bucket\{verb="(\w+)",le="([^"]+)"\}$', key) if of == verb]
    return [count for _, count in sorted(found)]


def each_request_is_measured(town):
    one_node(town)
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
              "request": {"uid": "r", "operation": "CREATE", "namespace": "default", "object": pod("p")}}
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        for _ in range(3):
            scheduler.post("/webhook", review)
        scheduler.post("/preempt", {"Pod": item, "NodeNameToVictims": None, "NodeNameToMetaVictims": {}})
        said = numbers(scheduler)
        for verb, count in (("filter", 1), ("bind", 1), ("webhook", 3), ("preempt", 1)):
            found = buckets(said, verb)
            equal((verb, len(found), found == sorted(found), found[-1]), (verb, 15, True, count))
            equal((verb, said[f'request_duration_seconds_count{{verb="{verb}"}}']), (verb, count))
            equal((verb, said[f'request_duration_seconds_sum{{verb="{verb}"}}'] > 0), (verb, True))
            equal((verb, said[f'request_failures_total{{verb="{verb}"}}']), (verb, 0))


def failures_are_counted_by_verb(town):
    one_node(town)
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        scheduler.ask("POST", "/filter", "{")
        scheduler.ask("POST", "/bind", "{")
        scheduler.ask("POST", "/bind", "{")
        scheduler.ask("POST", "/webhook", "{")
        said = numbers(scheduler)
        equal([said[f'request_failures_total{{verb="{verb}"}}'] for verb in ("filter", "bind", "webhook", "preempt")], [1, 2, 1, 0])


def rejections_are_counted_by_reason(town):
    """By nodes: one that lacks something for several of its devices counts once."""
    town.cluster.put("nodes", node("n1", [device(0), device(1)]))
    town.cluster.put("nodes", node("n2", [device(2), device(3, type="NVIDIA T4")]))
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        before = numbers(scheduler)
        scheduler.filter(put_pod(town, "p", memory=20000), ["n1", "n2", "n3"])
        scheduler.filter(put_pod(town, "q", memory=20000, annotations={"nvidia.com/use-gputype": "T4"}), ["n2"])
        after = numbers(scheduler)
        found = {key: after[key] - before[key] for key in after if key.startswith("node_rejections_total") and after[key] != before[key]}
        equal(found, {'node_rejections_total{reason="CardInsufficientMemory"}': 3, 'node_rejections_total{reason="CardTypeMismatch"}': 1,
                      'node_rejections_total{reason="NodeUnregistered"}': 1})


def calls_of_the_api_server_are_counted(town):
    """As many as the server was asked, without events."""
    one_node(town)

    def asked():
        return sum("/events" not in path for _, path in town.cluster.calls)
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        before = numbers(scheduler)["api_calls_total"], asked()
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        wait_for(lambda: len(town.cluster.events("p")) == 2, "events")
        after = numbers(scheduler)["api_calls_total"], asked()
        told, made = (after[i] - before[i] for i in range(2))
        equal((told, told in (2, 3)), (made, True))  # the lock, the binding, and a promise where the bind came late


def binds_that_wait_are_told(town):
    one_node(town)
    put_pod(town, "holder")
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        equal(numbers(scheduler)["binds_waiting"], 0)
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({LOCK: f"{stamp()},default,holder"}))
        town.tell(scheduler)
        pods = [put_pod(town, f"p{i}") for i in range(2)]
        said = []
        for item in pods:
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        threads = [threading.Thread(target=lambda item=item: said.append(scheduler.bind(item, "n1"))) for item in pods]
        for thread in threads:
            thread.start()
        wait_for(lambda: numbers(scheduler)["binds_waiting"] == 2, "two binds")
        equal((numbers(scheduler)["reservations"], said), (2, []))
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].pop(LOCK))
        wait_for(lambda: said == [""], "the first bind")
        wait_for(lambda: numbers(scheduler)["binds_waiting"] == 1, "one bind")
        first = next(item["metadata"]["name"] for item in pods
                     if town.cluster.get("pods", f"default/{item['metadata']['name']}")["spec"].get("nodeName"))
        equal(town.cluster.annotations("pods", f"default/{first}")[NODE], "n1")
        finish(town, first)
        for thread in threads:
            thread.join()
        equal((said, numbers(scheduler)["binds_waiting"]), (["", ""], 0))


if __name__ == "__main__":
    sys.exit(main(globals()))
