#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""monitor.py PROGRAM MAKE_REGION FOLDER-OF-CLUSTER NVML LOAD CUDA KUBELET VGPU CUT-CARD [TEST...]: vgpu-monitor over folders of containers that are made by hand."""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import pwd
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM, MAKE_REGION, NVML, LOAD, CUDA, KUBELET, VGPU, CUT_CARD = sys.argv[1], sys.argv[2], *sys.argv[4:10]
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [sys.argv[3], str(ROOT / "tools")]
sys.path.append(str(ROOT / "tests"))
import metrics  # noqa: E402 pylint: disable=wrong-import-position
from cases import Skipped, collect, equal, run  # noqa: E402 pylint: disable=wrong-import-position
from cluster import Town, pod, wait_for  # noqa: E402 pylint: disable=wrong-import-position

UUID = "GPU-12345678-1234-1234-1234-123456789012"
MIB = 1 << 20
OFTEN = 1 << 20  # launches, of which each look of the monitor takes one off


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


def living(path):
    """The region as a process of its slice has it: with the lock of a slot, as long as the file is open."""
    file = open(path, "rb+")  # pylint: disable=consider-using-with
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 40, 1, 0))
    return file


def told(path, version=1):
    """What the monitor has written: the switch, and recent launches."""
    at = Layout(version)
    return struct.unpack_from("<ii", path.read_bytes(), at.switch_at)


def ask(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


class Monitor:
    """The program with a folder of containers."""

    def __init__(self, hook, *flags, town=None, within=()):
        environment = {key: value for key, value in os.environ.items() if key not in ("NODE_NAME", "HOOK_PATH")}
        environment["VGPU_SIM_STATE"] = str(hook / "machine")
        environment["VGPU_STATE"] = str(hook / "state")
        if town:
            environment["KUBECONFIG"] = str(town.kubeconfig)
            flags = ["--node-name=n1", *flags]
        self.lines = []
        self.process = subprocess.Popen([*within, PROGRAM, "--metrics-bind-address=127.0.0.1:0", f"--hook-path={hook}", f"--nvml={NVML}",
                                         "--pod-resources-socket=", *flags], env=environment, stderr=subprocess.PIPE, text=True)
        self.port = self.port_of("metrics are served")
        if town:
            wait_for(lambda: self.ask("/readyz")[0] == 200, "readiness")

    def port_of(self, words):
        """By its log, which is read as far as there."""
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(rf'msg="{words}".* port=(\d+)', line)
            if found:
                return int(found[1])
        raise AssertionError(self.lines)

    def ask(self, path, method="GET"):
        return ask(self.port, path, method)

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


def containers_are_told_by_their_pods(hook):
    launched_s = int(time.time()) - 50
    make_region(hook / "containers/uid-1_main/x.cache", processes=((100, 20, 300, 420, 30), (1, 2, 3, 6, 5)), last=launched_s)
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
            elapsed = monitor.value("hami_container_last_kernel_elapsed_seconds", **main)[0]
            equal(50 <= elapsed <= time.time() - launched_s, True)
            side = {**main, "pod": "p2", "container": "side_car"}
            equal(monitor.value("hami_vgpu_memory_used_bytes", **side), [420 * MIB])
            equal(monitor.value("hami_container_last_kernel_elapsed_seconds", **side), [])
            equal(monitor.value("hami_vgpu_memory_used_bytes", container="gone"), [])
            equal([name for name, _ in monitor.samples() if name[0].isupper() or name.startswith("vGPU")], [])
            # and as pods come and go
            town.cluster.delete("pods", "default/p2")
            wait_for(lambda: not monitor.value("hami_vgpu_memory_used_bytes", **side), "its end")


def d34_pods_of_this_node_are_followed_once_and_all_their_containers_told(hook):
    for name in ("uid-1_main", "uid-1_first", "uid-2_main"):
        make_region(hook / "containers" / name / "x.cache")
    with Town() as town:
        for number in (1, 2):
            item = pod(f"p{number}", uid=f"uid-{number}")
            item["spec"].update(nodeName=f"n{number}", initContainers=[{"name": "first"}], containers=[{"name": "main"}])
            town.cluster.put("pods", item)
        with Monitor(hook, town=town) as monitor:
            wait_for(lambda: town.cluster.watched, "its watch")
            told_of = [dict(labels) for name, labels in monitor.samples() if name == "hami_vgpu_memory_used_bytes"]
            equal(sorted((labels["pod"], labels["container"]) for labels in told_of), [("p1", "first"), ("p1", "main")])
        equal([(of, "fieldSelector=spec.nodeName%3Dn1" in query) for of, query in town.cluster.watched], [("pods", True)])


def pods_are_listed_a_few_at_a_time(hook):
    """A page is in memory as a whole: a hundred pods at once were 20 MiB."""
    make_region(hook / "containers/uid-0_c/x.cache")
    make_region(hook / "containers/uid-99_c/x.cache")
    with Town() as town:
        for number in range(100):
            item = pod(f"p{number}", uid=f"uid-{number}")
            item["spec"]["nodeName"] = "n1"
            town.cluster.put("pods", item)
        with Monitor(hook, town=town) as monitor:
            equal(sorted(dict(labels)["pod"] for name, labels in monitor.samples() if name == "hami_vgpu_memory_used_bytes"), ["p0", "p99"])
        equal(town.cluster.longest_page, 16)


def old_names_are_there_when_they_are_asked_for(hook):
    make_region(hook / "containers/uid-1_main/x.cache")
    with Monitor(hook) as monitor:
        equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1], has_old=False), [])
    with Monitor(hook, "--legacy-metrics", "-v=4", "--logtostderr") as monitor:
        equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1]), [])
        main = {"podname": "uid-1", "ctrname": "main", "vdeviceid": "0", "deviceuuid": UUID}
        equal(monitor.value("vGPU_device_memory_usage_in_bytes", **main), [420 * MIB])
        equal(monitor.value("vGPU_device_memory_limit_in_bytes", **main), [2048 * MIB])
        equal(monitor.value("Device_utilization_desc_of_container", **main), [30])
        equal(len(monitor.value("HostGPUMemoryUsage", deviceidx="1")), 1)
        equal(monitor.value("Device_memory_desc_of_container", **main, context=str(100 * MIB), module=str(20 * MIB),
                            data=str(300 * MIB), offset="0"), [420 * MIB])


def instances_are_told_as_they_were_given(hook):
    entry = {"containerIndex": 1, "deviceIndex": 0, "gpuUUID": UUID, "profile": "1g.10gb", "placement": {"start": 0, "size": 1}}
    given = {**entry, "migUUID": "MIG-1", "gpuInstanceID": 7, "computeInstanceID": 0}
    with Town() as town:
        for name, entries in (("given", [given, given, {**given, "containerIndex": 9}]), ("reserved", [entry]), ("broken", "[")):
            item = pod(name, uid=name)
            item["spec"]["nodeName"] = "n1"
            item["spec"].update(initContainers=[{"name": "first"}], containers=[{"name": "main"}])
            item["metadata"]["annotations"] = {"hami.io/vgpu-mig-allocations": entries if entries == "[" else json.dumps(entries)}
            town.cluster.put("pods", item)
        with Monitor(hook, "--legacy-metrics", town=town) as monitor:
            equal([dict(labels) for name, labels in monitor.samples() if name == "hami_mig_device_info"],
                  [{"zone": "vGPU", "namespace": "default", "pod": "given", "container": "main", "vdevice_index": "0",
                    "device_uuid": UUID, "mig_uuid": "MIG-1", "profile": "1g.10gb", "gpu_instance_id": "7", "compute_instance_id": "0"}])
            equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1]), [])
            equal(monitor.value("MigInfo", podname="given", vdeviceid="0", deviceuuid=UUID, instanceid="7"), [1])


def slices_on_instances_are_told(hook):
    """Two parts of a card that is cut, each with a slice, beside a card that is whole."""
    environment = {**os.environ, "VGPU_SIM_BOARD": "h200x2"}
    uuids = [subprocess.run([CUT_CARD, hook / "machine", "0", "1g.18gb"], env=environment, capture_output=True, text=True, check=True).stdout.strip()
             for _ in range(2)]
    with Town() as town, contextlib.ExitStack() as makers:
        for i, uuid in enumerate(uuids):
            region, share = hook / f"containers/uid-{i}_main/x.cache", hook / f"shares/uid-{i}_main/share"
            region.parent.mkdir(parents=True)
            share.parent.mkdir(parents=True)
            share.write_text(f"vgpu-share 1\ndevice {uuid} memory 16g\nend\n")
            maker = makers.enter_context(subprocess.Popen([MAKE_REGION, region, uuid], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            maker.stdout.readline()
            item = pod(f"p{i}", uid=f"uid-{i}")
            item["spec"].update(nodeName="n1", containers=[{"name": "main"}])
            item["metadata"]["annotations"] = {"hami.io/vgpu-mig-allocations": json.dumps([{
                "containerIndex": 0, "deviceIndex": 0, "gpuUUID": UUID, "profile": "1g.18gb", "placement": {"start": i, "size": 1}, "migUUID": uuid,
                "gpuInstanceID": 7 + i, "computeInstanceID": 0}])}
            town.cluster.put("pods", item)
        with Monitor(hook, f"--shares-folder={hook / 'shares'}", "--audit-interval=1", "--http=127.0.0.1:0", town=town) as monitor:
            page = monitor.port_of("the page is served")
            for i, uuid in enumerate(uuids):
                its = {"pod": f"p{i}", "container": "main", "device_uuid": uuid}
                equal(monitor.value("vgpu_slice_memory_used_bytes", **its), [64 * MIB])
                equal([labels for name, labels in monitor.samples() if name.startswith("vgpu_slice_") and "device_index" in dict(labels)], [])
                equal(monitor.value("hami_vgpu_memory_used_bytes", **{**its, "device_uuid": uuid[:40]}), [64 * MIB])
                equal(monitor.value("hami_mig_device_info", pod=f"p{i}", mig_uuid=uuid, gpu_instance_id=str(7 + i)), [1])
            # of a card that is cut the driver tells no use as a whole
            equal(len(monitor.value("hami_host_gpu_memory_used_bytes")), 2)
            for name in ("hami_host_gpu_utilization_ratio", "hami_host_gpu_memory_controller_utilization_ratio"):
                equal([dict(labels)["device_index"] for its, labels in monitor.samples() if its == name], ["1"])
            equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1], has_old=False), [])
            gpus = json.loads(ask(page, "/state.json")[1])["nodes"][0]["gpus"]
            equal([(gpu["index"], gpu["is_mig"], gpu["is_healthy"], [one["pod"] for one in gpu["slices"]]) for gpu in gpus[:2]],
                  [(0, True, True, []), (1, False, True, [])])
            equal(sorted((gpu["uuid"], gpu["index"], gpu["is_healthy"], gpu["trouble"], [one["pod"] for one in gpu["slices"]]) for gpu in gpus[2:]),
                  sorted((uuid, None, True, "", [f"p{i}"]) for i, uuid in enumerate(uuids)))
            equal([15 < gpu["memory_bytes"] / 1024 / MIB < 19 for gpu in gpus[2:]], [True, True])


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


def slices_without_a_pod_are_told_by_their_name_and_user(hook):
    """Those of `vgpu run`, as `vgpu list` has them, on the page, too."""
    folder = hook / "state/train"
    folder.mkdir(parents=True, mode=0o700)
    (hook / "state").chmod(0o700)
    (folder / "share").write_text(f"vgpu-share 1\nslice train\nregion {folder}/region\ndevice {UUID} memory 1g cores 30\nend\n")
    make_region(hook / "containers/uid-1_main/x.cache")
    user = pwd.getpwuid(os.geteuid()).pw_name
    with subprocess.Popen([MAKE_REGION, folder / "region", UUID], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as maker:
        maker.stdout.readline()
        with Monitor(hook, "--http=127.0.0.1:0") as monitor:
            page = monitor.port_of("the page is served")
            train = {"slice": "train", "user": user, "region": str(folder / "region")}
            equal(monitor.value("vgpu_slice_memory_used_bytes", **train), [64 * MIB])
            equal(monitor.value("vgpu_slice_compute_granted_ratio", **train), [0.3])
            told_of = [dict(labels) for name, labels in monitor.samples() if dict(labels).get("slice") == "train"]
            equal([labels for labels in told_of if labels.keys() & {"namespace", "pod", "container"}], [])
            # what HAMi's names tell are containers
            equal(len(monitor.value("hami_vgpu_memory_used_bytes")), 1)
            listed = subprocess.run([VGPU, "list", "--prometheus"], env={**os.environ, "VGPU_STATE": str(hook / "state")}, capture_output=True,
                                    text=True, timeout=60, check=True).stdout
            its = [line for line in monitor.ask("/metrics")[1].splitlines() if 'slice="train"' in line]
            equal(sorted(its), sorted(line for line in listed.splitlines() if 'slice="train"' in line))
            equal(metrics.wrong_in_scrape(ROOT, "vgpu-monitor", monitor.ask("/metrics")[1], has_old=False), [])
            gpus = json.loads(ask(page, "/state.json")[1])["nodes"][0]["gpus"]
            slices = [one for gpu in gpus for one in gpu["slices"] if one["user"]]
            equal([(one["pod"], one["namespace"], one["container"], one["user"], one["memory_used_bytes"]) for one in slices],
                  [("train", "", "", user, 64 * MIB)])
            maker.stdin.close()
            maker.wait()
            equal(monitor.value("vgpu_slice_memory_used_bytes", **train), [])
            # what it writes into containers, it does not write here
            equal(monitor.value("vgpu_container_is_violating"), [])


# $1 is what stands for /usr/local/vgpu, the only place to write to; $2 the capabilities, "": there are no limits. What ProtectSystem=strict
# leaves writable is left so.
UNIT_LIMITS = r"""
hook=$1 capabilities=$2
shift 2
unset VGPU_STATE XDG_RUNTIME_DIR
mkdir -p /run/user
mount --bind "$hook/users" /run/user
[ "$capabilities" ] || exec "$@"
mount --bind "$hook" "$hook"
while read -r _ place _; do
    case $place in /proc* | /sys* | /dev* | "$hook"*) ;; *) mount -o remount,bind,ro "$place" || exit 1 ;; esac
done </proc/mounts
exec setpriv --bounding-set="-all,$capabilities" --inh-caps=-all --no-new-privs "$@"
"""


def the_unit_s_limits_hide_nothing(hook):
    """Of containers and of another user's `vgpu run`: what is told within the limits of vgpu-monitor.service, and without them."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped("this user can make no mount namespace")
    unit = (ROOT / "dist/systemd/vgpu-monitor.service.in").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))
    equal([settings[key] for key in ("ProtectSystem", "ReadWritePaths", "NoNewPrivileges")], ["strict", "-/usr/local/vgpu", "yes"])
    capabilities = ",".join("+" + name.removeprefix("CAP_").lower() for name in settings["CapabilityBoundingSet"].split())
    folder = hook / "users/1/vgpu/train"
    folder.mkdir(parents=True)
    hook.chmod(0o755)
    for place in (hook / "users/1", folder.parent, folder):
        place.chmod(0o700)
        os.chown(place, 1, 1)
    (folder / "share").write_text(f"vgpu-share 1\nslice train\nregion {folder}/region\ndevice {UUID} memory 1g cores 30\nend\n")
    os.chown(folder / "share", 1, 1)
    make_region(hook / "containers/uid-1_main/x.cache", priority=0, recent=OFTEN)
    make_region(hook / "containers/uid-2_main/x.cache", priority=1, recent=OFTEN)
    os.chown(hook / "containers/uid-2_main/x.cache", 1, 1)
    (hook / "containers/uid-2_main/x.cache").chmod(0o600)
    told_of = []
    with subprocess.Popen([MAKE_REGION, folder / "region", UUID], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=1, group=1,
                          extra_groups=[]) as maker:
        maker.stdout.readline()
        for limits in ("", capabilities):
            within = ["unshare", "-m", "--propagation", "private", "bash", "-c", UNIT_LIMITS, "limits", str(hook), limits]
            with Monitor(hook, "--http=127.0.0.1:0", within=within) as monitor:
                page = monitor.port_of("the page is served")
                its = {key: value for key, value in monitor.samples().items()
                       if key[0].startswith("hami_host") or dict(key[1]).get("region", "/run/user/1/").startswith(("/run/user/1/", str(hook)))}
                gpus = json.loads(ask(page, "/state.json")[1])["nodes"][0]["gpus"]
                shown = sorted((one["pod"], one["user"], one["memory_used_bytes"]) for gpu in gpus for one in gpu["slices"]
                               if one["pod"] in ("train", "uid-1", "uid-2"))
                status = pathlib.Path(f"/proc/{monitor.process.pid}/status").read_text(encoding="utf-8")
                told_of.append((its, shown))
                equal("NoNewPrivs:\t1" in status, bool(limits))
                wait_for(lambda: told(hook / "containers/uid-2_main/x.cache")[0] == 1, "the one of less importance is held back")
            make_region(hook / "containers/uid-2_main/x.cache", priority=1, recent=OFTEN)
        maker.stdin.close()
    equal([row[:2] for row in told_of[0][1]], [("train", pwd.getpwuid(1).pw_name), ("uid-1", ""), ("uid-2", "")])
    equal(told_of[1], told_of[0])


def containers_are_told_whether_they_may_work(hook):
    first, second, other = (hook / f"containers/uid-{i}_main/x.cache" for i in range(3))
    make_region(first, priority=0, recent=OFTEN)
    make_region(second, priority=1, recent=OFTEN, version=0)
    make_region(other, priority=1, recent=OFTEN, uuid="GPU-other")
    with Monitor(hook):
        wait_for(lambda: told(second, 0) == (1, -1), "the one of less importance is held back")
        equal(told(first)[0], 0)
        equal(told(other)[0], 0)


def a_container_s_own_word_holds_nobody_back(hook):
    """Its region says that it goes first, on a device that it was not given, and always works. Who has no process does not."""
    names = ("uid-1_liar", "uid-2_beside", "uid-3_elsewhere", "uid-4_first", "uid-5_behind")
    regions = {name: hook / f"containers/{name}/x.cache" for name in names}
    for name, device, priority in zip(names, "aabcc", (1, 1, 1, 0, 1)):
        share = hook / f"shares/{name}/share"
        share.parent.mkdir(parents=True)
        share.write_text(f"vgpu-share 1\npriority {priority}\ndevice GPU-{device} memory 1g\nend\n")
        make_region(regions[name], uuid=f"GPU-{device}", recent=OFTEN)
    make_region(regions["uid-1_liar"], uuid="GPU-a", priority=0, recent=2**31 - 1)
    make_region(hook / "containers/uid-6_without/x.cache", uuid="GPU-b", priority=0, recent=2**31 - 1)
    at = Layout(1)
    with open(regions["uid-1_liar"], "r+b") as file:
        file.seek(at.count_at)
        file.write(struct.pack("<Q", 2))
        file.seek(at.uuids_at + 96)
        file.write(b"GPU-b")
    processes = {name: living(regions[name]) for name in names}
    with Monitor(hook, f"--shares-folder={hook / 'shares'}") as monitor:
        wait_for(lambda: told(regions["uid-5_behind"]) == (1, -1), "the one of less importance is held back")
        for name in names[1:4]:
            equal(told(regions[name])[1] > 0, True)
        processes["uid-4_first"].close()
        wait_for(lambda: told(regions["uid-5_behind"]) == (0, 0), "it goes on when the other has no process")
        for process in processes.values():
            process.close()
        equal(monitor.value("hami_vgpu_memory_used_bytes", container="liar", device_uuid="GPU-b"), [])


def broken_regions_harm_nobody(hook):
    """D21: a tenant may cut the file, and write what it wants into it."""
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


def folders_of_containers_that_are_gone_are_removed(hook):
    """HAMi's; ours are their plugin's to remove."""
    shares, outside = hook / "shares", hook / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    for name in ("uid-1_main", "uid-8_young", "uid-9_gone", "uid-9_ours", "uid-9_deep", "nothing"):
        make_region(hook / "containers" / name / "x.cache")
    (hook / "containers/uid-9_gone/link").symlink_to(outside / "kept")
    (hook / "containers/uid-9_deep/folder").mkdir()
    (hook / "containers/uid-9_linked").symlink_to(outside)
    (shares / "uid-9_ours").mkdir(parents=True)
    for folder in (hook / "containers").iterdir():
        if not folder.name.endswith("young"):
            os.utime(folder, (1, 1), follow_symlinks=False)
    with Town() as town:
        item = pod("p1", uid="uid-1")
        item["spec"]["nodeName"] = "n1"
        town.cluster.put("pods", item)
        with Monitor(hook, f"--shares-folder={shares}", "--audit-interval=1", town=town):
            wait_for(lambda: not (hook / "containers/uid-9_gone").exists(), "its end")
            time.sleep(1.5)
    equal(sorted(folder.name for folder in (hook / "containers").iterdir()),
          ["nothing", "uid-1_main", "uid-8_young", "uid-9_deep", "uid-9_linked", "uid-9_ours"])
    equal((outside / "kept").read_text(), "x")


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


def one_address_takes_not_all_connections(hook):
    with Monitor(hook) as monitor:
        held = []
        for _ in range(300):
            one = socket.socket()
            one.bind(("127.0.0.2", 0))
            one.connect(("127.0.0.1", monitor.port))
            held.append(one)
        equal(monitor.ask("/healthz"), (200, ""))
        for one in held:
            one.close()


@contextlib.contextmanager
def a_folder():
    with tempfile.TemporaryDirectory(prefix="vgpu-monitor-") as folder:
        yield pathlib.Path(folder)


def main(names):
    """The cases of the script with these globals(), each with a folder of its own."""
    return run(collect(names, "hook"), sys.argv[10:], a_folder)


if __name__ == "__main__":
    sys.exit(main(globals()))
