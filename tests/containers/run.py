#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [PREPARED]: each container of docs/containers.md, and of the device plugin, keeps its quota. Exits with 77 where no container can be had.

What the page has for docker, podman, nerdctl and compose is translated for runc, and given to the runtime itself where that works on this machine.
In each, five processes one after the other want 1286 MiB (a context of 518 and three blocks of 256), of 4 GiB.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import engine
import page
from container import CAPABILITIES, Container, Place, Skipped

DEMO = os.path.join(os.path.dirname(__file__), "../../tools/demo.sh")
WANTED_BYTES = 3 * 256 << 20
FITS = 3
TENANTS = 5

# Starts the five, each when the one before it holds its memory or has ended; then waits until the file /sim/go is there,
# and says how each fared.
UNTIL_GO = "for i in $(seq 6000); do [ -e /sim/go ] && break; sleep 0.05; done"
SCRIPT = f"""
while [ $((count += 1)) -le {TENANTS} ]; do
    said=$(mktemp -p /sim)
    tenant --blocks 3 --hold 300000 >$said 2>&1 &
    started="$started $!" all="$all $said"
    until [ -s $said ] || ! kill -0 $!; do sleep 0.02; done
done
echo >>/sim/started
{UNTIL_GO}
kill $started 2>/dev/null
wait
cat $all
"""
TOOK = re.compile(r"took 3 x 256 MiB")


def check(condition, what, said):
    if not condition:
        raise AssertionError(f"{what}\n{said}")


class Script:
    """What the containers' scripts and the test tell each other by files."""

    def __init__(self, place):
        self.go, self.started = place.sim + "/go", place.sim + "/started"
        for path in (self.go, self.started):
            if os.path.exists(path):
                os.remove(path)

    def let_go(self):
        with open(self.go, "w", encoding="utf-8"):
            pass

    def wait_until_started(self, containers):
        """Until these have started all their tenants; a minute at most."""
        for _ in range(1200):
            if os.path.exists(self.started) and os.path.getsize(self.started) == len(containers):
                return
            for container in containers:
                if container.process.poll() is not None:
                    check(False, "a container ends at once", container.process.stdout.read())
            time.sleep(0.05)
        check(False, f"{len(containers)} containers do not start their tenants", "")


def holders(listing):
    """How many living processes hold what they wanted, of each slice, by `vgpu list --json`."""
    slices = json.loads(listing)["slices"]
    return [sum(d["kind_bytes"]["plain"] == WANTED_BYTES for p in s["processes"] for d in p["devices"]) for s in slices]


def wait_for(containers, count):
    """Until so many tenants hold their memory, by the list of a container that has one; half a minute at least."""
    said = ""
    for _ in range(300):
        for container in containers:
            said = container.execute("vgpu list --json --processes").stdout
            if said.startswith("{") and holders(said) == [count]:
                return
        time.sleep(0.1)
    check(False, f"the list does not show {count} that hold memory", said)


def holds(place, line, containers=1, mounts=(), start=Container):
    script = Script(place)
    running = []
    try:
        for _ in range(containers):
            running.append(start(place, line, SCRIPT, mounts))
            script.wait_until_started(running)
        wait_for(running, FITS)
        said = running[0].execute("vgpu doctor").stdout
        check("No problems" in said, "doctor finds something wrong", said)
        # Killed by any means, its memory is the slice's again, and another fits.
        running[0].execute("kill -9 $(pgrep -o -x tenant)")
        wait_for(running, FITS - 1)
        running[0].execute("tenant --blocks 3 --hold 300000 >/dev/null 2>&1 &")
        wait_for(running, FITS)
    finally:
        script.let_go()
        output = "".join(c.end() for c in running)
    check(len(TOOK.findall(output)) == FITS, f"{FITS} of {TENANTS * containers} fit", output)


def is_refused_without_a_place(place, line):
    script = Script(place)
    script.let_go()
    said = Container(place, line.replace("--tmpfs /tmp", ""), "tenant --blocks 3; vgpu doctor").end()
    check(not TOOK.search(said) and "/tmp/cudevshr.cache" in said and "overlayfs" in said and
          "Read-only file system" in said and "--tmpfs" in said, "it is refused with the remedy", said)


def is_told_by_doctor(place, line):
    """From the host, of a container that may not keep its region where it wants it."""
    script = Script(place)
    container = Container(place, line.replace("--tmpfs /tmp", ""), UNTIL_GO)
    try:
        for _ in range(300):  # its program may not have begun
            said = container.execute("vgpu doctor 1").stdout
            if "cannot be used" in said:
                break
            time.sleep(0.1)
    finally:
        script.let_go()
        container.end()
    check("cannot be used, so all memory is refused" in said and "overlayfs" in said, "doctor says so", said)


def is_seen_from_the_host(place, line):
    script = Script(place)
    container = Container(place, line, SCRIPT)
    try:
        script.wait_until_started([container])
        wait_for([container], FITS)
        container.execute("kill -9 $(pgrep -o -x tenant)")
        wait_for([container], FITS - 1)
        said = subprocess.run([f"{place.build}/src/cli/vgpu", "list", "--json", "--processes"], stdout=subprocess.PIPE, text=True,
                              check=False).stdout
    finally:
        script.let_go()
        container.end()
    check(FITS - 1 in holders(said), "the host's list shows who lives, and no more", said)


def runs_slices_inside(place, line):
    """`vgpu run` in a container keeps its slices on the container's own root."""
    script = Script(place)
    bare = re.sub(r"-e \S+", "", line)
    library = f"VGPU_LIBDIR={place.build}/src/tenant"
    said = Container(place, bare, f"export {library}; vgpu run --memory 4g --name a -- sh -c '{SCRIPT}' & "
                     "until [ -e /sim/started ]; do sleep 0.05; done; vgpu list --json; touch /sim/go; wait").end()
    check(len(TOOK.findall(said)) == FITS, f"{FITS} of {TENANTS} fit in a slice of vgpu run", said)
    script.let_go()


def is_one_device(place):
    """What `vgpu cdi` prints for a share, with a region that the container cannot remove."""
    folder, regions, library = place.host("/srv/vgpu/b"), place.host("/run/regions-b"), place.host("/usr/local/lib/vgpu")
    os.makedirs(folder)
    os.makedirs(regions)
    with open(folder + "/share", "w", encoding="utf-8") as file:
        file.write(f"vgpu-share 1\nregion {regions}/region\ndevice * memory 4g\nend\n")
    said = subprocess.run([f"{place.build}/src/cli/vgpu", "cdi", folder], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "VGPU_LIBDIR": library}, check=False).stdout
    specification = json.loads(said)
    check([d["name"] for d in specification["devices"]] == ["b"], "one device", said)
    mounts = [m for edits in (specification, specification["devices"][0]) for m in edits["containerEdits"]["mounts"]]
    holds(place, "docker run IMAGE", 2, mounts)


def prepare(place, tool, pod):
    """What the device plugin answers for a container, and has made for it on the host."""
    done = subprocess.run([tool, place.host(""), f"{place.build}/src/tenant/libvgpu.so", pod], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{place.build}/sim/nvml",
                               "VGPU_SIM_STATE": place.sim + "/machine"})
    check(done.returncode == 0, "the plugin prepares a container", done.stderr)
    answer = json.loads(done.stdout)
    # As containerd and CRI-O mount them: what is deeper comes later.
    answer["mounts"].sort(key=lambda m: m["containerPath"].count("/"))
    return answer


POD = "0b5e7d7a-4f39-4d0c-9d3e-0f6a9a7b1c11"
# Whatever of these succeeds is named.
HOSTILE = """
tries() { "$@" 2>/dev/null && echo "HARM $*"; }
for folder in /etc/vgpu /run/vgpu-turns /tmp/vgpulock $HOOK /run/vgpu-turns/*; do
    tries touch $folder/mine
    tries mkfifo $folder/fifo
    tries ln -s /etc/passwd $folder/link
done
tries rm -f $HOOK/*.cache
tries mv $HOOK/*.cache $HOOK/other
tries ln $HOOK/*.cache /tmp/link
tries sh -c 'echo >/etc/vgpu/share'
tries sh -c 'echo >/etc/ld.so.preload'
tries sh -c 'echo >$HOOK/libvgpu.so'
for record in /run/vgpu-turns/*/*; do tries rm -f $record; done
echo tried
"""


def is_prepared_by_the_plugin(place, tool, user):
    """A read-only root, no new privileges, and nothing but the mounts of the plugin."""
    answer = prepare(place, tool, POD)
    os.chmod(place.sim, 0o777)
    os.chmod(place.sim + "/machine", 0o666)
    environment = " ".join(f"-e {e}" for e in answer["env"] if not e.startswith("NVIDIA"))
    line = f"docker run --read-only --user {user} -e HOOK={place.host('/usr/local/vgpu')} {environment} IMAGE"
    holds(place, line, 1, answer["mounts"])
    records = [m["hostPath"] for m in answer["mounts"] if "/turns/" in m["hostPath"]]
    check([os.path.getsize(r) > 4096 for r in records] == [True], "the slice has taken its turn record", records)
    said = Container(place, line, HOSTILE, answer["mounts"]).end()
    check("tried" in said and "HARM" not in said, "a tenant makes and removes no file", said)
    # The machine was restarted: what was in memory has gone.
    shutil.rmtree(place.host("/run/cantaloupe"))
    again = prepare(place, tool, POD)
    check(again == answer, "the same paths are there again", again)
    holds(place, line, 1, again["mounts"])


# By dlopen() and dlsym(), as the CUDA runtime finds the driver.
GREEDY = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, block, count = ctypes.c_void_p(), ctypes.c_uint64(), 0
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
while count < 40 and cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(256 << 20)) == 0:
    count += 1
print(f"took {count} x 256 MiB", flush=True)
"""
# What the environment can put before the library without a file of its own; and what does not matter.
BEFORE = ("", "libm.so.6", "libc.so.6", "libdl.so.2 libc.so.6", "libcuda.so.1", "libnvidia-ml.so.1", "libcuda.so.1 libc.so.6",
          "libc.so.6 libnvidia-ml.so.1 libcuda.so.1", "/sim/libother.so")


def holds_whatever_is_preloaded(place, line):
    """A context of 518 MiB and 13 blocks of 256 are 4 GiB, however the program finds the driver, and whatever stands in LD_PRELOAD."""
    with open(place.sim + "/greedy.py", "w", encoding="utf-8") as file:
        file.write(GREEDY)
    shutil.copy(f"{place.build}/sim/cuda/libcuda.so.1", place.sim + "/libother.so")
    loader = next(filter(os.path.exists, ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")))
    every = [f"LD_PRELOAD='{libraries}' {binding}" for libraries in BEFORE for binding in ("", "LD_BIND_NOW=1 ")]
    every += [f"{loader} --preload '{libraries}' " for libraries in BEFORE[1:]]
    with open(place.sim + "/commands", "w", encoding="utf-8") as file:
        file.write("primary 0\nfill 256m\n")
    programs = [f"{place.build}/tests/gpu/client {door} </sim/commands" for door in ("linked", "dlopen", "default", "next", "procaddr-v1")]
    programs += ["$(command -v python3) /sim/greedy.py", f"{place.build}/examples/tenant --blocks 40"]
    script = "".join(f'echo "{start}{program}:"; {start}{program} 2>&1\n' for start in every for program in programs)
    said = Container(place, line, script).end()
    count = len(every) * len(programs)
    check(len(re.findall(r"took 13 x 256 MiB|^2 count=13$", said, re.M)) == count, f"the quota holds in all of {count}", said)


# What root of a container does to each path that its limits are made of, and to each folder above: PATH. A folder that went is made anew, as
# it was, for programs find nothing in the place of a folder that lacks.
ATTACKS = {
    "rename": "import os; os.rename('PATH', 'PATH.away')",
    "rename and make": "import os; os.rename('PATH', 'PATH.away'); os.makedirs('PATH') if os.path.isdir('PATH.away') else open('PATH', 'w')",
    "rename and copy": "import os, shutil; os.rename('PATH', 'PATH.away'); "
                       "(shutil.copytree if os.path.isdir('PATH.away') else shutil.copy)('PATH.away', 'PATH')",
    "link": "import os; os.rename('PATH', 'PATH.away'); os.symlink('/tmp', 'PATH')",
    "exchange": "import ctypes, os; os.mkdir('PATH.other') if os.path.isdir('PATH') else open('PATH.other', 'w'); "
                "ctypes.CDLL(None).renameat2(-100, b'PATH', -100, b'PATH.other', 2) and exit(1)",
    "remove": "import os; os.remove('PATH')",
    "empty": "import shutil; shutil.rmtree('PATH')",
}
ROOM_BLOCKS = 3  # of 256 MiB with a context of 518 MiB, beside another context with 8 of them, are 4 GiB


def binds_against_root(place, line, mounts=()):
    """No rename and no removal of what its limits are made of, or of a folder above, gives a container another quota."""
    options = page.read(line)
    every = [m["containerPath"] for m in (*(m for name in options["devices"] for m in place.device(name)), *mounts)]
    every += [volume.split(":")[1] for volume in options["volumes"]]
    paths = set(every)
    for path in every:
        while (path := os.path.dirname(path)) != "/":
            paths.add(path)
    tenants = ""
    for path in sorted(paths, key=lambda p: (-p.count("/"), p)):
        for name, attack in ATTACKS.items():
            tenants += (f"echo '{name} {path}:'; python3 -c \"{attack.replace('PATH', path)}\" 2>/dev/null && echo done\n"
                        "tenant --blocks 40 2>&1\n")
    script = f"tenant --blocks 8 --hold 300000 >/sim/held 2>&1 & until [ -s /sim/held ]; do sleep 0.05; done; cat /sim/held\n{tenants}kill %1\n"
    said = Container(place, line, script, mounts, CAPABILITIES).end()
    os.remove(place.sim + "/held")
    took = [int(count) for count in re.findall(r"took (\d+) x 256 MiB", said)]
    check(took[0] == 8 and max(took[1:]) == ROOM_BLOCKS, "the quota holds whatever is renamed and removed", said)


def is_refused_without_its_books(place, line):
    """Where the region's own mount was left out nobody makes another one."""
    without = re.sub(r"-v \S+:/etc/vgpu/region \\\n", "", line)
    check(without != line, "the line mounts a region", line)
    said = Container(place, without, "tenant --blocks 3; rm -f /etc/vgpu/region; tenant --blocks 3").end()
    check(not TOOK.search(said) and "/etc/vgpu/region" in said and "Read-only file system" in said, "it is refused", said)


def is_refused_without_its_share(place, line):
    """An empty folder in the place of the share's, as a runtime makes it of a source that is missing; a folder in the place of the share;
    and no mount for the share at all."""
    os.makedirs(place.host("/srv/empty"))
    os.makedirs(place.host("/srv/folder/share"))
    without = re.sub(r"-v \S+:/etc/vgpu(/region)?(:ro)? \\\n", "", line)
    for volume in ("-v /srv/empty:/etc/vgpu:ro", "-v /srv/folder:/etc/vgpu:ro", ""):
        greedy = without.replace("docker run ", f"docker run {volume} -e CUDA_DEVICE_MEMORY_LIMIT=100g ")
        check(greedy.count("/etc/vgpu:") == (volume != ""), "the line mounts one share", greedy)
        for start in ("", "LD_PRELOAD=libc.so.6 "):
            said = Container(place, greedy, f"{start}tenant --blocks 3").end()
            check(not TOOK.search(said) and "path=/etc/vgpu/share" in said, f"{volume or 'no share'}: it is refused, and the path is named", said)
    said = Container(place, without.replace("docker run ", "docker run -v /srv/empty:/etc/vgpu:ro "), "vgpu doctor $$; vgpu doctor; echo ended $?").end()
    check("share file /etc/vgpu/share, line 0: it is missing" in said, "doctor says so of a process", said)
    check("programs that begin here: share file /etc/vgpu/share: it is missing" in said and "ended 1" in said, "and of all", said)


def binds_every_user(place, line):
    """Also where root has a umask of 077, under which the page's commands were run."""
    os.chmod(place.folder + "/lower/tmp", 0o1777)
    os.chmod(place.sim, 0o777)
    os.chmod(place.sim + "/machine", 0o666)
    said = Container(place, line.replace("docker run ", "docker run --user 1000 "), "tenant --blocks 40").end()
    check("took 13 x 256 MiB" in said, "the quota binds who is not root", said)


def shows_the_demo(place):
    shutil.copy(DEMO, place.sim)
    said = Container(place, "docker run IMAGE", f"/bin/sh /sim/demo.sh {place.build}; echo ended $?").end()
    check(said.endswith("ended 0\n"), "the demo shows a quota that holds", said)


def main():
    try:
        place = Place(os.path.abspath(sys.argv[1]))
    except Skipped as why:
        print(f"skipped: {why}")
        return 77
    failures = 0

    def attempt(what, function, *arguments):
        nonlocal failures
        try:
            function(place, *arguments)
            print(f"ok      {what}")
        except AssertionError as fault:
            failures += 1
            print(f"FAILED  {what}: {fault}")

    def of_page(name, takes, start):
        for section in sections:
            for line in filter(takes, section.lines):
                attempt(f"{section.title}: {page.runtime_of(line)}, by {name}", holds, line, 2 if section.title.startswith("Several") else 1, (), start)

    def of_this_machine(name):
        try:
            runtime = engine.Engine(place, name)
        except Skipped as why:
            print(f"skipped {name}: {why}")
            return
        try:
            of_page(name, runtime.takes, runtime.container)
            if name != "podman":
                runtime = engine.Compose(runtime)
                of_page(f"{name} compose", runtime.takes, runtime.container)
        except Skipped as why:
            print(f"skipped {name} compose: {why}")
        finally:
            runtime.remove()

    try:
        sections = page.sections()
        umask = os.umask(0o077)
        for text in (text for section in sections for text in section.preparations):
            place.prepare(text)
        os.umask(umask)
        plain = sections[0].lines[0]
        bound = next(section.lines[0] for section in sections if "cannot lift" in section.title)
        of_page("runc", lambda line: True, Container)
        attempt("a container is seen from the host", is_seen_from_the_host, plain)
        attempt("a device of vgpu cdi", is_one_device)
        for user in (1000, 0) if len(sys.argv) > 2 else ():
            attempt(f"a container of the device plugin, user {user}", is_prepared_by_the_plugin, sys.argv[2], user)
        attempt("whatever is preloaded before the library", holds_whatever_is_preloaded, bound)
        attempt("every user of a container", binds_every_user, bound)
        attempt("a slice whose region is not mounted", is_refused_without_its_books, bound)
        attempt("a slice whose share is missing", is_refused_without_its_share, bound)
        for line in (bound, next(section.lines[0] for section in sections if "--device" in section.lines[0])):
            attempt(f"root of a container: {' '.join(line.split())}", binds_against_root, line)
        attempt("the demo in a container", shows_the_demo)
        attempt("slices inside a container", runs_slices_inside, plain)
        read_only = [line for section in sections for line in section.lines if "--read-only" in line][0]
        attempt("a read-only root without a place", is_refused_without_a_place, read_only)
        attempt("doctor in such a container", is_told_by_doctor, read_only)
        for name in engine.NAMES:
            of_this_machine(name)
    except Skipped as why:
        print(f"skipped: {why}")
        return 77
    finally:
        place.remove()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
