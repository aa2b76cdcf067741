#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scheduler_size.py BUILD: vgpu-scheduler with a large cluster: how soon it is ready, its memory, and how long POST /filter takes
with the names of all nodes, over HTTP as kube-scheduler asks.

The API server is one of this bench: pages of objects that were written beforehand, and watches that tell nothing."""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import re
import socketserver
import subprocess
import tempfile
import threading
import time

# As much as a kubelet's node and a pod with managed fields have beside what counts.
PADDING = {"managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {
    f"f:field{i}": {"f:a": {}, "f:b": {}} for i in range(30)}}}]}
UUID = "GPU-{:08x}-0000-4000-8000-{:012x}"


def node(number, gpus):
    devices = [{"id": UUID.format(number, i), "index": i, "count": 20, "devmem": 81559, "devcore": 100, "type": "NVIDIA H100 80GB HBM3",
                "numa": i // 4, "mode": "hami-core", "health": True} for i in range(gpus)]
    return {"metadata": {"name": f"gpu-{number}", "resourceVersion": "1", "uid": f"node-{number}", **PADDING,
                         "annotations": {"hami.io/node-nvidia-register": json.dumps(devices)}},
            "status": {"allocatable": {"nvidia.com/gpu": str(20 * gpus)},
                       "images": [{"names": [f"registry.example/image-{i}@sha256:{i:064x}"], "sizeBytes": i} for i in range(20)]}}


def pod(number, nodes, gpus, memory=1000):
    where, device = number % nodes, number // nodes % gpus
    share = f"{UUID.format(where, device)},NVIDIA,{memory},5:;"
    return {"metadata": {"name": f"job-{number:06d}-worker", "namespace": f"team-{number % 50}", "resourceVersion": "1", **PADDING,
                         "uid": f"{number:08x}-1111-4222-8333-444444444444",
                         "annotations": {"hami.io/vgpu-node": f"gpu-{where}", "hami.io/vgpu-devices-allocated": share}},
            "spec": {"nodeName": f"gpu-{where}", "containers": [asks(memory)]}, "status": {"phase": "Running"}}


def asks(memory):
    return {"name": "c", "image": "registry.example/program:1", "env": [{"name": f"NAME_{i}", "value": "value"} for i in range(10)],
            "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": "5"}}}


def pages(items, size):
    """The answers to a list, by where they begin."""
    result = {}
    for begin in range(0, max(1, len(items)), size):
        metadata = {"resourceVersion": "1"}
        if begin + size < len(items):
            metadata["continue"] = str(begin + size)
        text = b",".join(items[begin:begin + size])
        result[begin] = b'{"metadata":%s,"items":[%s]}' % (json.dumps(metadata).encode(), text)
    return result


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        server = self.server
        collection = re.search(r"/(nodes|pods|resourcequotas)\?", self.path)
        if "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            server.over.wait()
            self.close_connection = True
            return
        if not collection:  # one object
            self.answer(b"{}")
            return
        size = int(re.search(r"limit=(\d+)", self.path)[1])
        begin = re.search(r"continue=(\d+)", self.path)
        key = (collection[1], size)
        if key not in server.pages:
            server.pages[key] = pages(server.items[collection[1]], size)
        self.answer(server.pages[key][int(begin[1]) if begin else 0])

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"{}")

    do_PATCH = do_POST


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, options):
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()
        self.items = {"nodes": [json.dumps(node(i, options.gpus)).encode() for i in range(options.nodes)],
                      "pods": [json.dumps(pod(i, options.nodes, options.gpus)).encode() for i in range(options.pods)],
                      "resourcequotas": []}
        self.pages = {(name, size): pages(items, size) for name, items in self.items.items() for size in (100, 200, 500)}
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class Scheduler:
    def __init__(self, build, server):
        with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig", delete=False) as file:
            file.write(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                                   "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
                                   "users": [{"name": "u", "user": {}}]}))
        self.process = subprocess.Popen(
            [f"{build}/src/scheduler/vgpu-scheduler", "--http_bind=127.0.0.1:0", "--metrics-bind-address="],
            env={**os.environ, "KUBECONFIG": file.name}, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r'msg="requests are served".* port=(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def processor_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return {name: int(re.search(name + r":\s+(\d+)", text)[1]) / 1024 for name in ("VmHWM", "VmRSS")}

    def say_memory(self, when):
        memory = self.memory_mib()
        print(f"{when}: {memory['VmRSS']:.1f} MiB now, {memory['VmHWM']:.1f} MiB at the most", flush=True)


def measure(scheduler, options, words, memory):
    names = [f"gpu-{i}" for i in range(options.nodes)]
    rest = json.dumps({"Nodes": None, "NodeNames": names})[1:]
    took, used = [], scheduler.processor_s()
    for number in range(options.questions):
        item = {"metadata": {"name": f"new-{number}", "namespace": "default", "uid": f"new-{memory}-{number}"},
                "spec": {"containers": [asks(memory)]}, "status": {"phase": "Pending"}}
        body = f'{{"Pod":{json.dumps(item)},{rest}'
        began = time.monotonic()
        status, text = scheduler.ask("POST", "/filter", body)
        took.append((time.monotonic() - began) * 1e3)
        if status != 200 or b'"Error":""' not in text:
            raise RuntimeError(f"{status} {text[:300]}")
    used = (scheduler.processor_s() - used) * 1e3 / options.questions
    took.sort()
    print(f"/filter, {words}: p50 {took[len(took) // 2]:.2f} ms, p99 {took[len(took) * 99 // 100]:.2f} ms; {used:.2f} ms of a processor",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    for name, value in (("nodes", 5000), ("gpus", 8), ("pods", 100000), ("questions", 300)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    server = Server(options)
    print(f"{options.nodes} nodes of {options.gpus} devices, {options.pods} pods; load {os.getloadavg()[0]:.1f}", flush=True)
    began = time.monotonic()
    scheduler = Scheduler(options.build, server)
    try:
        while scheduler.ask("GET", "/readyz")[0] != 200:
            time.sleep(0.02)
        print(f"ready after {time.monotonic() - began:.2f} s, {scheduler.processor_s():.2f} s of a processor", flush=True)
        scheduler.say_memory("when ready")
        measure(scheduler, options, "fits", 1000)
        measure(scheduler, options, "fits nowhere", 90000)
        scheduler.say_memory("at the end")
    finally:
        scheduler.process.terminate()
        scheduler.process.wait()
        server.over.set()


if __name__ == "__main__":
    main()
