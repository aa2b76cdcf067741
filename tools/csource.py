# SPDX-License-Identifier: Apache-2.0
"""C text as the checkers need it: which files there are, text without comments, rows of tables."""

import os
import re
import subprocess

SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "build"}
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

# HOOK_BODY(symbol, ...), HOOK_FORMS(symbol, suffix, ...), or a macro of a file's own that makes one;
# of two suffixes the second comes behind the first
HOOK = re.compile(r"^[A-Z][A-Z0-9_]*\(\s*(cu[A-Z]\w*|nvml[A-Z]\w*)((?:,\s*_\w+){0,2})", re.M)


def files(root, *endings):
    """Paths under root, relative and sorted: what git tracks or would, else what lies there."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    top = subprocess.run(
        ["git", "-C", root, "rev-parse", "--show-toplevel"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if listed.returncode == 0 and os.path.realpath(top.stdout.strip()) == os.path.realpath(root):
        paths = [p for p in listed.stdout.decode().split("\0") if p]
    else:
        paths = []
        for folder, below, names in os.walk(root):
            below[:] = [b for b in below if b not in SKIPPED_FOLDERS]
            paths += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    wanted = [p for p in paths if not endings or p.endswith(endings)]
    return sorted(p for p in set(wanted) if os.path.isfile(os.path.join(root, p)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, keep_strings=False):
    """The text with comments (and the insides of strings) blanked; lines and columns stay."""

    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return _blank(token)
        return token if keep_strings else token[0] + _blank(token[1:-1]) + token[-1]

    return TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def plain(comment):
    """A comment's words in one line."""
    inner = re.sub(r"^/\*+|\*+/$", "", comment.strip())
    words = [re.sub(r"^\s*\*\s?", "", part).strip() for part in inner.split("\n")]
    return " ".join(w for w in words if w)


class Row:
    """One row of an X-macro table: macro, args (strings joined, without quotes), texts (those of the
    args that were strings), line, note (a comment on the same line), subject (the last comment of
    one line that stood alone above)."""

    def __init__(self, macro, parts, line, note, subject):
        self.macro, self.line, self.note, self.subject = macro, line, note, subject
        self.args = [_value(part) for part in parts]
        bare = [without_comments(part, keep_strings=True).strip() for part in parts]
        self.texts = [a for a, part in zip(self.args, bare) if part.startswith('"')]


def _split(inner):
    parts, depth, start, at = [], 0, 0, 0
    while at < len(inner):
        token = TOKEN.match(inner, at)
        if token:
            at = token.end()
            continue
        if inner[at] in "([{":
            depth += 1
        elif inner[at] in ")]}":
            depth -= 1
        elif inner[at] == "," and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
        at += 1
    parts.append(inner[start:])
    return parts


def _value(part):
    part = without_comments(part, keep_strings=True).strip()
    strings = re.findall(r'"((?:\\.|[^"\\\n])*)"', part)
    if part.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", "".join(strings)).replace("\\n", "\n")
    return re.sub(r"\s+", " ", part)


def rows(text, *macros):
    """The rows of a table: lines that begin with one of the macros, not its definition."""
    bare = without_comments(text)
    subjects = [(m.start(), plain(m.group(0)))
                for m in re.finditer(r"^/\*[^\n]*\*/[ \t]*$", text, re.M)
                if "SPDX-" not in m.group(0)]
    found = []
    pattern = re.compile(r"^[ \t]*(%s)[ \t]*\(" % "|".join(macros), re.M)
    for match in pattern.finditer(bare):
        depth, at = 1, match.end()
        while at < len(bare) and depth:
            depth += {"(": 1, ")": -1}.get(bare[at], 0)
            at += 1
        inner = text[match.end():at - 1]
        rest = text[at:].split("\n", 1)[0].strip()
        note = ""
        if rest.startswith("/*"):
            note = plain(text[at:].strip()[:text[at:].strip().index("*/") + 2])
        subject = [words for start, words in subjects if start < match.start()][-1:]
        found.append(Row(match.group(1), _split(inner), line_of(text, match.start(1)), note,
                         subject[0] if subject else ""))
    return found
