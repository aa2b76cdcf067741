#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fences.py PROGRAM [TEST...]: what the API server carries out late, and two leaders for a moment."""

import contextlib
import copy
import http.client
import sys
import threading
import time

from cluster import LOCK, Refusal, Scheduler, device, node, pod, wait_for
from daemon import NODE, PHASE, PROGRAM, annotated, annotations, contains, equal, finish, main, one_node, put_pod, stamp, unlock

PATIENT = "--kube-timeout=300s"  # it waits for an answer that the test holds back, on a machine that does other things


class Late:
    """The server carries the first of such patches out after nobody waits for it any more."""

    def __init__(self, town, is_such):
        self.patch, self.is_such, self.arguments, self.outcome = town.cluster.patch, is_such, None, None
        town.cluster.patch = self

    def __call__(self, collection, key, body, is_merge):
        if self.arguments is None and self.is_such(collection, body):
            self.arguments = copy.deepcopy((collection, key, body, is_merge))
            raise BrokenPipeError
        return self.patch(collection, key, body, is_merge)

    def happen(self):
        try:
            self.patch(*self.arguments)
            self.outcome = 200
        except Refusal as refusal:
            self.outcome = refusal.status


def refuse_the_next_binding(place):
    def refuse_once(method, path):
        if path.endswith("/binding"):
            place.cluster.fault = None
            raise Refusal(403, "not yet")
    place.cluster.fault = refuse_once


def at_the_beginning_of_a_second():
    """A lock says when it was set, in seconds."""
    time.sleep(1.02 - time.time() % 1)


def a_late_removal_of_a_lock_hits_no_later_one(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        late = Late(town, lambda collection, body: collection == "nodes" and LOCK in str(body) and
                    (isinstance(body, list) or body["metadata"]["annotations"][LOCK] is None))
        refuse_the_next_binding(town)
        at_the_beginning_of_a_second()
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "not yet")
        wait_for(lambda: LOCK not in town.cluster.annotations("nodes", "n1"), "the end of the lock")
        scheduler.filter(item, ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        late.happen()
        equal(late.outcome, 409)
        contains(town.cluster.annotations("nodes", "n1")[LOCK], ",default,p")


def a_lock_is_set_again_only_when_its_removal_is_answered(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a"), put_pod(town, "b")
        patch, order = town.cluster.patch, []

        def note(collection, key, body, is_merge):
            if collection == "nodes":
                lock = body["metadata"]["annotations"][LOCK]
                order.append(lock and lock.split(",")[2])
                if not lock:
                    time.sleep(0.3)
            answer = patch(collection, key, body, is_merge)
            if collection == "nodes" and not lock:
                order.append("removed")
            return answer
        town.cluster.patch = note
        for item in (first, second):
            scheduler.filter(item, ["n1"])
        refuse_the_next_binding(town)
        contains(scheduler.bind(first, "n1"), "not yet")
        equal(scheduler.bind(second, "n1"), "")
        equal(order, ["a", None, "removed", "b"])


def a_late_removal_of_a_promise_hits_no_later_one(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        late = Late(town, lambda collection, body: collection == "pods" and
                    body["metadata"].get("annotations", {}).get(NODE, "") is None)
        scheduler.filter(item, ["n1"])
        wait_for(lambda: NODE in annotations(town, "p"), "the promise")
        equal(scheduler.filter(annotated(town, "p"), ["n2"])["NodeNames"], None)
        wait_for(lambda: late.arguments and NODE not in annotations(town, "p"), "the end of the promise")
        scheduler.filter(annotated(town, "p"), ["n1"])
        wait_for(lambda: NODE in annotations(town, "p"), "the promise")
        late.happen()
        equal((late.outcome, annotations(town, "p")[NODE]), (409, "n1"))


def a_promise_that_is_written_late_changes_no_bound_pod(town):
    one_node(town)
    town.cluster.put("nodes", node("n2", [device(1)]))
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        late = Late(town, lambda collection, body: collection == "pods" and
                    body["metadata"].get("annotations", {}).get(NODE) == "n2")
        scheduler.filter(item, ["n2"])
        wait_for(lambda: late.arguments, "the promise")
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        late.happen()
        equal((late.outcome, annotations(town, "p")[NODE]), (409, "n1"))


class LateBinding:
    """The server carries the first binding out after nobody waits for it any more."""

    def __init__(self, town, then=lambda: None):
        self.bind, self.arguments, self.then = town.cluster.bind, None, then
        town.cluster.bind = self

    def __call__(self, *arguments):
        if self.arguments is None:
            self.arguments = copy.deepcopy(arguments)
            self.then()
            raise Refusal(504, "it takes long")
        return self.bind(*arguments)

    def happen(self):
        try:
            self.bind(*self.arguments)
            return 200
        except Refusal as refusal:
            return refusal.status


def a_binding_that_comes_late_binds_nothing(town):
    """What it was promised, and the lock, may be another's by then. The promise was written before, or was not."""
    one_node(town)
    for name, is_written in (("a", False), ("b", True)):
        with Scheduler(PROGRAM, town) as scheduler:
            item = put_pod(town, name, memory=9000)
            late = LateBinding(town)
            scheduler.filter(item, ["n1"])
            if is_written:
                wait_for(lambda name=name: NODE in annotations(town, name), "the promise")
            contains(scheduler.bind(item, "n1"), "the binding was not carried out")
            other = put_pod(town, name + "-other", memory=9000)
            equal(scheduler.filter(other, ["n1"])["NodeNames"], ["n1"])
            equal(late.happen(), 409)
            equal(scheduler.bind(other, "n1"), "")
            equal(annotated(town, name)["spec"].get("nodeName"), None)
            town.cluster.delete("pods", f"default/{name}-other")
            town.cluster.bind = late.bind
            unlock(town)


def a_binding_that_may_still_come_takes_nothing_back(town):
    """The pod is not bound, and cannot be changed, so that the binding would find it so."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p", memory=9000)
        late = LateBinding(town)

        def refuse(method, path):
            if late.arguments and method == "PATCH" and path.endswith("/pods/p"):
                raise Refusal(403, "not today")
        town.cluster.fault = refuse
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "it is not known whether the pod is bound")
        contains(scheduler.filter(item, ["n1"])["Error"], "the pod is being bound")
        equal(scheduler.filter(put_pod(town, "q", memory=9000), ["n1"])["NodeNames"], None)
        equal(late.happen(), 200)
        contains(town.cluster.annotations("nodes", "n1")[LOCK], ",default,p")
        wait_for(lambda: "bound already" in scheduler.filter(item, ["n1"])["Error"], "the binding")


def a_pod_that_has_changed_since_is_bound_all_the_same(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        for name, gpus in (("p", 1), ("plain", 0)):
            item = put_pod(town, name, gpus=gpus)
            bind, changes = town.cluster.bind, [1]

            def change_first(key, binding, bind=bind, changes=changes):
                if changes:
                    town.cluster.change("pods", key, lambda one: one["metadata"].update(annotations={"other": str(changes.pop())}))
                return bind(key, binding)
            town.cluster.bind = change_first
            if gpus:
                equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
            equal(scheduler.bind(item, "n1"), "")
            equal((annotated(town, name)["spec"]["nodeName"], annotations(town, name)["other"]), ("n1", "1"))
            town.cluster.bind = bind


def of_two_leaders_the_second_decides_again(town):
    """Both promise the same device; the second has heard of what the first did, or of nothing yet."""
    one_node(town)
    has_bound = threading.Event()

    def write_late(method, path):
        """The second's promise is not heard of before the first has bound."""
        if method == "PATCH" and "/pods/b" in path:
            has_bound.wait(60)
    town.cluster.fault = write_late
    for heard in ("all", "nothing"):
        has_bound.clear()
        server = town.open_server()
        with Scheduler(PROGRAM, town, PATIENT) as late:
            town.open_server()
            with Scheduler(PROGRAM, town) as first:
                pods = [put_pod(town, name + heard, memory=6000) for name in ("a", "b")]
                town.tell(late, first)
                if heard == "nothing":
                    server.gate.clear()
                equal(late.filter(pods[1], ["n1"])["NodeNames"], ["n1"])
                equal(first.filter(pods[0], ["n1"])["NodeNames"], ["n1"])
                equal(first.bind(pods[0], "n1"), "")
                finish(town, "a" + heard)
                if heard == "all":
                    town.tell(late)
                has_bound.set()
                contains(late.bind(pods[1], "n1"), "another scheduler has bound pods to the node")
                equal(annotated(town, "b" + heard)["spec"].get("nodeName"), None)
                wait_for(lambda: LOCK not in town.cluster.annotations("nodes", "n1"), "the end of the lock")
                server.gate.set()
                wait_for(lambda late=late, pods=pods: late.filter(pods[1], ["n1"])["FailedNodes"] ==
                         {"n1": "1/1 CardInsufficientMemory"}, "what the other has bound")
                # what fits beside it is bound by either
                small = put_pod(town, "c" + heard, memory=4000)
                equal(late.filter(small, ["n1"])["NodeNames"], ["n1"])
                equal(late.bind(small, "n1"), "")
        for name in ("a", "b", "c"):
            town.cluster.delete("pods", f"default/{name}{heard}")
        unlock(town)


def of_two_leaders_that_heard_each_others_promise_one_binds_at_most(town):
    one_node(town)
    have_promised = threading.Event()
    town.cluster.fault = lambda method, path: method == "PATCH" and "/pods/" in path and have_promised.wait(60)
    with Scheduler(PROGRAM, town, PATIENT) as one, Scheduler(PROGRAM, town, PATIENT) as other:
        pods = [put_pod(town, name, memory=6000) for name in ("a", "b")]
        for scheduler, item in zip((one, other), pods):
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        have_promised.set()
        for name in ("a", "b"):
            wait_for(lambda name=name: NODE in annotations(town, name), "the promise")
        town.tell(one, other)
        bound = []
        for scheduler, item in zip((one, other), pods):
            if not scheduler.bind(item, "n1"):
                bound.append(item["metadata"]["name"])
                finish(town, bound[-1])
        equal(len(bound) <= 1, True)


def a_watch_that_is_behind_makes_no_pod_another_s(town):
    """The promise of a pod that is bound by now is told late. It is this scheduler's own, and the next on the node is bound."""
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        first, second = put_pod(town, "a", memory=6000), put_pod(town, "b", memory=4000)
        town.tell(scheduler)
        town.servers[-1].gate.clear()
        scheduler.filter(first, ["n1"])
        wait_for(lambda: NODE in annotations(town, "a"), "the promise")
        equal(scheduler.bind(first, "n1"), "")
        finish(town, "a")
        equal(scheduler.filter(second, ["n1"])["NodeNames"], ["n1"])
        town.servers[-1].gate.set()
        town.tell(scheduler)
        equal(scheduler.bind(second, "n1"), "")
        finish(town, "b")
        equal(scheduler.filter(put_pod(town, "c", memory=1), ["n1"])["NodeNames"], None)


def a_lock_of_this_pod_that_another_is_about_to_remove_is_taken_over(town):
    one_node(town)
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, "p")
        lock = f"{stamp()},default,p"
        town.cluster.change("nodes", "n1", lambda node: node["metadata"]["annotations"].update({LOCK: lock}))
        version = town.cluster.get("nodes", "n1")["metadata"]["resourceVersion"]
        town.tell(scheduler)
        scheduler.filter(item, ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        removal = {"metadata": {"resourceVersion": version, "annotations": {LOCK: None}}}
        try:
            town.cluster.patch("nodes", "n1", removal, True)
            raise AssertionError("the lock could be removed")
        except Refusal as refusal:
            equal(refusal.status, 409)
        is_ = town.cluster.annotations("nodes", "n1")[LOCK]
        equal((is_ != lock, is_.split(",")[1:]), (True, ["default", "p"]))


def lock_node(town, lock):
    town.cluster.change("nodes", "n1", lambda node: node["metadata"]["annotations"].update({LOCK: lock}))


def killed_at_its_binding(town, name, is_written=False):
    """
    A pod, and the binding that a scheduler has sent for it before it was killed; its lock is old by now.
    is_written: its promise was written before; else it may have been, on a machine that does other things.
    """
    with Scheduler(PROGRAM, town) as scheduler:
        item = put_pod(town, name, memory=9000)
        late = LateBinding(town, scheduler.kill)
        scheduler.filter(item, ["n1"])
        if is_written:
            wait_for(lambda: NODE in annotations(town, name), "the promise")
        with contextlib.suppress(OSError, http.client.HTTPException):
            scheduler.bind(item, "n1")
    lock_node(town, f"{stamp(100)},default,{name}")
    return item, late


def a_binding_of_a_scheduler_that_is_gone_binds_nothing_once_its_lock_is_taken_over(town):
    """What it takes is another's, too, where its promise was not written."""
    one_node(town)
    for name, is_written in (("a", False), ("b", True)):
        _, late = killed_at_its_binding(town, name, is_written)
        with Scheduler(PROGRAM, town) as scheduler:
            other = put_pod(town, name + "-other", memory=1000 if NODE in annotations(town, name) else 9000)
            equal(scheduler.filter(other, ["n1"])["NodeNames"], ["n1"])
            equal(scheduler.bind(other, "n1"), "")
            equal(late.happen(), 409)
            equal(annotated(town, name)["spec"].get("nodeName"), None)
        for key in (name, name + "-other"):
            town.cluster.delete("pods", f"default/{key}")
        town.cluster.bind = late.bind
        unlock(town)


def a_binding_of_a_scheduler_that_is_gone_binds_nothing_once_its_pod_is_bound_anew(town):
    one_node(town)
    item, late = killed_at_its_binding(town, "p")
    with Scheduler(PROGRAM, town) as scheduler:
        scheduler.filter(item, ["n1"])
        refuse_the_next_binding(town)
        contains(scheduler.bind(item, "n1"), "not yet")
        equal(late.happen(), 409)


def waiting_pod(town, name):
    """One that is bound, and waits for its devices; its lock."""
    item = pod(name, annotations={NODE: "n1", PHASE: "allocating"})
    item["spec"]["nodeName"] = "n1"
    town.cluster.put("pods", item)
    return f"{stamp()},default,{name}"


def a_lock_that_changes_while_its_pod_is_read_is_judged_anew(town):
    one_node(town)
    lock_node(town, f"{stamp(100)},default,gone")
    with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=1s") as scheduler:
        lock = waiting_pod(town, "waiting")

        def change_lock(_, path):
            if path.endswith("/pods/gone"):
                lock_node(town, lock)
                town.tell(scheduler)
        town.cluster.fault = change_lock
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "node lock contention")
        equal(town.cluster.annotations("nodes", "n1")[LOCK], lock)


def a_lock_that_is_taken_while_pods_are_read_is_none(town):
    one_node(town)
    lock_node(town, f"{stamp()},default,gone")
    with Scheduler(PROGRAM, town) as scheduler:
        unlock(town)
        lock, list_them = waiting_pod(town, "waiting"), town.cluster.list

        def take_lock(collection, of_node=None, *more):
            """The bind reads the pods of its node; all are listed for the watch, which may begin as late as now."""
            if of_node:
                lock_node(town, lock)
                town.tell(scheduler)
            return list_them(collection, of_node, *more)
        town.cluster.list = take_lock
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "another scheduler has taken the node's lock")
        equal(town.cluster.annotations("nodes", "n1")[LOCK], lock)


def a_pod_that_has_changed_since_is_bound_under_a_lock_that_is_still_there(town):
    one_node(town)
    with Scheduler(PROGRAM, town, "--node-lock-retry-timeout=1s") as scheduler:
        lock, bind, bindings = waiting_pod(town, "waiting"), town.cluster.bind, []

        def change_first(key, binding):
            bindings.append(key)
            if len(bindings) == 1:
                town.cluster.change("pods", key, lambda one: one["metadata"].update(annotations={"other": "1"}))
                lock_node(town, lock)
            return bind(key, binding)
        town.cluster.bind = change_first
        item = put_pod(town, "p")
        scheduler.filter(item, ["n1"])
        contains(scheduler.bind(item, "n1"), "node lock contention")
        equal((len(bindings), town.cluster.annotations("nodes", "n1")[LOCK]), (1, lock))


if __name__ == "__main__":
    sys.exit(main(globals()))
