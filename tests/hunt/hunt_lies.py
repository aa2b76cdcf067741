#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hunt_lies.py DRIVE CLOCK NEIGHBOURS PROGRAM [FILE]: hunts for lies of a turn record that cost another slice more than they may.

A lie is a text of words like "hold_us=6000" (tests/hostile/record_at_random.c, the PROGRAM). HUNT_SEED says which are tried (in
`make test` new ones each day), HUNT_SECONDS how long. Of one that fails each word is left out that is not needed, and what is left is
printed; HUNT_LIE="..." tries it again, and FILE has those that were found once, a line each."""

import os
import random
import subprocess
import sys
import time

SECONDS = 25
SHRINK_SECONDS = 120
ONE_SECONDS = 120
SKIPPED = 77
COST_PERMILLE = "35"  # some lies cost more than the two points that are allowed (SECURITY.md)
US_OF_GAP = (200, 250, 500, 1000, 1200, 2000, 5500, 11000, 20000)
WORDS = {
    "slices": (2, 2, 2, 2, 2, 2, 2, 8),
    "kernel_us": (0, 500, 500, 2000, 5000, 20000, 40000),
    "processes": (1, 1, 2, 4),
    "own": (0, 0, 1),
    "records": (1, 1, 1, 2, 4),
    "hold_us": (1000, 3000, 6000, 10000, 20000, 45000, 100000, 180000, 240000, 260000, 400000),
    "gap_us": US_OF_GAP,
    "lease_us": (500, 2000, 10000, 40000, 240000),
    "step_us": (250, 1000, 2000, 4000),
    "since": ("now", "now", "begin", "before_other", "after_other", "start", "later"),
    "state": ("hold", "hold", "hold", "claim", "want"),
    "between": ("free", "free", "want", "claim"),
    "rank": (0, 0, 0, 1, 2, 3, 9),
    "when": ("always", "always", "waits", "holds", "held"),
    "burst_ms": (0, 0, 300, 500, 1000, 1600, 3000),
    "rest_ms": (200, 500, 1000, 1500, 2500),
    "ticket": ("now", "first", "before_other"),
}


def judge(command, lie):
    """Whether no slice lost too much, and what the judge printed."""
    slices = next((word.split("=")[1] for word in lie if word.startswith("slices=")), "2")
    drive, clock, neighbours, program = command
    ran = subprocess.run([drive, clock, neighbours, slices, program], env={**os.environ, "HOSTILE_COST": COST_PERMILLE, "HUNT_LIE": " ".join(lie)},
                         capture_output=True, text=True, timeout=ONE_SECONDS, check=False)
    if ran.returncode == SKIPPED:
        print(ran.stdout, end="")
        sys.exit(SKIPPED)
    if ran.returncode not in (0, 1) or "permille" not in ran.stdout:
        sys.exit(f"{' '.join(lie)}: the judge ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
    return ran.returncode == 0, ran.stdout.strip()


def judge_surely(command, lie):
    """The same; a fault is what fails in two of three runs. One lie costs 1.6 to 3.8 points, by what else the processors have to do."""
    is_fine, said = judge(command, lie)
    if is_fine:
        return True, said
    again = [judge(command, lie) for _ in range(2)]
    return all(one[0] for one in again), said


def shorten(command, lie):
    """The lie without each word that is not needed to fail."""
    until = time.monotonic() + SHRINK_SECONDS
    for word in list(lie):
        shorter = [other for other in lie if other != word]
        if time.monotonic() < until and not judge(command, shorter)[0]:
            lie = shorter
    return lie


def hunt(command):
    seed = os.environ.get("HUNT_SEED") or time.strftime("%Y%m%d", time.gmtime())
    until = time.monotonic() + float(os.environ.get("HUNT_SECONDS") or SECONDS)
    print(f"HUNT_SEED={seed}", flush=True)
    tried = faults = 0
    while time.monotonic() < until and (not faults or os.environ.get("HUNT_KEEP")):
        chance = random.Random(f"{seed} {tried}")
        lie = [f"{name}={chance.choice(values)}" for name, values in WORDS.items()]
        is_fine, said = judge_surely(command, lie)
        tried += 1
        if os.environ.get("HUNT_LOUD"):
            print(" ".join(lie), said, sep="\n", flush=True)
        if is_fine:
            continue
        faults += 1
        print(" ".join(lie), said, sep="\n", flush=True)
        print(f'in short, HUNT_LIE="{" ".join(shorten(command, lie))}"', flush=True)
    print(f"{tried} lies, {faults} faults")
    return 1 if faults else 0


def try_again(command, lies):
    faults = 0
    for lie in lies:
        is_fine, said = judge_surely(command, lie.split())
        faults += not is_fine
        print(lie.strip(), said, sep="\n", flush=True)
    return 1 if faults else 0


def main():
    command, files = sys.argv[1:5], sys.argv[5:]
    if files:
        with open(files[0], encoding="utf-8") as lines:
            return try_again(command, [line for line in lines if not line.startswith("#")])
    lie = os.environ.get("HUNT_LIE")
    return hunt(command) if lie is None else try_again(command, [lie])


if __name__ == "__main__":
    sys.exit(main())
