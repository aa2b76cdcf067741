#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clock_steps.py PROGRAM LIBRARY [TEST...]: the wall clock is set while the scheduler runs (stepped_clock.c)."""

import pathlib
import sys
import time

LIBRARY = sys.argv.pop(2)

# pylint: disable=wrong-import-position
from cluster import LOCK, Scheduler, device, node, wait_for
from daemon import ALLOCATED, PROGRAM, annotations, contains, equal, finish, lease, main, one_node, put_pod, stamp

HOURS = 3 * 3600


class Clock:
    """The wall clock, or the one that counts on."""

    def __init__(self, town, variable="STEPPED_CLOCK"):
        self.file, self.variable = pathlib.Path(town.folder.name, "step"), variable
        self.set(0)

    def set(self, seconds):
        """In one piece: the scheduler reads it at any moment."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(str(seconds), encoding="ascii")
        fresh.rename(self.file)

    def program(self):
        return ["env", f"LD_PRELOAD={LIBRARY}", f"{self.variable}={self.file}", PROGRAM]


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


if __name__ == "__main__":
    sys.exit(main(globals()))
