#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tenant library, as it is built here, in the roots of other distributions.

    tests/roots/run.py BUILD [NAME...]

Each root is made by debootstrap and kept in ~/.cache/cantaloupe/roots. The simulated node and a tenant are built
against the oldest root's C library, so that all roots can run them. In each the tenant must see its quota and be
refused beyond it, also where the C library or the driver is preloaded before the library, and an ordinary program must start. A musl program, which is made by musl-gcc, must start beside
/etc/ld.so.preload, which its loader does not read. What cannot be made here is skipped with the reason.
"""

import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cantaloupe", "roots")
UBUNTU, DEBIAN = "http://archive.ubuntu.com/ubuntu", "http://deb.debian.org/debian"
# Oldest first: what runs in all of them is built against it.
ROOTS = [("xenial", UBUNTU, "Ubuntu 16.04, glibc 2.23"), ("bullseye", DEBIAN, "Debian 11, glibc 2.31"),
         ("bookworm", DEBIAN, "Debian 12, glibc 2.36"), ("trixie", DEBIAN, "Debian 13, glibc 2.41")]
BUILT = ["sim/cuda/libcuda.so.1", "sim/nvml/libnvidia-ml.so.1", "examples/tenant"]
MADE_S, BUILT_S, RUN_S = 600, 600, 60

# In a mount namespace of its own: $1 root, $2 folder with all files, then the command.
INSIDE = """
set -e
root=$1 files=$2
shift 2
mount --make-rprivate /
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm" "$root/opt/vgpu"
mount -t tmpfs tmpfs "$root/dev/shm"
mount --bind "$files" "$root/opt/vgpu"
if [ -n "$PRELOADED" ]; then
    echo "$PRELOADED" >"$root/dev/shm/ld.so.preload"
    : >>"$root/etc/ld.so.preload"
    mount --bind "$root/dev/shm/ld.so.preload" "$root/etc/ld.so.preload"
fi
if [ -n "$SHARED" ]; then
    mkdir -p "$root/etc/vgpu"
    mount -t tmpfs tmpfs "$root/etc/vgpu"
    printf 'vgpu-share 1\\ndevice * memory 2g\\nend\\n' >"$root/etc/vgpu/share"
fi
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=/opt/vgpu \\
    VGPU_SIM_STATE=/dev/shm/machine CUDA_DEVICE_MEMORY_LIMIT=2g CUDA_DEVICE_MEMORY_SHARED_CACHE=/dev/shm/region "$@"
"""


class Skipped(Exception):
    """Why something cannot be had here."""


def run(command, seconds, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          check=False, errors="replace", **more)


def made(name, mirror):
    """The root's folder; an unfinished one has another name."""
    path = os.path.join(CACHE, name)
    if os.path.isdir(path):
        return path
    if not shutil.which("debootstrap"):
        raise Skipped("debootstrap is not installed")
    unfinished = path + ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    os.makedirs(CACHE, exist_ok=True)
    print("making %s from %s" % (path, mirror), flush=True)
    check = [] if mirror == DEBIAN else ["--no-check-gpg"]  # of the other distribution no keys are here
    result = run(["debootstrap", "--variant=minbase", *check, "--include=libc6-dev", name, unfinished, mirror], MADE_S)
    if result.returncode:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise Skipped("debootstrap %s: %s" % (name, (result.stdout.strip().splitlines() or ["failed"])[-1]))
    os.rename(unfinished, path)
    return path


def build_old(root, folder):
    """The simulated node and the tenant against the root's headers and libraries, copied into folder."""
    libraries = [os.path.join(root, below, "x86_64-linux-gnu") for below in ("usr/lib", "lib")]
    compiler = " ".join(["gcc", "--sysroot=" + root, "-B" + libraries[0]] + ["-L" + path for path in libraries])
    build = os.path.join(folder, "build")
    for command in (["tools/configure.sh", build, "-Dtests=disabled", "-Ddaemons=disabled"],
                    ["ninja", "-C", build, *BUILT]):
        result = run(command, BUILT_S, cwd=ROOT, env=dict(os.environ, CC=compiler))
        if result.returncode:
            sys.exit("%s failed:\n%s" % (" ".join(command), result.stdout[-2000:]))
    for path in BUILT:
        shutil.copy(os.path.join(build, path), folder)


def inside(root, files, preloaded, *command, shared=""):
    environment = dict(os.environ, PRELOADED=preloaded, SHARED=shared)
    return run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", INSIDE, "sh", root, files, *command], RUN_S,
               env=environment)


def judge_glibc(root, files):
    """What is wrong, or an empty text."""
    # the driver itself needs libdl, and brings it
    by_list = inside(root, files, "/opt/vgpu/libvgpu.so\nlibdl.so.2", "/opt/vgpu/tenant")
    by_variable = inside(root, files, "", "env", "LD_PRELOAD=/opt/vgpu/libvgpu.so:libdl.so.2", "/opt/vgpu/tenant")
    # what comes before the list, where a share of the machine binds
    behind = [inside(root, files, "/opt/vgpu/libvgpu.so", "env", "LD_PRELOAD=" + before, "/opt/vgpu/tenant", shared="yes")
              for before in ("libcuda.so.1:libdl.so.2", "libdl.so.2:libc.so.6", "libc.so.6:libdl.so.2:libnvidia-ml.so.1:libcuda.so.1")]
    for result in (by_list, by_variable, *behind):
        if "2.00 GiB" not in result.stdout or "CUDA_ERROR_OUT_OF_MEMORY" not in result.stdout:
            return "the tenant is not held to 2 GiB: " + result.stdout.strip()
    plain = inside(root, files, "/opt/vgpu/libvgpu.so", "cat", "/etc/os-release")
    return plain.stdout.strip() if plain.returncode or "NAME" not in plain.stdout else ""


def judge_musl(root, files):
    program = os.path.join(files, "musl")
    source = b"#include <stdio.h>\nint main(void) { return puts(\"here\") < 0; }\n"
    if not shutil.which("musl-gcc"):
        raise Skipped("musl-gcc is not installed")
    subprocess.run(["musl-gcc", "-xc", "-", "-o", program], input=source, check=True)
    loader = os.path.realpath("/lib/ld-musl-x86_64.so.1")
    shutil.copy(loader, os.path.join(files, "ld-musl-x86_64.so.1"))
    start = ["/opt/vgpu/ld-musl-x86_64.so.1", "/opt/vgpu/musl"]
    result = inside(root, files, "/opt/vgpu/libvgpu.so", "env", "-u", "LD_LIBRARY_PATH", *start)
    if result.returncode or "here" not in result.stdout:
        return "it does not start beside /etc/ld.so.preload: " + result.stdout.strip()
    result = inside(root, files, "", "env", "-u", "LD_LIBRARY_PATH", "LD_PRELOAD=/opt/vgpu/libvgpu.so", *start)
    return "" if result.returncode and "libvgpu.so" in result.stdout else "LD_PRELOAD is not refused: " + result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder: its libvgpu.so is tried")
    parser.add_argument("names", nargs="*", help="%s, musl; all where none is named" % ", ".join(r[0] for r in ROOTS))
    args = parser.parse_args()
    wanted = set(args.names) or {name for name, _, _ in ROOTS} | {"musl"}
    if os.geteuid():
        print("skipped: only root can make and enter another root")
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def say(what, name, why=""):
        counts[what] += 1
        print("%s: %s%s" % (what, name, ": " + why if why else ""), flush=True)

    try:
        oldest = made(*ROOTS[0][:2])
    except Skipped as reason:
        print("skipped: no old C library to build against: %s" % reason)
        return 0
    files = os.path.join(os.path.abspath(args.build), "roots")
    os.makedirs(files, exist_ok=True)
    build_old(oldest, files)
    shutil.copy(os.path.join(args.build, "src/tenant/libvgpu.so"), files)
    cases = [(name, about, lambda n=name, m=mirror: judge_glibc(made(n, m), files)) for name, mirror, about in ROOTS]
    cases.append(("musl", "a program of musl", lambda: judge_musl(oldest, files)))
    for name, about, case in cases:
        if name not in wanted:
            continue
        try:
            wrong = case()
            say("failed" if wrong else "passed", about, wrong)
        except Skipped as reason:
            say("skipped", about, str(reason))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
