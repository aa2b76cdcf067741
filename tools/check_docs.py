#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the docs still fit the tree: generated pages are current, links lead somewhere, and so do
the comments that name a page."""

import argparse
import os
import re
import subprocess
import sys

import csource

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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    root = parser.parse_args().root
    result = subprocess.run([sys.executable, os.path.join(HERE, "gen_docs.py"), "--check",
                             "--root", root], check=False).returncode
    for path, line, target in [*broken_links(root), *broken_mentions(root)]:
        print("%s:%d: the reader is sent to %s, which is not there" % (path, line, target))
        result = 1
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
