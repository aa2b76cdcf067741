#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cluster_page.py SCHEDULER FOLDER-OF-CLUSTER [--browser]: the page of a whole cluster, from the scheduler."""

import json
import os
import pathlib
import re
import sys
import time

sys.path += [sys.argv[2], str(pathlib.Path(__file__).resolve().parents[1])]
from browser import Browser, find  # noqa: E402 pylint: disable=wrong-import-position
from cases import SKIPPED, collect, equal, run  # noqa: E402 pylint: disable=wrong-import-position
from cluster import REGISTER, Scheduler, Town, device, node, pod, wait_for  # noqa: E402 pylint: disable=wrong-import-position
from stage import request  # noqa: E402 pylint: disable=wrong-import-position

MIB = 1 << 20


class Page:
    """The scheduler with its page."""

    def __init__(self, town):
        self.town = town
        self.scheduler = Scheduler(sys.argv[1], town, "--web-bind-address=127.0.0.1:0")
        wait_for(lambda: self.find_port(), "the page")
        self.port = self.find_port()

    def find_port(self):
        found = re.search(r'msg="the page is served".* port=(\d+)', "".join(self.scheduler.lines))
        return int(found[1]) if found else None

    def state(self):
        self.town.tell(self.scheduler)
        time.sleep(1)  # it is made anew for those who ask later than 0.9 s
        status, headers, text = request(self.port, "/state.json")
        equal((status, headers["Content-Type"]), (200, "application/json"))
        return json.loads(text)

    def __enter__(self):
        self.scheduler.__enter__()
        return self

    def __exit__(self, *arguments):
        self.scheduler.__exit__(*arguments)


def put_pod(town, name, **more):
    town.cluster.put("pods", pod(name, **more))
    return town.cluster.get("pods", f"default/{name}")


def a_day(town):
    """Three nodes, one with a device that is ill, and quotas."""
    for name, devices in (("gpu-a", [device(i, 40000, type="NVIDIA A100", id=f"GPU-a{i}") for i in range(4)]),
                          ("gpu-b", [device(0, 24000, id="GPU-b0"), device(1, 24000, id="GPU-b1", health=False)]),
                          ("a-node-whose-name-is-as-long-as-somebody-thought-good.europe-west4-a.example", [device(0, 80000, id="GPU-c0")])):
        town.cluster.put("nodes", node(name, devices))
    town.cluster.put("resourcequotas", {"metadata": {"name": "q", "namespace": "default"},
                                        "spec": {"hard": {"limits.nvidia.com/gpumem": "300000", "limits.nvidia.com/gpucores": "400"}}})


NODES = ["gpu-a", "gpu-b", "a-node-whose-name-is-as-long-as-somebody-thought-good.europe-west4-a.example"]


def fill(town, page):
    for name, memory in (("train-0", 38000), ("train-1", 30000), ("notebook", 6000), ("serve-7c9f4-x2k8p", 20000), ("batch", 12000)):
        item = put_pod(town, name, memory=memory)
        answer = page.scheduler.filter(item, NODES)
        equal(page.scheduler.bind(item, answer["NodeNames"][0]), "")
        node_name = answer["NodeNames"][0]
        town.cluster.change("nodes", node_name, lambda one: one["metadata"]["annotations"].pop("hami.io/mutex.lock", None))
    promised = put_pod(town, "promised", memory=4000)
    page.scheduler.filter(promised, NODES)
    for name, memory in (("too-large", 90000), ("for-one-node", 70000)):
        item = put_pod(town, name, memory=memory)
        for _ in range(2):
            equal(page.scheduler.filter(item, NODES[:2])["NodeNames"], None)


def the_state_is_told_whole():
    with Town() as town:
        a_day(town)
        with Page(town) as page:
            fill(town, page)
            state = page.state()
            equal((state["version"], state["scope"], state["trouble"], state["nodes_left_out"]), (1, "cluster", "", 0))
            equal([(one["name"], len(one["gpus"])) for one in state["nodes"]], [(NODES[2], 1), ("gpu-a", 4), ("gpu-b", 2)])
            told = {one["pod"]: one for place in state["nodes"] for gpu in place["gpus"] for one in gpu["slices"]}
            equal((told["train-0"]["memory_quota_bytes"], told["train-0"]["is_promised"], told["train-0"]["namespace"]), (38000 * MIB, False, "default"))
            equal(told["promised"]["is_promised"], True)
            ill = [gpu["uuid"] for place in state["nodes"] for gpu in place["gpus"] if not gpu["is_healthy"]]
            equal(ill, ["GPU-b1"])
            equal(sorted(one["pod"] for one in state["pending"]), ["for-one-node", "too-large"])
            waits = [one for one in state["pending"] if one["pod"] == "too-large"][0]
            equal((waits["devices"], waits["memory_bytes"], sorted((one["words"], one["nodes"]) for one in waits["reasons"])),
                  (1, 90000 * MIB, [("1/2 CardInsufficientMemory, 1/2 CardNotHealth", 1), ("4/4 CardInsufficientMemory", 1)]))
            equal(sorted((one["pod"], one["count"]) for one in state["refusals"]), [("for-one-node", 2), ("too-large", 2)])
            equal([(one["resource"], one["unit"], one["limit"]) for one in state["quotas"]],
                  [("nvidia.com/gpumem", "bytes", 300000 * MIB), ("nvidia.com/gpucores", "permille", 4000)])
            # one is promised devices, the other goes
            town.cluster.put("nodes", node("big", [device(0, 80000, id="GPU-d0")]))
            wait_for(lambda: len(page.state()["nodes"]) == 4, "the node")
            equal(page.scheduler.filter(town.cluster.get("pods", "default/for-one-node"), [*NODES, "big"])["NodeNames"], ["big"])
            town.cluster.delete("pods", "default/too-large")
            wait_for(lambda: not page.state()["pending"], "an end of waiting")
            equal(len(page.state()["refusals"]), 2)


def what_is_many_is_bounded():
    with Town() as town:
        for i in range(100):
            town.cluster.put("nodes", node(f"n{i:03}", [device(k, id=f"GPU-{i}-{k}") for k in range(8)]))
        with Page(town) as page:
            for i in range(80):
                page.scheduler.filter(put_pod(town, f"p{i:02}", memory=20000), [f"n{k:03}" for k in range(100)])
            state = page.state()
            equal((len(state["nodes"]), state["nodes_left_out"]), (64, 36))
            equal((len(state["pending"]), len(state["refusals"])), (64, 32))
            equal(state["pending"][0]["reasons"], [{"words": "8/8 CardInsufficientMemory", "nodes": 100}])


def it_only_shows():
    with Town() as town:
        with Page(town) as page:
            for path in ("/", "/state.json", "/filter", "/bind"):
                equal(request(page.port, path, method="POST")[0], 405)
            equal(request(page.port, "/filter")[0], 404)
            equal(request(page.port, "/state.json", headers={"Host": "example.org"})[0], 421)
            equal(page.state()["nodes"], [])


def it_is_shown_in_chromium(browser):
    with Town() as town:
        a_day(town)
        with Page(town) as page:
            fill(town, page)
            # an API server would not take such a name; the scheduler is told what it is told
            evil = {"metadata": {"name": "<img src=x onerror=alert(1)>", "namespace": "default", "uid": "evil"}, **{key: pod("x", memory=90000)[key]
                                                                                                                   for key in ("spec", "status")}}
            page.scheduler.filter(evil, NODES)
            town.cluster.put("nodes", {"metadata": {"name": "evil", "annotations": {REGISTER: json.dumps([device(0, type="<script>1</script>")])}},
                                       "status": {"allocatable": {"nvidia.com/gpu": "10"}}})
            wait_for(lambda: len(page.state()["nodes"]) == 4, f"the node; {page.scheduler.lines[-3:]}")
            for width, height in ((1280, 800), (390, 844)):
                for is_dark in (False, True):
                    browser.look(width, height, is_dark)
                    browser.open(f"http://127.0.0.1:{page.port}/", "document.getElementById('live')?.textContent === 'live' && "
                                 "document.querySelectorAll('.node').length === 4")
                    time.sleep(0.3)
                    browser.check()
                    if "PICTURES" in os.environ:
                        browser.picture(f"{os.environ['PICTURES']}/cluster-{width}-{'dark' if is_dark else 'light'}.png")
            words = browser.run("document.querySelector('main').innerText")
            for part in ("too-large", "for-one-node", "4/4 CardInsufficientMemory", "its device plugin says that it is not healthy", "promised, not bound yet",
                         "nvidia.com/gpumem", "<script>1</script>"):
                equal((part, part in words), (part, True))
            equal(browser.run("document.querySelectorAll('main img, main script, main b:not(.meter b)').length"), 0)
            # a node is closed and opened from the keyboard
            browser.run("document.querySelector('.node > summary').focus()")
            browser.key("Enter", number=13)
            equal(browser.run("document.querySelector('.node').open"), False)
            time.sleep(2.5)
            equal(browser.run("[document.querySelector('.node').open, document.activeElement.tagName]"), [False, "SUMMARY"])


def main(is_browser):
    if not is_browser:
        return run(collect(globals()))
    program = find()
    if not program:
        print("no Chromium here: apt-get install chromium")
        return SKIPPED
    return run(collect(globals(), "browser"), given=lambda: Browser(program))


if __name__ == "__main__":
    sys.exit(main("--browser" in sys.argv))
