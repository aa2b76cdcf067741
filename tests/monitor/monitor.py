#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""monitor.py PROGRAM MAKE_REGION FOLDER-OF-CLUSTER NVML [TEST...]: vgpu-monitor over folders of containers that are made by hand."""

import http.client
import inspect
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM, MAKE_REGION, NVML = sys.argv[1], sys.argv[2], sys.argv[4]
sys.path.insert(0, sys.argv[3])
from cluster import Town, pod, wait_for  # noqa: E402 pylint: disable=wrong-import-position

UUID = "GPU-12345678-1234-1234-1234-123456789012"
MIB = 1 << 20


class Layout:
    """Where things are in a region of HAMi's, version 0 or 1."""

    def __init__(self, version):
        self.version = version
        (self.size, self.count_at, self.uuids_at, self.limits_at, self.processes_at, self.process_bytes, self.use_bytes, self.busy_at,
         self.busy_bytes, self.status_at, self.process_count_at) = (
             (2008952, 56, 64, 1600, 1856, 1960, 64, 1160, 48, 1928, 2008896) if version else
             (1197896, 48, 56, 1592, 1848, 1168, 40, 776, 24, 1160, 1197880))
        self.switch_at, self.recent_at, self.priority_at = (self.process_count_at + add for add in (4, 8, 12))
        self.last_at = self.process_count_at + 16 if version else None


def make_region(path, version=1, uuid=UUID, limit=2048 * MIB, processes=((100, 20, 300, 420, 30),), recent=0, priority=1, last=0):
    """Processes are context, module, buffer and total in MiB, and percent."""
    at = Layout(version)
    data = bytearray(at.size)
    struct.pack_into("<i", data, 0, 19920718)
    if version:
        struct.pack_into("<ii", data, 4, 1, 2)
    struct.pack_into("<Q", data, at.count_at, 1)
    data[at.uuids_at:at.uuids_at + len(uuid)] = uuid.encode()
    struct.pack_into("<Q", data, at.limits_at, limit)
    for i, (context, module, buffer, total, busy) in enumerate(processes):
        base = at.processes_at + i * at.process_bytes
        struct.pack_into("<QQQQQ", data, base + 8, context * MIB, module * MIB, buffer * MIB, 0, total * MIB)
        struct.pack_into("<Q", data, base + at.busy_at + 16, busy)
        struct.pack_into("<i", data, base + at.status_at, 1)
    struct.pack_into("<iiii", data, at.process_count_at, len(processes), 1, recent, priority)
    if version:
        struct.pack_into("<q", data, at.last_at, last)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def told(path, version=1):
    """What the monitor has written: the switch, and recent launches."""
    at = Layout(version)
    return struct.unpack_from("<ii", path.read_bytes(), at.switch_at)


class Monitor:
    """The program with a folder of containers."""

    def __init__(self, hook, *flags, town=None):
        environment = {key: value for key, value in os.environ.items() if key not in ("NODE_NAME", "HOOK_PATH")}
        environment["VGPU_SIM_STATE"] = str(hook / "machine")
        if town:
            environment["KUBECONFIG"] = str(town.kubeconfig)
            flags = ["--node-name=n1", *flags]
        self.lines = []
        self.process = subprocess.Popen([PROGRAM, "--metrics-bind-address=127.0.0.1:0", f"--hook-path={hook}", f"--nvml={NVML}",
                                         *flags], env=environment, stderr=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r'msg="metrics are served".* port=(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        assert self.port, self.lines
        if town:
            wait_for(lambda: self.ask("/readyz")[0] == 200, "readiness")

    def ask(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def samples(self):
        """By name and labels; each line is as Prometheus reads it, and no sample is there twice."""
        found = {}
        for line in self.ask("/metrics")[1].splitlines():
            if line.startswith("#"):
                continue
            match = re.fullmatch(r'([A-Za-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\[\\n"])*",?)*\})? ([0-9.e+-]+)', line)
            assert match, line
            labels = tuple(sorted(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or "")))
            assert (match[1], labels) not in found, line
            found[match[1], labels] = float(match[3])
        return found

    def value(self, name, **labels):
        """Of the samples that have these labels."""
        return [value for (its, all_), value in self.samples().items() if its == name and labels.items() <= dict(all_).items()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(20)
        self.process.stderr.close()
        assert code == 0, code


def equal(is_, should_be):
    if is_ != should_be:
        raise AssertionError(f"is        {is_}\nshould be {should_be}")


def containers_are_told_by_their_pods(hook):
    make_region(hook / "containers/uid-1_main/x.cache", processes=((100, 20, 300, 420, 30), (1, 2, 3, 6, 5)),
                last=int(time.time()) - 50)
    make_region(hook / "containers/uid-2_side_car/x.cache", version=0, limit=0)
    make_region(hook / "containers/uid-9_gone/x.cache")
    with Town() as town:
        for number in (1, 2):
            item = pod(f"p{number}", uid=f"uid-{number}")
            item["spec"]["nodeName"] = "n1"
            town.cluster.put("pods", item)
        with Monitor(hook, town=town) as monitor:
            main = {"namespace": "default", "pod": "p1", "container": "main", "vdevice_index": "0", "device_uuid": UUID, "zone": "vGPU"}
            equal(monitor.value("hami_vgpu_memory_used_bytes", **main), [426 * MIB])
            equal(monitor.value("hami_container_device_memory_bytes", **main), [426 * MIB])
            equal(monitor.value("hami_vgpu_memory_limit_bytes", **main), [2048 * MIB])
            equal(monitor.value("hami_vgpu_memory_context_bytes", **main), [101 * MIB])
            equal(monitor.value("hami_vgpu_memory_module_bytes", **main), [22 * MIB])
            equal(monitor.value("hami_vgpu_memory_buffer_bytes", **main), [303 * MIB])
            equal(monitor.value("hami_container_device_utilization_ratio", **main), [35])
            equal(50 <= monitor.value("hami_container_last_kernel_elapsed_seconds", **main)[0] < 60, True)
            side = {**main, "pod": "p2", "container": "side_car"}
            equal(monitor.value("hami_vgpu_memory_used_bytes", **side), [420 * MIB])
            equal(monitor.value("hami_container_last_kernel_elapsed_seconds", **side), [])
            equal(monitor.value("hami_vgpu_memory_used_bytes", container="gone"), [])
            equal([name for name, _ in monitor.samples() if name[0].isupper() or name.startswith("vGPU")], [])
            # and as pods come and go
            town.cluster.delete("pods", "default/p2")
            wait_for(lambda: not monitor.value("hami_vgpu_memory_used_bytes", **side), "its end", 5)


def old_names_are_there_when_they_are_asked_for(hook):
    make_region(hook / "containers/uid-1_main/x.cache")
    with Monitor(hook, "--legacy-metrics", "-v=4", "--logtostderr") as monitor:
        main = {"podname": "uid-1", "ctrname": "main", "vdeviceid": "0", "deviceuuid": UUID}
        equal(monitor.value("vGPU_device_memory_usage_in_bytes", **main), [420 * MIB])
        equal(monitor.value("vGPU_device_memory_limit_in_bytes", **main), [2048 * MIB])
        equal(monitor.value("Device_utilization_desc_of_container", **main), [30])
        equal(len(monitor.value("HostGPUMemoryUsage", deviceidx="1")), 1)


def devices_are_told_by_their_driver(hook):
    with Monitor(hook, "--node-name=") as monitor:
        told_of = [dict(labels) for name, labels in monitor.samples() if name == "hami_host_gpu_memory_used_bytes"]
        equal([(labels["device_index"], labels["device_type"][:7], labels["zone"]) for labels in told_of],
              [("0", "NVIDIA-", "vGPU"), ("1", "NVIDIA-", "vGPU")])
        equal(monitor.value("hami_host_gpu_utilization_ratio"), [0, 0])
        equal(monitor.value("hami_build_info"), [1])


def slices_of_ours_are_told_whole(hook):
    region = hook / "containers/uid-1_main/x.cache"
    region.parent.mkdir(parents=True)
    with subprocess.Popen([MAKE_REGION, region, UUID], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as maker:
        maker.stdout.readline()
        with Monitor(hook) as monitor:
            equal(monitor.value("vgpu_slice_memory_used_bytes", pod="uid-1", container="main", device_uuid=UUID), [64 * MIB])
            equal(monitor.value("vgpu_slice_memory_quota_bytes", container="main"), [1024 * MIB])
            equal(monitor.value("vgpu_slice_memory_kind_bytes", kind="plain"), [64 * MIB])
            equal(monitor.value("hami_vgpu_memory_used_bytes", container="main"), [64 * MIB])
            maker.stdin.close()
            maker.wait()
            equal(monitor.value("vgpu_slice_memory_used_bytes", container="main"), [0])


def containers_are_told_whether_they_may_work(hook):
    first, second, other = (hook / f"containers/uid-{i}_main/x.cache" for i in range(3))
    make_region(first, priority=0, recent=5)
    make_region(second, priority=1, recent=5, version=0)
    make_region(other, priority=1, recent=5, uuid="GPU-other")
    with Monitor(hook):
        wait_for(lambda: told(second, 0) == (1, -1), "the one of less importance is held back", 8)
        equal(told(first)[0], 0)
        equal(told(other)[0], 0)


def broken_regions_harm_nobody(hook):
    make_region(hook / "containers/uid-1_main/x.cache")
    broken = hook / "containers/uid-2_main/x.cache"
    make_region(broken)
    data = bytearray(broken.read_bytes())
    cases = [b"", b"\0" * 100, data[:1000000], data[:-1], b"\xff" * len(data), bytes(len(data))]
    at = Layout(1)
    for offset in (at.count_at, at.process_count_at, at.priority_at, at.recent_at, at.limits_at, at.processes_at + 40):
        spoiled = bytearray(data)
        spoiled[offset:offset + 8] = b"\xff" * 8
        cases.append(spoiled)
    spoiled = bytearray(data)
    spoiled[at.uuids_at:at.uuids_at + 96] = b'\xff"\\\n\x1b' * 19 + b"x"
    cases.append(spoiled)
    with Monitor(hook) as monitor:
        for case in cases:
            broken.write_bytes(case)
            equal(len(monitor.value("hami_vgpu_memory_used_bytes", pod="uid-1")), 1)
        broken.unlink()
        for make in (lambda: os.mkfifo(broken), lambda: broken.symlink_to("/dev/zero"), broken.mkdir):
            make()
            equal(len(monitor.value("hami_vgpu_memory_used_bytes")), 1)
            broken.rmdir() if broken.is_dir() and not broken.is_symlink() else broken.unlink()
        for name in ("_x", "uid_", "nothing", "u" * 200 + "_x", ".uid_x"):
            make_region(hook / "containers" / name / "x.cache")
        equal(len(monitor.value("hami_vgpu_memory_used_bytes")), 1)


def what_is_no_request_is_answered(hook):
    with Monitor(hook) as monitor:
        equal(monitor.ask("/healthz"), (200, ""))
        equal(monitor.ask("/readyz"), (200, ""))
        equal(monitor.ask("/other")[0], 404)
        equal(monitor.ask("/metrics", "DELETE")[0], 405)
    for arguments, words in ((["--metrics-bind-address=x"], "'x': ADDRESS:PORT is right"), (["--what"], "unrecognized option"),
                             (["more"], "'more' is no option")):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20, check=False)
        equal((done.returncode in (1, 2), words in done.stderr), (True, True))


def main():
    failed = 0
    for name, test in list(globals().items()):
        if not inspect.isfunction(test) or list(inspect.signature(test).parameters) != ["hook"] or \
                (sys.argv[5:] and name not in sys.argv[5:]):
            continue
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="vgpu-monitor-") as folder:
                test(pathlib.Path(folder))
            print(f"ok    {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
