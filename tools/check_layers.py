#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which module may include which (the table is tools/layers.py), and what each must never do.

What a module must never do is found by word, after comments and strings are gone: crude, but a list
that everybody can read.
"""

import argparse
import os
import re
import sys

import csource
import layers
from layers import MAY_USE

ABI = "gpu/abi/"

# The simulated node shares nothing with the product but the driver's ABI: code that tested itself
# would prove nothing. Files that may be included all the same:
OPEN_TO_SIM = ("src/" + ABI, "src/base/cleanup.h")
MODEL = "sim/cuda/model/"

# base headers that are no arithmetic: a decision that needs one of them is no pure decision
NOT_FOR_POLICY = ["base/clock.h", "base/file.h", "base/lock.h", "base/log.h"]
SYSTEM_NOT_FOR_POLICY = re.compile(
    r"(stdio|stdlib|time|unistd|fcntl|pthread|threads|signal|poll|dlfcn|sys/.*|linux/.*)\.h$")

# What ends up in the tenant library is a guest in a stranger's process. What programs of ours share is a guest in
# each of them: output and the end are the program's.
GUESTS = ("base", "policy", "region", "gpu", "tenant", "node", "net", "kube")
NEVER_BY_GUESTS = {
    "ends the host process": "exit _exit _Exit quick_exit abort kill raise tgkill",
    "prints to the host's output": "printf vprintf puts putchar perror fprintf",
    "changes the host process": "umask signal sigaction sigprocmask chdir setenv putenv "
                                "unsetenv setlocale",
    "starts threads or processes": "pthread_create thrd_create fork vfork system popen",
    "waits without a deadline": "sleep usleep pause",
}
# A process of a slice may end itself, where the slice's owner asked for that (decision 0014), and takes two
# signals that nobody has claimed (0017). gRPC can be waited for by a thread only (0025). A thread that writes a line has the two
# signals blocked that this could bring upon the program, and as before when the line is written. Here and by these words alone:
ALLOWED = {("src/tenant/memory/oom.c", "kill"), ("src/tenant/compute/signals.c", "sigaction"),
           ("src/net/rpc_queue.c", "pthread_create"), ("src/base/stderr.c", "sigprocmask"),
           ("src/tenant/driver/own_thread.c", "sigprocmask")}

# The library's own events are made and destroyed in one place (tenant/driver/own_events.h); the program's by hooks.
EVENTS = re.compile(r"\bcuda[ \t]*\.[ \t]*(cuEventCreate|cuEventDestroy(?:_v2)?)\b[ \t]*\(")
WITH_EVENTS = ("src/tenant/driver/own_events.c", "src/tenant/hooks/hook_event.c")

# Of a setuid program the environment is its caller's: all that ends up in the library asks one file (tenant/slice/environment.h).
ENVIRONMENT = re.compile(r"(?<![\w.>])(getenv|secure_getenv|environ|__environ|_environ)\b")
WITHOUT_ENVIRONMENT = ("base", "policy", "region", "gpu", "tenant")
WITH_ENVIRONMENT = "src/tenant/slice/environment.c"

NEVER_BY_POLICY = {
    "takes memory": "malloc calloc realloc free strdup strndup asprintf mmap alloca",
    "reads a clock": "clock_gettime gettimeofday time clock_now_ns clock_coarse_ns nanosleep",
    "does input or output": "open openat read write close fopen fclose getenv ioctl socket syscall",
}


def target_of(root, path, name):
    """The module and path that an include names, or None where it is not ours to judge."""
    for base in ("", "src/", os.path.dirname(path) + "/"):
        full = os.path.normpath(base + name)
        if os.path.isfile(os.path.join(root, full)):
            return layers.module_of(full), full
    first = name.split("/")[0]
    if first in ("src", "sim", "tests", "bench"):
        return layers.module_of(name), name
    if first in MAY_USE:
        return first, "src/" + name
    return None


def include_finding(root, path, name):
    me = layers.module_of(path)
    target = target_of(root, path, name)
    if target is None:
        return "\"%s\" is not found from the root or from src/; write the path from there" % name
    module, full = target
    if module == me:
        return None
    if path.startswith("sim/"):
        # a table of names is data, for whoever counts or tells them
        if full.startswith(OPEN_TO_SIM) or path.startswith("sim/tests/") or (
                full.startswith("sim/") and full.endswith(".def")):
            return None
        # the model's structures know each other; who calls whom in it is check_links.py's
        if path.startswith(MODEL) and full.startswith(MODEL):
            return None
        if full.startswith("sim/"):
            return None if layers.may_use(me, module) else "%s includes %s; it may include %s" % (
                me, full, layers.allowed(me))
        return "the simulated node includes %s; only gpu/abi/, base/cleanup.h and sim/ are open to it" % full
    if me in MAY_USE:
        if layers.may_use(me, module):
            return None
        return "%s includes %s; it may include %s" % (me, full, layers.allowed(me))
    return None


def check_includes(root, path, text):
    me = layers.module_of(path)
    kept = csource.without_comments(text, keep_strings=True)
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', kept, re.M):
        line, name = csource.line_of(kept, match.start()), match.group(2)
        if match.group(1) == '"':
            finding = include_finding(root, path, name)
            if finding:
                yield line, finding
            elif me == "policy" and name in NOT_FOR_POLICY:
                yield line, "policy includes %s; give it the value as an argument instead" % name
        elif me == "policy" and SYSTEM_NOT_FOR_POLICY.match(name):
            yield line, "policy includes <%s>; it decides, its caller does the rest" % name
        elif re.match(r"(cuda|nvml|cuda_runtime\w*)\.h$", name) and not path.startswith("tests/"):
            yield line, "<%s> is NVIDIA's own header; use gpu/abi/" % name


def check_words(path, bare):
    me = layers.module_of(path)
    never = dict(NEVER_BY_GUESTS) if path.startswith("src/") and me.split("/")[0] in GUESTS else {}
    if me == "policy":
        never.update(NEVER_BY_POLICY)
    for why, words in never.items():
        for word in words.split():
            if (path, word) in ALLOWED:
                continue
            for match in re.finditer(r"(?<![\w.>])%s[ \t]*\(" % re.escape(word), bare):
                yield (csource.line_of(bare, match.start()),
                       "%s() %s; %s must never" % (word, why, me))


def check_events(path, bare):
    if path in WITH_EVENTS or not path.startswith("src/"):
        return
    for match in EVENTS.finditer(bare):
        yield (csource.line_of(bare, match.start()),
               "%s() makes or ends an event that the program may record; use own_events.h" % match.group(1))


def check_environment(path, bare):
    if (path == WITH_ENVIRONMENT or not path.startswith("src/") or
            layers.module_of(path).split("/")[0] not in WITHOUT_ENVIRONMENT):
        return
    for match in ENVIRONMENT.finditer(bare):
        yield (csource.line_of(bare, match.start()),
               "%s reads the environment, which may be another user's; ask %s" % (match.group(1), WITH_ENVIRONMENT))


def check_policy_data(path, bare):
    if layers.module_of(path) != "policy":
        return
    for match in re.finditer(r"^[ \t]*(static|_Thread_local|extern)\b([^;{=(]*)([;{=(])", bare,
                             re.M):
        if match.group(3) != "(" and "const" not in match.group(2).split():
            yield (csource.line_of(bare, match.start(1)),
                   "policy keeps mutable data; let the caller own the struct")


def check_types(path, bare):
    if path.startswith("src/" + ABI) or not path.startswith(("src/", "sim/")):
        return
    patterns = [
        r"\btypedef\b[^;{}]*?[\s*](CU[a-z]\w*|CUDA_\w+|nvml[A-Z]\w*)[ \t]*;",
        r"\}[ \t]*(CU[a-z]\w*|CUDA_\w+|nvml[A-Z]\w*)[ \t]*;",
        r"\benum[ \t]+(CU\w+|cuda\w+|nvml\w+)\s*\{",
        r"^[ \t]*#[ \t]*define[ \t]+((?:CUDA|NVML)_(?:ERROR_\w+|SUCCESS))\b",
    ]
    for pattern in patterns:
        for match in re.finditer(pattern, bare, re.M):
            yield (csource.line_of(bare, match.start(1)),
                   "%s is NVIDIA's to define; say it once, in src/gpu/abi/" % match.group(1))


def check(root):
    findings = []
    for path in csource.files(root, ".c", ".h", ".def"):
        text = csource.read(root, path)
        bare = csource.without_comments(text)
        me = layers.module_of(path)
        if path.startswith("src/") and me not in MAY_USE:
            findings.append((path, 1, "module '%s' has no row in tools/layers.py; say what it "
                             "may use" % me))
        for line, what in [*check_includes(root, path, text), *check_words(path, bare),
                           *check_events(path, bare), *check_environment(path, bare),
                           *check_policy_data(path, bare), *check_types(path, bare)]:
            findings.append((path, line, what))
    return sorted(set(findings))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    found = check(parser.parse_args().root)
    for path, line, what in found:
        print("%s:%d: %s" % (path, line, what))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
