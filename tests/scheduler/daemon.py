#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""daemon.py PROGRAM [TEST...]: vgpu-scheduler before an API server in memory, one test a function below."""

import copy
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import time

from cluster import LOCK, Refusal, Scheduler, Town, device, node, other_address, pod, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.path.append(str(ROOT / "tests"))
from cases import collect, contains, equal, run  # noqa: E402 pylint: disable=wrong-import-position
import metrics  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = sys.argv[1]
NODE = "hami.io/vgpu-node"
TIME = "hami.io/vgpu-time"
ALLOCATED = "hami.io/vgpu-devices-allocated"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
PHASE = "hami.io/bind-phase"
INSTANCES = "hami.io/vgpu-mig-allocations"


def stamp(age_s=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age_s))


def put_pod(town, name, **more):
    item = pod(name, **more)
    town.cluster.put("pods", item)
    return town.cluster.get("pods", f"default/{name}")


def annotations(town, name):
    return town.cluster.annotations("pods", f"default/{name}")


def unlock(town, name="n1"):
    town.cluster.change("nodes", name, lambda item: item["metadata"]["annotations"].pop(LOCK, None))


def finish(town, name, phase="Running"):
    """What the device plugin and the kubelet do to a pod that was bound."""
    def change(item):
        item["metadata"]["annotations"][PHASE] = "success"
        item["status"]["phase"] = phase
    town.cluster.change("pods", f"default/{name}", change)
    unlock(town, annotations(town, name)[NODE])


def one_node(town, memory=10000):
    town.cluster.put("nodes", node("n1", [device(0, memory)]))


def calls(place):
    """Of pods and nodes, without what was read of all."""
    return [call for call in place.cluster.calls if "events" not in call[1] and call[1].count("/") > 3]


def changes(place):
    """Of pods and nodes, by method."""
    return [method for method, _ in calls(place) if method != "GET"]


def a_pod_is_filtered_and_bound(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        answer = scheduler.filter(item, ["n1", "n2"])
        equal(answer, {"Nodes": None, "NodeNames": ["n1"], "FailedNodes": {}, "FailedAndUnresolvableNodes": None,
                       "Error": ""})
        equal(scheduler.bind(item, "n1"), "")
        bound = town.cluster.get("pods", "default/p")
        equal(bound["spec"]["nodeName"], "n1")
        equal(bound["metadata"]["labels"], {NODE: "n1"})
        said = bound["metadata"]["annotations"]
        equal(said[ALLOCATED], "GPU-0,NVIDIA,1000,0:;")
        equal((said[TO_ALLOCATE], said[NODE], said[PHASE]), (said[ALLOCATED], "n1", "allocating"))
        contains(town.cluster.annotations("nodes", "n1")[LOCK], ",default/p".replace("/", ","))
        wait_for(lambda: len(town.cluster.events("p")) == 2, "events")
        equal(sorted(town.cluster.events("p")),
              [("Normal", "BindingSucceed", "Successfully binding node [n1] to default/p"),
               ("Normal", "FilteringSucceed", "find fit node(n1), 1 nodes not fit, 1 nodes fit(n1:0.00)")])


def a_list_of_names_that_is_too_long_is_refused(town):
    """Each device of the cluster is looked for in it, while all others wait."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        for key in ("use-gputype", "nouse-gputype", "use-gpuuuid", "nouse-gpuuuid", "vgpu-mode"):
            key = f"nvidia.com/{key}"
            for length, words in ((8192, ""), (8193, f"annotation {key} is longer than 8192 bytes")):
                item = put_pod(town, f"p{length}", annotations={key: "x".rjust(length, ",")})
                equal(scheduler.filter(item, ["n1"])["Error"], words)


def a_pod_that_is_not_bound_soon_says_what_it_was_promised(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        town.cluster.calls.clear()
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        wait_for(lambda: ALLOCATED in annotations(town, "p"), "the promise")
        said = annotations(town, "p")
        equal((said[ALLOCATED], said[TO_ALLOCATE], said[NODE]), ("GPU-0,NVIDIA,1000,0:;",) * 2 + ("n1",))
        equal(annotated(town, "p")["metadata"]["labels"], {NODE: "n1"})
        equal(scheduler.bind(item, "n1"), "")
        equal([call[0] for call in calls(town)], ["PATCH", "PATCH", "POST"])


def a_simulation_keeps_nothing(town):
    """An autoscaler's question, of nodes that are there, too: no device is kept, and nothing is written or told of the pod."""
    items = [node(name, [device(number)]) for number, name in enumerate(("n1", "n2"))]
    for item in items:
        town.cluster.put("nodes", item)
    with Scheduler(PROGRAM, town) as scheduler:
        asked = put_pod(town, "asked", memory=10000)
        town.cluster.calls.clear()
        for _ in range(3):
            answer = scheduler.post("/filter", {"Pod": asked, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})
            equal((answer["NodeNames"], answer["FailedNodes"], answer["Error"]), (None, {}, ""))
            equal([item["metadata"]["name"] for item in answer["Nodes"]["items"]], ["n1"])
        # the whole of both nodes is there for others; what is promised to them is written after what would be written of the first
        for name, place in (("p1", "n1"), ("p2", "n2")):
            equal(scheduler.filter(put_pod(town, name, memory=10000), [place])["NodeNames"], [place])
        for name in ("p1", "p2"):
            wait_for(lambda name=name: ALLOCATED in annotations(town, name) and town.cluster.events(name), "what is written and told of the others")
        equal(sorted(path for _, path in town.cluster.calls if "events" not in path),
              [f"/api/v1/namespaces/default/pods/{name}" for name in ("p1", "p2")])
        equal((annotations(town, "asked"), town.cluster.events("asked")), ({}, []))


def what_is_promised_counts_at_once(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a", memory=6000), put_pod(town, "b", memory=6000)
        equal(scheduler.filter(first, ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.filter(second, ["n1"])["FailedNodes"], {"n1": "1/1 CardInsufficientMemory"})
        # asked again, the pod finds its own devices free
        equal(scheduler.filter(annotated(town, "a"), ["n1"])["NodeNames"], ["n1"])
        town.cluster.delete("pods", "default/a")
        wait_for(lambda: scheduler.filter(second, ["n1"])["NodeNames"] == ["n1"], "room")


def a_bind_waits_for_what_is_being_written(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        began = threading.Event()

        def be_slow(method, path):
            if method == "PATCH" and path.endswith("/pods/p"):
                began.set()
                time.sleep(0.4)
        town.cluster.fault = be_slow
        scheduler.filter(item, ["n1"])
        equal(began.wait(60), True)
        equal(scheduler.bind(item, "n1"), "")
        equal([call[0] for call in calls(town)][-1], "POST")
        equal(annotations(town, "p")[PHASE], "allocating")


def annotated(town, name):
    return town.cluster.get("pods", f"default/{name}")


def a_promise_that_cannot_be_written_is_given_back(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a", memory=6000), put_pod(town, "b", memory=6000)

        def refuse(method, path):
            if path.endswith("/pods/a"):
                raise Refusal(403, "not allowed")
        town.cluster.fault = refuse
        equal(scheduler.filter(first, ["n1"])["NodeNames"], ["n1"])
        wait_for(lambda: scheduler.filter(second, ["n1"])["NodeNames"] == ["n1"], "room")
        contains(scheduler.bind(first, "n1"), "not allowed")


def a_filter_that_fails_takes_the_old_promise_back(town):
    one_node(town)
    town.cluster.put("nodes", node("n2", [device(1)]))
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a", memory=6000), put_pod(town, "b", memory=6000)
        equal(scheduler.filter(first, ["n1"])["NodeNames"], ["n1"])
        wait_for(lambda: ALLOCATED in annotations(town, "a"), "the promise")
        equal(scheduler.filter(annotated(town, "a"), ["n3"])["FailedNodes"], {"n3": "node unregistered"})
        wait_for(lambda: ALLOCATED not in annotations(town, "a"), "the end of the annotations")
        # a change of the pod that still has them does not bring the promise back
        town.cluster.change("pods", "default/a", lambda item: item["metadata"]["annotations"].update(
            first["metadata"].get("annotations", {}), touched="1"))
        equal(scheduler.filter(second, ["n1"])["NodeNames"], ["n1"])


def stale_annotations_do_not_come_back(town):
    """D20: as they stand on a pod that was refused long ago, and on one that is bound elsewhere."""
    one_node(town)
    old = {NODE: "n1", TIME: str(int(time.time()) - 4000), ALLOCATED: "GPU-0,NVIDIA,9000,0:;"}
    put_pod(town, "old", annotations=old)
    elsewhere = pod("elsewhere", annotations={**old, NODE: "n1"})
    elsewhere["spec"]["nodeName"] = "n2"
    town.cluster.put("pods", elsewhere)
    with Scheduler(PROGRAM, town) as scheduler:
        equal(scheduler.filter(put_pod(town, "p", memory=9000), ["n1"])["NodeNames"], ["n1"])


def a_restart_knows_what_was_promised(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        bound, promised = put_pod(town, "bound", memory=3000), put_pod(town, "promised", memory=3000)
        scheduler.filter(bound, ["n1"])
        equal(scheduler.bind(bound, "n1"), "")
        finish(town, "bound")
        scheduler.filter(promised, ["n1"])
        wait_for(lambda: ALLOCATED in annotations(town, "promised"), "the promise")
        scheduler.kill()
    with Scheduler(PROGRAM, town) as scheduler:
        equal(scheduler.filter(put_pod(town, "p", memory=4001), ["n1"])["FailedNodes"],
              {"n1": "1/1 CardInsufficientMemory"})
        # it was decided by another, with what that one knew
        contains(scheduler.bind(promised, "n1"), "another scheduler has promised the devices")
        equal(scheduler.filter(promised, ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.bind(promised, "n1"), "")
        equal(scheduler.filter(put_pod(town, "q", memory=4000), ["n1"])["NodeNames"], ["n1"])


def a_promise_ends_with_its_time(town):
    one_node(town)
    with Scheduler(PROGRAM, town, "--reservation-timeout=3s") as scheduler:
        first = put_pod(town, "a", memory=6000)
        scheduler.filter(first, ["n1"])
        wait_for(lambda: any(ALLOCATED in one["metadata"].get("annotations", {}) for _, of, _, one in list(town.cluster.history) if of == "pods"),
                 "the promise")
        wait_for(lambda: ALLOCATED not in annotations(town, "a"), "the end of the promise")
        equal(scheduler.filter(put_pod(town, "b", memory=6000), ["n1"])["NodeNames"], ["n1"])
        contains(scheduler.bind(first, "n1"), "no devices of the node are kept")


def binds_of_a_node_wait_for_each_other(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        pods = [put_pod(town, f"p{i}") for i in range(4)]
        for item in pods:
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        said = {}
        threads = [threading.Thread(target=lambda item=item: said.update(
            {item["metadata"]["name"]: scheduler.bind(item, "n1")})) for item in pods]
        for thread in threads:
            thread.start()
        for _ in pods:
            def holder():
                lock = town.cluster.annotations("nodes", "n1").get(LOCK)
                name = lock.split(",")[2] if lock else None
                return name and annotated(town, name)["spec"].get("nodeName") and name
            wait_for(holder, "a lock")
            equal(len(said) <= len(pods), True)
            finish(town, holder())
        for thread in threads:
            thread.join()
        equal(said, {item["metadata"]["name"]: "" for item in pods})


def a_lock_that_stays_fails_the_bind_and_gives_back(town):
    one_node(town)
    holder = pod("holder", annotations={PHASE: "allocating"})
    holder["spec"]["nodeName"] = "n1"
    town.cluster.put("pods", holder)
    lock = f"{stamp(1000)},default,holder"  # older than any lock, but its pod still waits
    town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({LOCK: lock}))
    with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=1s") as scheduler:
        item = put_pod(town, "p", memory=9000)
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "node n1 has been locked within 5m0s: node lock contention")
        equal(town.cluster.annotations("nodes", "n1")[LOCK], lock)
        wait_for(lambda: ALLOCATED not in annotations(town, "p"), "the end of the promise")
        equal(scheduler.filter(put_pod(town, "q", memory=9000), ["n1"])["NodeNames"], ["n1"])


def many_binds_leave_room_for_filter(town):
    """Of binds that wait for one lock, each with a connection, those that are too many fail at once, and Filter is answered."""
    town.cluster.put("nodes", node("n1", [device(0, 100000, count=1000)]))
    holder = pod("holder", annotations={PHASE: "allocating"})
    holder["spec"]["nodeName"] = "n1"
    town.cluster.put("pods", holder)
    lock = f"{stamp()},default,holder"
    town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({LOCK: lock}))
    with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=600s") as scheduler:
        waiting = []
        for i in range(780):
            item = put_pod(town, f"p{i}", memory=1)
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
            if len(waiting) == 512:
                contains(scheduler.bind(item, "n1"), "too many pods wait to be bound")
                continue
            waiting.append(http.client.HTTPConnection("127.0.0.1", scheduler.port, timeout=120))
            waiting[-1].request("POST", "/bind", json.dumps(
                {"PodName": f"p{i}", "PodNamespace": "default", "PodUID": item["metadata"]["uid"], "Node": "n1"}))
        equal(scheduler.filter(put_pod(town, "last", memory=1), ["n1"])["NodeNames"], ["n1"])
        for connection in waiting:
            connection.close()


def locks_that_nobody_removes_are_taken_over(town):
    over = pod("over")
    over["spec"]["nodeName"], over["status"]["phase"] = "n1", "Failed"
    served = pod("served", annotations={PHASE: "success"})
    served["spec"]["nodeName"] = "n1"
    town.cluster.put("pods", over)
    town.cluster.put("pods", served)
    put_pod(town, "unbound")
    locks = [f"{stamp(10)},default,gone", f"{stamp(10)},default,over", f"{stamp(10)},default,served",
             f"{stamp(100)},default,unbound", stamp(400), f"{stamp(400)},default", f"{stamp(400)},default,p,more"]
    one_node(town)
    with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=20s") as scheduler:
        for i, lock in enumerate(locks):
            town.cluster.change("nodes", "n1", lambda item, lock=lock: item["metadata"]["annotations"].update({LOCK: lock}))
            item = put_pod(town, f"p{i}", memory=100)
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
            equal((lock, scheduler.bind(item, "n1")), (lock, ""))
            finish(town, f"p{i}")


def a_bind_that_fails_takes_back_its_lock(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p", memory=9000)
        scheduler.filter(item, ["n1"])

        def refuse(method, path):
            if path.endswith("/binding"):
                raise Refusal(403, "no bindings today")
        town.cluster.fault = refuse
        contains(scheduler.bind(item, "n1"), "no bindings today")
        wait_for(lambda: LOCK not in town.cluster.annotations("nodes", "n1"), "the end of the lock")
        wait_for(lambda: ALLOCATED not in annotations(town, "p"), "the end of the promise")
        equal(PHASE in annotations(town, "p"), False)
        wait_for(lambda: any(event[1] == "BindingFailed" for event in town.cluster.events("p")), "an event")
        town.cluster.fault = None
        equal(scheduler.filter(put_pod(town, "q", memory=9000), ["n1"])["NodeNames"], ["n1"])


def what_is_promised_again_is_not_taken_back(town):
    """The server is slow to take the annotations off after a bind that failed; the pod is asked for again meanwhile."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p", memory=6000)
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        patch = town.cluster.patch

        def refuse_once(method, path):
            if path.endswith("/binding"):
                town.cluster.fault = None
                raise Refusal(403, "not yet")

        def clear_late(collection, key, body, is_merge):
            if is_merge and body["metadata"].get("annotations", {}).get(NODE, "") is None:
                time.sleep(0.5)
            return patch(collection, key, body, is_merge)
        town.cluster.fault, town.cluster.patch = refuse_once, clear_late
        contains(scheduler.bind(item, "n1"), "not yet")
        equal(scheduler.filter(annotated(town, "p"), ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.bind(annotated(town, "p"), "n1"), "")
        time.sleep(0.7)
        equal(annotations(town, "p")[NODE], "n1")
        equal(annotations(town, "p")[TO_ALLOCATE], "GPU-0,NVIDIA,6000,0:;")
        equal(scheduler.filter(put_pod(town, "q", memory=4001), ["n1"])["NodeNames"], None)


def a_lost_answer_to_a_binding_is_asked_for(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        bind = town.cluster.bind

        def carry_out_and_lose(key, binding):
            bind(key, binding)
            raise BrokenPipeError
        town.cluster.bind = carry_out_and_lose
        equal(scheduler.bind(item, "n1"), "")
        equal(annotated(town, "p")["spec"]["nodeName"], "n1")
        # and once more, for whoever has not heard it
        equal(scheduler.bind(item, "n1"), "")
        contains(town.cluster.annotations("nodes", "n1")[LOCK], ",default,p")


def a_binding_of_which_nothing_is_known_takes_nothing_back(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        bind = town.cluster.bind

        def carry_out_and_lose(key, binding):
            def refuse(method, path):
                if method == "GET" and path.endswith("/pods/p"):
                    raise Refusal(403, "not today")
            bind(key, binding)
            town.cluster.fault = refuse
            raise BrokenPipeError
        town.cluster.bind = carry_out_and_lose
        contains(scheduler.bind(item, "n1"), "it is not known whether the pod is bound")
        time.sleep(0.3)
        said = annotations(town, "p")
        equal((said[PHASE], said[TO_ALLOCATE]), ("allocating", "GPU-0,NVIDIA,1000,0:;"))
        contains(town.cluster.annotations("nodes", "n1")[LOCK], ",default,p")
        equal(scheduler.filter(put_pod(town, "q", memory=9001), ["n1"])["NodeNames"], None)


def a_node_that_changes_meanwhile_is_read_again(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        patch = town.cluster.patch

        def change_first(collection, key, body, is_merge):
            town.cluster.patch = patch
            town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update(other="1"))
            return patch(collection, key, body, is_merge)
        town.cluster.patch = change_first
        equal(scheduler.bind(item, "n1"), "")


def binds_of_others_take_nothing(town):
    """D19: a bind takes what was promised to its own pod, and on its own node."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p", memory=9000)
        scheduler.filter(item, ["n1"])
        stranger = {"metadata": {**item["metadata"], "name": "nobody"}}
        contains(scheduler.bind(stranger, "n1"), "another name")
        contains(scheduler.bind(item, "n2"), "another node")
        contains(scheduler.bind({"metadata": {**item["metadata"], "uid": "other"}}, "n1"), "another pod")
        contains(scheduler.bind(put_pod(town, "unasked"), "n1"), "no devices of the node are kept")
        equal(scheduler.filter(put_pod(town, "q", memory=9000), ["n1"])["NodeNames"], None)
        equal(scheduler.bind(item, "n1"), "")
        # a pod without devices is bound as it is
        equal(scheduler.bind(put_pod(town, "plain", gpus=0), "n1"), "")
        # a bound pod is not given other devices
        contains(scheduler.filter(item, ["n1"])["Error"], "bound already")


def nodes_and_quotas_count_as_they_are(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        def says(**more):
            answer = scheduler.filter(put_pod(town, "p", **more), ["n1"])
            return answer["FailedNodes"].get("n1") or answer["NodeNames"]
        equal(says(), ["n1"])
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({"hami.io/device-cordon": "GPU-0"}))
        wait_for(lambda: says() == "1/1 CardCordoned", "a cordon")
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].pop("hami.io/device-cordon"))
        wait_for(lambda: says() == ["n1"], "its end")
        town.cluster.change("nodes", "n1", lambda item: item["status"]["allocatable"].update({"nvidia.com/gpu": "0"}))
        wait_for(lambda: says() == "node unregistered", "no devices")
        town.cluster.change("nodes", "n1", lambda item: item["status"]["allocatable"].update({"nvidia.com/gpu": "10"}))
        wait_for(lambda: says() == ["n1"], "devices")
        town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                            "spec": {"hard": {"limits.nvidia.com/gpumem": "2000"}}})
        wait_for(lambda: says(memory=2001) == "1/1 ResourceQuotaNotFit", "a quota")
        # the pods before it count until the scheduler has heard of their end
        wait_for(lambda: says(memory=2000) == ["n1"], "room in the quota")
        equal(says(memory=2001), "1/1 ResourceQuotaNotFit")
        town.cluster.delete("resourcequotas", "default/q")
        wait_for(lambda: says(memory=2001) == ["n1"], "no quota")
        town.cluster.delete("nodes", "n1")
        wait_for(lambda: says() == "node unregistered", "no node")


def room_after_a_refusal_is_a_change_of_the_node(town):
    """kube-scheduler asks again when something has changed, and may have seen the other pod's end before us."""
    one_node(town)
    key = "cantaloupe.io/room-since"
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a", memory=6000), put_pod(town, "b", memory=6000)
        scheduler.filter(first, ["n1"])
        equal(scheduler.bind(first, "n1"), "")
        finish(town, "a")
        town.tell(scheduler)
        equal(key in town.cluster.annotations("nodes", "n1"), False)
        equal(scheduler.filter(second, ["n1"])["NodeNames"], None)
        finish(town, "a", "Succeeded")
        wait_for(lambda: key in town.cluster.annotations("nodes", "n1"), "the change")
        equal(scheduler.filter(second, ["n1"])["NodeNames"], ["n1"])
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].pop(key))
        # and what is given back was never told to anybody
        equal(scheduler.filter(put_pod(town, "c", memory=6000), ["n1"])["NodeNames"], None)

        def refuse(method, path):
            if path.endswith("/binding"):
                raise Refusal(403, "no")
        town.cluster.fault = refuse
        scheduler.bind(second, "n1")
        wait_for(lambda: key in town.cluster.annotations("nodes", "n1"), "the change")


def readiness_tells_the_truth(town):
    one_node(town)
    gate = threading.Event()

    def wait(method, path):
        if path == "/api/v1/pods":
            gate.wait()
    town.cluster.fault = wait
    with Scheduler(PROGRAM, town, is_ready=False) as scheduler:
        equal(scheduler.ask("GET", "/healthz")[0], 200)
        equal(scheduler.ask("GET", "/readyz"), (503, "the cluster is not known yet\n"))
        equal(scheduler.filter(put_pod(town, "p"), ["n1"])["Error"], "the cluster is not known yet")
        gate.set()
        wait_for(lambda: scheduler.ask("GET", "/readyz")[0] == 200, "readiness")


def all_is_followed_again_when_connections_were_cut(town):
    """All at once, so that the watches begin anew at once, too."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        for number in range(10):
            town.servers[0].cut()
            town.cluster.put("nodes", node(f"m{number}", [device(number + 1)]))
            item = put_pod(town, f"p{number}")
            town.tell(scheduler)
            equal(scheduler.filter(item, [f"m{number}"])["NodeNames"], [f"m{number}"])


def all_is_followed_again_when_the_api_server_was_away(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        def be_away(*_):
            raise BrokenPipeError
        town.cluster.fault = be_away
        town.servers[0].cut()
        for at in (0, 1):
            town.cluster.put("nodes", node(f"n{at + 2}", [device(at + 1)]))
        taken = pod("taken", memory=9000, annotations={NODE: "n1", ALLOCATED: "GPU-0,NVIDIA,9000,0:;", PHASE: "success"})
        taken["spec"]["nodeName"] = "n1"
        town.cluster.put("pods", taken)
        town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                            "spec": {"hard": {"limits.nvidia.com/gpumem": "12000"}}})
        time.sleep(0.3)
        town.cluster.fault = None
        town.tell(scheduler)
        equal(scheduler.filter(put_pod(town, "full", memory=2000), ["n1"])["FailedNodes"], {"n1": "1/1 CardInsufficientMemory"})
        equal(scheduler.filter(put_pod(town, "much", memory=4000), ["n2"])["NodeNames"], None)
        equal(scheduler.filter(put_pod(town, "fits", memory=2000), ["n2"])["NodeNames"], ["n2"])
        equal(scheduler.ask("GET", "/readyz"), (200, ""))


def lease(holder, seconds=2):
    now = time.time()
    renewed = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
    return {"metadata": {"name": "l", "namespace": "kube-system"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}}


def the_leader_alone_serves_pods(town):
    """D16: a host whose name begins with this one's is another."""
    one_node(town)
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    flags = ["--leader-elect", "--leader-elect-resource-name=l", "--leader-elect-resource-namespace=kube-system"]
    town.cluster.put("leases", lease(f"{host}er_1", 100))
    with Scheduler(PROGRAM, town, *flags) as scheduler:
        item = put_pod(town, "p")
        equal(scheduler.filter(item, ["n1"])["Error"], "this replica does not lead")
        # the one before has promised something just now
        promised = {NODE: "n1", TIME: str(int(time.time())), ALLOCATED: "GPU-0,NVIDIA,9500,0:;"}
        town.cluster.put("pods", pod("other", annotations=promised))
        town.cluster.put("leases", lease(f"{host}_2", 100))
        wait_for(lambda: not scheduler.filter(item, ["n1"])["Error"], "leadership")
        equal(scheduler.filter(item, ["n1"])["FailedNodes"], {"n1": "1/1 CardInsufficientMemory"})
        # it is not renewed
        town.cluster.put("leases", lease(f"{host}_2", 1))
        wait_for(lambda: scheduler.filter(item, ["n1"])["Error"] == "this replica does not lead", "its end")


def what_is_no_request_is_answered(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        equal(scheduler.ask("GET", "/filter")[0], 405)
        equal(scheduler.ask("POST", "/prioritize")[0], 404)
        equal(scheduler.ask("POST", "/webhook", "{")[0], 400)
        for body in ("", "{", "[]", "null", "{}", '{"Pod":3}', '{"Pod":{"metadata":[]}}', "[" * 100000, '{"Pod":null}', "\0"):
            status, text = scheduler.ask("POST", "/filter", body)
            equal((body[:10], status, bool(json.loads(text)["Error"])), (body[:10], 200, True))
            status, text = scheduler.ask("POST", "/bind", body)
            equal((body[:10], status, bool(json.loads(text)["Error"])), (body[:10], 200, True))
        equal(scheduler.ask("POST", "/filter", "x" * (9 << 20))[0], 413)
        contains(scheduler.filter(pod("p", uid="u", namespace="a/../b"), ["n1"])["Error"], "no namespace")
        contains(scheduler.filter(put_pod(town, "p"), None)["Error"], "neither Nodes nor NodeNames")
        equal(scheduler.filter(put_pod(town, "q"), []), {"Nodes": None, "NodeNames": None, "FailedNodes": {},
                                                         "FailedAndUnresolvableNodes": None, "Error": ""})
        equal(scheduler.filter(pod("plain", gpus=0), ["x", "y"])["NodeNames"], ["x", "y"])
        contains(scheduler.bind(pod("..", uid="u"), "n1"), "no pod")


def the_webhook_answers(town):
    with Scheduler(PROGRAM, town) as scheduler:
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                  "request": {"uid": "r", "operation": "CREATE", "namespace": "default", "object": pod("p")}}
        said = scheduler.post("/webhook", review)["response"]
        equal((said["uid"], said["allowed"], said["patchType"]), ("r", True, "JSONPatch"))


def wishes_that_wait_count_for_the_quota(town):
    """The device plugin carries a wish out when there is room on its node, and looks at no quota then."""
    one_node(town)
    town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                        "spec": {"hard": {"limits.nvidia.com/gpumem": "5000"}}})
    for name in ("a", "b"):
        item = pod(name, memory=4000, annotations={NODE: "n1", TIME: str(int(time.time())), ALLOCATED: "GPU-0,NVIDIA,1000,0:;"})
        item["spec"]["nodeName"], item["status"]["phase"] = "n1", "Running"
        town.cluster.put("pods", item)
    with Scheduler(PROGRAM, town) as scheduler:
        def wish(name, memory):
            """As the API server asks, and then has it; no memory: it is taken back."""
            old = town.cluster.get("pods", f"default/{name}")
            new = copy.deepcopy(old)
            new["metadata"]["annotations"]["cantaloupe.io/resize"] = json.dumps({"c": {"gpumem": memory}} if memory else {})
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                      "request": {"uid": "r", "operation": "UPDATE", "namespace": "default", "object": new, "oldObject": old,
                                  "userInfo": {"username": "tenant"}}}
            if not scheduler.post("/webhook", review)["response"]["allowed"]:
                return False
            town.cluster.put("pods", new)
            town.tell(scheduler)
            return True
        fresh = put_pod(town, "fresh", memory=1500)
        town.tell(scheduler)
        equal(wish("a", 3000), True)
        equal(wish("b", 3000), False)
        equal(list(scheduler.filter(fresh, ["n1"])["FailedNodes"].values()), ["1/1 ResourceQuotaNotFit"])
        equal(wish("b", 1500), True)
        equal(wish("a", 3501), False)  # what it wished for before is its own to have
        equal(wish("a", 3500), True)
        equal(wish("a", 500), True)  # less counts when it is given back
        equal(wish("b", 4001), False)
        equal(wish("b", None), True)
        equal(scheduler.filter(fresh, ["n1"])["NodeNames"], ["n1"])


def metrics_are_told(town):
    one_node(town)
    town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                        "spec": {"hard": {"limits.nvidia.com/gpumem": "9000"}}})
    town.cluster.put("nodes", node("m", [device(1, mode="mig", index=0, migProfiles=[
        {"name": "1g.5gb", "memoryMB": 5000, "core": 14, "sliceCount": 1, "placements": [{"start": 0, "size": 1}]}])]))
    cut = pod("cut", annotations={NODE: "m", TIME: str(int(time.time())), ALLOCATED: "GPU-1,NVIDIA,5000,14:;", INSTANCES: json.dumps([
        {"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-1", "profile": "1g.5gb", "placement": {"start": 0, "size": 1},
         "migUUID": "MIG-a", "gpuInstanceID": 7, "computeInstanceID": 0}])})
    cut["spec"]["nodeName"] = "m"
    town.cluster.put("pods", cut)
    with Scheduler(PROGRAM, town, "--legacy-metrics", metrics=True) as scheduler:
        scheduler.filter(put_pod(town, "p", memory=1000), ["n1"])
        connection = http.client.HTTPConnection("127.0.0.1", scheduler.metrics_port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        equal(metrics.wrong_in_scrape(ROOT, "vgpu-scheduler", text), [])
        for line in (
                'hami_gpu_memory_limit_bytes{zone="vGPU",node="n1",device_uuid="GPU-0",device_index="0",device_type="NVIDIA A30"} 10485760000',
                'hami_vgpu_memory_allocated_bytes{zone="vGPU",namespace="default",node="n1",pod="p",container_index="0",device_uuid="GPU-0"} 1048576000',
                'hami_node_gpu_mig_instance_info{zone="vGPU",node="m",device_uuid="GPU-1",device_index="0",mig_uuid="MIG-a",profile="1g.5gb",gpu_instance_id="7",compute_instance_id="0",placement_start="0",placement_size="1"} 1',
                'nodeGPUMigInstance{zone="vGPU",nodeid="m",deviceuuid="GPU-1",deviceidx="0",migname="1g.5gb-7"} 1',
                'hami_resource_quota_used{zone="vGPU",namespace="default",quota_name="nvidia.com/gpumem",limit="9000"} 6000',
                'GPUDeviceSharedNum{zone="vGPU",nodeid="n1",deviceuuid="GPU-0",deviceidx="0",devicetype="NVIDIA A30"} 1',
                'vgpu_scheduler_request_duration_seconds_count{verb="filter"} 1', "vgpu_scheduler_reservations 1"):
            contains(text, line + "\n")


def bound_pod(town, name, where, memory, priority, **more):
    """A pod that runs where its annotations say, with what it takes of device GPU-`where`."""
    said = {NODE: "n1", TIME: str(int(time.time())), ALLOCATED: f"GPU-{where},NVIDIA,{memory},0:;"}
    item = pod(name, memory=memory, uid=name, annotations=said, **more)
    item["spec"].update(nodeName="n1", priority=priority)
    item["status"]["phase"] = "Running"
    town.cluster.put("pods", item)


def victims(scheduler, wants, priority, proposed, violations=0):
    wants["spec"]["priority"] = priority
    answer = scheduler.post("/preempt", {"Pod": wants, "NodeNameToVictims": None, "NodeNameToMetaVictims": {
        "n1": {"Pods": [{"UID": uid} for uid in proposed], "NumPDBViolations": violations}}})
    found = answer["NodeNameToMetaVictims"].get("n1")
    return found and (sorted(one["UID"] for one in found["Pods"]), found["NumPDBViolations"])


def preemption_ends_what_is_needed_and_no_more(town):
    town.cluster.put("nodes", node("n1", [device(0, count=2), device(1, count=2)]))
    for name, where, memory, priority in (("a", 0, 6000, 1), ("b", 0, 3000, 2), ("c", 1, 9000, 3), ("d", 1, 500, 0)):
        bound_pod(town, name, where, memory, priority)
    with Scheduler(PROGRAM, town) as scheduler:
        # kube-scheduler sees slices alone, so it would end the least important pod, which is of no use here
        equal(victims(scheduler, put_pod(town, "p", memory=5000), 9, ["d"]), (["a"], 0))
        equal(victims(scheduler, put_pod(town, "p", memory=500), 9, ["d"]), (["d"], 0))
        equal(victims(scheduler, put_pod(town, "p", memory=10000), 9, ["d"], 5), (["a", "b"], 2))
        equal(victims(scheduler, put_pod(town, "p", memory=10000), 2, ["d"]), None)
        equal(victims(scheduler, put_pod(town, "p", memory=10001), 9, ["d"]), None)
        here = put_pod(town, "p", memory=9500, annotations={"nvidia.com/use-gpuuuid": "GPU-1"})
        equal(victims(scheduler, here, 9, ["a"]), (["c"], 0))
        equal(victims(scheduler, here, 3, ["a"]), None)
        # one that has no devices goes for reasons that are not known here
        equal(victims(scheduler, put_pod(town, "p", memory=500), 9, ["d", "other"]), (["d", "other"], 0))
        # what is promised is nowhere yet, and nothing has changed
        equal(scheduler.filter(put_pod(town, "p", memory=500), ["n1"])["FailedNodes"], {"n1": "2/2 CardTimeSlicingExhausted"})
        town.cluster.delete("pods", "default/a")
        wait_for(lambda: scheduler.filter(put_pod(town, "q", memory=6500), ["n1"])["NodeNames"] == ["n1"], "room")
        # slices are there: what is proposed goes for other reasons
        town.cluster.put("nodes", node("n1", [device(0), device(1)]))
        wait_for(lambda: victims(scheduler, put_pod(town, "p", memory=9000), 9, ["d"]) == (["c", "d"], 0), "more slices")
        equal(victims(scheduler, put_pod(town, "p", memory=10), 9, ["d"]), (["d"], 0))
        equal(victims(scheduler, pod("plain", gpus=0), 9, ["d"], 1), (["d"], 1))
        equal(scheduler.ask("POST", "/preempt", "{}")[0], 400)


def a_client_may_ask_so_often(town):
    """From elsewhere."""
    address = other_address()
    with Scheduler(PROGRAM, town, "--http_bind=0.0.0.0:0", "--client-qps=2", "--client-burst=10") as scheduler:
        def statuses(where, count):
            found = []
            for _ in range(count):
                connection = http.client.HTTPConnection(where, scheduler.port, timeout=60)
                connection.request("GET", "/healthz")
                found.append(connection.getresponse().status)
                connection.close()
            return found
        equal(set(statuses("127.0.0.1", 40)), {200})
        if address:
            began = time.monotonic()
            found = statuses(address, 40)
            passed = found.count(200)
            equal((found[:10], found.count(429)), ([200] * 10, 40 - passed))
            equal(passed <= 11 + 2 * (time.monotonic() - began), True)
            time.sleep(0.6)
            equal(statuses(address, 1), [200])


def main(names):
    """The cases of the script with these globals(), each with a town of its own."""
    return run(collect(names, "town", "_"), sys.argv[2:], Town)


if __name__ == "__main__":
    sys.exit(main(globals()))
