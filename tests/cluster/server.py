# SPDX-License-Identifier: Apache-2.0
"""The API server of a test cluster, for its administrator or another account: for cases that are written in Python."""

import http.client
import json
import os
import ssl

FOLDER = os.environ["CLUSTER_FOLDER"]


class Api:
    """One connection to it, of an account that has a key."""

    def __init__(self, account="admin"):
        trust = ssl.create_default_context(cafile=f"{FOLDER}/keys/ca.crt")
        trust.load_cert_chain(f"{FOLDER}/keys/{account}.crt", f"{FOLDER}/keys/{account}.key")
        self.connection = http.client.HTTPSConnection("192.0.2.10", 6443, context=trust, timeout=20)

    def ask(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def must(self, method, path, body=None, kind="application/json"):
        status, answer = self.ask(method, path, body, kind)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {answer.get('message')}")
        return answer

    def merge(self, path, body):
        return self.must("PATCH", path, body, "application/merge-patch+json")

    def watch(self, path):
        """Each change of a collection, from now on, after what is there."""
        items = self.must("GET", path)
        yield from items["items"]
        self.connection.request("GET", f"{path}&watch=1&resourceVersion={items['metadata']['resourceVersion']}")
        for line in self.connection.getresponse():
            yield json.loads(line)["object"]
