# SPDX-License-Identifier: Apache-2.0
"""What src/gpu/coverage.def says of each driver function, joined with the hook tables, the names
that a driver exports, and the tests."""

import os
import re
from collections import defaultdict

import csource

TABLE = "src/gpu/coverage.def"
HOOKS = ["src/gpu/cuda.def", "src/gpu/nvml.def"]
NAMES = {"cu": "tests/gpu/exports/cuda.txt", "nvml": "tests/gpu/exports/nvml.txt"}
TO_BE_HOOKED = ("MEMORY", "LAUNCH", "VIEW", "DOOR", "COMPUTE")
CLASSES = TO_BE_HOOKED + ("HARMLESS", "OUTSIDE")
FORM = re.compile(r"((?:_v\d+)?(?:_ptds|_ptsz)?)$")
SYMBOL = re.compile(r"\b(?:cu[A-Z]|nvml[A-Z])\w*")


def base_of(symbol):
    return FORM.sub("", symbol)


def form_of(symbol):
    return FORM.search(symbol).group(1)


def library_of(symbol):
    """Which of NAMES a symbol belongs to, None for a symbol of neither."""
    if symbol.startswith("nvml"):
        return "nvml"
    return "cu" if re.match(r"cu[A-Z]|cudbg", symbol) else None


def read_names(root, library):
    """The recorded names of a library's exports, in order."""
    path = os.path.join(root, NAMES[library])
    if not os.path.isfile(path):
        return []
    return [line for line in csource.read(root, NAMES[library]).split() if library_of(line)]


def read_hooks(root):
    """Symbol to (path, line) of its HOOK row."""
    found = {}
    for path in HOOKS:
        if os.path.isfile(os.path.join(root, path)):
            for row in csource.rows(csource.read(root, path), r"HOOK\w*"):
                found[row.args[0]] = (path, row.line)
    return found


class Coverage:
    """The rows of the table, and which of them a symbol belongs to."""

    def __init__(self, root):
        self.rows = csource.rows(csource.read(root, TABLE), *CLASSES)
        self.of_base, self.prefixes, self.twice = {}, [], []
        for row in self.rows:
            for name in row.args[1:]:
                if name.endswith("*"):
                    self.prefixes.append((name[:-1], row))
                elif name in self.of_base:
                    self.twice.append((name, row))
                else:
                    self.of_base[name] = row

    def row_of(self, symbol):
        """The row that classifies the symbol, or None."""
        row = self.of_base.get(base_of(symbol)) or self.of_base.get(symbol)
        return row or next((r for p, r in self.prefixes if symbol.startswith(p)), None)


def _functions(text):
    """Name to body of each function that is laid out as ours are."""
    return {m.group(1): m.group(2)
            for m in re.finditer(r"^\w[^\n;{}]*?(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.M | re.S)}


def _reached(name, functions, seen):
    """Symbols that a function names, or one that it calls."""
    if name in seen or name not in functions:
        return set()
    seen.add(name)
    found = set(SYMBOL.findall(functions[name]))
    for callee in re.findall(r"\b(\w+)\b", functions[name]):
        found |= _reached(callee, functions, seen)
    return found


def _client_words(root, paths):
    """Each word of the test client, and the driver functions that it calls."""
    texts = {p: csource.without_comments(csource.read(root, p), keep_strings=True) for p in paths}
    everywhere, words = {}, {}
    for text in texts.values():
        everywhere.update(_functions(text))
    for text in texts.values():
        # Static functions of other files may have the same names.
        functions = {**everywhere, **_functions(text)}
        for word, name in re.findall(r'\{"(\w+)", \d+, (\w+), "', text):
            words[word] = _reached(name, functions, set())
    return words


def _per_thread_forms(root):
    """Symbol to the form that the client calls instead where streams are per thread."""
    path = "tests/tenant/door.def"
    if not os.path.isfile(os.path.join(root, path)):
        return {}
    rows = csource.rows(csource.read(root, path), "DOOR")
    return {row.args[0]: row.args[3] for row in rows if row.args[3] != row.args[0]}


def _symbols_of_test(text, words, per_thread):
    """What a test reaches: the symbols that it names, and those of the client's words it says."""
    found = set(SYMBOL.findall(text))
    for line in re.findall(r'"([^"\n]*)"', text):
        found |= words.get(line.split(" ")[0], set())
    if "linked-thread" in text:
        found |= {per_thread[symbol] for symbol in found if symbol in per_thread}
    return found


def read_tests(root):
    """
    Symbol to the test files that show it, in order. A test shows a function that it names, or that
    the client calls at a word of the test's; a program of tests/tenant belongs to the test that
    starts it. The random load is a test too, by the families of its own.
    """
    paths = [p for p in csource.files(root, ".c", ".py")
             if re.match(r"tests/tenant/.*\.c$|tests/gpu/[^/]*\.py$", p)]
    stem = {p: os.path.splitext(os.path.basename(p))[0] for p in paths}
    client = [p for p in paths if re.match(r"client|door", stem[p])]
    words, per_thread = _client_words(root, client), _per_thread_forms(root)
    found = defaultdict(set)
    texts = {p: csource.without_comments(csource.read(root, p), keep_strings=True)
             if p.endswith(".c") else csource.read(root, p) for p in paths if p not in client}
    for path, text in texts.items():
        if path.endswith(".py") and ".ask(" not in text:
            continue
        starter = [p for p in texts if '"%s"' % stem[path].replace("_", "-") in texts[p]]
        is_test = stem[path].startswith("test_") or path.endswith(".py") or "/load/" in path
        for symbol in _symbols_of_test(text, words, per_thread):
            for shown in [path] if is_test else starter:
                found[symbol].add(shown)
    return {symbol: sorted(shown) for symbol, shown in found.items()}
