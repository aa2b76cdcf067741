#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_docs.py BUILD: runs the commands of the pages for users as they stand there, beside an installed tree and a simulated GPU.

It all happens in a mount namespace of its own, in which /usr/local is the installed tree, and /etc, /run, /srv, /dev/shm and /var/lib are nobody
else's. `train.py` and `./a.out` are programs that say how large a device they see. What a page says is printed has to be printed, and what
a page shows by `cat` is there. Exits with 77 where there can be no such namespace."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import doc_commands  # noqa: E402 pylint: disable=wrong-import-position

SKIPPED = 77
TRAIN = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print("sees", total.value >> 20, "MiB", flush=True)
"""
# It runs on where it is started behind `&`.
A_OUT = '#!/bin/sh\npython3 train.py\n[ -z "$GOES_ON" ] || exec tenant --blocks 1 --hold 60000\n'
SUDO = '#!/bin/sh\nexec "$@"\n'


def install(build, root):
    """What `meson install` would put under /usr/local, and the example."""
    listed = subprocess.run(["meson", "introspect", build, "--installed"], check=True, capture_output=True, text=True).stdout
    for source, place in json.loads(listed).items():
        target = root / os.path.relpath(place, "/usr/local")
        if not place.startswith("/usr/local/") or "/man/" in place or not os.path.exists(source):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    library = next(root.glob("lib/**/vgpu/libvgpu.so")).parent
    if library != root / "lib/vgpu":
        (root / "lib/vgpu").symlink_to(library)
    shutil.copy(f"{build}/examples/tenant", root / "bin/tenant")
    (root / "bin/sudo").write_text(SUDO)
    (root / "bin/sudo").chmod(0o755)


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def enclose(build, place):
    """In the namespace: the machine that the pages speak of."""
    mount("-t", "tmpfs", "tmpfs", str(place))
    for name in ("local", "up", "work", "home"):
        (place / name).mkdir()
    install(build, place / "local")
    library = os.path.realpath(place / "local/lib/vgpu")
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={place}/up,workdir={place}/work", "/etc")
    (place / "tree").mkdir()
    mount("--bind", str(ROOT), str(place / "tree"))
    for folder in ("/run", "/srv", "/dev/shm", "/var/lib"):
        mount("-t", "tmpfs", "tmpfs", folder)
    if not ROOT.exists():
        # it lies in one of these
        ROOT.mkdir(parents=True)
        mount("--bind", str(place / "tree"), str(ROOT))
    mount("--bind", str(place / "local"), "/usr/local")
    home = place / "home"
    (home / "train.py").write_text(TRAIN)
    (home / "a.out").write_text(A_OUT)
    (home / "a.out").chmod(0o755)
    return home, library.replace(str(place / "local"), "/usr/local")


class Machine:
    def __init__(self, home, library):
        self.home = home
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(home), "LC_ALL": "C.UTF-8",
                            "LD_LIBRARY_PATH": f"{library}/sim"}
        self.running = []

    def run(self, script, printed):
        if printed and re.fullmatch(r"cat \S+", script):
            path = pathlib.Path(script.split()[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(printed)
        goes_on = re.search(r"&\s*(#.*)?$", script)
        environment = {**self.environment, **({"GOES_ON": "1"} if goes_on else {})}
        if goes_on:
            self.running.append(subprocess.Popen(["bash", "-c", "exec " + script[:goes_on.start()]], cwd=self.home, env=environment,
                                                 stdout=subprocess.PIPE, text=True))
            self.running[-1].stdout.readline()  # it is in its slice
            return
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.home, env=environment, capture_output=True, text=True, timeout=300,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise AssertionError(f"{done.returncode}: {done.stdout}{done.stderr}")
        if printed and printed.strip() not in done.stdout:
            raise AssertionError(f"printed {done.stdout!r}, and the page says {printed!r}")
        quota = re.search(r"(?:--memory |MEMORY_LIMIT=)(\d+)[Gg]", script)
        if quota and "docker" not in script and f"sees {int(quota[1]) << 10} MiB" not in done.stdout:
            raise AssertionError(f"a quota of {quota[1]} GiB, and it said {done.stdout!r}")

    def end(self):
        for process in self.running:
            process.terminate()
            process.wait(20)
            process.stdout.close()
        self.running = []


def main():
    if len(sys.argv) == 2:
        # a user of one's own where this is not root
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        trial = subprocess.run([*spaces, "sh", "-c", "mount -t tmpfs none /run && mkdir /run/u /run/w && mount -t overlay overlay "
                                "-o lowerdir=/etc,upperdir=/run/u,workdir=/run/w /etc"], stderr=subprocess.DEVNULL, check=False)
        if trial.returncode:
            print("no mount namespace here")
            return SKIPPED
        # not where another file system will be mounted over it
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            return subprocess.run([*spaces, sys.executable, __file__, os.path.abspath(sys.argv[1]), place], check=False).returncode
    failed = ran = 0
    machine = Machine(*enclose(sys.argv[1], pathlib.Path(sys.argv[2])))
    for path in doc_commands.PAGES:
        for block in doc_commands.blocks(ROOT, path):
            if block.how or block.language not in ("sh", "console"):
                continue
            for script, printed in block.commands():
                # of a list of commands each by itself, so that the one that fails is named
                is_list = block.language == "sh" and not re.search(r"<<|\\\n", script)
                for command in script.rstrip("\n").split("\n") if is_list else [script]:
                    began = time.monotonic()
                    try:
                        machine.run(command, printed)
                        ran += 1
                        print(f"ok     {path}:{block.line}: {command[:90]!r} ({time.monotonic() - began:.1f} s)", flush=True)
                    except (AssertionError, subprocess.TimeoutExpired) as error:
                        failed += 1
                        print(f"FAILED {path}:{block.line}: {command}\n{error}", flush=True)
            machine.end()
    print(f"{ran} commands of {len(doc_commands.PAGES)} pages ran, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
