#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every file has, and what none has: licence line, title, length, comments, white space."""

import argparse
import re
import sys

import csource

C_FILES = (".c", ".h", ".def")
SCRIPTS = (".py", ".sh")
TEXTS = C_FILES + SCRIPTS + (".md", ".yml", ".build", ".txt", ".board", ".pml", "Makefile", "run")
SPDX = "SPDX-License-Identifier: Apache-2.0"
SPLIT_AT, REFUSE_AT = 600, 1000
OPEN_END = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
NO_TOPIC = {"utils", "util", "common", "misc", "helpers"}


def is_table(path):
    return path.endswith(".def") or path.startswith("src/gpu/abi/")


def has_title(lines):
    """Line 2 opens a comment that says, there or in line 3, what the file is."""
    if len(lines) < 2 or not lines[1].startswith("/*"):
        return False
    if lines[1].strip("/* \t"):
        return True
    return len(lines) > 2 and bool(lines[2].strip("/* \t"))


def check_c(path, text, lines):
    if not lines or lines[0] != "/* %s */" % SPDX:
        yield 1, "no licence line; the first line is /* %s */" % SPDX
    elif not has_title(lines):
        yield 2, "no title; the second line says in a comment what the file is"
    if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
        yield 1, "no include guard; write #pragma once"
    kept = csource.TOKEN.sub(
        lambda m: m.group(0) if m.group(0).startswith("//") else re.sub(r"[^\n]", " ", m.group(0)),
        text)
    for number, line in enumerate(kept.split("\n"), 1):
        if "//" in line:
            yield number, "a // comment; write /* */ for what stays"
    name = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    if name in NO_TOPIC:
        yield 1, "a file called '%s' has no topic; name the one concept in it" % name
    if len(lines) >= REFUSE_AT and not is_table(path):
        yield REFUSE_AT, "%d lines; split it, %d are refused" % (len(lines), REFUSE_AT)


def check_script(lines):
    if not any(SPDX in line for line in lines[:3]):
        yield 1, "no licence line; one of the first three is # %s" % SPDX


def check_text(path, text, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "white space at the end of the line; remove it"
        if OPEN_END.search(line) and not path.startswith("tools/"):
            yield number, "an open end without an issue; write TODO(#123) or do it"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file; add one"


def check(root):
    findings, warnings = [], []
    for path in csource.files(root, *TEXTS):
        text = csource.read(root, path)
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        found = list(check_text(path, text, lines))
        if path.endswith(C_FILES):
            found += check_c(path, text, lines)
            if SPLIT_AT <= len(lines) < REFUSE_AT and not is_table(path):
                warnings.append((path, SPLIT_AT, "%d lines; think of a split, %d are refused"
                                 % (len(lines), REFUSE_AT)))
        elif path.endswith(SCRIPTS):
            found += check_script(lines)
        findings += [(path, line, what) for line, what in found]
    return sorted(findings), warnings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    findings, warnings = check(parser.parse_args().root)
    for path, line, what in findings:
        print("%s:%d: %s" % (path, line, what))
    for path, line, what in warnings:
        print("%s:%d: warning: %s" % (path, line, what))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
