#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No hook reads the program's memory after the driver has answered there, or twice.

Another thread of the program can change what a hook's pointer parameter points to at any time. So a hook may test
such a parameter, write through it, give it to the driver, or copy what is there; but not both of the last two,
and it copies once. Functions of the hooks that get the pointer are followed. HOOK_COPY(p) ends it: p is the
hook's own from there on."""

import argparse
import os
import re
import subprocess
import sys

import csource

FOLDER = "src/tenant/hooks/"
WORD = re.compile(r'[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|->|&&|\|\||[=!<>]=|\S')
HOOK = re.compile(r"^(cu|nvml)[A-Z]\w*_body$")
# They copy what they read, or read nothing; or what they read the driver reads again, and nothing that is charged
# relies on it: sums of a batch choose an estimate of its time.
READERS = {"image_take", "image_open", "image_open_file", "bulk_sum", "sum_3d", "sum_decompressed"}


def preprocessed(root, path):
    """The words of the file's own functions with macros expanded, each with its place."""
    run = subprocess.run(["cc", "-E", "-D_GNU_SOURCE", "-Isrc", path], cwd=root, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        raise SystemExit("%s: %s" % (path, run.stderr.strip()))
    words, where, line = [], "", 0
    for text in run.stdout.split("\n"):
        marker = re.match(r'# (\d+) "([^"]*)"', text)
        if marker:
            line, where = int(marker.group(1)), marker.group(2)
            continue
        if where.startswith(FOLDER):
            words += [(w, where, line) for w in WORD.findall(text)]
        line += 1
    return words


def closing(words, at):
    depth = 0
    for i in range(at, len(words)):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(words[i][0], 0)
        if depth == 0:
            return i
    return len(words) - 1


def opening(words, at):
    """The bracket that the word is in, or -1."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += {"(": -1, "{": -1, "[": -1, ")": 1, "}": 1, "]": 1}.get(words[i][0], 0)
        if depth < 0:
            return i
    return -1


class Function:
    def __init__(self, params, body):
        self.params, self.body = params, body  # params: (name, is a pointer, is a function)


def functions(words):
    found, i = {}, 0
    while i < len(words):
        if words[i][0] == "{":
            i = closing(words, i)
        elif words[i][0] == "(" and i and re.match(r"\w", words[i - 1][0]):
            end = closing(words, i)
            if end + 1 < len(words) and words[end + 1][0] == "{":
                last = closing(words, end + 1)
                found[words[i - 1][0]] = Function(parameters(words[i + 1:end]),
                                                  words[end + 2:last])
                i = last
            else:
                i = end
        i += 1
    return found


def parameters(words):
    params, depth, part = [], 0, []
    for word in [w for w, _, _ in words] + [","]:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word != "," or depth:
            part.append(word)
            continue
        params.append((part[-1] if part else "", "*" in part,
                       any(w.endswith("_fn") for w in part)))
        part = []
    return params


class Use:
    """What a function does with a pointer: looks (places), gifts to the driver (places), findings."""

    def __init__(self):
        self.looks, self.gifts, self.findings = [], [], []
        self.returned = {}  # by statement: gifts in a `return`, with which the function is over


def statement_start(words, at):
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += {"(": -1, ")": 1}.get(words[i][0], 0)
        if words[i][0] in ("{", "}") or (words[i][0] == ";" and depth == 0):
            return i + 1
        if depth < 0 and words[i][0] == "(":
            depth = 0
    return 0


def is_return(words, at):
    return "return" in [w for w, _, _ in words[statement_start(words, at):at]]


def follow(all_of, name, index, seen=()):
    function = all_of[name]
    param, use = function.params[index][0], Use()
    calls = {p for p, _, is_call in function.params if is_call}
    words = function.body
    for at, (word, _, _) in enumerate(words):
        if word == param and words[at - 1][0] not in (".", "->", "struct", "union", "enum"):
            looks = len(use.looks)
            if look(all_of, words, at, use, calls, seen + (name,)):
                break
            if len(use.looks) > looks:
                use.gifts += use.returned.pop(statement_start(words, at), [])
    return use


def bare(words, at):
    """The first and the last word of the name with the brackets around it."""
    low = high = at
    while low >= 1 and high + 1 < len(words) and words[low - 1][0] == "(" and \
            words[high + 1][0] == ")" and not re.match(r"\w", words[low - 2][0] if low > 1 else ""):
        low, high = low - 1, high + 1
    return low, high


def is_unary(words, at):
    """Whether the star follows no value."""
    before = words[at - 1][0] if at else ";"
    if before == ")":
        start = opening(words, at - 1)
        return start > 0 and words[start - 1][0] in ("if", "while", "for")
    return before == "return" or not re.match(r"[\w\]]", before)


def chain_end(words, at):
    """Behind a chain of members and indices."""
    while at < len(words) and words[at][0] in ("->", ".", "["):
        at = closing(words, at) + 1 if words[at][0] == "[" else at + 2
    return at


def look(all_of, words, at, use, calls, seen):
    """Enters one mention of the pointer; True where the name is the hook's own from there on."""
    place = words[at][1:]
    low, high = bare(words, at)
    before = words[low - 1][0] if low else ""
    after = words[high + 1][0] if high + 1 < len(words) else ""
    before2 = words[low - 2][0] if low > 1 else ""
    if after == "=" and before != "*" and is_copy(words, high + 2):
        use.looks.append(place)
        return True
    if after == "=" and before != "*" and is_other(words, high + 2):
        return True
    if before == "*" and is_unary(words, low - 1):
        low2, high2 = bare(words, at)
        if before2 == "(" and words[low2 - 3][0] == "sizeof":
            return False
        end = high2 + 1
        while words[end][0] == ")" and opening(words, end) == low2 - 2:
            end += 1
        if words[end][0] != "=":
            use.looks.append(place)
        return False
    if after in ("->", "["):
        if words[chain_end(words, high + 1)][0] != "=":
            use.looks += [place, place] if after == "[" else [place]
        return False
    if before == "!" or after in ("&&", "||", "?") or before in ("&&", "||") and after in (")", ";"):
        return False
    start = opening(words, at)
    callee = words[start - 1][0] if start > 0 and words[start][0] == "(" else ""
    if callee in ("if", "while") or before == ")" and before2 in ("uintptr_t", "intptr_t"):
        return False
    if callee in calls or start > 1 and words[start - 2][0] in (".", "->"):
        give(words, at, use, [place])
        return False
    if callee in ("memcpy", "__builtin_memcpy"):
        if words[start + 1] != words[low]:
            use.looks.append(place)
        return False
    if callee in READERS:
        return False
    position = argument_number(words, start, at)
    if callee in all_of and callee not in seen and position < len(all_of[callee].params):
        inner = follow(all_of, callee, position, seen)
        use.looks += inner.looks
        use.findings += inner.findings
        give(words, at, use, inner.gifts)
        return False
    use.findings.append((place, "is used in a way that cannot be followed; use a variable of the hook"))
    return False


def give(words, at, use, gifts):
    if is_return(words, at) and not use.looks:
        use.returned.setdefault(statement_start(words, at), []).extend(gifts)
    else:
        use.gifts += gifts


def is_copy(words, at):
    """Whether a compound literal follows, into which what the name points to is copied (HOOK_COPY)."""
    return words[at][0] == "(" and words[closing(words, at) + 1][0] == "{"


def is_other(words, at):
    """Whether another variable follows, and nothing else."""
    return words[at + 1][0] == ";" and re.match(r"[A-Za-z_]", words[at][0])


def argument_number(words, start, at):
    depth = number = 0
    for word, _, _ in words[start + 1:at]:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(word, 0)
        number += word == "," and depth == 0
    return number


def check_file(root, path):
    all_of = functions(preprocessed(root, path))
    for name, function in all_of.items():
        if not HOOK.match(name):
            continue
        for index, (param, is_pointer, is_call) in enumerate(function.params):
            if not is_pointer or is_call or not param:
                continue
            use = follow(all_of, name, index)
            what = "%s: '%s' " % (name[:-len("_body")], param)
            for place, finding in use.findings:
                yield *place, what + finding
            if use.looks and use.gifts:
                yield *use.looks[-1], what + "is read and given to the driver; give the driver a " \
                    "variable of the hook"
            elif len(use.looks) > 1:
                yield *use.looks[1], what + "is read more than once; copy it once"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    root = parser.parse_args().root
    found = []
    for path in csource.files(root, ".c"):
        if path.startswith(FOLDER) and os.path.basename(path).startswith("hook_"):
            found += check_file(root, path)
    for path, line, what in sorted(set(found)):
        print("%s:%d: %s" % (path, line, what))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
