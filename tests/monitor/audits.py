#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""audits.py and monitor.py's arguments: what vgpu-monitor compares with the driver's figures and with the kubelet's record."""

import os
import pathlib
import re
import subprocess
import sys
import time
from uuid import uuid4

from monitor import CUDA, KUBELET, LOAD, MIB, ROOT, UUID, Monitor, Skipped, Town, equal, main, make_region, metrics, pod, wait_for

MARK, OTHER_MARK = (os.urandom(32).hex() for _ in range(2))
POD_UID = str(uuid4())  # its control group is the machine's, where this test may run more than once


def put_share(path, text):
    """In one piece, as they are written: the monitor reads it at any moment."""
    fresh = path.with_name("share.new")
    fresh.write_text(text)
    fresh.rename(path)


def make_group(uid, mark):
    """A control group as the kubelet makes it."""
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        group = pathlib.Path(root, "kubepods", f"pod{uid}", mark)
        try:
            group.mkdir(parents=True, exist_ok=True)
            if (group / "cgroup.procs").exists():
                return group
        except OSError:
            pass
    raise Skipped("this user can make no control group")


def remove_group(group):
    """Processes that were killed leave it a moment later."""
    for folder in (group, group.parent):
        wait_for(lambda folder=folder: not remove_folder(folder), "the end of a control group", 60)


def remove_folder(folder):
    try:
        folder.rmdir()
    except OSError:
        return folder.exists()
    return False


class Container:
    """A process in a container's control group that keeps a simulated device busy, past the tenant library."""

    def __init__(self, hook, group, *arguments):
        environment = {**os.environ, "VGPU_SIM_STATE": str(hook / "machine"), "LD_LIBRARY_PATH": str(pathlib.Path(CUDA).parent)}
        self.process = subprocess.Popen([LOAD, *arguments], env=environment, stdout=subprocess.DEVNULL,
                                        preexec_fn=lambda: group and (group / "cgroup.procs").write_text("0"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def uuid_of(monitor):
    return min((dict(labels) for name, labels in monitor.samples() if name == "hami_host_gpu_memory_used_bytes"),
               key=lambda labels: labels["device_index"])["device_uuid"]


def town_pod(town, uid, mark):
    item = pod("p1", uid=uid)
    item["spec"].update(nodeName="n1", containers=[{"name": "main"}])
    item["status"] = {"containerStatuses": [{"name": "main", "containerID": f"containerd://{mark}"}]}
    town.cluster.put("pods", item)


def the_driver_s_figures_are_compared(hook):
    group = make_group(POD_UID, MARK)
    shares = hook / "shares"
    share = shares / f"{POD_UID}_main/share"
    share.parent.mkdir(parents=True)
    flags = [f"--shares-folder={shares}", "--audit-interval=1"]
    load = ("shape=stream", "duration_us=500", "seconds=600")
    try:
        with Town() as town, Monitor(hook, *flags, town=town) as monitor:
            town_pod(town, POD_UID, MARK)
            device = uuid_of(monitor)
            make_region(hook / f"containers/{POD_UID}_main/x.cache", uuid=device, processes=())
            put_share(share, f"vgpu-share 1\ndevice {device} memory 64m cores 20 cap 20\nend\n")
            main = {"namespace": "default", "pod": "p1", "container": "main", "device_uuid": device}
            with Container(hook, group, *load):
                for kind in ("untracked", "memory", "compute"):
                    wait_for(lambda kind=kind: monitor.value("vgpu_container_is_violating", kind=kind, **main) == [1], kind, 60)
                equal(monitor.value("vgpu_container_driver_memory_bytes", **main)[0] > 80 * MIB, True)
                equal(monitor.value("vgpu_container_quota_bytes", **main), [64 * MIB])
                wait_for(lambda: max(monitor.value("vgpu_container_driver_busy_ratio", **main), default=0) > 0.3, "its work", 60)
                wait_for(lambda: len(town.cluster.events("p1")) == 3, "events")
                time.sleep(3)  # and not again
                equal(sorted(event[1] for event in town.cluster.events("p1")),
                      ["VgpuComputeAboveCap", "VgpuMemoryAboveQuota", "VgpuProcessOutsideSlice"])
                # its role is what it has asked for by now, and no more
                role = re.findall(r"resources: \[(\w+)\], verbs: \[(.*)\]", (ROOT / "deploy/monitor-rbac.yaml").read_text())
                equal(sorted(town.cluster.asked), sorted((verb, resource) for resource, verbs in role for verb in verbs.split(", ")))
                # a share that allows it
                put_share(share, f"vgpu-share 1\ndevice {device} memory unlimited cores 20 cap 100\nend\n")
                for kind in ("memory", "compute"):
                    wait_for(lambda kind=kind: monitor.value("vgpu_container_is_violating", kind=kind, **main) == [0], kind, 60)
                equal(monitor.value("vgpu_container_violations_total", kind="memory", **main), [1])
                equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1], has_old=False), [])
                # and one that became less: what is held stays
                put_share(share, f"vgpu-share 1\ndevice {device} memory 32m cores 20 cap 100\nend\n")
                wait_for(lambda: monitor.value("vgpu_container_quota_bytes", **main) == [32 * MIB], "the quota")
                time.sleep(3)
                equal(monitor.value("vgpu_container_violations_total", kind="memory", **main), [1])

                # for as long as its pod's allocation has it
                def allocate(item):
                    item["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{device},NVIDIA,32,20:;"}
                    item["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
                town.cluster.change("pods", "default/p1", allocate)
                wait_for(lambda: monitor.value("vgpu_container_violations_total", kind="memory", **main) == [2], "what another may be given")
            wait_for(lambda: monitor.value("vgpu_container_is_violating", kind="untracked", **main) == [0], "its end")
            equal(monitor.value("vgpu_audit_processes_ended_total"), [0, 0, 0])
    finally:
        remove_group(group)


def a_broken_region_hides_no_process(hook):
    group = make_group(POD_UID, MARK)
    share = hook / f"shares/{POD_UID}_main/share"
    region = hook / f"containers/{POD_UID}_main/x.cache"
    share.parent.mkdir(parents=True)
    make_region(region, processes=())
    try:
        with Town() as town, Monitor(hook, f"--shares-folder={hook / 'shares'}", "--audit-interval=1", town=town) as monitor:
            town_pod(town, POD_UID, MARK)
            put_share(share, f"vgpu-share 1\ndevice {uuid_of(monitor)} memory 64m\nend\n")
            region.write_bytes(b"")
            with Container(hook, group, "shape=stream", "duration_us=500", "seconds=600"):
                for kind in ("untracked", "memory"):
                    wait_for(lambda kind=kind: monitor.value("vgpu_container_is_violating", kind=kind, container="main") == [1],
                             kind, 60)
    finally:
        remove_group(group)


def one_outside_its_slice_is_ended_where_that_is_asked_for(hook):
    group, other = make_group(POD_UID, MARK), make_group(POD_UID, OTHER_MARK)
    share = hook / f"shares/{POD_UID}_main/share"
    share.parent.mkdir(parents=True)
    make_region(hook / f"containers/{POD_UID}_main/x.cache", processes=())
    load = ("shape=stream", "duration_us=500", "seconds=600")
    try:
        with Town() as town:
            town_pod(town, POD_UID, MARK)
            with Monitor(hook, f"--shares-folder={hook / 'shares'}", "--audit-interval=1", "--end-processes=untracked", town=town) as monitor:
                put_share(share, f"vgpu-share 1\ndevice {uuid_of(monitor)} memory 64g\nend\n")
                # one in a container that is not known, and one in none
                with Container(hook, other, *load) as stranger, Container(hook, None, *load) as outside, \
                        Container(hook, group, *load) as mine:
                    equal(mine.process.wait(60), -9)
                    equal((stranger.process.poll(), outside.process.poll()), (None, None))
                wait_for(lambda: monitor.value("vgpu_audit_processes_ended_total", kind="untracked") == [1], "the count")
                wait_for(lambda: any(event[2].endswith("the process was ended") for event in town.cluster.events("p1")), "its event")
    finally:
        remove_folder(other)
        remove_group(group)


def given_pod(town, name, device):
    """A pod whose one container runs, asks for a slice, and has it on that device by its annotation."""
    item = pod(name, uid=f"uid-{name}")
    item["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{device},NVIDIA,1024,30:;"}
    item["spec"].update(nodeName="n1", containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])
    item["status"] = {"containerStatuses": [{"name": "main", "containerID": f"containerd://{name}", "state": {"running": {}}}]}
    town.cluster.put("pods", item)


def the_kubelet_s_record_is_compared(hook):
    """One slice as it was given, one whose container was given none, a container without a slice, and an annotation of another device."""
    sock, record, shares = hook / "kubelet.sock", hook / "record", hook / "shares"
    other = UUID[:-1] + "9"
    for name in ("right", "ungiven", "moved"):
        make_region(hook / f"containers/uid-{name}_main/x.cache")
        (shares / f"uid-{name}_main").mkdir(parents=True)
        (shares / f"uid-{name}_main/share").write_text(f"vgpu-share 1\ndevice {UUID} memory 1g\nend\n")
    rows = {name: f"default {name} main nvidia.com/gpu {UUID}-{i}" for i, name in enumerate(("right", "bare", "moved"))}
    rows["ungiven"] = "default ungiven main nvidia.com/gpu -"
    record.write_text("\n".join(rows.values()) + "\n")
    with Town() as town, Monitor(hook, f"--shares-folder={shares}", "--audit-interval=1", f"--pod-resources-socket={sock}", town=town) as monitor:
        for name in rows:
            given_pod(town, name, other if name == "moved" else UUID)

        def violating():
            return {dict(labels)["pod"]: value for (name, labels), value in monitor.samples().items()
                    if name == "vgpu_container_is_violating" and dict(labels)["kind"] == "books"}

        # no socket is no fault, and neither is one that is silent
        equal((violating(), monitor.value("vgpu_kubelet_record_is_read")), ({}, [0]))
        # gRPC's own code is not built with a sanitizer
        environment = {**os.environ, "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:report_thread_leaks=0"}
        with subprocess.Popen([KUBELET, sock, record], env=environment) as kubelet:
            try:
                wait_for(lambda: violating() == {"right": 0, "bare": 1, "ungiven": 1, "moved": 1}, "what was found", 60)
                equal(monitor.value("vgpu_kubelet_record_is_read"), [1])
                equal(sorted(dict(labels)["pod"] for name, labels in monitor.samples() if name == "vgpu_container_kubelet_slices"),
                      ["bare", "moved", "right"])
                equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1], has_old=False), [])
                for name in ("bare", "ungiven", "moved"):
                    wait_for(lambda name=name: [event[1] for event in town.cluster.events(name)] == ["VgpuSliceNotAsGiven"], "its event")
                equal(town.cluster.events("right"), [])
                # what is put right is right
                (shares / "uid-bare_main").mkdir()
                (shares / "uid-bare_main/share").write_text(f"vgpu-share 1\ndevice {UUID} memory 1g\nend\n")
                make_region(hook / "containers/uid-bare_main/x.cache")
                wait_for(lambda: violating()["bare"] == 0, "its end", 60)
                equal(monitor.value("vgpu_container_violations_total", pod="bare", kind="books"), [1])
                # nothing is judged by a record that does not come, and scrapes go on
                record.unlink()
                wait_for(lambda: monitor.value("vgpu_kubelet_record_is_read") == [0], "silence", 60)
                equal(violating(), {})
                record.write_text("")  # a refusal
                record.write_text("\n".join(rows.values()) + "\n")
                wait_for(lambda: violating().get("moved") == 1, "the record again", 60)
            finally:
                kubelet.terminate()
        wait_for(lambda: monitor.value("vgpu_kubelet_record_is_read") == [0], "the kubelet's end", 60)
    equal(kubelet.returncode, 0)


if __name__ == "__main__":
    sys.exit(main(globals()))
