# SPDX-License-Identifier: Apache-2.0
"""What NVML and nvidia-smi show a tenant beside another: its own processes, and nothing else's."""

import re
import shutil

from node import GIB, MIB
from sections import run

LISTS = ["nvmlDevice%sRunningProcesses%s" % (kind, version)
         for kind in ("GetCompute", "GetGraphics", "GetMPSCompute")
         for version in ("", "_v2", "_v3")]


def said(node, slice_, words):
    """The lines that a client without CUDA answers to words, which are said once."""
    argv = [node.program("client-found"), "dlopen"]
    return run(node, slice_, argv, text="".join(w + "\n" for w in words))[1].splitlines()


def check_lists(node, report, slice_, mine, others):
    for name in LISTS:
        count, rows = said(node, slice_, ["list %s 0 0 null" % name, "list %s 0 64" % name])
        is_compute = "GetCompute" in name
        want = "7 count=1" if is_compute else "0 count=0"
        report.check("%s tells how much room" % name, count == want, count)
        is_good = (" %d:" % mine.pid in rows) == is_compute and " %d:" % others.pid not in rows
        report.check("%s lists the slice" % name, is_good, rows)
    rows, = said(node, slice_, ["details 0 0 64"])
    report.check("the list of details is the slice's",
                 " %d:" % mine.pid in rows and " %d:" % others.pid not in rows, rows)


def check_refusals(node, report, slice_):
    for words in ("nulls 0", "details 0 0 8 1", "bar1 99", "name 4194303 8"):
        with_it, without = (said(node, s, [words]) for s in (slice_, None))
        report.check("%s: as the driver answers" % words, with_it == without,
                     "%s, without %s" % (with_it, without))


def check_figures(node, report, slice_, mine):
    books = node.books_bytes(slice_)
    window, name, samples = said(node, slice_, ["bar1 0", "name %d 200" % mine.pid, "samples 0 200"])
    report.check("the window shows the slice's part", " used=%d " % books in window, window)
    report.check("the process has a name", name.startswith("0 name=") and "client" in name, name)
    print("bar1: %s\nsamples: %s\ninterfaces of 32 bits, with and without the library:" %
          (window, samples))
    for environment in (slice_, None):
        print("  %s" % run(node, environment, [node.program("client"), "linked"],
                           text="primary 0\noldinfo 0\n")[1].splitlines()[-1:])


# In a PID namespace of its own, as a container has: nvidia-smi takes its lists by private tables, in
# which nobody can stand, and the driver answers those with the processes of the asker's namespace.
IN_A_CONTAINER = """
(echo "primary 0"; echo "alloc x 200m"; sleep 8) | "$CLIENT" linked >/dev/null &
sleep 3
for form in "" "-q" "pmon -c 1" "--query-compute-apps=pid,process_name,used_memory --format=csv"; do
    echo "====form nvidia-smi $form"
    nvidia-smi $form
done
wait
"""


def check_smi(node, report, slice_, other):
    if not shutil.which("nvidia-smi") or node.is_sim:
        report.skip("nvidia-smi's forms", "there is none")
        return
    command = ["unshare", "--pid", "--fork", "--mount-proc", "bash", "-c", IN_A_CONTAINER]
    status, output = run(node, slice_, command, {"CLIENT": node.program("client")})
    if status:
        report.skip("nvidia-smi's forms", "no right to make a PID namespace")
        return
    foreign = str((node.books_bytes(other) or 0) // MIB)
    for text in output.split("====form ")[1:]:
        form, shown = text.split("\n", 1)
        lines = [line for line in shown.splitlines() if "client" in line or "MiB" in line]
        print("%s\n%s" % (form, "\n".join(lines)))
        report.check("%s shows the slice's process" % form.strip(), "client" in shown, shown)
        report.check("%s shows no other" % form.strip(),
                     not re.search(r"\b%s ?MiB" % foreign, shown) and
                     len(re.findall("client", shown)) == 1, shown)


def test_view(node, report):
    report.section("what a tenant sees beside another")
    slice_, other = node.slice(4 * GIB), node.slice(8 * GIB)
    mine, others = node.client(slice_), node.client(other)
    trouble = mine.all("primary 0", "alloc x 100m") or others.all("primary 0", "alloc x 3g")
    report.check("two tenants begin", trouble == 0, trouble)
    print("books: %d and %d MiB" % tuple((node.books_bytes(s) or 0) // MIB
                                        for s in (slice_, other)))
    check_lists(node, report, slice_, mine, others)
    check_refusals(node, report, slice_)
    check_figures(node, report, slice_, mine)
    mine.kill()
    row, = said(node, slice_, ["list nvmlDeviceGetComputeRunningProcesses_v3 0 64"])
    report.check("the dead vanish", row == "0 count=0", row)
    check_smi(node, report, slice_, other)
    others.end()
