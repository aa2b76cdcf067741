#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""differential.py PROGRAM COUNT [SEED [CASE]]: the program (decide.c) and the slow model (slow_model.py) on random cases.

A difference is made small and printed, with the seed and the number of its case. Without SEED, another one each time. First
come the cases of differential.jsonl, which have differed once, and the recorded questions of Filter."""

import copy
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import time

import slow_model
from random_case import random_case

CHUNK = 500
SHRINK_S = 20
# What makes no sense without: a case without it is another difference.
KEPT = {"id", "count", "devmem", "devcore", "type", "mode", "health", "name", "memoryMB", "core", "sliceCount", "placements", "start",
        "size", "metadata", "spec", "containers", "config", "nodes", "pod", "nodeNames", "hami.io/node-nvidia-register", "namespace",
        "hami.io/vgpu-node", "allocatable", "nvidia.com/gpu", "annotations", "gpuUUID", "profile", "placement", "containerIndex",
        "deviceIndex"}


def same_scores(a, b):
    return a.keys() == b.keys() and all(abs(a[name] - b[name]) < 0.02 for name in a)


def is_same(ours, model):
    ours, model = dict(ours), dict(model)
    return same_scores(ours.pop("scores", {}), model.pop("scores", {})) and ours == model


def make(seed, number):
    return random_case(random.Random(f"{seed} {number}"))


def compare(task):
    """(seed, first, count): the cases that differ, how many are too close to tell, and how many of each kind there were."""
    program, seed, first, count = task
    cases = [make(seed, number) for number in range(first, first + count)]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    answers = done.stdout.splitlines()
    if len(answers) != count or done.returncode:
        return {"differ": [first + len(answers)], "died": done.stderr[-2000:]}
    found = {"differ": [], "close": 0, "node": 0, "failed": 0, "asks": 0, "error": 0}
    for number, (case, answer) in enumerate(zip(cases, answers), first):
        model = slow_model.decide(case)
        found[next(key for key in ("node", "failed", "asks", "error") if key in model)] += 1
        if not is_same(json.loads(answer), model):
            if case.get("hazard"):
                found["close"] += 1
            else:
                found["differ"].append(number)
    return found


class Program:
    """The program, for one case after another."""

    def __init__(self, path):
        self.path, self.process = path, None

    def ask(self, case):
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"died": self.process.wait()}

    def differs(self, case):
        try:
            model = slow_model.decide(case)
        except Exception:  # pylint: disable=broad-except
            return False  # too small to mean anything
        return not is_same(self.ask(case), model) and not case.pop("hazard", False)


def smaller(value):
    """Copies of it with one thing less; register annotations are lists, too."""
    if isinstance(value, str) and value.startswith("["):
        try:
            yield from (json.dumps(less) for less in smaller(json.loads(value)))
        except ValueError:
            pass
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield value[:at] + value[at + 1:]
        for at, item in enumerate(value):
            for less in smaller(item):
                yield value[:at] + [less] + value[at + 1:]
    elif isinstance(value, dict):
        for key in value.keys() - KEPT:
            yield {k: v for k, v in value.items() if k != key}
        for key in value:
            for less in smaller(value[key]):
                yield {**value, key: less}


def shrink(program, case):
    case.pop("hazard", None)
    until = time.monotonic() + SHRINK_S
    is_less = True
    while is_less and time.monotonic() < until:
        is_less = False
        for less in smaller(case):
            if time.monotonic() > until:
                break
            if program.differs(copy.deepcopy(less)):
                case, is_less = less, True
                break
    return case


def show(program, case, name):
    case.pop("hazard", None)
    print(f"{name}:\n{json.dumps(case, indent=1)}")
    print(f"the program  {json.dumps(program.ask(case))}\nthe model    {json.dumps(slow_model.decide(case))}", flush=True)


def show_random(program, seed, number):
    case = make(seed, number)
    if program.differs(copy.deepcopy(case)):
        case = shrink(program, case)
    show(program, case, f"seed {seed}, case {number}")


def known_cases():
    here = pathlib.Path(__file__)
    for path in (here.with_suffix(".jsonl"), here.with_name("vectors") / "scheduler.jsonl"):
        for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if case.get("request", "filter") == "filter":
                yield case


def count_known(program):
    """The known cases that differ; of these none is too close to tell."""
    differ = 0
    for case in known_cases():
        if not is_same(program.ask(case), slow_model.decide(case)):
            differ += 1
            show(program, case, f"{case.get('id', '')} {case['about']}")
    return differ


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    seed = sys.argv[3] if sys.argv[3:] else str(int.from_bytes(os.urandom(4), "big"))
    program = Program(path)
    if sys.argv[4:]:
        show_random(program, seed, int(sys.argv[4]))
        return 0
    known = count_known(program)
    total = {"differ": [], "close": 0, "node": 0, "failed": 0, "asks": 0, "error": 0}
    with multiprocessing.Pool() as pool:
        for found in pool.imap(compare, [(path, seed, first, min(CHUNK, count - first)) for first in range(0, count, CHUNK)]):
            if "died" in found:
                print(f"the program died: {found.pop('died')}")
            for key, value in found.items():
                total[key] += value
    for number in total["differ"][:3]:
        show_random(program, seed, number)
    print(f"seed {seed}: {count} cases, {total['node']} fit, {total['failed']} fit nowhere, {total['asks']} ask for nothing, "
          f"{total['error']} refused; {len(total['differ'])} differ {total['differ'][:20]}, {total['close']} are too close to tell")
    return bool(known or total["differ"]) or total["close"] * 50 > count or total["node"] * 5 < count


if __name__ == "__main__":
    sys.exit(main())
