#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clock_steps.py PROGRAM LIBRARY [TEST...]: the wall clock is set while the scheduler runs, or time goes slowly (stepped_clock.c)."""

import pathlib
import sys
import threading
import time

from stepped_clock import SLOWLY, Clock  # first: it takes an argument
from cluster import LOCK, Scheduler, device, node, pod, wait_for
from daemon import (ALLOCATED, NODE, PHASE, annotated, annotations, calls, changes, contains, equal, finish, lease, main, one_node,
                    put_pod, stamp, unlock)
from told import numbers

HOURS = 3 * 3600


def a_promise_ends_in_its_time_when_the_clock_goes_back(town):
    clock = Clock(town)
    one_node(town)
    with Scheduler(clock.program(), town, "--reservation-timeout=1s") as scheduler:
        equal(scheduler.filter(put_pod(town, "p", memory=9000), ["n1"])["NodeNames"], ["n1"])
        clock.set(-HOURS)
        other = put_pod(town, "q", memory=9000)
        wait_for(lambda: scheduler.filter(other, ["n1"])["NodeNames"] == ["n1"], "the end of the promise")


def a_promise_holds_when_the_clock_goes_on(town):
    clock = Clock(town)
    one_node(town)
    with Scheduler(clock.program(), town) as scheduler:
        item = put_pod(town, "p", memory=9000)
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        clock.set(HOURS)
        time.sleep(6)  # more than from one look at all promises to the next
        contains(str(scheduler.filter(put_pod(town, "q", memory=9000), ["n1"])["FailedNodes"]), "CardInsufficientMemory")
        equal(scheduler.bind(item, "n1"), "")
        contains(annotations(town, "p")[ALLOCATED], "GPU-0")


def a_lock_is_no_older_when_the_clock_goes_on(town):
    clock = Clock(town)
    one_node(town)
    put_pod(town, "holder")
    with Scheduler(clock.program(), town, "--node-lock-retry-timeout=2s") as scheduler:
        lock = f"{stamp()},default,holder"
        town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({LOCK: lock}))
        item = put_pod(town, "p")
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        town.tell(scheduler)
        clock.set(HOURS)
        contains(scheduler.bind(item, "n1"), "node lock contention")
        equal(town.cluster.annotations("nodes", "n1")[LOCK], lock)


def binds_go_on_when_the_clock_is_set(town):
    """Locks that were set in the future, and long ago."""
    clock = Clock(town)
    one_node(town)
    with Scheduler(clock.program(), town, "--node-lock-retry-timeout=20s") as scheduler:
        for number, step in enumerate((HOURS, -HOURS, 0, -1, 1)):
            clock.set(step)
            item = put_pod(town, f"p{number}", memory=100)
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
            equal(scheduler.bind(item, "n1"), "")
            finish(town, f"p{number}")


def a_lease_holds_by_no_wall_clock(town):
    clock = Clock(town)
    one_node(town)
    host = pathlib.Path("/proc/sys/kernel/hostname").read_text(encoding="ascii").strip()
    flags = ["--leader-elect", "--leader-elect-resource-name=l", "--leader-elect-resource-namespace=kube-system"]
    with Scheduler(clock.program(), town, *flags) as scheduler:
        for number, step in enumerate((HOURS, -HOURS, 0)):
            town.cluster.put("leases", lease(host + "_1", 100))
            clock.set(step)
            item = put_pod(town, f"p{number}", memory=100)
            wait_for(lambda item=item: scheduler.filter(item, ["n1"])["NodeNames"] == ["n1"], "the lead")
            town.cluster.put("leases", lease(host + "_1", 1))
            wait_for(lambda item=item: "lead" in scheduler.filter(item, ["n1"])["Error"], "the lease's end")


def readiness_ends_when_the_api_server_is_silent_and_comes_back_with_it(town):
    """It says something each minute, so three minutes without a word are too long."""
    def cut(*_):
        raise BrokenPipeError
    clock = Clock(town, "STEPPED_MONOTONIC")
    one_node(town)
    with Scheduler(clock.program(), town) as scheduler:
        town.cluster.is_silent, town.cluster.fault = True, cut
        clock.set(160)
        equal(scheduler.ask("GET", "/readyz"), (200, ""))
        clock.set(190)
        equal(scheduler.ask("GET", "/readyz"), (503, "the API server is not heard of\n"))
        equal(scheduler.ask("GET", "/healthz"), (200, ""))
        town.cluster.is_silent, town.cluster.fault = False, None
        town.cluster.put("nodes", node("n2", [device(1)]))
        town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {}}})
        item = put_pod(town, "p")
        wait_for(lambda: scheduler.ask("GET", "/readyz") == (200, ""), "readiness")
        equal(scheduler.filter(item, ["n2"])["NodeNames"], ["n2"])


def a_pod_that_is_bound_soon_takes_two_calls(town):
    clock = Clock(town, "SLOWED_MONOTONIC")
    one_node(town)
    with Scheduler(clock.program(), town) as scheduler:
        item = put_pod(town, "p")
        town.cluster.calls.clear()
        clock.set(SLOWLY)
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        clock.set(1)
        town.tell(scheduler)  # of the binding, after which it could have more to do
        equal(calls(town), [("PATCH", "/api/v1/nodes/n1"), ("POST", "/api/v1/namespaces/default/pods/p/binding")])


def a_pod_that_waits_for_its_node_is_not_written(town):
    """Its binding brings what it was promised."""
    clock, said = Clock(town, "SLOWED_MONOTONIC"), []
    one_node(town)
    town.cluster.put("pods", dict(pod("holder", annotations={PHASE: "allocating"}), spec={"nodeName": "n1", "containers": []}))
    town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update({LOCK: f"{stamp()},default,holder"}))
    with Scheduler(clock.program(), town, metrics=True) as scheduler:
        item = put_pod(town, "p")
        town.cluster.calls.clear()
        clock.set(SLOWLY)
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        binder = threading.Thread(target=lambda: said.append(scheduler.bind(item, "n1")))
        binder.start()
        wait_for(lambda: numbers(scheduler)["binds_waiting"] == 1, "the bind")
        clock.set(1)
        time.sleep(2.5)  # longer than a promise is left unwritten
        equal((said, ALLOCATED in annotations(town, "p")), ([], False))
        unlock(town)
        binder.join()
        equal((said, annotations(town, "p")[ALLOCATED]), ([""], "GPU-0,NVIDIA,1000,0:;"))
        equal([call for call in calls(town) if call[0] != "GET"],
              [("PATCH", "/api/v1/nodes/n1"), ("POST", "/api/v1/namespaces/default/pods/p/binding")])


def a_server_that_takes_no_labels_from_bindings_is_noticed(town):
    """The first is bound soon, and labelled then. Another is written before it is bound."""
    clock = Clock(town, "SLOWED_MONOTONIC")
    one_node(town)
    town.cluster.takes_labels = False
    with Scheduler(clock.program(), town) as scheduler:
        for name, should_be in (("a", ["PATCH", "POST", "PATCH"]), ("b", ["PATCH", "PATCH", "POST"])):
            item = put_pod(town, name)
            town.cluster.calls.clear()
            clock.set(SLOWLY)
            equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
            equal(scheduler.bind(item, "n1"), "")
            clock.set(1)
            wait_for(lambda name=name: annotated(town, name)["metadata"].get("labels") == {NODE: "n1"}, "the label")
            finish(town, name, "Succeeded")
            town.tell(scheduler)
            equal(changes(town), should_be)


def in_a_rush_what_goes_well_is_not_told_of_each(town):
    clock = Clock(town, "SLOWED_MONOTONIC")
    town.cluster.put("nodes", node("n1", [device(0, 100000, count=1000)]))
    with Scheduler(clock.program(), town, metrics=True) as scheduler:
        clock.set(SLOWLY)
        for i in range(300):
            equal(scheduler.filter(put_pod(town, f"p{i}", memory=1), ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.filter(put_pod(town, "large", memory=200000), ["n1"])["NodeNames"], None)
        clock.set(1)
        wait_for(lambda: any(kind == "Warning" for kind, _, _ in town.cluster.events("large")), "what failed")
        left_out = int(numbers(scheduler)["events_left_out_total"])
        wait_for(lambda: sum(len(town.cluster.events(f"p{i}")) for i in range(300)) == 300 - left_out, "the others")
        equal(left_out > 0 and len(town.cluster.events("p0")), 1)


if __name__ == "__main__":
    sys.exit(main(globals()))
