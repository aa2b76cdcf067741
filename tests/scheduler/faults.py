#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""faults.py PROGRAM [SECONDS [SEED]]: pods come and go while calls fail, the scheduler is killed and watches break.

First some cases by hand; then random ones for so long, each with pods of several kinds, a second node of whole devices, of such in
MIG mode or under MPS, and perhaps a quota. The auditor judges each at every binding and at its end. The faults of
a case are a list of (number of a call, what happens to it); of a case that fails, the list is made short and printed."""

import http.client
import os
import random
import subprocess
import sys
import threading
import time

from auditor import audit, holds, instances_of
from cluster import LOCK, Refusal, Scheduler, Town, device, node, pod, wait_for
from random_case import MIG

PROGRAM = sys.argv[1]
PHASE = "hami.io/bind-phase"
FLAGS = ["--kube-timeout=1s", "--node-lock-retry-timeout=2s"]
CASE_S = 90  # in which all pods have to come to their end; the lock of one that is not bound holds for 30


def put_pod(town, name, inits=(), containers=(), **more):
    """Containers stand in the place of the one that there would be."""
    item = pod(name, **more)
    if containers:
        item["spec"].update(initContainers=list(inits), containers=list(containers))
    town.cluster.put("pods", item)
    return town.cluster.get("pods", f"{item['metadata']['namespace']}/{name}")


def read_pod(town, name):
    return town.cluster.get("pods", f"default/{name}")


def ask(function, *arguments):
    """Its answer; None where the scheduler is gone."""
    try:
        return function(*arguments)
    except (OSError, http.client.HTTPException, AssertionError):
        return None


def schedule(town, scheduler, name, names):
    """One try of kube-scheduler."""
    item = read_pod(town, name)
    said = ask(scheduler.filter, item, names)
    if said and said["NodeNames"]:
        return ask(scheduler.bind, item, said["NodeNames"][0])
    return said["Error"] if said else None


def audit_town(town):
    return audit(*(town.cluster.list(of)["items"] for of in ("nodes", "pods", "resourcequotas")))


def check(town):
    found = audit_town(town)
    if found:
        raise AssertionError("; ".join(found))


# Cases by hand.


def a_late_unlock_takes_no_newer_lock(town):
    """A bind fails, and the removal of its lock comes late; the pod is bound meanwhile."""
    town.cluster.put("nodes", node("n1", [device(0)]))
    put_pod(town, "p")
    seen = []

    def fault(method, path):
        seen.append((method, path))
        if path.endswith("/binding") and sum(row[1].endswith("/binding") for row in seen) == 1:
            raise Refusal(500, "it cannot be")
        if path.endswith("/nodes/n1") and method == "PATCH" and sum(row == (method, path) for row in seen) == 2:
            time.sleep(0.7)
    with Scheduler(PROGRAM, town, *FLAGS) as scheduler:
        town.cluster.fault = fault
        while not read_pod(town, "p")["spec"].get("nodeName"):
            schedule(town, scheduler, "p", ["n1"])
        time.sleep(1)
        check(town)
        if LOCK not in town.cluster.annotations("nodes", "n1"):
            raise AssertionError("the pod waits for its devices, and its lock is gone")


def who_leads_no_more_binds_nothing(town):
    """A bind waits for a lock while another replica begins to lead, which gives the pod's devices away."""
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {"leaseDurationSeconds": 100, "renewTime": now}
    town.cluster.put("leases", {"metadata": {"name": "l", "namespace": "k"}, "spec": {**spec, "holderIdentity": host + "_1"}})
    town.cluster.put("nodes", node("n1", [device(0)]))
    flags = ["--leader-elect", "--leader-elect-resource-name=l", "--leader-elect-resource-namespace=k"]
    with Scheduler(PROGRAM, town, *flags, "--node-lock-retry-timeout=10s") as scheduler:
        put_pod(town, "other", memory=1000)
        wait_for(lambda: not schedule(town, scheduler, "other", ["n1"]) and read_pod(town, "other")["spec"].get("nodeName"), "a first pod")
        item = put_pod(town, "p", memory=6000)
        scheduler.filter(item, ["n1"])
        waiting = threading.Thread(target=ask, args=(scheduler.bind, item, "n1"))
        waiting.start()
        time.sleep(0.3)
        town.cluster.change("leases", "k/l", lambda one: one["spec"].update(holderIdentity="elsewhere_1"))
        wait_for(lambda: "lead" in scheduler.filter(item, ["n1"])["Error"], "another's lead")
        # the one that leads: another pod has the devices, and the first has been served
        promise = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,6000,0:;", PHASE: "success"}
        taken = pod("taken", memory=6000, annotations=promise)
        taken["spec"]["nodeName"] = "n1"
        town.cluster.put("pods", taken)
        serve(town, random.Random(0))
        waiting.join()
        check(town)


def a_binding_that_is_uncertain_is_found_out_first(town):
    """The answer to a binding is lost, and so is the question whether it was carried out; watches tell nothing for a while."""
    town.cluster.put("nodes", node("n1", [device(0), device(1)]))
    put_pod(town, "p", memory=6000)
    is_lost = [True]

    def fault(method, path):
        if method == "GET" and path.endswith("/pods/p") and is_lost[0]:
            raise BrokenPipeError

    def fault_after(_, path):
        if path.endswith("/binding"):
            raise BrokenPipeError
    with Scheduler(PROGRAM, town, *FLAGS, "--kube-timeout=3s") as scheduler:
        item = read_pod(town, "p")
        town.cluster.fault, town.cluster.fault_after, town.cluster.is_silent = fault, fault_after, True
        scheduler.filter(item, ["n1"])
        ask(scheduler.bind, item, "n1")
        was = read_pod(town, "p")
        time.sleep(1.1)
        said = ask(scheduler.filter, item, ["n1"])
        town.cluster.is_silent = is_lost[0] = False
        time.sleep(0.5)
        if not was["spec"].get("nodeName"):
            raise AssertionError(f"the binding was not carried out: {said}")
        if read_pod(town, "p")["metadata"]["annotations"] != was["metadata"]["annotations"]:
            raise AssertionError(f"a bound pod's annotations were changed: {said}")
        check(town)


# Random ones.


def serve(town, r):
    """What device plugins do: a node's lock is a pod's that is served, or fails."""
    for item in town.cluster.list("nodes")["items"]:
        lock = item["metadata"]["annotations"].get(LOCK, "").split(",")
        one = town.cluster.get("pods", f"{lock[1]}/{lock[2]}") if len(lock) == 3 else None
        if not one or one["spec"].get("nodeName") != item["metadata"]["name"] or \
                one["metadata"]["annotations"].get(PHASE) != "allocating":
            continue
        is_served = r.random() < 0.9

        def end(pod_item, is_served=is_served):
            pod_item["metadata"]["annotations"][PHASE] = "success" if is_served else "failed"
            pod_item["status"]["phase"] = "Running" if is_served else "Failed"
            pod_item["status"]["initContainerStatuses"] = [
                {"name": one["name"], "state": {"terminated": {"exitCode": 0}}}
                for one in pod_item["spec"].get("initContainers", []) if is_served and "restartPolicy" not in one]
        town.cluster.change("pods", f"{lock[1]}/{lock[2]}", end)
        town.cluster.change("nodes", item["metadata"]["name"], lambda it: it["metadata"]["annotations"].pop(LOCK, None))


class Faults:
    """What happens to the n-th call."""

    KINDS = ("409", "429", "500", "503", "cut", "lost", "slow", "slow-lost", "kill", "kill-after", "expire", "end", "repeat")

    def __init__(self, town, plan):
        self.town, self.plan, self.count = town, dict(plan), 0
        self.after, self.kill = threading.local(), None
        self.killing = threading.Lock()
        town.cluster.fault, town.cluster.fault_after = self.before, self.afterwards

    def end(self):
        """No more of it: who was about to kill the scheduler has done so, or does not."""
        with self.killing:
            self.plan = None

    def strike(self):
        with self.killing:
            if self.plan is not None:
                self.kill()

    def before(self, method, path):
        plan = self.plan
        if plan is None:
            self.after.what = ""
            return
        self.count += 1
        what = plan.get(self.count, "")
        self.after.what = what
        cluster = self.town.cluster
        if what in ("expire", "end"):
            with cluster.changed:
                cluster.oldest = cluster.version if what == "expire" else cluster.oldest
                cluster.streams += 1
                cluster.changed.notify_all()
        elif what == "repeat":
            cluster.repeats = 3 - cluster.repeats
        elif what == "kill":
            self.strike()
        elif what.startswith("slow"):
            time.sleep(1.2)
        if what in ("cut", "kill"):
            raise BrokenPipeError
        if what.isdigit() and (method, what) != ("GET", "409"):
            raise Refusal(int(what), "planted")

    def afterwards(self, _, path):
        what = getattr(self.after, "what", "")
        if what == "kill-after":
            self.strike()
        if what in ("lost", "slow-lost", "kill-after"):
            raise BrokenPipeError


class Case:  # pylint: disable=too-many-instance-attributes
    """A seed's nodes and pods, and a plan of faults."""

    def __init__(self, seed, plan=None):
        self.r = random.Random(seed)
        self.mode = self.r.choice(("hami-core", "mig", "mps"))  # of the second node's devices
        self.quota = self.r.choice((None, 20000, 30000))
        self.pods = [self.random_pod(number) for number in range(self.r.randrange(6, 12))]
        share = self.r.choice((0.02, 0.05, 0.15))
        drawn = {call: self.r.choice(Faults.KINDS) for call in range(3, 150) if self.r.random() < share}
        self.plan = drawn if plan is None else plan
        self.found, self.scheduler, self.lock = [], None, threading.Lock()

    def random_container(self, name, memories=(1000, 2000, 4000), gpus=1, **more):
        limits = {"nvidia.com/gpu": str(gpus), "nvidia.com/gpumem": str(self.r.choice(memories)),
                  "nvidia.com/gpucores": str(self.r.choice((0, 0, 10, 20)))}
        return {"name": name, "image": "x", "resources": {"limits": limits if gpus else {}}, **more}

    def random_pod(self, number):
        """Each fits alone onto the first node, or, where it asks for a mode, onto the second."""
        name, make = f"p{number}", self.random_container
        kind = self.r.choice(("plain", "plain", "devices", "containers", "inits", "sidecars", self.mode))
        if kind == "plain":
            return {"name": name, "memory": self.r.choice((1000, 3000, 5000, 6000, 9000))}
        if kind == "devices":
            return {"name": name, "memory": self.r.choice((1000, 3000, 6000)), "gpus": 2}
        app = make("c", (1000, 5000), gpus=self.r.choice((0, 1, 1, 2)))
        if kind == "containers":
            return {"name": name, "containers": [make("a"), app, make("b", gpus=self.r.choice((0, 1)))]}
        if kind == "inits":
            return {"name": name, "inits": [make("i", (1000, 8000)), make("j", gpus=self.r.choice((0, 2)))], "containers": [app]}
        if kind == "sidecars":
            return {"name": name, "containers": [app],
                    "inits": [make("s", restartPolicy="Always"), make("i", (1000, 5000), gpus=self.r.choice((0, 1)))]}
        return {"name": name, "annotations": {"nvidia.com/vgpu-mode": self.mode}, "inits": [make("i")] * self.r.choice((0, 1)),
                "containers": [make("c", (1000, 5000)), make("d")][:self.r.choice((1, 2))]}

    def put_nodes(self, town):
        second = {"memory": MIG["NVIDIA A30"][0], "migProfiles": MIG["NVIDIA A30"][1]} if self.mode == "mig" else {}
        town.cluster.put("nodes", node("n1", [device(at, count=4) for at in (0, 1)]))
        town.cluster.put("nodes", node("n2", [device(at, count=4, mode=self.mode, **second) for at in (2, 3)]))
        if self.quota:
            town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                                "spec": {"hard": {"limits.nvidia.com/gpumem": str(self.quota)}}})

    def begin(self, town):
        self.scheduler = Scheduler(PROGRAM, town, *FLAGS, is_ready=False)

    def watch_bindings(self, town):
        bind = town.cluster.bind

        def audited(*arguments):
            with town.cluster.changed:
                result = bind(*arguments)
                self.found += audit_town(town)
            return result
        town.cluster.bind = audited

    def bind_beside(self, item, where, binds):
        """As kube-scheduler does, beside the next pod's Filter."""
        thread = threading.Thread(target=ask, args=(self.scheduler.bind, item, where), daemon=True)
        thread.start()
        binds[item["metadata"]["name"]] = thread

    def turn(self, town, names, binds):
        """One look of kube-scheduler at what waits."""
        for item in town.cluster.list("pods")["items"]:
            name = item["metadata"]["name"]
            if item["spec"].get("nodeName") or (name in binds and binds[name].is_alive()):
                continue
            said = ask(self.scheduler.filter, item, names)
            if said and said["NodeNames"]:
                self.bind_beside(item, said["NodeNames"][0], binds)

    def end_some(self, town):
        for item in town.cluster.list("pods")["items"]:
            if item["status"]["phase"] == "Running" and self.r.random() < 0.2:
                key = f"default/{item['metadata']['name']}"
                if self.r.random() < 0.5:
                    town.cluster.delete("pods", key)
                else:
                    town.cluster.change("pods", key, lambda one: one["status"].update(phase="Succeeded"))

    def are_served(self, town):
        return all(item["spec"].get("nodeName") and item["metadata"]["annotations"].get(PHASE) != "allocating"
                   for item in town.cluster.list("pods")["items"])

    def run(self):
        """What is wrong."""
        with Town() as town:
            names = ["n1", "n2"]
            self.put_nodes(town)
            faults = Faults(town, self.plan)
            faults.kill = lambda: self.scheduler.kill()  # pylint: disable=unnecessary-lambda
            self.watch_bindings(town)
            self.begin(town)
            try:
                self.drive(town, names)
                faults.end()
                self.settle(town)
            finally:
                self.scheduler.kill()
                self.scheduler.reader.join(5)
        return self.found

    def drive(self, town, names):
        binds, left, until = {}, list(self.pods), time.monotonic() + CASE_S
        while left or not self.are_served(town):
            if time.monotonic() > until:
                waiting = [item["metadata"]["name"] for item in town.cluster.list("pods")["items"] if not item["spec"].get("nodeName")]
                self.found.append(f"pods are lost: {waiting or 'a lock stays'}")
                return
            if self.scheduler.process.poll() is not None:
                if self.scheduler.process.returncode != -9:
                    self.found.append("the scheduler died: " + "".join(self.scheduler.lines[-20:]))
                    return
                self.begin(town)
            for more in left[:2]:
                put_pod(town, **more)
            left = left[2:]
            self.turn(town, names, binds)
            serve(town, self.r)
            self.end_some(town)
            time.sleep(0.01)

    def settle(self, town):
        """What the scheduler believes is what the auditor counts: of each device exactly the rest is free."""
        if self.found:
            return
        if self.scheduler.process.poll() is not None:
            self.begin(town)
        wait_for(lambda: self.scheduler.ask("GET", "/readyz")[0] == 200, "readiness")
        self.found += audit_town(town)
        free = {f"GPU-{at}": 10000 for at in range(2 if self.mode == "mig" else 4)}
        for item in town.cluster.list("pods")["items"]:
            if item["status"]["phase"] not in ("Succeeded", "Failed"):
                for uuid, (_, memory, _) in holds(item).items():
                    if uuid in free:
                        free[uuid] -= memory
        for uuid, rest in free.items():
            self.probe(town, uuid, rest)
        if self.mode == "mig":
            self.probe_instances(town)

    def probe_instances(self, town):
        """Those of one place each that are left, one pod each."""
        taken = {(uuid, place) for item in town.cluster.list("pods")["items"] if item["status"]["phase"] not in ("Succeeded", "Failed")
                 for uuid, places in instances_of(item) for place in places}
        for uuid in ("GPU-2", "GPU-3"):
            left = 4 - sum(one == uuid for one, _ in taken)
            wants = {"annotations": {"nvidia.com/use-gpuuuid": uuid}, "memory": 5000, "namespace": "probes"}
            items = [put_pod(town, f"{uuid.lower()}-{at}", **wants) for at in range(left + 1)]
            until = time.monotonic() + 20  # watches may be behind
            while True:
                fits = [bool(self.scheduler.filter(item, ["n1", "n2"])["NodeNames"]) for item in items]
                if fits == [True] * left + [False] or time.monotonic() > until:
                    break
                time.sleep(0.1)
            if fits != [True] * left + [False]:
                self.found.append(f"{uuid} has {left} places left, and pods that want one each are answered by {fits}")

    def probe(self, town, uuid, rest):
        for memory, fits in ((rest + 1, False), (rest, True)):
            if not memory:
                continue
            item = put_pod(town, "probe", memory=memory, annotations={"nvidia.com/use-gpuuuid": uuid}, namespace="probes")
            until = time.monotonic() + 20  # watches may be behind
            while True:
                said = self.scheduler.filter(item, ["n1", "n2"])
                is_right = bool(said["NodeNames"]) == fits or "CardTimeSlicing" in str(said)
                if is_right or time.monotonic() > until:
                    break
                time.sleep(0.1)
            if not is_right:
                self.found.append(f"{uuid} has {rest} left, and {memory} are answered by {said}")
            town.cluster.delete("pods", "probes/probe")
            time.sleep(0.05)


def shorten(seed, plan):
    """Fewer faults that still end as badly, as far as that is sure."""
    until = time.monotonic() + 60
    for call in list(plan):
        less = {k: v for k, v in plan.items() if k != call}
        if time.monotonic() < until and Case(seed, less).run():
            plan = less
    return plan


def main():
    seconds = float(sys.argv[2]) if sys.argv[2:] else 12
    seed = sys.argv[3] if sys.argv[3:] else str(int.from_bytes(os.urandom(4), "big"))
    failed = count = 0
    for test in (a_late_unlock_takes_no_newer_lock, who_leads_no_more_binds_nothing, a_binding_that_is_uncertain_is_found_out_first):
        try:
            with Town() as town:
                test(town)
        except AssertionError as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error}", flush=True)
    until, faults = time.monotonic() + seconds, 0
    while time.monotonic() < until and failed < 3:
        case = Case(f"{seed} {count}")
        found = case.run()
        faults += len(case.plan)
        if found:
            failed += 1
            plan = shorten(f"{seed} {count}", case.plan)
            print(f"FAILED seed {seed}, case {count}: {found[:3]}\n    with {plan}", flush=True)
        count += 1
    print(f"seed {seed}: {count} cases, {faults} faults, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
