#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that are bound in a second, beside what kube-scheduler reaches alone; run by scheduler.sh inside a cluster.

Each round creates its pods while kube-scheduler is stopped, lets it go on, and counts the time until the last one is bound."""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import threading
import time
import urllib.request

LOCK = "hami.io/mutex.lock"
PHASE = "hami.io/bind-phase"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
KINDS = {"alone": {}, "devices": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "10"}}


class Api:
    """The API server; a connection for each thread."""

    def __init__(self, server, authority, token):
        self.host = server.partition("//")[2]
        self.trust = ssl.create_default_context(cafile=authority)
        self.headers = {"Authorization": f"Bearer {token}"}
        self.own = threading.local()

    def connect(self):
        return http.client.HTTPSConnection(self.host, context=self.trust, timeout=60)

    def read(self, method, path, body=None, kind="application/json"):
        if not hasattr(self.own, "connection"):
            self.own.connection = self.connect()
        connection = self.own.connection
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind, **self.headers})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status != 404:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
        return text.decode()

    def call(self, *arguments):
        return json.loads(self.read(*arguments))

    def requests(self):
        """How many of each kind the server has carried out."""
        found = {}
        for labels, count in re.findall(r"^apiserver_request_total\{(.*?)\} (\S+)$", self.read("GET", "/metrics"), re.M):
            label = dict(re.findall(r'(\w+)="(.*?)"', labels))
            if label["verb"] != "WATCH":
                key = f'{label["verb"]} {label["resource"]}/{label["subresource"]} {label["code"]}'.replace("/ ", " ")
                found[key] = found.get(key, 0) + float(count)
        return found

    def merge(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def watch_pods(self, version, take):
        """The server ends a watch that is slow; it goes on from where it was."""
        while True:
            connection = self.connect()
            connection.request("GET", f"/api/v1/namespaces/default/pods?watch=1&resourceVersion={version}",
                               headers=self.headers)
            answer = connection.getresponse()
            for line in iter(answer.readline, b""):
                pod = json.loads(line)["object"]
                version = pod["metadata"]["resourceVersion"]
                if take(pod):
                    connection.close()
                    return


def node_object(number, gpus):
    devices = [{"id": f"GPU-{number:08x}-{i:04x}", "index": i, "count": 10, "devmem": 81559, "devcore": 100,
                "type": "NVIDIA H100 80GB HBM3", "numa": i // 4, "mode": "hami-core", "health": True} for i in range(gpus)]
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "250", "nvidia.com/gpu": str(gpus * 10)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": f"gpu-{number}", "labels": {"kubernetes.io/hostname": f"gpu-{number}"},
                         "annotations": {"hami.io/node-nvidia-register": json.dumps(devices)}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}


def pod_object(name, kind, policy):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {"hami.io/node-scheduler-policy": policy}},
            "spec": {"tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "c", "image": "x", "resources": {"limits": KINDS[kind]}}]}}


class Round:
    """One load: what is bound, and what the device plugin would do to it."""

    def __init__(self, bench, kind, policy, count):
        self.bench, self.kind, self.policy, self.count = bench, kind, policy, count
        self.bound, self.served = {}, set()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.errors, self.used, self.requests = [], {}, {}

    def serve(self, name, node):
        """As the device plugin: the pod has its devices, the node's lock is free."""
        api = self.bench.api
        try:
            api.merge(f"/api/v1/namespaces/default/pods/{name}",
                      {"metadata": {"annotations": {PHASE: "success", TO_ALLOCATE: ";;"}}})
            api.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {LOCK: None}}})
        except RuntimeError as error:
            self.errors.append(error)

    def take(self, pod):
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if node and name not in self.bound:
            self.bound[name] = time.monotonic()
            if self.kind != "alone" and self.bench.options.release_ms >= 0:
                threading.Timer(self.bench.options.release_ms / 1000, self.pool.submit, (self.serve, name, node)).start()
        return len(self.bound) == self.count

    def run(self):
        bench = self.bench
        names = [f"{self.kind}-{self.policy}-{i}" for i in range(self.count)]
        subprocess.run([os.environ["CLUSTER"], "stop", "scheduler", "STOP"], check=True)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: bench.api.call("POST", "/api/v1/namespaces/default/pods",
                                                      pod_object(name, self.kind, self.policy)), names))
        time.sleep(2)
        version = bench.api.call("GET", "/api/v1/namespaces/default/pods?limit=1")["metadata"]["resourceVersion"]
        requests = bench.api.requests()
        before, used = bench.figures(), bench.processors()
        watcher = threading.Thread(target=bench.api.watch_pods, args=(version, self.take), daemon=True)
        watcher.start()
        subprocess.run([os.environ["CLUSTER"], "stop", "scheduler", "CONT"], check=True)
        began = time.monotonic()
        watcher.join(bench.options.seconds)
        after, now = bench.figures(), time.monotonic()
        self.used = {name: seconds - used.get(name, 0) for name, seconds in bench.processors().items()}
        self.pool.shutdown()
        self.requests = {kind: (count - requests.get(kind, 0)) / self.count for kind, count in bench.api.requests().items()}
        if not self.bound:
            raise RuntimeError("no pod was bound")
        last = max(self.bound.values()) if len(self.bound) == self.count else now
        self.say(last - began, before, after)
        self.clear(names)
        return len(self.bound) / (last - began)

    def say(self, seconds, before, after):
        rate = len(self.bound) / seconds
        words = f"{self.kind:8} {self.policy:8} {len(self.bound)} of {self.count} pods in {seconds:.1f} s: {rate:.0f}/s"
        if self.kind != "alone":
            used = {key: after[key] - before[key] for key in after}
            words += (f"; {used['calls'] / len(self.bound):.2f} API calls a pod, {used['failed']:.0f} binds failed, filter"
                      f" {used['filter'] * 1e3 / max(1, used['filters']):.1f} ms, bind"
                      f" {used['bind'] * 1e3 / max(1, used['binds']):.0f} ms, {used['cpu'] / seconds * 100:.0f} % of a processor,"
                      f" {self.bench.memory_mib()} MiB")
        print(words, flush=True)
        print("    processor time a pod, ms: " + ", ".join(
            f"{name} {seconds * 1e3 / len(self.bound):.1f}" for name, seconds in sorted(self.used.items(), key=lambda row: -row[1])
            if seconds * 1e3 / len(self.bound) >= 0.1), flush=True)
        print(f"    load {os.getloadavg()[0]:.1f}; of the API server, a pod: " + ", ".join(
            f"{count:.2f} {kind}" for kind, count in sorted(self.requests.items()) if count >= 0.05), flush=True)
        if self.errors:
            print(f"    {len(self.errors)} errors of the bench: {self.errors[0]}", flush=True)

    def clear(self, names):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.bench.api.call(
                "DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0"), names))
        time.sleep(2)


class Bench:
    def __init__(self, arguments, options):
        self.api = Api(arguments.server, arguments.authority, arguments.token)
        self.metrics, self.pid, self.options = arguments.metrics, arguments.pid, options

    def figures(self):
        """What vgpu-scheduler counts of itself."""
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            text = answer.read().decode()

        def value(name):
            found = re.search(r"^vgpu_scheduler_" + re.escape(name) + r" (\S+)$", text, re.M)
            return float(found[1]) if found else 0.0
        ticks = sum(map(int, pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]))
        took = "request_duration_seconds_"
        return {"calls": value("api_calls_total"), "cpu": ticks / os.sysconf("SC_CLK_TCK"),
                "failed": value('request_failures_total{verb="bind"}'),
                **{verb: value(took + f'sum{{verb="{verb}"}}') for verb in ("filter", "bind")},
                **{verb + "s": value(took + f'count{{verb="{verb}"}}') for verb in ("filter", "bind")}}

    @staticmethod
    def processors():
        """Seconds of a processor that each program has had."""
        used = {}
        for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                name, fields = re.search(r"\((.*)\) (.*)", file.read_text(encoding="ascii")).groups()
            except OSError:
                continue
            seconds = sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
            used[name] = used.get(name, 0) + seconds
        return used

    def memory_mib(self):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024

    def run(self):
        options = self.options
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: self.api.call("POST", "/api/v1/nodes", node_object(number, options.gpus)),
                          range(options.nodes)))
        print(f"{options.nodes} nodes of {options.gpus} devices; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}",
              flush=True)
        time.sleep(3)
        limit = Round(self, "alone", "spread", options.pods).run()
        for policy in options.policies.split(","):
            rate = Round(self, "devices", policy, options.pods).run()
            print(f"    {rate / limit:.2f} of kube-scheduler alone", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("server", "authority", "token", "metrics"):
        parser.add_argument(name)
    parser.add_argument("pid", type=int)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--policies", default="spread,binpack", help="node policies, one round for each")
    parser.add_argument("--release-ms", type=int, default=20,
                        help="how long the device plugin takes until it frees a node's lock; negative: it never does")
    parser.add_argument("--seconds", type=int, default=120, help="of a round at most")
    arguments = parser.parse_args()
    Bench(arguments, arguments).run()


if __name__ == "__main__":
    main()
