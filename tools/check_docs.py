#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the docs still fit the tree: generated pages are current, links lead somewhere, so do the
comments that name a page, each `vgpu COMMAND --flag` of a page is one that there is, and so is each metric of rules, dashboard and pages.
Commands in the pages for users: doc_commands.py; tables of known defects: doc_defects.py."""

import argparse
import os
import re
import subprocess
import sys

import csource
import doc_commands
import doc_defects
import metrics

COMMANDS = "src/cli/commands.def"
HERE = os.path.dirname(os.path.abspath(__file__))


def broken_links(root):
    for path in csource.files(root, ".md"):
        text = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                      csource.read(root, path), flags=re.S)
        for match in re.finditer(r"\]\(([^)\s#]+)(#[^)\s]*)?\)", text):
            target = match.group(1)
            if re.match(r"[a-z]+:", target):
                continue
            base = root if target.startswith("/") else os.path.dirname(os.path.join(root, path))
            if not os.path.exists(os.path.join(base, target.lstrip("/"))):
                yield path, csource.line_of(text, match.start()), target


def broken_mentions(root):
    for path in csource.files(root, ".c", ".h", ".def", ".sh", ".py", ".build", "Makefile"):
        if path.startswith("tools/test_"):
            continue
        text = csource.read(root, path)
        for match in re.finditer(r"\bdocs/[\w./-]+\.md\b", text):
            if not os.path.isfile(os.path.join(root, match.group(0))):
                yield path, csource.line_of(text, match.start()), match.group(0)


def usages(root):
    """Command to its usage, of `vgpu`."""
    path = os.path.join(root, COMMANDS)
    if not os.path.isfile(path):
        return {}
    return {row.args[0]: " ".join(row.texts[:-1])
            for row in csource.rows(csource.read(root, COMMANDS), r"COMMAND\w*")}


def broken_commands(root):
    known = usages(root)
    for path in csource.files(root, ".md") if known else []:
        text = csource.read(root, path)
        quoted = re.finditer(r"`((?:sudo )?vgpu [^`\n]*)`|^[#$]?\s*((?:sudo )?vgpu [^\n]*)$", text, re.M)
        for match in quoted:
            line = re.split(r"[|>]|\s#|\s--(?=\s|$)", match.group(1) or match.group(2))[0]
            words = line.replace("sudo ", "").split()[1:]
            if not words or not re.fullmatch(r"[a-z]+", words[0]):
                continue
            usage = known.get(words[0])
            wrong = [words[0]] if usage is None else [
                w for w in words[1:] if w.startswith("--") and w not in re.findall(r"--[\w-]+", usage)
                and w != "--help"]
            for word in wrong:
                yield path, csource.line_of(text, match.start()), "%s of `vgpu`" % word


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    root = parser.parse_args().root
    result = subprocess.run([sys.executable, os.path.join(HERE, "gen_docs.py"), "--check",
                             "--root", root], check=False).returncode
    for path, line, target in [*broken_links(root), *broken_mentions(root), *broken_commands(root), *metrics.wrong_in_users(root),
                               *metrics.wrong_in_text(root), *metrics.declared_elsewhere(root)]:
        print("%s:%d: the reader is sent to %s, which is not there" % (path, line, target))
        result = 1
    for path, line, said in (*doc_commands.wrong(root), *doc_defects.wrong(root)):
        print("%s:%d: %s" % (path, line, said))
        result = 1
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
