# SPDX-License-Identifier: Apache-2.0
"""The tables of known defects (docs/*-defects.md) against the tests: each test that a row names is there, and where the row has a number,
a test of it names the number: in its name, in its text or in the comment before it, or as the reason of a recording."""

import os
import re

import csource

FOLDERS = {"docs/scheduler-defects.md": ("tests/scheduler", "tests/monitor"), "docs/plugin-defects.md": ("tests/plugin",)}
# Where recordings are marked with the numbers: by us, and by who made them.
MARKS = {"docs/scheduler-defects.md": ("tests/scheduler/differences.def",),
         "docs/plugin-defects.md": ("tests/plugin/differences.c", "tests/plugin/vectors/plugin.jsonl")}


def _sources(root, folders):
    """Name without ending: text."""
    found = {}
    for folder in folders:
        full = os.path.join(root, folder)
        for name in sorted(os.listdir(full) if os.path.isdir(full) else []):
            stem, ending = os.path.splitext(name)
            if ending in (".c", ".py"):
                found.setdefault(stem, csource.read(root, f"{folder}/{name}"))
    return found


def _test(text, name):
    """The test with the comment before it; None where there is none."""
    found = re.search(r"((?:^/\*(?:[^*]|\*(?!/))*\*/\n|^#[^\n]*\n)*)^(?:def|static void) %s\(" % re.escape(name), text, re.M)
    if not found:
        return None
    end = re.search(r"^}$|^(?=def |if __name__)", text[found.end():], re.M)
    return text[found.start():found.end() + end.start() if end else len(text)]


def _names(text, number):
    return re.search(r"\b%s(?!\d)" % number, text) or re.search(r"\b%s_" % number.lower(), text)


def _rows(text):
    """(line, number, last column)"""
    for at, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[3] not in ("shown by", "---"):
            yield at, cells[0], cells[3]


def _recordings(shown):
    """Names as in "(containers-03, -05)" and `alloc-*`."""
    last = None
    for name, other in re.findall(r"\b([a-z]+[0-9]*(?:-[a-zA-Z]+)*-(?:[0-9]+|[a-zA-Z]+|\*))|(?<=[ (])(-[0-9]+)", shown):
        last = name or last.rpartition("-")[0] + other
        yield last


def wrong(root):
    for page, folders in FOLDERS.items():
        if not os.path.isfile(os.path.join(root, page)):
            continue
        sources = _sources(root, folders)
        marks = [line for path in MARKS[page] for line in re.split(r"\n(?=DIFFERENCE|\{|\t\{)", csource.read(root, path))]
        for line, number, shown in _rows(csource.read(root, page)):
            is_named = any(_names(mark, number) for mark in marks for one in _recordings(shown) if number and one.rstrip("*") in mark)
            stem = None
            for span in re.findall(r"`([^`]+)`", shown):
                file, colon, name = span.partition(": ")
                stem, name = (file, name) if colon else (stem, span)
                if not colon and span in sources:
                    stem, name = span, None
                if stem is None or (name and not re.fullmatch(r"\w+", name)):
                    continue
                test = sources.get(stem) if name is None else _test(sources.get(stem, ""), name)
                if test is None:
                    yield page, line, f"{stem} has no test {name}"
                elif name and number and _names(test, number):
                    is_named = True
            if number and not is_named:
                yield page, line, f"no test of this row names {number}"
