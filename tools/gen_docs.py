#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/generated/, docs/coverage.md, man pages and completions from the tables in the source, so that no page lists
by hand what a table already says. With --check writes nothing and says which page is out of date."""

import argparse
import os
import re
import sys

import coverage
import csource
import gen_man
import metrics

TABLES = [("src/gpu/cuda.def", "libcuda.so.1"), ("src/gpu/nvml.def", "libnvidia-ml.so.1")]
OPTIONS = "src/policy/options.def"
KEYS = "src/plugin/config/keys.def"
FLAGS = [("src/plugin/config/flags.def", "vgpu-device-plugin"), ("src/scheduler/flags.def", "vgpu-scheduler")]
COMMANDS = [("src/cli/commands.def", "vgpu"), ("sim/tool/command.def", "vgpu-sim")]
COVERAGE = "docs/coverage.md"
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
    """Symbol to the file of src/tenant/ that has its body, and what the comment above it says."""
    found = {}
    for path in csource.files(root, ".c"):
        if not path.startswith("src/tenant/"):
            continue
        text = csource.read(root, path)
        bare = csource.without_comments(text)
        for match in csource.HOOK.finditer(bare):
            above = re.search(r"(/\*(?:(?!\*/).)*\*/)\n$", text[:match.start()], re.S)
            note = first_sentence(csource.plain(above.group(1))) if above else ""
            symbol, suffixes = match.groups()
            found.setdefault(symbol, (path, note))
            for suffix in re.findall(r"\w+", suffixes):
                symbol += suffix
                found.setdefault(symbol, (path, ""))
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
    text += "# Options\n\nWhat the environment can say to the tenant library. Sizes are numbers"
    text += " with\n`k`, `m`, `g` or `t` behind them, in steps of 1,024 (`512m`, `2.5g`), or whole numbers of bytes.\n\n"
    lines = []
    for row in csource.rows(csource.read(root, OPTIONS), r"OPTION\w*"):
        kind = next((a for a in row.args if re.fullmatch(r"[A-Z]+", a) and a not in row.texts), "")
        name, meaning = row.texts[0], " ".join(row.texts[1:]) or row.note
        lines.append(["`%s`" % name, kind.lower(), meaning])
    return text + grid(["variable", "kind", "meaning"], lines)


def keys_table(root):
    lines = []
    for row in csource.rows(csource.read(root, KEYS), r"(?:NODE_)?KEY"):
        section, _, key, kind, _, _, otherwise, meaning = row.args
        lines.append(["`%s`" % section, "`%s`" % key, kind.lower(), "`%s`" % otherwise if otherwise else "",
                      "yes" if row.macro == "NODE_KEY" else "", meaning])
    return grid(["section", "key", "kind", "default", "of a node, too", "meaning"], lines)


def flags_table(root, path):
    lines = []
    for row in csource.rows(csource.read(root, path), "FLAG"):
        has_variable = len(row.args) == 7
        flag, variable = row.args[1], row.args[2] if has_variable else "NULL"
        names = ["`--%s`" % flag] if flag != "NULL" else []
        names += ["`$%s`" % variable] if variable != "NULL" else []
        lines.append([", ".join(names), "`%s`" % row.args[-2] if row.args[-2] else "", row.args[-1]])
    return grid(["flag, variable", "default", "meaning"], lines)


def settings_page(root):
    text = HEADER % ", ".join([KEYS] + [path for path, _ in FLAGS])
    text += "# Settings in Kubernetes\n\nNames that HAMi has, too, mean the same. Where a key or a flag is missing, its"
    text += " default is in force.\n\n## device-config.yaml\n\nThe scheduler reads the section `nvidia` alone."
    text += " Beside these the section `nvidia` has `migProfileAllowlist`\n([plugin.md](../plugin.md))."
    text += " What a node may have of its own stands in `/config/config.json` in the same\nwords, in letters of"
    text += " either case.\n\n" + keys_table(root)
    for path, program in FLAGS:
        text += "\n## %s\n\n" % program + flags_table(root, path)
    return text


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


def metrics_page(root):
    text = HEADER % ", ".join(path for _, path, _ in metrics.TABLES)
    text += "# Metrics\n\nA label in brackets is missing where there is nothing to say: without a cluster there is no namespace. Names"
    text += " that begin with `hami_` are HAMi's,\nwith its labels, and its units, whatever a name says of them. The older names are told with"
    text += " `--legacy-metrics` alone.\n"
    for title, path, programs in metrics.TABLES:
        table = metrics.read_table(root, path)
        teller = " and ".join({"vgpu": "`vgpu list --prometheus`"}.get(one, "`%s`" % one) for one in programs)
        text += "\n## %s\n\nBy %s.\n\n" % (title, teller)
        alike = {tuple(one.labels.items()) for one in table}
        lines = [["`%s`" % one.name, one.kind, one.unit, labels_of(one), one.words] for one in table if not one.is_old]
        head = ["name", "type", "unit", "labels", "meaning"]
        if len(table) > 1 and len(alike) == 2 and path == metrics.SLICES[1]:
            common = labels_of(table[0])
            text += "All have the labels %s.\n\n" % common
            lines = [line[:3] + [line[3][len(common):].lstrip(", ")] + line[4:] for line in lines]
        text += grid(head, lines)
        old = [[("`%s`" % one.name), ", ".join("`%s`" % o.name for o in one.old), labels_of(one.old[0])] for one in table if one.old]
        if old:
            text += "\nOlder names:\n\n" + grid(["name", "before", "labels"], old)
    return text


def labels_of(metric):
    return ", ".join("[`%s`]" % name if may_lack else "`%s`" % name for name, may_lack in metric.labels.items())


def forms_of(symbols):
    """cuMemAlloc and cuMemAlloc_v2 as one cell."""
    base = coverage.base_of(symbols[0])
    forms = [coverage.form_of(s) for s in symbols]
    if forms == [""]:
        return "`%s`" % base
    return "`%s` " % base + " ".join("`%s`" % f if f else "(first)" for f in forms)


class CoveragePage:
    """The table of coverage, joined with what is hooked, where, and by which tests it is shown."""

    HEADS = {
        "MEMORY": ("Device memory", "What takes device memory, or gives it back."),
        "LAUNCH": ("Launches", "What runs kernels: local memory and code may take device memory."),
        "VIEW": ("Views", "What shows how much memory there is, or who uses it."),
        "DOOR": ("Doors", "What gives the driver's functions to a program."),
        "COMPUTE": ("Work", "What makes the GPU work and takes no memory."),
        "OUTSIDE": ("Outside", "What cannot be covered here, and why."),
        "HARMLESS": ("Nothing to do", "What does none of this."),
    }

    def __init__(self, root):
        self.table, self.hooks = coverage.Coverage(root), coverage.read_hooks(root)
        self.tests, self.bodies = coverage.read_tests(root), bodies(root)
        self.names = [n for library in coverage.NAMES for n in coverage.read_names(root, library)]
        self.shown = set()  # test files that the page mentions
        self.by_row = {}    # row to base name to its symbols, in the table's order
        for row in self.table.rows:
            self.by_row[row] = {name: [] for name in row.args[1:]}
        for name in sorted(set(self.names) | set(self.hooks), key=lambda n: (n.lower(), n)):
            row = self.table.row_of(name)
            if row:
                self.by_row[row].setdefault(coverage.base_of(name), []).append(name)

    def rows(self, kind):
        """(row, symbols of one base name) of a class."""
        for row in self.table.rows:
            if row.macro == kind:
                for symbols in self.by_row[row].values():
                    if symbols:
                        yield row, symbols

    def label(self, path):
        self.shown.add(path)
        if path.startswith("tests/gpu/"):
            return "gpu"
        if path.startswith("tests/tenant/load/"):
            return "load/" + os.path.splitext(os.path.basename(path))[0]
        return re.sub(r"^test_", "", os.path.splitext(os.path.basename(path))[0])

    def hooked_cells(self, symbols):
        """Where the bodies are, which forms lack one, and the tests."""
        files = sorted({self.bodies[s][0] for s in symbols if s in self.bodies})
        links = ["[%s](../%s)" % (os.path.basename(f), f) for f in files]
        lacking = [s for s in symbols if s not in self.hooks]
        if len(lacking) == len(symbols):
            links = ["**not covered yet**"]
        elif lacking:
            links.append("**not yet: %s**" % ", ".join("`%s`" % s for s in lacking))
        tested = [s for s in symbols if s in self.hooks and s in self.tests]
        labels = sorted({self.label(p) for s in tested for p in self.tests[s]})
        untested = [s for s in symbols if s in self.hooks and s not in self.tests]
        if untested:
            labels.append("**none for %s**" % ", ".join("`%s`" % s for s in untested))
        return [", ".join(links), ", ".join(labels)]

    def hooked_section(self, kind):
        lines = [[forms_of(symbols), row.texts[0]] + self.hooked_cells(symbols)
                 for row, symbols in self.rows(kind)]
        return grid(["function", "how", "hook", "tests"], lines) if lines else ""

    def plain_section(self, kind):
        lines = []
        for row in self.table.rows:
            names = [n for n in self.by_row[row] if self.by_row[row][n] or n.endswith("*")]
            if row.macro == kind and names:
                lines.append([row.texts[0], ", ".join("`%s`" % n for n in names)])
        return grid(["why", "functions, in all their forms"], lines) if lines else ""

    def summary(self):
        by_class = {kind: 0 for kind in coverage.CLASSES}
        hooked, open_ends = 0, []
        for name in self.names:
            row = self.table.row_of(name)
            if not row:
                continue
            by_class[row.macro] += 1
            hooked += name in self.hooks
            if row.macro in coverage.TO_BE_HOOKED and name not in self.hooks:
                open_ends.append(name)
        lines = [[self.HEADS[k][0], str(by_class[k]), self.HEADS[k][1]] for k in self.HEADS]
        text = "%d functions are hooked, %d should be and are not.\n\n" % (
            hooked, len(open_ends))
        return text + grid(["class", "symbols", ""], lines) + self.open_section(open_ends)

    def open_section(self, names):
        if not names:
            return ""
        text = "\n## Not covered yet\n\nWhat of this takes memory is found afterwards, by comparing "
        text += "the books with NVML's figure for the process.\n\n"
        return text + ", ".join("`%s`" % n for n in names) + "\n"

    def text(self):
        sources = [coverage.TABLE] + coverage.HOOKS + list(coverage.NAMES.values())
        text = HEADER % ", ".join(sources)
        text += "# Coverage\n\nEvery function that driver 580 (CUDA 13.0) exports, and of newer ones "
        text += "what is covered, and how\nthe tenant library treats it. A name stands for all its "
        text += "forms: `_v2` and later, and `_ptds` and `_ptsz` for\nper-thread default streams. "
        text += "`make check-coverage` says what a newer driver has that is not here.\n\n"
        body = ""
        for kind, (title, meaning) in self.HEADS.items():
            is_hooked = kind in coverage.TO_BE_HOOKED
            section = self.hooked_section(kind) if is_hooked else self.plain_section(kind)
            if section:
                body += "\n## %s\n\n%s\n\n%s" % (title, meaning, section)
        legend = ", ".join("[%s](../%s)" % (self.label(p), p)
                           for p in sorted(self.shown, key=lambda p: (self.label(p), p)))
        return text + self.summary() + body + "\nThe tests: %s.\n" % (legend or "none")


def pages(root):
    made = {}
    if os.path.isfile(os.path.join(root, coverage.TABLE)):
        made[COVERAGE] = CoveragePage(root).text()
    if any(os.path.isfile(os.path.join(root, path)) for path, _ in TABLES):
        made["docs/generated/hooks.md"] = hooks_page(root)
    if os.path.isfile(os.path.join(root, OPTIONS)):
        made["docs/generated/options.md"] = options_page(root)
    if os.path.isfile(os.path.join(root, KEYS)):
        made["docs/generated/settings.md"] = settings_page(root)
    if os.path.isfile(os.path.join(root, metrics.SLICES[1])):
        made["docs/generated/metrics.md"] = metrics_page(root)
    if any(os.path.isfile(os.path.join(root, path)) for path, _ in COMMANDS):
        made["docs/generated/commands.md"] = commands_page(root)
    made.update(gen_man.man_pages(root))
    made.update(gen_man.completions(root))
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
