# SPDX-License-Identifier: Apache-2.0
"""An API server in memory, and vgpu-scheduler before it.

It has what a scheduler sees of one: lists, watches from a version on, merge and JSON patches with their preconditions,
bindings that put their annotations onto the pod, and events. `fault` is asked before each call, and may answer instead."""

import contextlib
import copy
import http.client
import http.server
import json
import os
import pathlib
import re
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

LOCK = "hami.io/mutex.lock"
REGISTER = "hami.io/node-nvidia-register"


class Refusal(Exception):
    """An answer that is no success: the status, the server's words, and its reason in one word."""

    def __init__(self, status, words, reason=""):
        super().__init__(words)
        self.status, self.reason = status, reason


def merge(target, patch):
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            merge(target[key], value)
        else:
            target[key] = value


def operate(target, operations):
    """RFC 6902, as far as it is used: test, add, replace and remove of members, of items of lists, too."""
    for operation in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = target
        for part in parts[:-1]:
            place = place[int(part)] if isinstance(place, list) else place.get(part, {})
        key, there = parts[-1], parts[-1] in place
        what = operation["op"]
        if what == "test" and place.get(key) != operation["value"]:
            raise Refusal(422, "the test failed")
        if what in ("replace", "remove") and not there:
            raise Refusal(422, "there is no such member")
        if what == "remove":
            del place[key]
        elif what in ("add", "replace"):
            place[key] = operation["value"]


class Cluster:
    """The objects by collection and "namespace/name", and what happened to them."""

    def __init__(self):
        self.changed = threading.Condition()  # whose lock may be taken again
        self.version = 0
        self.objects = {}
        self.history = []  # (version, collection, type, object)
        self.calls = []  # (method, path)
        self.asked = set()  # verbs and resources, as roles name them
        self.watched = []  # each watch: of what, and its query
        self.fault = None  # of (method, path): None, or what raises Refusal, or sleeps
        self.fault_after = None  # the same, when it is carried out, and not answered yet
        self.streams = 0  # watches that began before are ended when it changes
        self.oldest = 0  # versions before are forgotten
        self.rests = []  # what is behind each page: the whole list, where it begins, its version
        self.longest_page = 0  # objects
        self.repeats = 0  # so many events are told again with the next one
        self.is_silent = False  # watches tell nothing
        self.takes_labels = True  # from bindings, as since 1.35
        self.is_over = False

    # What tests do to it.

    def put(self, collection, item):
        """Creates an object, or replaces it."""
        with self.changed:
            metadata = item.setdefault("metadata", {})
            metadata.setdefault("uid", f"uid-{metadata.get('namespace', '')}-{metadata['name']}-{self.version}")
            there = self.objects.get(collection, {}).get(self._key(item))
            if collection == "pods" and there and there["metadata"]["uid"] != metadata["uid"]:
                self.delete(collection, self._key(item))
            self._store(collection, copy.deepcopy(item))
            return metadata["uid"]

    def change(self, collection, key, function):
        with self.changed:
            item = copy.deepcopy(self.objects[collection][key])
            function(item)
            self._store(collection, item)

    def delete(self, collection, key):
        with self.changed:
            item = copy.deepcopy(self.objects[collection].pop(key))
            self._tell(collection, "DELETED", item)

    def get(self, collection, key):
        with self.changed:
            return copy.deepcopy(self.objects.get(collection, {}).get(key))

    def annotations(self, collection, key):
        return self.get(collection, key)["metadata"].get("annotations", {})

    def events(self, pod):
        with self.changed:
            found = [item for item in self.objects.get("events", {}).values() if item["involvedObject"]["name"] == pod]
        return [(item["type"], item["reason"], item["message"]) for item in found]

    # What callers of the API do.

    @staticmethod
    def _key(item):
        metadata = item["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]

    def _tell(self, collection, kind, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, collection, kind, copy.deepcopy(item)))
        self.changed.notify_all()

    def _store(self, collection, item):
        items = self.objects.setdefault(collection, {})
        key = self._key(item)
        self._tell(collection, "MODIFIED" if key in items else "ADDED", item)
        items[key] = item

    def _find(self, collection, key):
        item = self.objects.get(collection, {}).get(key)
        if item is None:
            raise Refusal(404, f'{collection} "{key}" not found')
        return item

    def list(self, collection, node=None, most=None, rest=None):
        """node: pods that are bound to it. A page has so many; rest: those behind another page."""
        with self.changed:
            if rest:
                items, begin, version = self.rests[int(rest)]
            else:
                items, begin, version = copy.deepcopy(list(self.objects.get(collection, {}).values())), 0, self.version
                items = [item for item in items if not node or item["spec"].get("nodeName") == node]
            end = begin + most if most else len(items)
            metadata = {"resourceVersion": str(version)}
            if end < len(items):
                metadata["continue"] = str(len(self.rests))
                self.rests.append((items, end, version))
            self.longest_page = max(self.longest_page, len(items[begin:end]))
            return {"kind": "List", "metadata": metadata, "items": items[begin:end]}

    def read(self, collection, key):
        with self.changed:
            return copy.deepcopy(self._find(collection, key))

    def patch(self, collection, key, body, is_merge):
        with self.changed:
            item = copy.deepcopy(self._find(collection, key))
            if is_merge:
                metadata = body.get("metadata", {})
                for name in ("uid", "resourceVersion"):
                    if name in metadata and metadata[name] != item["metadata"][name]:
                        raise Refusal(409, f"{name} in precondition: {metadata[name]}")
                merge(item, body)
            else:
                operate(item, body)
            self._store(collection, item)
            return copy.deepcopy(item)

    def bind(self, key, binding):
        with self.changed:
            pod = copy.deepcopy(self._find("pods", key))
            uid = binding["metadata"].get("uid")
            if uid and uid != pod["metadata"]["uid"]:
                raise Refusal(409, f"UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}")
            version = binding["metadata"].get("resourceVersion")
            if version and version != pod["metadata"]["resourceVersion"]:
                raise Refusal(409, f"ResourceVersion in precondition: {version}")
            if pod["spec"].get("nodeName"):
                raise Refusal(409, f"pod {key} is already assigned to node \"{pod['spec']['nodeName']}\"")
            pod["spec"]["nodeName"] = binding["target"]["name"]
            pod["metadata"].setdefault("annotations", {}).update(binding["metadata"].get("annotations", {}))
            if self.takes_labels:
                pod["metadata"].setdefault("labels", {}).update(binding["metadata"].get("labels", {}))
            self._store("pods", pod)
            return {"kind": "Status", "status": "Success"}

    def create(self, collection, item, space=None):
        with self.changed:
            if space:
                item["metadata"].setdefault("namespace", space)
            if self._key(item) in self.objects.get(collection, {}):
                raise Refusal(409, f"{self._key(item)} already exists", "AlreadyExists")
            self._store(collection, item)
            return copy.deepcopy(item)


PATH = re.compile(r"/(?:api/v1|apis/[^/]+/v1)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?$")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def tell(self, kind, item):
        line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def watch(self, collection, version):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.tell_changes(collection, version)
        finally:
            self.server.watches.pop(threading.get_ident(), None)

    def tell_changes(self, collection, version):
        cluster, told = self.server.cluster, []
        stream = cluster.streams
        while True:
            self.server.watches[threading.get_ident()] = collection, version
            with cluster.changed:
                while not cluster.is_over and stream == cluster.streams and version >= cluster.oldest and \
                        (cluster.is_silent or not any(at > version for at, _, _, _ in cluster.history[-1:])):
                    cluster.changed.wait(0.3)
                if cluster.is_over or stream != cluster.streams:
                    return
                if version < cluster.oldest:
                    self.tell("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
                    return
                fresh = [row for row in cluster.history if row[0] > version]
                version = cluster.version
            self.server.gate.wait()
            mine = [(kind, item) for at, of, kind, item in fresh if of == collection]
            for kind, item in told[-cluster.repeats:] * (cluster.repeats > 0) + mine:
                self.tell(kind, item)
            told = (told + mine)[-20:]

    def serve(self):
        cluster = self.server.cluster
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if "watch=1" not in query:
            cluster.calls.append((self.command, path))
        try:
            if cluster.fault:
                cluster.fault(self.command, path)
            match = PATH.match(path)
            if not match:
                raise Refusal(404, f"no such path: {path}")
            space, collection, name, sub = match.groups()
            key = f"{space}/{name}" if space else name
            verb = {"GET": "watch" if "watch=1" in query else "get" if name else "list", "PATCH": "patch", "POST": "create"}[self.command]
            cluster.asked.add((verb, f"{collection}/{sub}" if sub else collection))
            if self.command == "GET" and "watch=1" in query:
                self.close_connection = True
                cluster.watched.append((collection, query))
                self.watch(collection, int(re.search(r"resourceVersion=(\d+)", query)[1]))
                return
            if self.command == "GET":
                node = re.search(r"fieldSelector=spec.nodeName%3D([^&]+)", query)
                most, rest = (re.search(rf"{word}=(\d+)", query) for word in ("limit", "continue"))
                answer = 200, cluster.read(collection, key) if name else cluster.list(
                    collection, node and node[1], most and int(most[1]), rest and rest[1])
            elif self.command == "PATCH":
                is_merge = "merge-patch" in self.headers["Content-Type"]
                answer = 200, cluster.patch(collection, key, body, is_merge)
            elif sub == "binding":
                answer = 201, cluster.bind(key, body)
            else:
                answer = 201, cluster.create(collection, body, space)
            if cluster.fault_after:
                cluster.fault_after(self.command, path)
            self.answer(*answer)
        except Refusal as refusal:
            self.answer(refusal.status, {"kind": "Status", "status": "Failure", "message": str(refusal),
                                         "reason": refusal.reason, "code": refusal.status})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_PATCH = do_POST = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A way to the cluster, with a kubeconfig in the folder. While its gate is closed no watch says anything."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, cluster, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster = cluster
        self.gate = threading.Event()
        self.gate.set()
        self.watches = {}  # by thread: of what, and the version up to which it has told
        self.connections = set()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        self.kubeconfig = pathlib.Path(folder, f"kubeconfig-{self.server_address[1]}")
        self.kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{self.server_address[1]}'}}}}]\n"
            "users: [{name: u, user: {}}]\n")

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def cut(self):
        """All connections, as a server that restarts does."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def has_told(self, version, count):
        """Whether so many schedulers, which are all of this server, were told of what happened up to there."""
        told = list(self.watches.values())
        return all(at >= version for _, at in told) and all(
            sum(of == collection for of, _ in told) >= count for collection in ("nodes", "pods", "resourcequotas"))

    def handle_error(self, request, client_address):
        """A scheduler that was killed has cut its connections."""


class Town:
    """A cluster, its servers, and a folder for what belongs to it."""

    def __init__(self):
        self.cluster = Cluster()
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-scheduler-")
        self.servers = [Server(self.cluster, self.folder.name)]

    @property
    def kubeconfig(self):
        return self.servers[-1].kubeconfig

    def open_server(self):
        """For the schedulers that are started from now on."""
        self.servers.append(Server(self.cluster, self.folder.name))
        return self.servers[-1]

    def tell(self, *schedulers, is_gone=lambda: False):
        """
        What happened so far is known to these schedulers then: it was written to their connections before the question came.
        is_gone: whether one was killed meanwhile, to which nothing more is told.
        """
        version = self.cluster.version
        for scheduler in schedulers:
            count = sum(one.server is scheduler.server for one in schedulers)
            wait_for(lambda server=scheduler.server, count=count: server.has_told(version, count) or is_gone(), "the end of what there is to tell")
            for _ in range(2):
                scheduler.ask("GET", "/healthz")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.cluster.changed:
            self.cluster.is_over = True
            self.cluster.changed.notify_all()
        for server in self.servers:
            server.gate.set()
            server.shutdown()
            server.server_close()
        self.folder.cleanup()


class Scheduler:
    """The program before such a cluster."""

    def __init__(self, program, town, *flags, is_ready=True, metrics=False):
        environment = {**os.environ, "KUBECONFIG": str(town.kubeconfig)}
        arguments = [*([program] if isinstance(program, str) else program), "--http_bind=127.0.0.1:0", "--scheduler-name=hami-scheduler",
                     "--metrics-bind-address=" + ("127.0.0.1:0" if metrics else ""), *flags]
        self.lines, self.server = [], town.servers[-1]
        self.process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)
        self.port = self.metrics_port = None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r'msg="metrics are served".* port=(\d+)', line)
            if found:
                self.metrics_port = int(found[1])
            found = re.search(r'msg="requests are served".* port=(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        if self.port is None:
            raise AssertionError("it does not start: " + "".join(self.lines))
        self.reader = threading.Thread(target=self._drain, daemon=True)
        self.reader.start()
        if is_ready:
            wait_for(lambda: self.ask("GET", "/readyz")[0] == 200, "readiness")

    def _drain(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def ask(self, method, path, body=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def post(self, path, body):
        status, text = self.ask("POST", path, json.dumps(body))
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return json.loads(text)

    def filter(self, pod, names):
        return self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": names})

    def bind(self, pod, node):
        metadata = pod["metadata"]
        return self.post("/bind", {"PodName": metadata["name"], "PodNamespace": metadata["namespace"],
                                   "PodUID": metadata["uid"], "Node": node})["Error"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(5)
        if code not in (0, -9):
            raise AssertionError(f"it ended with {code}:\n" + "".join(self.lines[-60:]))


def other_address():
    """One of this machine's own beside 127.0.0.1, which stands for elsewhere; None: it has none."""
    said = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return next((one for one in said if ":" not in one), None)


def wait_for(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"{what} did not come within {seconds} s")
        time.sleep(0.02)


def device(number, memory=10000, **more):
    return {"id": f"GPU-{number}", "index": number, "count": 10, "devmem": memory, "devcore": 100,
            "type": "NVIDIA A30", "mode": "hami-core", "health": True, **more}


def node(name, devices, allocatable="10", **annotations):
    return {"metadata": {"name": name, "annotations": {REGISTER: json.dumps(devices), **annotations}},
            "status": {"allocatable": {"nvidia.com/gpu": allocatable}}}


def pod(name, memory=1000, gpus=1, **more):
    limits = {"nvidia.com/gpu": str(gpus), "nvidia.com/gpumem": str(memory)} if gpus else {}
    return {"metadata": {"name": name, "namespace": "default", **more},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]},
            "status": {"phase": "Pending"}}
