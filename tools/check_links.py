#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who calls whom in every program and library, by the symbols of the object files.

An include says what a file could use; the linker says what it does use. For each program and
library under src/ and sim/ this reads the symbols of its object files (nm) and finds

  - a call, or a reference to data, upwards between layers (the table is tools/layers.py)
  - a circle: files that all reach each other by calls
  - a function or a variable that only its own file uses, no test either, and that is not static

Allowed circles stand in this file, with the reason; one that is gone is a finding, too.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

import layers

PRODUCT = ("src/", "sim/")
NOT_PRODUCT = ("sim/tests/",)

# what protobuf-c makes has a function for every need
GENERATED = ".pb-c.c"

# (program, its files, the reason)
ALLOWED_CIRCLES = [
    ("src/tenant/libvgpu.so", {"src/tenant/door/swap.c", "src/tenant/door/entry_procaddr.c"},
     "the swap table names the hook of cuGetProcAddress, and that hook looks names up in the table"),
]

# (file, how names begin, the reason): not static, and used in their own file alone
ALLOWED_ALONE = [
    ("sim/machine/board_builtin.c", "board_text_",
     "the assembler makes it, for a linker that optimizes in another unit"),
]


def statements(build):
    """The statements of build.ninja: outputs, rule, inputs, variables."""
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as f:
        text = f.read().replace("$\n", "")
    for block in re.finditer(r"^build ([^\n]*)\n((?:[ \t]+[^\n]*\n)*)", text, re.M):
        outputs, _, rest = block.group(1).partition(": ")
        rule, *inputs = rest.split()
        yield outputs.split("|")[0].split(), rule, inputs, block.group(2)


def is_product(output):
    return output.startswith(PRODUCT) and not output.startswith(NOT_PRODUCT)


def programs(build):
    """{output: its object files}, for programs and libraries of the product. A static library counts
    where it is linked, and by itself where nothing links it."""
    archives, linked = {}, {}
    for outputs, rule, inputs, variables in statements(build):
        objects = [i for i in inputs if i.endswith(".o")]
        if rule == "STATIC_LINKER":
            archives[outputs[0]] = objects
        elif rule == "c_LINKER":
            words = inputs + " ".join(re.findall(r"LINK_ARGS = (.*)", variables)).split()
            linked[outputs[0]] = (objects, [w for w in dict.fromkeys(words) if w.endswith(".a")])
    found, used = {}, set()
    for output, (objects, libraries) in linked.items():
        if is_product(output):
            used.update(libraries)
            found[output] = objects + [o for a in libraries for o in archives.get(a, [])]
    for archive, objects in archives.items():
        # one whose objects are linked by name is in use, too
        if is_product(archive) and archive not in used and not any(
                set(objects) <= set(others) for others in found.values()):
            found[archive] = objects
    return found


def sources(build):
    """{object file: source file, from the root}; a generated file belongs to the folder that describes it."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    with open(os.path.join(build, "meson-info/meson-info.json"), encoding="utf-8") as f:
        root = json.load(f)["directories"]["source"]
    found = {}
    for command in commands:
        path = os.path.join(command["directory"], command["file"])
        inside = os.path.relpath(path, command["directory"])
        found[command["output"]] = os.path.relpath(path, root) if inside.startswith("..") else inside
    return found


def symbols(build, objects):
    """{object file: (names that it defines, names that it needs)}."""
    run = subprocess.run(["nm", "-A", "-g", "-P", *objects], cwd=build, stdout=subprocess.PIPE, text=True,
                         check=True)
    found = {o: (set(), set()) for o in objects}
    for line in run.stdout.splitlines():
        path, name, kind = re.match(r"(.*): (\S+) (\S)", line).groups()
        found[path][1 if kind in "Uwv" else 0].add(name)
    return found


def graph_of(build, objects, source_of):
    """{(user, used): one of the names}, between source files."""
    known = symbols(build, objects)
    owner = {}
    for path, (defined, _) in known.items():
        for name in defined:
            owner.setdefault(name, source_of[path])
    edges = {}
    for path, (_, needed) in known.items():
        for name in sorted(needed):
            used = owner.get(name)
            if used and used != source_of[path]:
                edges.setdefault((source_of[path], used), name)
    return edges


def exported(build, outputs):
    """The names that the built programs and libraries give to others."""
    built = [o for o in outputs if not o.endswith(".a") and os.path.isfile(os.path.join(build, o))]
    if not built:
        return set()
    run = subprocess.run(["nm", "-D", "--defined-only", "-P", *built], cwd=build, stdout=subprocess.PIPE,
                         text=True, check=True)
    return {line.split("@")[0].split()[0] for line in run.stdout.splitlines() if " " in line}


def alone(build, source_of, known):
    """Findings as (file, words): names that no other file of the whole build uses."""
    users = collections.defaultdict(set)
    for path in source_of:
        for name in known[path][1]:
            users[name].add(source_of[path])
    given = exported(build, programs(build)) | {"main"}
    for path, source in source_of.items():
        if not is_product(source) or source.endswith(GENERATED):
            continue
        for name in known[path][0] - given:
            if users[name] <= {source} and not any(
                    source == where and name.startswith(begin) for where, begin, _ in ALLOWED_ALONE):
                yield source, "%s is used by no other file and by no test; make it static" % name


def circles(edges):
    """The strongly connected components of more than one file (Tarjan)."""
    below = collections.defaultdict(list)
    for user, used in sorted(edges):
        below[user].append(used)
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in below[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            on_stack.difference_update(component)
            if len(component) > 1:
                found.append(component)

    for node in list(below):
        if node not in index:
            visit(node)
    return found


def shortest_circle(edges, component):
    """One of the shortest ways round, as the files on it."""
    below = collections.defaultdict(list)
    for user, used in sorted(edges):
        if user in component and used in component:
            below[user].append(used)
    best = None
    for start in sorted(component):
        came, queue = {}, collections.deque([start])
        while queue and start not in came:
            node = queue.popleft()
            for other in below[node]:
                if other not in came:
                    came[other] = node
                    queue.append(other)
        way = [start]
        while came[way[-1]] != start:
            way.append(came[way[-1]])
        way.append(start)
        if best is None or len(way) < len(best):
            best = way[::-1]
    return best


def way_in_words(edges, way):
    return ", ".join("%s calls %s of %s" % (a, edges[a, b], b) for a, b in zip(way, way[1:]))


def judge(program, edges):
    """Findings of one program as (file, words)."""
    for (user, used), name in sorted(edges.items()):
        me = layers.module_of(user)
        if not layers.may_use(me, layers.module_of(used)):
            yield user, "uses %s of %s; %s may use %s" % (name, used, me, layers.allowed(me))
    found = circles(edges)
    for where, files, reason in ALLOWED_CIRCLES:
        if where == program and files not in found:
            yield min(files), "is on no circle with %s any more; remove the row of it in %s (%s)" % (
                max(files), os.path.basename(__file__), reason)
    for component in found:
        if any(component == files for where, files, _ in ALLOWED_CIRCLES if where == program):
            continue
        first, *others = sorted(component)
        yield first, "is on a circle with %s; one way round: %s" % (
            " ".join(others), way_in_words(edges, shortest_circle(edges, component)))


def show(program, edges):
    """The circles of a program, with every call inside them."""
    for component in sorted(circles(edges), key=len):
        print("%s: a circle of %d files" % (program, len(component)))
        for (user, used), name in sorted(edges.items()):
            if user in component and used in component:
                print("    %s -> %s (%s)" % (user, used, name))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="To cut a circle: --show PROGRAM lists each call inside it; move the shared part below "
               "both files, or hand the upper one's function down as an argument or a table's row.")
    parser.add_argument("build", nargs="?", default="build/test", help="a build folder (build/test)")
    parser.add_argument("--show", metavar="PROGRAM", help="list the calls in a program's circles, as in "
                        "`--show libvgpu.so`, and stop")
    args = parser.parse_args()
    source_of, found = sources(args.build), set()
    graphs = {program: graph_of(args.build, objects, source_of)
              for program, objects in sorted(programs(args.build).items())}
    for program, edges in graphs.items():
        if not args.show:
            found.update(judge(program, edges))
        elif os.path.basename(program) == args.show:
            show(program, edges)
    if not args.show:
        built = {o: s for o, s in source_of.items() if os.path.isfile(os.path.join(args.build, o))}
        found.update(alone(args.build, built, symbols(args.build, sorted(built))))
    if not graphs:
        found.add((args.build, "no program of src/ or sim/ is built here"))
    for path, what in sorted(found):
        print("%s:1: %s" % (path, what))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
