#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rbac.py PROGRAM ROLES KUBECONFIG: whether vgpu-scheduler needs each verb of its roles; inside a cluster (e2e.sh).

ROLES is the manifest, which was applied, and KUBECONFIG is its account's. The program is run once with all of it, where the
server refuses nothing, and then with each verb taken away, where the server's refusal must be seen: in an answer, or in the log."""

import base64
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import time

import roles
from server import Api

PROGRAM, ROLES, KUBECONFIG = sys.argv[1:]
SPACE, PORT = "kube-system", 9543
ACCOUNT = f"system:serviceaccount:{SPACE}:vgpu-scheduler"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
SECRET = f"/api/v1/namespaces/{SPACE}/secrets/vgpu-scheduler"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases"
PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/rbac"
REFUSED = re.compile(r'cannot (\w+) resource \\?"([a-z/]+)\\?"')


def make_scene(api):
    """A node that nobody is on, a lease that this host has, and a webhook that is never called."""
    device = {"id": "GPU-rbac", "count": 100, "devmem": 100000, "devcore": 100, "type": "NVIDIA A30", "mode": "hami-core", "health": True}
    api.ask("DELETE", NODE)
    api.must("POST", "/api/v1/nodes", {
        "metadata": {"name": "rbac", "annotations": {"hami.io/node-nvidia-register": json.dumps([device])}},
        "status": {"allocatable": {"nvidia.com/gpu": "100"}, "capacity": {"nvidia.com/gpu": "100"}}})
    api.ask("DELETE", f"{HOOKS}/vgpu-scheduler")
    api.must("POST", HOOKS, {"metadata": {"name": "vgpu-scheduler"}, "webhooks": [{
        "name": "vgpu.hami.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"}}]})
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000000Z"
    api.ask("DELETE", f"{LEASE}/hami-scheduler")
    api.must("POST", LEASE, {"metadata": {"name": "hami-scheduler"}, "spec": {
        "holderIdentity": os.uname().nodename + "_1", "leaseDurationSeconds": 3600, "renewTime": now}})


def make_pod(api, name):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}
    return api.must("POST", PODS, {
        "metadata": {"name": name, "labels": {"hami.io/webhook": "ignore"}},
        "spec": {"schedulerName": "nobody", "tolerations": [{"operator": "Exists"}],
                 "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]}})


class Scheduler:
    """The program; what it says is kept."""

    def __init__(self):
        self.text = ""
        self.process = subprocess.Popen(
            [PROGRAM, "--http_bind", f"127.0.0.1:{PORT}", "--metrics-bind-address=", "--webhook-secret", f"{SPACE}/vgpu-scheduler",
             "--webhook-configuration", "vgpu-scheduler", "--leader-elect", "--leader-elect-resource-name", "hami-scheduler",
             "--leader-elect-resource-namespace", SPACE, "--node-lock-retry-timeout", "2s", "--kube-timeout", "2s"],
            env={**os.environ, "KUBECONFIG": KUBECONFIG}, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.text += line

    def ask(self, path, body):
        connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=ssl._create_unverified_context(), timeout=20)
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        self.text += text
        return answer.status, text

    def is_ready(self):
        try:
            return self.ask("/readyz", None)[0] == 200
        except OSError:
            return False

    def bind(self, pod, uid=None):
        metadata = pod["metadata"]
        return self.ask("/bind", {"PodName": metadata["name"], "PodNamespace": "default", "PodUID": uid or metadata["uid"], "Node": "rbac"})

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(5)


def wait_until(scheduler, condition, seconds, wanted):
    """Or until the refusal is seen."""
    until = time.monotonic() + seconds
    while not condition() and not (wanted and wanted in REFUSED.findall(scheduler.text)):
        if time.monotonic() > until:
            return
        time.sleep(0.05)


def serve_pods(api, scheduler, number, wanted):
    """One is promised and bound while its node changes, and one that nobody knows is asked for."""
    pod = make_pod(api, f"rbac-{number}")
    is_over = threading.Event()

    def change_node():
        own = Api()
        while not is_over.is_set():
            own.merge(NODE, {"metadata": {"annotations": {"touched": str(time.monotonic())}}})
    changing = threading.Thread(target=change_node)
    if wanted in (None, ("get", "nodes")):
        changing.start()
    scheduler.ask("/filter", {"Pod": pod, "Nodes": None, "NodeNames": ["rbac"]})
    time.sleep(0.1)  # a promise is written where the pod is not bound at once
    scheduler.bind(pod)
    is_over.set()
    if changing.ident:
        changing.join()
    scheduler.bind(pod, "another")
    api.merge(NODE, {"metadata": {"annotations": {"hami.io/mutex.lock": None}}})
    api.ask("DELETE", f"{PODS}/rbac-{number}?gracePeriodSeconds=0")


def exercise(api, wanted, number):
    """Runs it, and gives the refusals that were seen. The secret is not there, or is none."""
    api.ask("DELETE", SECRET)  # with another authority the bundle changes, too
    if wanted in (("get", "secrets"), ("patch", "secrets")):
        api.must("POST", SECRET.rsplit("/", 1)[0], {"metadata": {"name": "vgpu-scheduler"}, "type": "kubernetes.io/tls", "data": {
            "tls.crt": base64.b64encode(b"x").decode(), "tls.key": base64.b64encode(b"x").decode()}})
    scheduler = Scheduler()
    try:
        wait_until(scheduler, scheduler.is_ready, 10, wanted)
        for attempt in range(20):
            if wanted in REFUSED.findall(scheduler.text) or not scheduler.is_ready():
                break
            serve_pods(api, scheduler, f"{number}-{attempt}", wanted)
            if not wanted:
                break
            # the telling of an event, and the next watch, come a moment later
            wait_until(scheduler, lambda: False, 0.2, wanted)
    finally:
        scheduler.end()
    return set(REFUSED.findall(scheduler.text)), scheduler.text


def main():
    api = Api()
    all_roles = roles.read(ROLES)
    make_scene(api)
    seen, said = exercise(api, None, "all")
    if seen or '"NodeNames":["rbac"]' not in said:
        raise AssertionError(f"with all of its roles it was refused {seen}:\n{said}")
    failed = []
    count = 0
    for role in all_roles:
        for at, rule in enumerate(role["rules"]):
            for verb in rule["verbs"]:
                count += 1
                wanted = (verb, rule["resources"][0])
                api.must("PUT", roles.path_of(role), roles.without(role, at, verb))
                roles.settle(api, ACCOUNT, role, rule, verb, False)
                seen, said = exercise(api, wanted, count)
                api.must("PUT", roles.path_of(role), role)
                roles.settle(api, ACCOUNT, role, rule, verb, True)
                if wanted not in seen:
                    failed.append(wanted)
                    print(f"nothing fails without {wanted}; refused: {seen}\n{said[-1500:]}")
    api.ask("DELETE", NODE)
    api.ask("DELETE", f"{HOOKS}/vgpu-scheduler")
    print(f"{count} verbs, each of them needed" if not failed else f"not needed: {failed}")
    return 1 if failed else 0


sys.exit(main())
