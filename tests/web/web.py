#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""web.py MONITOR MAKE-SLICES NVML VGPU-SIM [TEST...]: the page's JSON and its headers, without a browser."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

from stage import Node, many_slices, request, some_slices, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from cases import collect, equal, run  # noqa: E402 pylint: disable=wrong-import-position

BINARIES, SIM = sys.argv[1:4], sys.argv[4]
MIB = 1 << 20
LOOK_S = 5 # the monitor reads the devices again
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")
PATHS = ("/", "/page.css", "/page.js", "/icon.svg", "/state.json", "/history.json")


def slices_of(node):
    return {one["pod"]: one for gpu in node.gpus() for one in gpu["slices"]}


def each_answer_has_the_headers():
    with Node(BINARIES) as node:
        for path in (*PATHS, "/other", "/state.json/x", "/../etc/passwd"):
            status, headers, _ = node.ask(path)
            equal(status, 200 if path in PATHS else 404)
            equal(headers["Content-Security-Policy"], POLICY)
            equal((headers["X-Content-Type-Options"], headers["X-Frame-Options"], headers["Referrer-Policy"], headers["Cache-Control"],
                   headers["Cross-Origin-Resource-Policy"], headers["Cross-Origin-Opener-Policy"]),
                  ("nosniff", "DENY", "no-referrer", "no-store", "same-origin", "same-origin"))
            equal("Access-Control-Allow-Origin" in headers, False)
        types = [node.ask(path)[1]["Content-Type"].split(";")[0] for path in PATHS]
        equal(types, ["text/html", "text/css", "text/javascript", "image/svg+xml", "application/json", "application/json"])


def it_only_shows():
    with Node(BINARIES) as node:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            for path in PATHS:
                status, headers, _ = node.ask(path, method=method)
                equal((status, headers["Allow"]), (405, "GET, HEAD"))
        for path in PATHS:
            status, headers, body = node.ask(path, method="HEAD")
            equal((status, body, int(headers["Content-Length"]) > 0), (200, b"", True))


def another_name_for_this_host_is_not_answered():
    """As a page elsewhere has it whose name leads here."""
    with Node(BINARIES) as node:
        for host in ("127.0.0.1:1", "localhost", "LocalHost:9396", "[::1]:9396"):
            equal(node.ask(headers={"Host": host})[0], 200)
        for host in ("example.org", "127.0.0.1.example.org", "localhost.example.org:80", ""):
            equal(node.ask(headers={"Host": host})[0], 421)


def elsewhere_it_is_an_explicit_address():
    with Node(BINARIES, flags=("--http=0.0.0.0:0",)) as node:
        equal(node.ask(headers={"Host": "gpu7.example.org"})[0], 200)
        wait_for(lambda: "all that reach this address" in node.process.stderr.readline(), "the warning")
    with Node(BINARIES, flags=(), metrics="127.0.0.1:0") as node:
        equal(node.ask("/state.json")[0], 404)
    done = subprocess.run([BINARIES[0], "--metrics-bind-address=", "--http=x"], capture_output=True, text=True, timeout=20, check=False)
    equal((done.returncode, "'x': ADDRESS:PORT is right" in done.stderr), (1, True))


def the_files_name_no_other_host():
    with Node(BINARIES) as node:
        texts = {path: node.ask(path)[2].decode() for path in PATHS[:4]}
        for path, text in texts.items():
            found = [url for url in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", text) if "www.w3.org" not in url]
            equal((path, found), (path, []))
        equal(re.findall(r"\son\w+=|<style|style=|<script>|javascript:", texts["/"]), [])
        equal(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", texts["/page.js"]), [])
        print(f"      the page has {sum(map(len, texts.values()))} bytes")


def slices_are_told_whole():
    with Node(BINARIES) as node:
        uuids = [gpu["uuid"] for gpu in node.gpus()]
        node.add(some_slices(uuids))

        def are_right(one):
            """The counters are moved by another process, which comes to it late now and then."""
            return 440 < (one.get("busy_permille") or 0) < 640 and 220 < (one.get("turn_wait_permille") or 0) < 420
        states = []
        wait_for(lambda: states.append(node.state()) or are_right({one["pod"]: one for one in states[-1]["nodes"][0]["gpus"][0]["slices"]}.get(
            "train-llm-0", {})), "rates")
        state = states[-1]
        equal((state["version"], state["scope"], state["nodes"][0]["name"], state["pending"]), (1, "node", "this node", []))
        equal([(gpu["index"], gpu["is_healthy"], gpu["trouble"]) for gpu in state["nodes"][0]["gpus"]], [(0, True, ""), (1, True, "")])
        told = {one["pod"]: one for gpu in state["nodes"][0]["gpus"] for one in gpu["slices"]}
        train = told["train-llm-0"]
        equal((train["memory_used_bytes"], train["memory_quota_bytes"], train["sure_permille"], train["cap_permille"], train["container"],
               train["refusals"]), (61000 * MIB, 71680 * MIB, 500, None, "trainer", 0))
        equal([pod for pod, one in told.items() if one["is_suspended"]], ["eval-nightly"])
        equal(told["notebook-ada"]["busy_permille"], None)
        equal(len({one["id"] for one in told.values()}), 5)
        history = json.loads(node.ask("/history.json")[2])
        equal((history["interval_s"], history["points_most"], len(history["series"])), (30, 120, 7))


def refusals_are_told_with_their_time():
    with Node(BINARIES) as node:
        node.add(some_slices([gpu["uuid"] for gpu in node.gpus()]))
        wait_for(lambda: len(slices_of(node)) == 5, "slices")
        equal(node.state()["refusals"], [])
        node.say("refuse 1")
        node.say("refuse 1")
        wait_for(lambda: node.state()["refusals"], "the refusal")
        time.sleep(1)
        one, *more = node.state()["refusals"]
        equal((one["pod"], one["container"], sum(each["count"] for each in [one, *more])), ("inference-7c9f4d9b6-x2k8p", "server", 2))
        equal(abs(one["at_s"] - time.time()) < 60, True)
        for _ in range(40):
            node.say("refuse 0")
            node.ask("/state.json")
        equal(len(node.state()["refusals"]) <= 32, True)


def a_gpu_that_does_not_answer_is_said_to():
    with Node(BINARIES) as node:
        subprocess.run([SIM, "card", "lose", "--device", "1"], env=node.environment, check=True, stdout=subprocess.DEVNULL)
        wait_for(lambda: [(gpu["is_healthy"], gpu["trouble"] != "", gpu["memory_used_bytes"] is None) for gpu in node.gpus()]
                 == [(True, False, False), (False, True, True)], "the card's end")
        time.sleep(LOOK_S + 1) # the devices are read again
        equal([gpu["is_healthy"] for gpu in node.gpus()], [True, False])
        subprocess.run([SIM, "card", "return", "--device", "1"], env=node.environment, check=True, stdout=subprocess.DEVNULL)
        wait_for(lambda: [gpu["is_healthy"] for gpu in node.gpus()] == [True, True], "the card's return")


def without_a_driver_there_is_no_gpu():
    with Node([BINARIES[0], BINARIES[1], "/nowhere.so"]) as node:
        equal(node.gpus(), [])
        node.add([{"pod": "p", "uuid": "GPU-gone", "used": 5, "quota": 10}])
        wait_for(node.gpus, "the slice")
        gpu = node.gpus()[0]
        equal((gpu["uuid"], gpu["index"], gpu["is_healthy"], gpu["trouble"], len(gpu["slices"])),
              ("GPU-gone", None, False, "there is no driver", 1))


def any_byte_may_stand_in_a_name():
    """Names of folders are the container's plugin's, UUIDs the container's own: each answer stays JSON."""
    with Node(BINARIES) as node:
        names = ['"><img src=x onerror=alert(1)>', "a\\b\"c", "\x01\x1b[2J", "ü‮x", "\udcff\udcfe"]
        node.add([{"pod": f"u{i}", "uuid": f"GPU-{i}", "used": 1, "quota": 2} for i in range(len(names))])
        for i, name in enumerate(names):
            os.rename(node.hook / f"containers/u{i}_main", os.fsencode(str(node.hook / "containers/")) + b"/" + f"u{i}_{name}".encode(
                "utf-8", "surrogateescape"))
        time.sleep(1)
        wait_for(lambda: len(slices_of(node)) == len(names), "slices")
        told = [slices_of(node)[f"u{i}"]["container"] for i in range(len(names))]
        equal(told, [*names[:4], "\ufffd\ufffd"])


def many_cost_little():
    with Node(BINARIES, "h200x8") as node:
        node.add(many_slices(node.gpus()))
        wait_for(lambda: len(slices_of(node)) == 64, "slices")
        request(node.port, "/history.json")
        took = []
        for _ in range(5):
            time.sleep(1)
            began = time.monotonic()
            text = node.ask()[2]
            took.append((time.monotonic() - began) * 1000)
        with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
            resident = int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])
        print(f"      64 slices: {min(took):.1f} ms at best, {sorted(took)[2]:.1f} ms mostly, {len(text)} bytes, monitor {resident / 1024:.1f} MiB")
        equal(len(text) < 100000, True)


if __name__ == "__main__":
    sys.exit(run(collect(globals()), sys.argv[5:]))
