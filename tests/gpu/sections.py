# SPDX-License-Identifier: Apache-2.0
"""What is tested with our own programs: doors, the quota call by call, processes, nvidia-smi."""

import re
import shutil
import subprocess
import time

from node import GIB, MIB, OUT_OF_MEMORY, die_with_us
from report import mib

DOORS = ["linked", "linked-thread", "dlopen", "default", "next", "procaddr", "procaddr-thread",
         "procaddr-v1"]
FOUND_DOORS = ["dlopen", "procaddr", "procaddr-thread", "procaddr-v1"]
RUN_S = 60


def run(node, slice_, argv, extra=None, text=None):
    """(exit status, stdout) of a program to its end, which is told text."""
    done = subprocess.run(argv, env=node.env(slice_, extra), capture_output=True, text=True,
                          input=text, timeout=RUN_S, check=False, preexec_fn=die_with_us)
    return done.returncode, done.stdout


def test_each_door(node, report):
    rows = []
    for program, doors in (("client", DOORS), ("client-found", FOUND_DOORS)):
        for door in doors:
            slice_ = node.slice(2 * GIB)
            client = node.client(slice_, door, program=program)
            trouble = client.all("primary 0")
            context = node.books_bytes(slice_)
            owner = client.ask("owner cuMemAlloc_v2")[1].get("owner")
            result, said = client.ask("fill 64m")
            nvml, books = node.nvml_bytes([client.pid]), node.books_bytes(slice_)
            want = (2 * GIB - (context or 0)) // (64 * MIB)
            is_good = trouble == 0 and result == OUT_OF_MEMORY and owner == "libvgpu.so" and \
                said.get("count") == str(want) and nvml is not None and nvml <= 2 * GIB
            rows.append(("%s%s" % ("found-" if program != "client" else "", door), owner,
                         said.get("count"), result, mib(nvml), mib(books)))
            report.check("door %s" % rows[-1][0], is_good, trouble or "%s of %d" % (said, want))
            client.end()
    report.table(("door", "cuMemAlloc is in", "64 MiB", "error", "NVML MiB", "books MiB"), rows)


def test_tables_of_symbols(node, report):
    slice_ = node.slice(2 * GIB)
    table = [node.program("route-table")]
    _, without = run(node, None, table)
    _, with_it = run(node, slice_, table)
    report.check("every version and flag of cuGetProcAddress leads to the driver's own choice",
                 without and without == with_it,
                 "\n".join("%s | %s" % pair for pair in
                           zip(without.splitlines(), with_it.splitlines())
                           if pair[0] != pair[1])[:1500])
    _, without = run(node, None, table + ["owners"])
    _, owners = run(node, slice_, table + ["owners"])
    lacking = {line for line in without.splitlines() if line.endswith(" absent")}
    wrong = [line for line in owners.splitlines()
             if not line.endswith(" libvgpu.so") and line not in lacking]
    report.check("every hooked name gives our function", owners and not wrong, ", ".join(wrong))
    print("%d questions, %d hooked names, %d of them not in this driver"
          % (without.count("\n") and with_it.count("\n"), owners.count("\n"), len(lacking)))


def test_other_libraries(node, report):
    slice_ = node.slice(2 * GIB)
    outer = node.program("libouter.so")
    _, output = run(node, slice_, [node.program("route-next")],
                    {"LD_PRELOAD": "%s:%s" % (outer, node.library)})
    blocks = re.search(r"blocks=(\d+) result=2 outer-allocs=(\d+) outer-prints=1", output)
    report.check("a library before ours finds us behind it",
                 blocks and int(blocks[2]) == int(blocks[1]) + 1, output)
    _, output = run(node, slice_, [node.program("route-next")],
                    {"LD_PRELOAD": "%s:%s" % (node.library, outer)})
    report.check("a library behind ours does not find itself",
                 re.search(r"blocks=[1-9]\d* result=2 outer-allocs=0 outer-prints=1", output),
                 output)
    status, _ = run(node, slice_, [node.program("route-own"), node.program("libown.so"),
                                   "libcuda.so.1"])
    report.check("another library's own cuMemAlloc_v2 is left alone", status == 0, str(status))
    with_it, without = (run(node, s, [node.program("plain")]) for s in (slice_, None))
    report.check("a program without CUDA is as it was", with_it == without,
                 "%s\n%s" % (without[1], with_it[1]))


def test_doors(node, report):
    report.section("doors: 2 GiB, whatever the way to the driver")
    test_each_door(node, report)
    test_tables_of_symbols(node, report)
    test_other_libraries(node, report)


# what, quota, words before, the words that fill until refused; None: no refusal is asked for
QUOTA_CASES = [
    ("cuMemAlloc 256 MiB", 8 * GIB, [], "fill 256m"),
    ("cuMemAlloc 2 MiB + 1", 8 * GIB, [], "fill 2m+1"),
    ("cuMemAlloc 4 KiB", 2 * GIB, [], "fill 4k"),
    ("cuMemAlloc 1.5 MiB", 8 * GIB, [], "fill 1536k"),
    ("cuMemAllocPitch 513 x 1000", 2 * GIB, [], "fillpitch 513 1000"),
    ("cuMemAllocPitch 100000 x 1000", 8 * GIB, [], "fillpitch 100000 1000"),
    ("cuMemAllocManaged 64 MiB", 1 * GIB, [], "fillmanaged 64m 16"),
    ("create, map, release handle", 8 * GIB, [], "fillvmm 256m"),
    ("cuMemAllocAsync 256 MiB", 8 * GIB, [], "fillasync 256m"),
    ("cuMemAllocAsync over the limit", 8 * GIB, [], "async a 9g"),
    ("AllocFromPool 256 MiB", 8 * GIB, ["newpool p"], "fillasync 256m p"),
    ("pool keeps 4 GiB, then cuMemAlloc", 8 * GIB,
     ["pool p", "threshold p 100g", "async a 4g", "freeasync a", "sync"], "fill 256m"),
    ("pool uses 4 GiB, then cuMemAlloc", 8 * GIB, ["async a 4g", "sync"], "fill 256m"),
    ("cuMemAlloc, then cuMemAllocAsync", 8 * GIB, ["fill 256m 16"], "fillasync 256m"),
    ("cuArray3DCreate 1 GiB", 8 * GIB, [], "fillarray 1g,surface 40"),
    ("cuMipmappedArrayCreate 1 GiB", 8 * GIB, [], "fillarray 1g,m1 40"),
    ("cuArrayCreate 64 x 64", 2 * GIB, [], "fillarray 64x64 200000"),
    ("cuArrayCreate 600 x 500", 2 * GIB, [], "fillarray 600x500"),
    ("cuArray3DCreate 200 x 200 x 200", 8 * GIB, [], "fillarray 200x200x200"),
    ("cuCtxCreate", 8 * GIB, [], "fillctx"),
    ("8 threads", 8 * GIB, [], "threads 8 100 256m keep"),
    ("graphs' memory nodes of 1 GiB", 8 * GIB, [], "fillgraphs 1g"),
    ("kernel with frames of 64 KiB", 8 * GIB, ["module m frame=65536"], "launch m"),
    ("stack limit of 64 KiB", 8 * GIB, [], "limit stack 65536"),
    ("modules with data of 1 GiB", 8 * GIB, [], "fillcode 1g"),
    ("streams", 1 * GIB, [], "streams 20000"),
    ("green contexts", 640 * MIB, [], "greens 1000"),
]


def test_quota_case(node, report, case):
    what, quota, before, fill = case
    slice_ = node.slice(quota)
    client = node.client(slice_)
    trouble = client.all("primary 0", *before) if before else client.all("primary 0")
    result, said = client.ask(fill)
    count = said.get("count", said.get("done", "-"))
    if fill.startswith("threads"):
        result = OUT_OF_MEMORY if result == 0 and said.get("other") == "0" else result
    nvml, books = node.nvml_bytes([client.pid]), node.books_bytes(slice_)
    is_good = trouble == 0 and result == OUT_OF_MEMORY and nvml is not None and \
        books is not None and nvml <= quota and books <= quota
    if not is_good:
        verdict = "NOT below"
    else:
        verdict = "below" if books >= nvml else "below, %s MiB uncharged" % mib(nvml - books)
    report.check(what, is_good, trouble or "result %s, NVML %s, books %s" % (result, nvml, books))
    # what is freed must be back in both
    drop = "droparrays" if fill.startswith("fillarray") else "drop"
    is_droppable = fill.startswith("fill") and not re.match("fill(vmm|ctx|code)", fill)
    trouble = client.all(drop) if is_droppable else 0
    report.check("%s, freed" % what, trouble == 0, trouble)
    client.end()
    return (what, mib(quota), count, result, mib(nvml), mib(books), verdict)


def test_quota(node, report):
    report.section("quota: each way to take memory, until it is refused")
    rows = [test_quota_case(node, report, case) for case in QUOTA_CASES]
    report.table(("call", "quota MiB", "successes", "error", "NVML MiB", "books MiB", "used"), rows)


def test_two_processes(node, report, rows):
    slice_ = node.slice(8 * GIB)
    a, b = node.client(slice_), node.client(slice_)
    report.check("two processes start", a.all("primary 0") == 0 and b.all("primary 0") == 0)
    context = (node.books_bytes(slice_) or 0) // 2
    _, said = a.ask("fill 256m")
    result, _ = b.ask("alloc x 256m")
    nvml, books = node.nvml_bytes([a.pid, b.pid]), node.books_bytes(slice_)
    rows.append(("one fills, the other is refused", said.get("count"), result, mib(nvml), mib(books)))
    report.check("the other process is refused",
                 result == OUT_OF_MEMORY and nvml is not None and nvml <= 8 * GIB)
    a.kill()
    start = time.monotonic()
    result, said = b.ask("fill 256m")
    took_ms = (time.monotonic() - start) * 1000
    nvml, books = node.nvml_bytes([b.pid]), node.books_bytes(slice_)
    rows.append(("the first killed: all for the other", said.get("count"), result, mib(nvml),
                 mib(books)))
    want = (8 * GIB - context) // (256 * MIB)
    report.check("a killed process's memory is there at once", said.get("count") == str(want),
                 "%s of %d blocks after %d ms" % (said.get("count"), want, took_ms))
    b.end()


def test_family(node, report, rows):
    slice_ = node.slice(8 * GIB)
    client = node.client(slice_)
    trouble = client.all("fork", "primary 0", "alloc a 1g")
    books = node.books_bytes(slice_)
    client.tell("exit 0")
    status, _ = client.answer()
    rows.append(("child of fork, before CUDA", "-", trouble, "-", mib(books)))
    report.check("a child counts for itself", trouble == 0 and status == 0 and (books or 0) > GIB,
                 str(trouble))
    trouble = client.all("primary 0", "alloc a 1g")
    before = node.books_bytes(slice_)
    client.ask("fork")
    result, _ = client.ask("alloc b 64m")
    client.tell("_exit 0")
    client.answer()
    rows.append(("child of fork, after CUDA", "-", result, mib(node.nvml_bytes([client.pid])),
                 mib(node.books_bytes(slice_))))
    report.check("a child does not touch its parent's account",
                 trouble == 0 and before == node.books_bytes(slice_), str(trouble))
    trouble = client.all("exec", "primary 0", "alloc a 6g", "free a")
    rows.append(("exec", "-", trouble, mib(node.nvml_bytes([client.pid])),
                 mib(node.books_bytes(slice_))))
    report.check("exec begins anew", trouble == 0, str(trouble))
    client.end()


def test_processes(node, report):
    report.section("processes of one slice of 8 GiB")
    rows = []
    test_two_processes(node, report, rows)
    test_family(node, report, rows)
    report.table(("case", "blocks", "result", "NVML MiB", "books MiB"), rows)


def test_smi(node, report):
    report.section("nvidia-smi in a slice")
    smi = shutil.which("nvidia-smi")
    if not smi or node.is_sim:
        report.skip("nvidia-smi", "there is none")
        return
    slice_ = node.slice(8 * GIB)
    client = node.client(slice_)
    client.all("primary 0", "alloc a 1g")
    books = node.books_bytes(slice_)
    query = [smi, "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits",
             "-i", "0"]
    _, outside = run(node, None, query)
    _, inside = run(node, slice_, query)
    _, table = run(node, slice_, [smi])
    client.end()
    report.table(("", "total, used, free MiB"), [("outside", outside.strip()),
                                                 ("inside", inside.strip()),
                                                 ("books", mib(books))])
    print(table)
    report.check("the query shows the slice",
                 inside.split(",")[:2] == ["8192", " %s" % mib(books)], inside)
    report.check("the table shows the slice", "%sMiB /   8192MiB" % mib(books) in table)
    done = subprocess.run([node.vgpu, "run", "--memory", "4g", "--"] + query[:2] + query[2:],
                          env=node.env(),
                          capture_output=True, text=True, timeout=RUN_S, check=False)
    report.check("vgpu run shows its quota", done.stdout.split(",")[0] == "4096",
                 done.stdout + done.stderr)
