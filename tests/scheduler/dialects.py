#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dialects.py PROGRAM [TEST...]: what other versions of HAMi's scheduler and plugin have written, as vgpu-scheduler's books say, and
how they would read what it writes.

Up to 2.8 a pod's annotation has a slot for each app container, since 2.9 one for each init container before them; 2.10 leaves slots
without devices out, later versions do not. Up to 2.9 an instance (MIG) is a suffix of its device."""

import http.client
import json
import re
import sys

from cluster import LOCK, REGISTER, Scheduler, device, node, pod
from daemon import ALLOCATED, NODE, PHASE, PROGRAM, TIME, TO_ALLOCATE, equal, finish, main, put_pod

MIB = 1 << 20
GPU0, GPU1 = "GPU-0,NVIDIA,3000,30:", "GPU-1,NVIDIA,2000,20:"


def container(name, asks):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(asks[0]), "nvidia.com/gpucores": str(asks[1])} if asks else {}
    return {"name": name, "image": "x", "resources": {"limits": limits}}


def running(town, assigned, inits, apps, **more):
    """A pod whose init containers have ended."""
    names = [f"i{i}" for i in range(len(inits))]
    town.cluster.put("pods", {
        "metadata": {"name": "p", "namespace": "default", "annotations": {NODE: "n1", ALLOCATED: assigned, **more}},
        "spec": {"nodeName": "n1", "initContainers": list(map(container, names, inits)),
                 "containers": [container(f"c{i}", asks) for i, asks in enumerate(apps)]},
        "status": {"phase": "Running", "initContainerStatuses": [
            {"name": name, "state": {"terminated": {"exitCode": 0}}} for name in names]}})


def held(scheduler):
    """MiB, cores and slots by device, of those that hold something."""
    connection = http.client.HTTPConnection("127.0.0.1", scheduler.metrics_port, timeout=60)
    connection.request("GET", "/metrics")
    text, found = connection.getresponse().read().decode(), {}
    for at, name in enumerate(("hami_gpu_memory_allocated_bytes", "hami_gpu_core_allocated_ratio", "hami_gpu_shared_count")):
        for uuid, value in re.findall(name + r'\{[^}]*device_uuid="([^"]+)"[^}]*\} (\S+)', text):
            found.setdefault(uuid, [0, 0, 0])[at] = int(float(value) / (1 if at else MIB))
    return {uuid: tuple(row) for uuid, row in found.items() if any(row)}


def hold(town, assigned, inits, apps, should_be, devices=None, **more):
    town.cluster.put("nodes", node("n1", devices or [device(0), device(1)]))
    running(town, assigned, inits, apps, **more)
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        equal((assigned, held(scheduler)), (assigned, should_be))
    town.cluster.delete("pods", "default/p")


def positions_of_app_containers_alone(town):
    """2.8 and before: what the init container asks for, if anything, is not in it."""
    three, two = (3000, 30), (2000, 20)
    both = {"GPU-0": (3000, 30, 1), "GPU-1": (2000, 20, 1)}
    hold(town, f"{GPU0};", [], [three], {"GPU-0": (3000, 30, 1)})
    hold(town, f"{GPU0};{GPU1};", [], [three, two], both)
    hold(town, f"{GPU0};", [None], [three], {"GPU-0": (3000, 30, 1)})
    hold(town, f";{GPU0};", [None], [None, three], {"GPU-0": (3000, 30, 1)})
    hold(town, f"{GPU0};{GPU1};", [None], [three, two], both)
    hold(town, f"{GPU0};", [(500, 5)], [three], {"GPU-0": (3000, 30, 1)})
    hold(town, f"{GPU0};{GPU1};", [(500, 5)], [three, two], both)
    # 2.4 wrote a slot without devices otherwise
    hold(town, f",,0,0:;{GPU0};", [None], [None, three], {"GPU-0": (3000, 30, 1)})


def positions_of_init_containers_come_first(town):
    """2.9 and after."""
    hold(town, f";{GPU0};", [None], [(3000, 30)], {"GPU-0": (3000, 30, 1)})
    hold(town, f";;{GPU0};;{GPU1};", [None, None], [(3000, 30), None, (2000, 20)], {"GPU-0": (3000, 30, 1), "GPU-1": (2000, 20, 1)})
    # what has ended holds nothing any more
    hold(town, f"{GPU0};{GPU1};", [(3000, 30)], [(2000, 20)], {"GPU-1": (2000, 20, 1)})
    hold(town, f"{GPU0};;{GPU1};", [(3000, 30)], [None, (2000, 20)], {"GPU-1": (2000, 20, 1)})


def slots_that_are_left_out(town):
    """2.10."""
    hold(town, f"{GPU0};", [None], [None, (3000, 30)], {"GPU-0": (3000, 30, 1)})
    hold(town, f"{GPU0};{GPU1};", [None], [(3000, 30), None, (2000, 20)], {"GPU-0": (3000, 30, 1), "GPU-1": (2000, 20, 1)})


def an_instance_is_a_suffix_of_its_device(town):
    """2.9 and before, with geometries."""
    hold(town, "GPU-0[1g.10gb-0],NVIDIA,9728,14:;", [], [(9000, 10)], {"GPU-0": (9728, 14, 1)},
         [device(0, 40000, mode="mig"), device(1)])


def registers():
    """By version, what its plugin registers of two devices with 10,000 MiB, and the handshake of that time."""
    rows = [device(0), device(1)]
    less = [{key: value for key, value in row.items() if value} for row in rows]
    csv = "{id},{count},{devmem},{devcore},NVIDIA-{type},0,true".format
    return {
        "2.5": ("".join(csv(**row) + ":" for row in rows), "Reported 2026-01-02 03:04:05.678 +0000 UTC m=+30.01"),
        "2.7": ("".join(f"{csv(**row)},{row['index']},{row['mode']}:" for row in rows), "Deleted_2026.01.02 03:04:05"),
        "2.9": (json.dumps([row | {"devicepairscore": {}} for row in less]), "Requesting_2026-01-02 03:04:05"),
        "2.10": (json.dumps(less[::-1]), "Requesting_2026-01-02 03:04:05"),
        "2.10 without config.json": (json.dumps([{key: row[key] for key in row if key != "mode"} for row in less]), None),
    }


def register(town, version):
    text, handshake = registers()[version]
    town.cluster.change("nodes", "n1", lambda item: item["metadata"]["annotations"].update(
        {REGISTER: text} | ({"hami.io/node-handshake": handshake} if handshake else {})))


def fits(town, scheduler, name, memory, cores):
    """Whether the first device has room for it; nobody keeps it."""
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    item = put_pod(town, name, annotations={"nvidia.com/use-gpuuuid": "GPU-0", "nvidia.com/use-gputype": "a30"})
    item["spec"]["containers"][0]["resources"]["limits"] = limits
    town.cluster.put("pods", item)
    town.tell(scheduler)
    answer = scheduler.filter(item, ["n1"])
    town.cluster.delete("pods", f"default/{name}")
    town.tell(scheduler)
    equal(answer["Error"], "")
    return bool(answer["NodeNames"])


def a_plugin_s_version_changes_nothing_of_what_is_left(town):
    """The plugin of the node is exchanged under a pod of another version's, again and again; what is left is exactly given."""
    town.cluster.put("nodes", node("n1", [device(0), device(1)]))
    running(town, f"{GPU0};", [None], [(3000, 30)])
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        for turn, version in enumerate([*registers(), *reversed(registers())]):
            register(town, version)
            town.tell(scheduler)
            equal((version, held(scheduler)), (version, {"GPU-0": (3000, 30, 1)}))
            equal([version, *(fits(town, scheduler, f"{turn}-{at}", *asks) for at, asks in enumerate(
                [(7000, 70), (7001, 70), (7000, 71)]))], [version, True, False, False])


def a_node_without_slices_for_a_moment_loses_no_books(town):
    """Between the end of one plugin and the begin of the next the kubelet has no device; the register annotation stays."""
    def slices(count):
        town.cluster.change("nodes", "n1", lambda item: item["status"]["allocatable"].update({"nvidia.com/gpu": str(count)}))
        town.tell(scheduler)
    town.cluster.put("nodes", node("n1", [device(0), device(1)]))
    running(town, f"{GPU0};", [], [(3000, 30)])
    with Scheduler(PROGRAM, town, metrics=True) as scheduler:
        for turn, version in enumerate(registers()):
            slices(0)
            equal(fits(town, scheduler, f"none-{turn}", 1, 0), False)
            register(town, version)
            slices(20)
            equal(held(scheduler), {"GPU-0": (3000, 30, 1)})
            equal([fits(town, scheduler, f"{turn}-{at}", memory, 70) for at, memory in enumerate((7000, 7001))], [True, False])


def read(text):
    """As HAMi's plugin and scheduler do: a slot before each semicolon, and an empty one behind the last."""
    return [[token.split(",")[:4] for token in slot.split(":") if "," in token] for slot in text.split(";")]


def what_is_bound_is_read_by_others(town):
    """By its plugin, which goes by lock and slots, and by its scheduler, which counts what is allocated."""
    town.cluster.put("nodes", node("n1", [device(0), device(1)]))
    item = pod("p")
    item["spec"] = {"initContainers": [container("i0", None), container("i1", (500, 5))],
                    "containers": [container("c0", None), container("c1", (3000, 30)), container("c2", None)]}
    item["spec"]["containers"][1]["resources"]["limits"]["nvidia.com/gpu"] = "2"
    town.cluster.put("pods", item)
    item = town.cluster.get("pods", "default/p")
    with Scheduler(PROGRAM, town) as scheduler:
        equal(scheduler.filter(item, ["n1"])["NodeNames"], ["n1"])
        equal(scheduler.bind(item, "n1"), "")
        bound = town.cluster.get("pods", "default/p")
        said, slots = bound["metadata"]["annotations"], read(bound["metadata"]["annotations"][ALLOCATED])
        equal([[row[1:] for row in slot] for slot in slots],
              [[], [["NVIDIA", "500", "5"]], [], [["NVIDIA", "3000", "30"]] * 2, [], []])
        equal({row[0] for row in slots[3]}, {"GPU-0", "GPU-1"})
        equal((said[TO_ALLOCATE], said[NODE], said[PHASE], bound["metadata"]["labels"]),
              (said[ALLOCATED], "n1", "allocating", {NODE: "n1"}))
        equal([key for key in (TIME, "hami.io/bind-time") if not said[key].isdigit()], [])
        lock = town.cluster.annotations("nodes", "n1")[LOCK]
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d),default,p", lock):
            raise AssertionError(f"{lock} is no lock of the pod's")
        finish(town, "p")


if __name__ == "__main__":
    sys.exit(main(globals()))
