#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dialects.py PROGRAM [TEST...]: what pods hold that other versions of HAMi's scheduler have placed, as vgpu-scheduler's books say.

Up to 2.8 a pod's annotation has a slot for each app container, since 2.9 one for each init container before them; 2.10 leaves slots
without devices out, later versions do not. Up to 2.9 an instance (MIG) is a suffix of its device."""

import http.client
import re
import sys

from cluster import Scheduler, device, node
from daemon import ALLOCATED, NODE, PROGRAM, equal, main

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


if __name__ == "__main__":
    sys.exit(main(globals()))
