#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens on a card, second by second, and whether it is what should (cases_minutes.sh).

    minutes.py record FOLDER URL UUID SMI    until it is ended: FOLDER/samples, a line of JSON each second
    minutes.py judge FOLDER shares|told|quotas ALONE

URL is the monitor's, SMI the command that tells what the driver has, in the words of nvidia-smi. FOLDER has a file for each
pod, which is what it said, and `parts`, which says when each part began. ALONE: steps/s of the training with the card for itself.
"""

import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request

SAMPLE = re.compile(r"^([a-z_]+)\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
MIB = 1 << 20
SLICE = {"vgpu_slice_memory_used_bytes": "used", "vgpu_slice_memory_quota_bytes": "quota",
         "vgpu_slice_compute_seconds_total": "compute_s", "vgpu_slice_is_blocked": "blocked",
         "vgpu_container_driver_memory_bytes": "by_driver"}
DEVICE = {"hami_host_gpu_memory_used_bytes": "used", "hami_host_gpu_utilization_ratio": "busy"}
SETTLED_S = 12.0  # the monitor looks at priorities every five seconds, and a pod is active until the second look after its last work
# In each part, of each pod: percent of the card's time, from and to. Requests take 8 ms in 50.
SHARES = {"alone": {"training": (56, 63)},
          "both": {"training": (56, 63), "inference": (8, 31)},
          "resized": {"training": (27, 33), "inference": (8, 31)},
          "urgent": {"training": (0, 2), "inference": (0, 2), "urgent": (90, 101)},
          "after": {"training": (27, 33), "inference": (8, 31)}}
EQUAL_BYTES = 8 * MIB  # a process may take some between two looks
AT_ONCE = 0.05  # part of the seconds in which something began or ended between two looks


def asked(smi, query):
    said = subprocess.run([*smi.split(), f"--query-{query}", "--format=csv,noheader,nounits"], capture_output=True, text=True,
                          check=True).stdout
    return [[word.strip() for word in line.split(",")] for line in said.splitlines() if line.strip()]


def cgroup_of(pid):
    try:
        return pathlib.Path("/proc", pid, "cgroup").read_text(encoding="utf-8").replace("_", "-")
    except OSError:
        return ""


def look(url, uuid, smi):
    """Both at nearly the same time: what the monitor tells, and what the driver does."""
    began = time.time()
    text = urllib.request.urlopen(url, timeout=5).read().decode()
    of_process, of_device = asked(smi, "compute-apps=gpu_uuid,pid,used_memory"), asked(smi, "gpu=uuid,memory.used,memory.reserved,utilization.gpu")
    pods, uids, device = collections.defaultdict(dict), {}, {}
    for name, labels, value in SAMPLE.findall(text):
        labels = dict(LABEL.findall(labels))
        if labels.get("device_uuid") == uuid and labels.get("pod") and name in SLICE:
            pods[labels["pod"]][SLICE[name]] = float(value)
            if "slice" in labels:
                uids[labels["slice"].partition("_")[0]] = labels["pod"]
        elif labels.get("device_uuid") == uuid and name in DEVICE:
            device[DEVICE[name]] = float(value)
    held = collections.Counter()
    for _, pid, mib in [row for row in of_process if row[0] == uuid]:
        cgroup = cgroup_of(pid)
        held[next((name for uid, name in uids.items() if uid in cgroup), "")] += int(mib) * MIB
    [(_, used, reserved, busy)] = [row for row in of_device if row[0] == uuid]
    return {"at": began, "pods": pods, "device": device, "driver": {"pods": held, "used": (int(used) + int(reserved)) * MIB, "busy": float(busy)}}


def record(folder, url, uuid, smi):
    with open(folder / "samples", "a", encoding="utf-8", buffering=1) as file:
        while True:
            time.sleep(1 - time.time() % 1)
            print(json.dumps(look(url, uuid, smi)), file=file)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


class Recorded:
    def __init__(self, folder):
        self.folder = folder
        self.samples = lines_of(folder / "samples")
        begun = lines_of(folder / "parts")
        self.parts = {part["part"]: (part["at"], end["at"]) for part, end in zip(begun, begun[1:])}

    def within(self, part, lines):
        """Those of the part, when what was new in it has settled."""
        begin, end = self.parts[part]
        return [line for line in lines if "at" in line and begin + SETTLED_S <= line["at"] <= end]

    def share(self, part, pod):
        """Percent of the card's time that the pod's work had, as the monitor tells it."""
        rows = [row for row in self.within(part, self.samples) if "compute_s" in row["pods"].get(pod, {})]
        if len(rows) < 2:
            return 0.0
        first, last = rows[0], rows[-1]
        return 100 * (last["pods"][pod]["compute_s"] - first["pods"][pod]["compute_s"]) / (last["at"] - first["at"])

    def steps_per_s(self, part, pod):
        rows = [row for row in self.within(part, lines_of(self.folder / pod)) if "steps" in row]
        return (rows[-1]["steps"] - rows[0]["steps"]) / (rows[-1]["at"] - rows[0]["at"]) if len(rows) > 1 else 0.0

    def latency(self, part):
        rows = [row for row in self.within(part, lines_of(self.folder / "inference")) if "p50_ms" in row]
        return [statistics.median(row["p50_ms"] for row in rows), max(row["most_ms"] for row in rows)] if rows else None


def judge_shares(recorded, alone):
    """By what the pods themselves did, too: the library might be wrong about the time."""
    for part, pods in SHARES.items():
        words = []
        for pod, (least, most) in pods.items():
            share = recorded.share(part, pod)
            is_right = least <= share <= most
            words.append("%s %.1f %%" % (pod, share))
            if pod != "inference":
                steps = 100 * recorded.steps_per_s(part, pod) / alone
                words[-1] += " (%.1f %% of its steps alone)" % steps
                is_right = is_right and least - 3 <= steps <= most + 3
            if not is_right:
                yield "%s: %s should be %d to %d %%" % (part, words[-1], least, most)
        took = recorded.latency(part) if part in ("both", "resized", "after") else None
        print("%s: %s%s" % (part, ", ".join(words), "; requests %.1f ms, at most %.1f" % tuple(took) if took else ""), end="; ")


def differences(recorded):
    for row in recorded.samples:
        held = row["driver"]["pods"]
        for pod, told in row["pods"].items():
            for what in ("used", "by_driver"):
                if abs(told.get(what, 0) - held.get(pod, 0)) > EQUAL_BYTES:
                    yield row["at"], "%s %s: %d MiB told, %d by the driver" % (pod, what, told.get(what, 0) // MIB,
                                                                              held.get(pod, 0) // MIB)
        if abs(row["device"]["used"] - row["driver"]["used"]) > EQUAL_BYTES:
            yield row["at"], "device: %d MiB told, %d by the driver" % (row["device"]["used"] // MIB, row["driver"]["used"] // MIB)


def judge_told(recorded, _):
    found = dict(differences(recorded))
    apart = statistics.mean(row["device"]["busy"] - row["driver"]["busy"] for row in recorded.samples)
    print("%d of %d seconds are equal in memory, utilization is %.1f points apart" % (
        len(recorded.samples) - len(found), len(recorded.samples), apart), end="")
    if len(found) > AT_ONCE * len(recorded.samples):
        yield from ("second %.0f: %s" % (at - recorded.samples[0]["at"], words) for at, words in found.items())
    if abs(apart) > 5:
        yield "the monitor's utilization is %.1f points from the driver's" % apart


def judge_quotas(recorded, _):
    most = collections.Counter()
    for row in recorded.samples:
        for pod, held in row["driver"]["pods"].items():
            most[pod] = max(most[pod], held)
            if pod and held > row["pods"][pod]["quota"]:
                yield "%s had %d MiB of %d" % (pod, held // MIB, row["pods"][pod]["quota"] // MIB)
    print(", ".join("%s at most %d MiB" % (pod, held // MIB) for pod, held in sorted(most.items()) if pod), end="")
    if set(most) - {""} != {"training", "inference", "urgent"}:
        yield "the driver told of %s only" % sorted(most)


def main():
    what, folder, *more = sys.argv[1:]
    if what == "record":
        record(pathlib.Path(folder), *more)
    judges = {"shares": judge_shares, "told": judge_told, "quotas": judge_quotas}
    wrong = list(judges[more[0]](Recorded(pathlib.Path(folder)), float(more[1])))
    if wrong:
        sys.exit("\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
