#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything built for aarch64 on another machine, and the tests that qemu's user mode can run.

    tests/aarch64/run.py BUILD [TEST...]

Headers and libraries of Debian 12 for arm64 are fetched by apt, unpacked, and kept in ~/.cache/cantaloupe/aarch64; nothing
of this machine changes. The tests run in namespaces of their own, where the kernel starts aarch64's programs by qemu, also
those that a test starts, and finds their libraries. What cannot be had here is skipped with the reason.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cantaloupe")
MIRROR, SUITE = "http://deb.debian.org/debian", "bookworm"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
COMPILER, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
PACKAGES = ["libc6-dev", "libcmocka-dev", "libcurl4-openssl-dev", "libjansson-dev", "libyaml-dev", "libmicrohttpd-dev",
            "libgnutls28-dev", "libgrpc-dev", "libprotobuf-c-dev", "uthash-dev"]
FETCH_S, CONFIGURE_S, SLICE_S = 300, 300, 300
UNPACKED = ["./lib/*", "./usr/lib/*", "./usr/include/*", "./usr/share/pkgconfig/*"]
# An ELF file of 64 bits for aarch64: its first bytes, and which of their bits count. F: qemu is opened now.
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"

# In namespaces of its own: $1 the folder with libraries, $2 qemu, then the command.
INSIDE = r"""
set -e
root=$1 qemu=$2
shift 2
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' ":qemu-aarch64:M::$MAGIC:$MASK:$qemu:F" >/proc/sys/fs/binfmt_misc/register
mount -t overlay -o "lowerdir=$root/usr/lib:/usr/lib" overlay /usr/lib
exec "$@"
"""

# What depends on the processor or the C library. Left out: what takes minutes, reads the time that a call costs, or the
# processor's traps (the parsers' fuzzing, the virtual clock, tests/hostile); and `token`, which hangs after FORK below.
TESTS = """budget bulk busy clock device environment err estimate evict file filesystem fit grant holding image layout ledger
log mark nvml own_pid overrun pacing parse pressure process ptx rank region share shared signals slot snapshot table throttle
turn turn_lease turn_order turn_record untracked kube_assignment kube_client kube_loop kube_pieces kube_wish rpc
plugin_config plugin_grant plugin_prefer plugin_vectors prepare""".split()
# What fails under qemu's user mode, and why; anything else that fails is a failure.
FORK = "qemu does not forward MADV_DONTFORK"
COPY = "qemu has no process_vm_readv()"
USERS = "the namespace has one user"
REAPER = "qemu refuses PR_SET_CHILD_SUBREAPER"
STAT = "qemu makes up /proc/self/stat"
CASES = {
    "a_child_of_fork_does_not_keep_it": FORK,
    "a_child_of_fork_does_not_keep_its_parents_slot_alive": FORK,
    "the_mapping_is_not_inherited_by_fork": FORK,
    "what_is_left_to_children_is_given_back_with_the_last_of_them": REAPER,
    "what_is_shared_is_left_to_children_too": REAPER,
    "an_owner_that_lingers_is_waited_for_once_and_then_left_alone": STAT,
    "a_name_full_of_brackets_and_spaces_misleads_nobody": STAT,
    "what_cannot_be_copied_is_refused": COPY,
    "a_section_table_that_cannot_be_read_is_refused": COPY,
    "a_folder_that_cannot_be_written_is_an_error": USERS,
    "another_user_may_open_it_but_not_if_it_is_read_only": USERS,
    "what_belongs_to_another_user_does_not_count": USERS,
    "the_operators_record_is_for_whom_it_is_mounted": USERS,
    "what_one_record_of_another_user_did_counts_for_all_of_his": USERS,
    "what_one_of_the_operators_records_did_counts_for_it_alone": USERS,
}


class Skipped(Exception):
    """Why something cannot be had here."""


def run(command, seconds, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False,
                          errors="replace", **more)


def last_line(result):
    return (result.stdout.strip().splitlines() or ["failed"])[-1]


def fetch(folder):
    """Debian's packages for arm64 and what they need, by an apt whose books are all in folder."""
    settings = {"Dir::State": folder + "/state", "Dir::State::status": folder + "/status", "Dir::Cache": folder + "/cache",
                "Dir::Etc::SourceList": folder + "/sources.list", "Dir::Etc::SourceParts": "/dev/null",
                "Dir::Etc::PreferencesParts": "/dev/null", "APT::Architecture": "arm64", "APT::Sandbox::User": ""}
    for place in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, place))
    with open(folder + "/apt.conf", "w", encoding="utf-8") as f:
        f.write("".join('%s "%s";\n' % pair for pair in settings.items()) + 'APT::Architectures { "arm64"; };\n')
    with open(folder + "/sources.list", "w", encoding="utf-8") as f:
        f.write("deb [arch=arm64 signed-by=%s] %s %s main\n" % (KEYS, MIRROR, SUITE))
    with open(folder + "/status", "w", encoding="utf-8"):
        pass
    for command in (["update"], ["install", "-y", "--no-install-recommends", "--download-only", *PACKAGES]):
        result = run(["apt-get", *command], FETCH_S, env=dict(os.environ, APT_CONFIG=folder + "/apt.conf"))
        if result.returncode:
            raise Skipped("apt-get %s for arm64: %s" % (command[0], last_line(result)))
    archives = folder + "/cache/archives"
    return [os.path.join(archives, name) for name in sorted(os.listdir(archives)) if name.endswith(".deb")]


def unpack(package, root):
    """Headers and libraries alone."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as source:
        # a pattern that fits nothing is no fault
        subprocess.run(["tar", "-x", "-C", root, "--keep-directory-symlink", "--wildcards", *UNPACKED], stdin=source.stdout,
                       stderr=subprocess.DEVNULL, check=False)


def make_links_relative(root):
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.islink(path) and os.readlink(path).startswith("/"):
                target = root + os.readlink(path)
                os.remove(path)
                os.symlink(os.path.relpath(target, folder), path)


def made():
    """The folder with aarch64's headers and libraries; an unfinished one has another name."""
    place = os.path.join(CACHE, "aarch64")
    if os.path.isdir(place):
        return place
    if not os.path.exists(KEYS):
        raise Skipped("debian-archive-keyring is not installed")
    unfinished = place + ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    root = os.path.join(unfinished, "root")
    os.makedirs(root + "/usr/lib")
    os.symlink("usr/lib", root + "/lib")
    print("making %s of Debian's packages for arm64" % place, flush=True)
    for package in fetch(unfinished + "/apt"):
        unpack(package, root)
    shutil.rmtree(unfinished + "/apt")
    make_links_relative(root)
    with open(unfinished + "/root.ini", "w", encoding="utf-8") as f:
        f.write("[constants]\nroot = '%s/root'\n" % place)
    os.rename(unfinished, place)
    return place


def configure(folder, place):
    """Everything, with warnings as errors."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS", "LDFLAGS")}
    result = run(["tools/configure.sh", folder, "--cross-file", os.path.join(HERE, "cross.ini"), "--cross-file",
                  place + "/root.ini", "--buildtype", "debugoptimized", "-Dtests=enabled", "-Ddaemons=enabled",
                  "-Dwerror=true"], CONFIGURE_S, cwd=ROOT, env=environment)
    if result.returncode:
        sys.exit("the build cannot be configured:\n" + result.stdout[-2000:])


def inside(place, *command):
    """The command where the kernel starts aarch64's programs."""
    environment = dict(os.environ, MAGIC=MAGIC, MASK=MASK)
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", INSIDE, "sh", place + "/root", shutil.which(QEMU),
            *command], environment


def judge(folder, names):
    """Counts of the run that meson has just written down; says what failed, and what cannot be had under qemu."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(os.path.join(folder, "meson-logs", "testlog.json"), encoding="utf-8") as f:
        results = [json.loads(line) for line in f]
    if not results:
        sys.exit("no test ran: " + " ".join(names))
    for result in results:
        name, what = result["name"].rpartition(" / ")[2], result["result"]
        text = result.get("stdout", "") + result.get("stderr", "")
        cases = set(re.findall(r"^\[  FAILED  \] (\w+)$", text, re.M))
        reasons = {CASES.get(case) for case in cases}
        if what == "FAIL" and cases and None not in reasons:
            counts["passed"] += 1
            counts["skipped"] += len(cases)
            for case in sorted(cases):
                print("skipped: %s, %s: %s" % (name, case, CASES[case]))
        elif what in ("OK", "EXPECTEDFAIL"):
            counts["passed"] += 1
        elif what == "SKIP":
            counts["skipped"] += 1
            print("skipped: %s" % name)
        else:
            counts["failed"] += 1
            print("failed: %s: %s\n%s" % (name, what, text[-3000:]))
    print("%(passed)d programs passed, %(failed)d failed; %(skipped)d programs or cases skipped" % counts)
    return 1 if counts["failed"] else 0


def judge_slice(place, folder):
    """What is wrong with a tenant in a slice on the simulated node, or an empty text."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as own:
        command, environment = inside(place, folder + "/src/cli/vgpu", "run", "--memory", "2g", "--device", "0", "--sim", "--",
                                      folder + "/examples/tenant")
        environment.update(VGPU_STATE=own, VGPU_SIM_STATE=own + "/machine", VGPU_TURNS=own + "/turns")
        said = run(command, SLICE_S, env=environment).stdout
    return "" if "2.00 GiB" in said and "CUDA_ERROR_OUT_OF_MEMORY" in said else "the tenant is not held to 2 GiB: " + said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder to build in")
    parser.add_argument("tests", nargs="*", help="names of tests; without, those that are for this")
    args = parser.parse_args()
    try:
        for program in (COMPILER, QEMU, "apt-get", "dpkg-deb", "unshare"):
            if not shutil.which(program):
                raise Skipped(program + " is not installed")
        place = made()
    except Skipped as reason:
        print("skipped: %s" % reason)
        return 0
    configure(args.build, place)
    # tests of other suites have the same names
    names = args.tests or ["--suite", "unit", *TESTS]
    # of what is named, meson builds what it needs
    if not args.tests and subprocess.run(["meson", "compile", "-C", args.build], cwd=ROOT, check=False).returncode:
        return 1
    command, environment = inside(place, "true")
    result = run(command, FETCH_S, env=environment)
    if result.returncode:
        print("skipped: it is built, and its tests cannot run: %s" % last_line(result))
        return 0
    command, environment = inside(place, "meson", "test", "-C", args.build, "--no-suite", "delivery", "--timeout-multiplier", "5", *names)
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    failed = judge(args.build, names)
    wrong = "" if args.tests else judge_slice(place, os.path.abspath(args.build))
    if wrong:
        print("failed: " + wrong)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
