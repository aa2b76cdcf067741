#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""monitor.py BUILD [SLICES] [SECONDS]: what vgpu-monitor costs on a node: processor time, memory, the time of a scrape.

BUILD was built with tests. Each slice has a process that holds memory of a simulated device. The node is one of a cluster: it has 46
pods more, each pod is 10 KiB, as kubelets write them, and its kubelet tells its record; the monitor serves its page. One row of a table."""

import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests/scheduler"))
from cluster import Town, pod, wait_for  # noqa: E402 pylint: disable=wrong-import-position

BUILD = pathlib.Path(sys.argv[1])
SLICES, SECONDS = (int(argument) for argument in (sys.argv[2:] + ["64", "60"][len(sys.argv) - 2:]))
UUID = "GPU-12345678-1234-1234-1234-{:012d}"
POD = "0b5e7d7a-4f39-4d0c-9d3e-{:012d}"
OTHER_PODS, POD_BYTES = 46, 10 << 10
SCRAPES = 50


def cpu_s(pid):
    """To a ns, of all its threads."""
    return sum(int(pathlib.Path(task, "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def peak_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def make_slices(hook):
    makers = []
    for i in range(SLICES):
        name = f"{POD.format(i)}_main"
        region = hook / "containers" / name / "x.cache"
        share = hook / "shares" / name / "share"
        region.parent.mkdir(parents=True)
        share.parent.mkdir(parents=True)
        share.write_text(f"vgpu-share 1\nslice {name}\nregion {region}\ndevice {UUID.format(i % 8)} memory 1g cores 10\nend\n",
                         encoding="utf-8")
        maker = subprocess.Popen([BUILD / "tests/monitor/make_region", region, UUID.format(i % 8)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        maker.stdout.readline()
        makers.append(maker)
    return makers


def make_pods(town):
    for i in range(SLICES + OTHER_PODS):
        has_slice = i < SLICES
        item = pod(f"pod-{i}", uid=POD.format(i), gpus=int(has_slice))
        if has_slice:
            item["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{UUID.format(i % 8)},NVIDIA,1024,10:;"}
        item["spec"]["nodeName"] = "n1"
        item["spec"]["containers"][0]["name"] = "main"
        item["status"]["containerStatuses"] = [{"name": "main", "containerID": f"containerd://{i}", "state": {"running": {}}}]
        fields = item["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {}}]
        while len(json.dumps(item)) < POD_BYTES:
            fields[0]["fieldsV1"][f"f:field-{len(fields[0]['fieldsV1'])}"] = {"f:name": {}, "f:value": {}}
        town.cluster.put("pods", item)


def start_kubelet(hook):
    record = [f"default pod-{i} main nvidia.com/gpu {UUID.format(i % 8)}-{i}" for i in range(SLICES)]
    (hook / "record").write_text("\n".join(record) + "\n", encoding="utf-8")
    return subprocess.Popen([BUILD / "tests/monitor/fake_kubelet", hook / "kubelet.sock", hook / "record"])


def scrape(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    began = time.perf_counter()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read()
    return 1000 * (time.perf_counter() - began), len(text)


def is_ready(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/readyz")
    return connection.getresponse().status == 200


def measure(hook, town):
    monitor = subprocess.Popen(
        [BUILD / "src/monitor/vgpu-monitor", "--metrics-bind-address=127.0.0.1:0", f"--hook-path={hook}", f"--shares-folder={hook}/shares",
         f"--nvml={BUILD / 'sim/nvml/libnvidia-ml.so.1'}", "--node-name=n1", f"--pod-resources-socket={hook}/kubelet.sock",
         "--http=127.0.0.1:0"],
        env={**os.environ, "VGPU_SIM_STATE": str(hook / "machine"), "VGPU_STATE": str(hook / "state"), "KUBECONFIG": str(town.kubeconfig)},
        stderr=subprocess.PIPE, text=True)
    try:
        port = next(int(found[1]) for found in (re.search(r"port=(\d+)", line) for line in monitor.stderr) if found)
        wait_for(lambda: is_ready(port), "the pods")
        scrape(port)
        began = cpu_s(monitor.pid)
        time.sleep(SECONDS)
        share = (cpu_s(monitor.pid) - began) / SECONDS
        before = cpu_s(monitor.pid)
        times = [scrape(port) for _ in range(SCRAPES)]
        cost_ms = 1000 * (cpu_s(monitor.pid) - before) / SCRAPES
        print(f"| {SLICES} | {100 * share:.2f} % | {peak_mib(monitor.pid):.1f} MiB | {statistics.median(t for t, _ in times):.1f} ms | "
              f"{max(t for t, _ in times):.1f} ms | {cost_ms:.1f} ms | {times[0][1] / 1024:.0f} KiB |")
    finally:
        monitor.terminate()
        monitor.wait()
        monitor.stderr.close()


def main():
    with tempfile.TemporaryDirectory(prefix="vgpu-bench-", dir="/dev/shm") as folder, Town() as town:
        makers = make_slices(pathlib.Path(folder))
        make_pods(town)
        kubelet = start_kubelet(pathlib.Path(folder))
        try:
            print("| slices | processor without scrapes | memory at the most | scrape, median | the longest | its processor time | text |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            measure(pathlib.Path(folder), town)
        finally:
            kubelet.terminate()
            kubelet.wait()
            for maker in makers:
                maker.stdin.close()
                maker.wait()
                maker.stdout.close()


if __name__ == "__main__":
    main()
