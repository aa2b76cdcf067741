#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""failover.py PROGRAM [SECONDS [SEED]]: two replicas, each with a kube-scheduler that leads while it has the lease.
failover.py PROGRAM lease RUNS: how long after its end another binds, where a lease is as long as kube-scheduler's is by default.

At random moments the leader is killed, or stopped and let go on after the other has taken over; then its kube-scheduler asks once
more, because it has not noticed yet. The auditor judges each binding and the end."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

from cluster import LOCK, Scheduler, Town, device, node, wait_for
from faults import CASE_S, FLAGS, PROGRAM, Case, ask, put_pod, serve

LEASE_S = 1
LONG_LEASE_S = 4
DEFAULT_LEASE_S = 15
LONGEST_LEASE_S = 300
SLACK_S = 12  # 2, the period in which a kube-scheduler looks at the lease, and what a busy machine adds
ELECTION = ["--leader-elect", "--leader-elect-resource-name=l", "--leader-elect-resource-namespace=k"]
SPACE = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--uts"]


def has_spaces():
    return subprocess.run([*SPACE, "hostname", "other"], capture_output=True, check=False).returncode == 0


class Replica:
    """A scheduler on a host of its own, and whether it may be asked."""

    def __init__(self, town, name):
        self.town, self.name, self.scheduler, self.is_stopped = town, name, None, False
        self.start()

    def start(self):
        self.town.open_server()
        self.scheduler = Scheduler([*SPACE, "sh", "-c", 'hostname "$0" && exec "$@"', self.name, PROGRAM], self.town, *FLAGS, *ELECTION,
                                   is_ready=False)

    def is_alive(self):
        return not self.is_stopped and self.scheduler.process.poll() is None

    def stop(self, is_stopped):
        self.is_stopped = is_stopped
        self.scheduler.process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)

    def end(self):
        self.scheduler.process.send_signal(signal.SIGCONT)
        self.scheduler.kill()
        self.scheduler.reader.join(5)


def lead(town, name, term, lease_s):
    now = time.time()
    town.cluster.put("leases", {"metadata": {"name": "l", "namespace": "k"}, "spec": {
        "leaseDurationSeconds": lease_s, "holderIdentity": f"{name}_{term}",
        "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(now)) + f"{int(now % 1 * 1e6):06d}Z"}})


def take_over_in_time(lease_s, ret_took_s):
    """A leader is killed just after it has renewed the lease, the longest that it can last: its kube-scheduler is gone with it, and
    the other takes the lease when it is over. Then a pod that waited is bound at once, beside what was promised. Or what is wrong."""
    with Town() as town:
        town.cluster.put("nodes", node("n1", [device(0)]))
        replicas = [Replica(town, "replica-a"), Replica(town, "replica-b")]
        try:
            lead(town, "replica-a", 1, LONGEST_LEASE_S)  # how long these two last is no matter
            kept, waiting = put_pod(town, "kept", memory=6000), put_pod(town, "waiting", memory=4000)
            wait_for(lambda: replicas[0].scheduler.filter(kept, ["n1"])["NodeNames"] == ["n1"], "the first leader")
            if replicas[0].scheduler.bind(kept, "n1"):
                return "the first leader does not bind"
            town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].pop(LOCK, None))
            lead(town, "replica-a", 2, lease_s)
            killed = time.monotonic()
            replicas[0].scheduler.kill()
            time.sleep(lease_s)
            other = replicas[1].scheduler
            if "lead" not in other.filter(waiting, ["n1"])["Error"]:
                return "the other serves without the lease"
            lead(town, "replica-b", 1, LONGEST_LEASE_S)
            wait_for(lambda: other.filter(waiting, ["n1"])["NodeNames"] == ["n1"], "the other leader")
            wait_for(lambda: other.bind(waiting, "n1") == "", "a binding")
            ret_took_s.append(time.monotonic() - killed)
            if other.filter(put_pod(town, "more", memory=1), ["n1"])["NodeNames"]:
                return "what was promised is forgotten"
        finally:
            for replica in replicas:
                replica.end()
    print(f"of a lease of {lease_s} s, the next pod was bound {ret_took_s[-1]:.2f} s after the leader was killed", flush=True)
    return ret_took_s[-1] > lease_s + SLACK_S and "that is later than the lease allows"


def measure(runs):
    took_s = []
    for _ in range(runs):
        wrong = take_over_in_time(DEFAULT_LEASE_S, took_s)
        if wrong:
            print(wrong)
            return 1
    print(f"least {min(took_s):.2f}, median {statistics.median(took_s):.2f}, most {max(took_s):.2f} s")
    return 0


class Failover(Case):
    """A seed's pods, and when who is hurt."""

    def __init__(self, seed):
        super().__init__(seed, {})
        self.replicas, self.leader, self.renewed, self.taken = [], 0, 0, 0
        self.hurt_at, self.back_at, self.hurt, self.blow = 0, 0, None, None

    def renew(self, town):
        """As the kube-scheduler of the leader does; where it is silent for long enough the other takes over."""
        now = time.monotonic()
        if self.replicas[self.leader].is_alive():
            if now < self.renewed + LEASE_S / 4:
                return
        elif now < self.renewed + LEASE_S + 0.2 or not self.replicas[1 - self.leader].is_alive():
            return
        else:
            self.leader, self.taken = 1 - self.leader, self.taken + 1
        self.renewed = now
        replica = self.replicas[self.leader]
        town.cluster.put("leases", {"metadata": {"name": "l", "namespace": "k"}, "spec": {
            "leaseDurationSeconds": LEASE_S, "holderIdentity": f"{replica.name}_{self.taken}",
            "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime()) + f"{int(now * 1e6) % 1000000:06d}Z"}})
        self.scheduler = replica.scheduler

    def plan_next(self):
        self.hurt_at = time.monotonic() + self.r.uniform(0.05, 0.8)

    def strike(self):
        """From another thread, so that it comes in the middle of anything."""
        self.hurt = hurt = self.replicas[self.leader]
        blow = hurt.scheduler.process.kill if self.r.random() < 0.5 else lambda: hurt.stop(True)
        self.blow = threading.Timer(self.r.uniform(0, 0.03), blow)
        self.blow.start()
        self.back_at = time.monotonic() + self.r.uniform(0.1, 3)

    def change_replicas(self, town, names):
        now = time.monotonic()
        if self.hurt is None and now >= self.hurt_at:
            self.strike()
        elif self.hurt is not None and now >= self.back_at:
            self.blow.join()
            if self.hurt.is_stopped:  # else it is killed
                self.hurt.stop(False)
                if self.hurt is not self.replicas[self.leader]:
                    self.ask_once_more(town, self.hurt.scheduler, names)
            else:
                self.hurt.scheduler.kill()
                self.hurt.scheduler.reader.join(5)
                self.hurt.start()
            self.hurt = None
            self.plan_next()

    def ask_once_more(self, town, scheduler, names):
        def one(item):
            said = ask(self.filter, scheduler, item, names)
            if said and said["NodeNames"]:
                ask(scheduler.bind, item, said["NodeNames"][0])
        for item in town.cluster.list("pods")["items"]:
            if not item["spec"].get("nodeName"):
                threading.Thread(target=one, args=(item,), daemon=True).start()

    @staticmethod
    def filter(scheduler, item, names):
        status, text = scheduler.ask("POST", "/filter", json.dumps({"Pod": item, "Nodes": None, "NodeNames": names}), timeout=1)
        if status != 200:
            raise AssertionError(text)
        return json.loads(text)

    def turn(self, town, names, binds):
        if not self.replicas[self.leader].is_alive():
            return
        scheduler = self.replicas[self.leader].scheduler
        for item in town.cluster.list("pods")["items"]:
            name = item["metadata"]["name"]
            if item["spec"].get("nodeName") or (name in binds and binds[name].is_alive()):
                continue
            said = ask(self.filter, scheduler, item, names)
            if said and said["NodeNames"]:
                self.bind_beside(item, said["NodeNames"][0], binds)

    def drive(self, town, names):
        binds, number, until = {}, 0, time.monotonic() + 8
        self.plan_next()
        while time.monotonic() < until and not self.found:
            self.renew(town)
            self.change_replicas(town, names)
            if len(town.cluster.list("pods")["items"]) < 8:
                put_pod(town, f"q{number}", **{key: value for key, value in self.random_pod(number).items() if key != "name"})
                number += 1
            self.turn(town, names, binds)
            serve(town, self.r)
            self.end_some(town)
            self.drop_ended(town)
            time.sleep(0.01)
        self.end_all(town, names, binds)

    @staticmethod
    def drop_ended(town):
        for item in town.cluster.list("pods")["items"]:
            if item["status"]["phase"] in ("Failed", "Succeeded"):
                town.cluster.delete("pods", f"default/{item['metadata']['name']}")

    def end_all(self, town, names, binds):
        """Nobody is hurt any more: what waits is bound, as far as there is room."""
        if self.blow:
            self.blow.join()
        for replica in self.replicas:
            if replica.is_stopped:
                replica.stop(False)
            elif replica.scheduler.process.poll() is not None:
                if replica.scheduler.process.returncode != -9:
                    self.found.append("a scheduler died: " + "".join(replica.scheduler.lines[-20:]))
                replica.start()
        until = time.monotonic() + CASE_S
        while not self.found and not self.are_served(town):
            if time.monotonic() > until:
                waiting = [item["metadata"]["name"] for item in town.cluster.list("pods")["items"] if not item["spec"].get("nodeName")]
                self.found.append(f"pods are lost: {waiting or 'a lock stays'}")
            self.renew(town)
            self.turn(town, names, binds)
            serve(town, self.r)
            self.end_some(town)
            self.drop_ended(town)
            time.sleep(0.01)
        keeper = threading.Event()

        def keep():
            while not keeper.wait(0.1):
                self.renew(town)
        self.keeper = keeper  # pylint: disable=attribute-defined-outside-init
        threading.Thread(target=keep, daemon=True).start()

    def run(self):
        with Town() as town:
            names = ["n1", "n2"]
            self.put_nodes(town)
            self.watch_bindings(town)
            self.replicas = [Replica(town, "replica-a"), Replica(town, "replica-b")]
            self.scheduler = self.replicas[0].scheduler
            try:
                self.drive(town, names)
                wait_for(lambda: "lead" not in str(ask(self.filter, self.scheduler, put_pod(town, "last"), names)), "a leader")
                town.cluster.delete("pods", "default/last")
                self.settle(town)
            finally:
                if hasattr(self, "keeper"):
                    self.keeper.set()
                for replica in self.replicas:
                    replica.end()
        return self.found


def main():
    if not has_spaces():
        print("skipped: no host name of its own for a replica")
        return 77
    if sys.argv[2:3] == ["lease"]:
        return measure(int(sys.argv[3]))
    wrong = take_over_in_time(LONG_LEASE_S, [])
    if wrong:
        print(wrong)
        return 1
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    until, cases, taken = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        case = Failover(seed)
        found = case.run()
        cases, taken = cases + 1, taken + case.taken
        if found:
            print(f"seed {seed}: " + "; ".join(found[:5]))
            return 1
        seed += 1
    print(f"{cases} cases, {taken} times another replica took over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
