#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/generated/ from the tables in the source, so that no page lists by hand what a table
already says. With --check writes nothing and says which page is out of date."""

import argparse
import os
import re
import sys

import csource

TABLES = [("src/gpu/cuda.def", "libcuda.so.1"), ("src/gpu/nvml.def", "libnvidia-ml.so.1")]
OPTIONS = "src/base/options.def"
COMMANDS = [("src/cli/commands.def", "vgpu"), ("sim/tool/command.def", "vgpu-sim")]
HEADER = "<!-- Made by tools/gen_docs.py from %s; `make docs` makes it anew. -->\n\n"


def cell(text):
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def grid(head, lines):
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    out += ["| " + " | ".join(cell(c) for c in line) + " |" for line in lines]
    return "\n".join(out) + "\n"


def first_sentence(comment):
    match = re.match(r"(.*?[.:;])(\s|$)", comment)
    return (match.group(1) if match else comment).rstrip(".:;")


def bodies(root):
    """Symbol to the file of src/shim/ that has its body, and what the comment above it says."""
    found = {}
    for path in csource.files(root, ".c"):
        if not path.startswith("src/shim/"):
            continue
        text = csource.read(root, path)
        bare = csource.without_comments(text)
        # HOOK_BODY(symbol, ...), or a macro of the file's own that makes one
        for match in re.finditer(r"^[A-Z][A-Z0-9_]*\(\s*(cu[A-Z]\w*|nvml[A-Z]\w*)", bare, re.M):
            above = re.search(r"(/\*(?:(?!\*/).)*\*/)\n$", text[:match.start()], re.S)
            note = first_sentence(csource.plain(above.group(1))) if above else ""
            found.setdefault(match.group(1), (path, note))
    return found


def hooks_page(root):
    where = bodies(root)
    text = HEADER % " and ".join(path for path, _ in TABLES)
    text += "# Hooks\n\nDriver functions that the tenant library replaces, and those that it only"
    text += " calls. Every other\nfunction reaches the driver untouched.\n"
    for path, library in TABLES:
        if not os.path.isfile(os.path.join(root, path)):
            continue
        found = csource.rows(csource.read(root, path), r"HOOK\w*", r"CALL\w*")
        hooked = [r for r in found if r.macro.startswith("HOOK")]
        called = [r for r in found if r.macro.startswith("CALL")]
        text += "\n## %s: %d replaced\n\n" % (library, len(hooked))
        lines = []
        for row in hooked:
            body, note = where.get(row.args[0], (None, ""))
            link = "[%s](../../%s)" % (os.path.basename(body), body) if body else "none yet"
            lines.append(["`%s`" % row.args[0], row.subject, link, row.note or note])
        head = ["function", "subject", "body", "note"]
        while len(head) > 1 and not any(line[-1] for line in lines):
            head, lines = head[:-1], [line[:-1] for line in lines]
        if not any(line[1] for line in lines):
            head, lines = head[:1] + head[2:], [line[:1] + line[2:] for line in lines]
        text += grid(head, lines)
        if called:
            text += "\n## %s: %d only called\n\n" % (library, len(called))
            text += ", ".join("`%s`" % r.args[0] for r in called) + "\n"
    return text


def options_page(root):
    text = HEADER % OPTIONS
    text += "# Options\n\nWhat the environment can say to the tenant library. Sizes are whole"
    text += " numbers with at most one of\n`k`, `m`, `g`, `t` behind (steps of 1,024).\n\n"
    lines = []
    for row in csource.rows(csource.read(root, OPTIONS), r"OPTION\w*"):
        kind = next((a for a in row.args if re.fullmatch(r"[A-Z]+", a) and a not in row.texts), "")
        name, meaning = row.texts[0], " ".join(row.texts[1:]) or row.note
        lines.append(["`%s`" % name, kind.lower(), meaning])
    return text + grid(["variable", "kind", "meaning"], lines)


def commands_page(root):
    there = [(p, program) for p, program in COMMANDS if os.path.isfile(os.path.join(root, p))]
    text = HEADER % " and ".join(path for path, _ in there)
    text += "# Commands\n\nEach program says more of a command with `help COMMAND`.\n"
    for path, program in there:
        lines = []
        for row in csource.rows(csource.read(root, path), r"COMMAND\w*"):
            words = row.texts
            usage = [program, row.args[0]] + [w for w in words[:-1] if w]
            lines.append(["`%s`" % " ".join(usage), words[-1] if words else row.note])
        text += "\n## %s\n\n" % program + grid(["command", "what it does"], lines)
    return text


def pages(root):
    made = {}
    if any(os.path.isfile(os.path.join(root, path)) for path, _ in TABLES):
        made["docs/generated/hooks.md"] = hooks_page(root)
    if os.path.isfile(os.path.join(root, OPTIONS)):
        made["docs/generated/options.md"] = options_page(root)
    if any(os.path.isfile(os.path.join(root, path)) for path, _ in COMMANDS):
        made["docs/generated/commands.md"] = commands_page(root)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    args = parser.parse_args()
    stale = 0
    for path, text in pages(args.root).items():
        full = os.path.join(args.root, path)
        there = csource.read(args.root, path) if os.path.isfile(full) else None
        if there == text:
            continue
        if args.check:
            print("%s:1: out of date; `make docs` makes it anew" % path)
            stale = 1
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        print("wrote %s" % path)
    return stale


if __name__ == "__main__":
    sys.exit(main())
