#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sim_runtime.py FOLDER ARGUMENT...: runc, which gives a container that asks for NVIDIA's devices the simulated driver, as
NVIDIA's container runtime gives it the real one. FOLDER has lib and machine."""

import json
import os
import sys

RUNC = "runc"
LIBRARIES = "/usr/lib"  # which every loader of Debian's searches


def add_driver(path, folder):
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    process = spec["process"]
    told = dict(one.partition("=")[::2] for one in process.get("env", []))
    if told.get("NVIDIA_VISIBLE_DEVICES", "void") in ("", "void", "none"):
        return
    mounts = [(f"{LIBRARIES}/{name}", f"{folder}/lib/{name}", "ro") for name in sorted(os.listdir(f"{folder}/lib"))]
    # where the simulated driver looks for its machine unasked: what is run in the container later finds it, too
    mounts.append((f"/dev/shm/vgpu-sim-{process['user']['uid']}", f"{folder}/machine", "rw"))
    for place, source, kind in mounts:
        spec["mounts"].append({"destination": place, "type": "bind", "source": source, "options": ["bind", kind]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f)


def main():
    folder, *arguments = sys.argv[1:]
    if "create" in arguments and "--bundle" in arguments:
        add_driver(os.path.join(arguments[arguments.index("--bundle") + 1], "config.json"), folder)
    os.execvp(RUNC, [RUNC, *arguments])


if __name__ == "__main__":
    main()
