#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""certificates.py PROGRAM [TEST...]: the certificates that vgpu-scheduler shows, makes and asks for, one test a function below."""

import base64
import contextlib
import http.client
import socket
import ssl
import subprocess
import sys
import threading

from cluster import Refusal, Scheduler, other_address, wait_for
from daemon import PROGRAM, equal, main, one_node
from cases import Skipped

OWN = ["--webhook-secret=system/keys", "--webhook-configuration=hooks", "--webhook-hosts=127.0.0.1,vgpu.system.svc"]


def make_certificate(folder, name, authority=None):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
               "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/{name}.key",
               "-out", f"{folder}/{name}.crt"]
    if authority:
        command += ["-CA", f"{folder}/{authority}.crt", "-CAkey", f"{folder}/{authority}.key"]
    subprocess.run(command, check=True, capture_output=True)


def the_certificate_is_renewed(town):
    folder = town.folder.name
    for name in ("one", "two"):
        make_certificate(folder, name)

    def install(name):
        for end in ("crt", "key"):
            with open(f"{folder}/{name}.{end}", encoding="ascii") as source, \
                    open(f"{folder}/tls.{end}", "w", encoding="ascii") as target:
                target.write(source.read())

    install("one")
    flags = [f"--cert_file={folder}/tls.crt", f"--key_file={folder}/tls.key"]
    with Scheduler(PROGRAM, town, *flags, is_ready=False) as scheduler:
        def connect(name):
            trust = ssl.create_default_context(cafile=f"{folder}/{name}.crt")
            return http.client.HTTPSConnection("127.0.0.1", scheduler.port, context=trust, timeout=60)

        def says(connection):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            return answer.read()

        old = connect("one")
        equal(says(old), b"")
        install("two")

        def is_new():
            try:
                return says(connect("two")) == b""
            except ssl.SSLError:
                return False
        wait_for(is_new, "the other certificate")
        equal(says(old), b"")  # what was connected stays so


def authority_of(town, folder=None):
    """What the API server is told to trust, as a file."""
    bundle = town.cluster.get("mutatingwebhookconfigurations", "hooks")["webhooks"][0]["clientConfig"].get("caBundle")
    path = f"{folder or town.folder.name}/bundle.crt"
    with open(path, "wb") as target:
        target.write(base64.b64decode(bundle or ""))
    return path


def served_certificate(scheduler, bundle):
    """The one that is shown, as far as it is trusted."""
    trust = ssl.create_default_context(cafile=bundle)
    with socket.create_connection(("127.0.0.1", scheduler.port), 60) as raw:
        with trust.wrap_socket(raw, server_hostname="vgpu.system.svc") as tls:
            return tls.getpeercert(True)


def put_hooks(place):
    place.cluster.put("mutatingwebhookconfigurations", {
        "metadata": {"name": "hooks"}, "webhooks": [{"name": "a", "clientConfig": {}}, {"name": "b", "clientConfig": {"caBundle": "eA=="}}]})


def replicas_make_one_certificate(town):
    put_hooks(town)
    both = threading.Barrier(2)
    waits = {"left": 2}

    def fault(method, path):
        """Both find no secret before one of them makes it."""
        if method == "POST" and path.endswith("/secrets") and waits["left"]:
            waits["left"] -= 1
            both.wait(60)
    town.cluster.fault = fault
    with contextlib.ExitStack() as stack:
        starting = [threading.Thread(target=lambda: replicas.append(
            stack.enter_context(Scheduler(PROGRAM, town, *OWN, is_ready=False)))) for _ in range(2)]
        replicas = []
        for one in starting:
            one.start()
        for one in starting:
            one.join()
        secret = town.cluster.get("secrets", "system/keys")
        equal((secret["type"], sorted(secret["data"])), ("kubernetes.io/tls", ["ca.crt", "ca.key", "tls.crt", "tls.key"]))
        hooks = town.cluster.get("mutatingwebhookconfigurations", "hooks")["webhooks"]
        equal([hook["clientConfig"]["caBundle"] for hook in hooks], [secret["data"]["ca.crt"]] * 2)
        shown = {served_certificate(one, authority_of(town)) for one in replicas}
        equal(len(shown), 1)
    # the next one takes what is there, and for other hosts makes another by the same authority
    with Scheduler(PROGRAM, town, *OWN, is_ready=False) as scheduler:
        equal(served_certificate(scheduler, authority_of(town)) in shown, True)
    with Scheduler(PROGRAM, town, *OWN, "--webhook-hosts=vgpu.system.svc,::1", is_ready=False) as scheduler:
        equal(served_certificate(scheduler, authority_of(town)) in shown, False)
    equal(town.cluster.get("secrets", "system/keys")["data"]["ca.crt"], secret["data"]["ca.crt"])


def an_own_certificate_is_renewed_in_time(town):
    put_hooks(town)
    with Scheduler(PROGRAM, town, *OWN, "--webhook-certificate-life=10s", is_ready=False) as scheduler:
        def shown():
            """One may have ended before it was looked at."""
            try:
                return served_certificate(scheduler, authority_of(town))
            except ssl.SSLError:
                return None

        def is_new():
            return shown() not in (None, first)

        first = None
        wait_for(is_new, "a certificate")
        first = shown()
        # what is not understood is made anew, as is what somebody else has told the API server
        town.cluster.change("secrets", "system/keys", lambda item: item["data"].update({"ca.crt": "eA=="}))
        wait_for(lambda: town.cluster.get("secrets", "system/keys")["data"]["ca.crt"] != "eA==", "another authority")
        wait_for(is_new, "another certificate")
        first = shown() or first
        town.cluster.change("mutatingwebhookconfigurations", "hooks", lambda item: item["webhooks"][0]["clientConfig"].clear())
        wait_for(is_new, "the renewed certificate")


def a_certificate_comes_when_it_may_be_kept(town):
    """While the secret may not be read or made, nothing is served; where the API server cannot be told, it is."""
    left = [2]

    def fault(method, path):
        if "/secrets" in path:
            left[0] -= 1
        if "/mutating" in path or ("/secrets" in path and left[0] >= 0):
            raise Refusal(403, "not allowed")
    town.cluster.fault = fault
    with Scheduler(PROGRAM, town, *OWN, is_ready=False) as scheduler:
        equal(any("not allowed" in line for line in scheduler.lines), True)
        with open(f"{town.folder.name}/ca.crt", "wb") as target:
            target.write(base64.b64decode(town.cluster.get("secrets", "system/keys")["data"]["ca.crt"]))
        served_certificate(scheduler, f"{town.folder.name}/ca.crt")


def others_need_a_certificate(town):
    """Of clients from elsewhere."""
    folder = town.folder.name
    address = other_address()
    for name, authority in (("server", None), ("ca", None), ("friend", "ca"), ("other", None)):
        make_certificate(folder, name, authority)
    flags = [f"--cert_file={folder}/server.crt", f"--key_file={folder}/server.key", f"--client_ca_file={folder}/ca.crt",
             "--http_bind=0.0.0.0:0"]
    one_node(town)
    with Scheduler(PROGRAM, town, *flags, is_ready=False) as scheduler:
        def status(where, shown, path="/filter"):
            trust = ssl.create_default_context(cafile=f"{folder}/server.crt")
            trust.check_hostname = False
            if shown:
                trust.load_cert_chain(f"{folder}/{shown}.crt", f"{folder}/{shown}.key")
            connection = http.client.HTTPSConnection(where, scheduler.port, context=trust, timeout=60)
            connection.request("POST", path, "{}")
            return connection.getresponse().status
        is_for_trusted = {"/filter": 200, "/bind": 200, "/preempt": 400}
        wait_for(lambda: status("127.0.0.1", None, "/preempt") == 400, "the cluster is known")
        for path, answer in is_for_trusted.items():
            equal((path, status("127.0.0.1", None, path)), (path, answer))
        if not address:
            raise Skipped("this machine has no second address")
        for path, answer in is_for_trusted.items():
            equal((path, status(address, None, path)), (path, 403))
            equal((path, status(address, "friend", path)), (path, answer))
            equal((path, status(address, "other", path)), (path, 403))
        for path in ("/webhook", "/guard"):
            equal((path, status(address, None, path)), (path, 400))


if __name__ == "__main__":
    sys.exit(main(globals()))
