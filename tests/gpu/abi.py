# SPDX-License-Identifier: Apache-2.0
"""Whether our description of NVIDIA's interfaces (src/gpu/abi) is NVIDIA's own.

Ours and NVIDIA's headers have the same names, so no file can include both. A first program, made
from ours, prints the size of every structure, the offset of every member and every value; a second
file, which includes NVIDIA's, asserts each. It is only compiled. A name that the installed toolkit
does not have is counted and no failure: its version may be older.
"""

import glob
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = [
    ("cuda.h", "CUDA", r"CU\w+|CUDA_\w+"),
    ("nvml.h", "NVML", r"NVML_\w+|nvml\w+"),
]
PLACES = ["/usr/local/cuda/include", "/usr/local/cuda-*/include", "/usr/include",
          "/opt/cuda/include", "/usr/local/cuda/targets/*/include"]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def split_members(body):
    """The declarations of a structure's body, each with what stands in braces taken out."""
    depth, plain = 0, []
    for character in body:
        depth += character == "{"
        if depth == 0:
            plain.append(character)
        depth -= character == "}"
    return "".join(plain).split(";")


def structures(text):
    """(type, [members]) of every typedef of a structure or union."""
    for match in re.finditer(r"\btypedef\s+(?:struct|union)\s*\w*\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        name = re.match(r"\s*(\w+)\s*;", text[at:])
        members = []
        for declaration in split_members(text[match.end():at - 1]):
            for part in declaration.split(","):
                member = re.search(r"(\w+)\s*(\[[^\]]*\])?\s*$", part)
                if member and len(part.split()) > 0:
                    members.append(member[1])
        if name:
            yield name[1], members


def items(text, names):
    """(kind, what, C expression) of everything that can be compared."""
    for name, members in structures(text):
        yield "sizeof(%s)" % name
        for member in members:
            yield "__builtin_offsetof(%s, %s)" % (name, member)
            yield "sizeof(((%s *)0)->%s)" % (name, member)
    for match in re.finditer(r"\b(%s)\s*=\s*-?\w+" % names, text):
        yield match[1]
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(%s)[ \t]+(.*)$" % names, text, re.M):
        if "*" not in match[2] and "CUstream" not in match[2] and "void" not in match[2]:
            yield match[1]


def ours(node, header, expressions):
    """{expression: value}, by a program that includes our header."""
    source = os.path.join(node.folder, "abi_print.c")
    program = os.path.join(node.folder, "abi_print")
    with open(source, "w", encoding="ascii") as file:
        file.write('#include <stdio.h>\n#include "gpu/abi/%s"\nint main(void)\n{\n' % header)
        for expression in expressions:
            file.write('\tprintf("%%lld\\n", (long long)(%s));\n' % expression)
        file.write("\treturn 0;\n}\n")
    subprocess.run(["gcc", "-w", "-I", os.path.join(ROOT, "src"), source, "-o", program], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(expressions, map(int, output)))


def compare(node, header, folder, values):
    """(wrong, unknown): lists of expressions."""
    source = os.path.join(node.folder, "abi_check.c")
    lines = ["#include <%s>" % header]
    for expression, value in values.items():
        lines.append('_Static_assert((long long)(%s) == %dLL, "differs");' % (expression, value))
    with open(source, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    done = subprocess.run(["gcc", "-w", "-fsyntax-only", "-fmax-errors=0", "-I", folder, source],
                          capture_output=True, text=True, check=False)
    expressions = list(values)
    wrong, unknown = set(), set()
    for match in re.finditer(r"abi_check\.c:(\d+):\d+: error: (.*)", done.stderr):
        expression = expressions[int(match[1]) - 2]
        (wrong if "static assertion failed" in match[2] else unknown).add(expression)
    if done.returncode and not wrong and not unknown:
        raise RuntimeError(done.stderr[:500])
    return sorted(wrong), sorted(unknown - wrong)


def find_header(header):
    named = os.environ.get("CUDA_INCLUDE", "")
    for place in named.split(":") + PLACES:
        for folder in sorted(glob.glob(place)) if place else []:
            if os.path.exists(os.path.join(folder, header)):
                return folder
    return None


def test_abi(node, report):
    report.section("abi: our description of NVIDIA's interfaces beside its headers")
    for header, what, names in HEADERS:
        folder = find_header(header)
        if not folder or not shutil.which("gcc"):
            report.skip(what, "no %s of the toolkit, or no gcc" % header)
            continue
        with open(os.path.join(ROOT, "src/gpu/abi", header), encoding="utf-8") as file:
            expressions = list(dict.fromkeys(items(without_comments(file.read()), names)))
        values = ours(node, header, expressions)
        wrong, unknown = compare(node, header, folder, values)
        print("%s: %d sizes, offsets and values compared with %s/%s, %d not in it"
              % (what, len(values) - len(unknown), folder, header, len(unknown)))
        if unknown:
            print("  not in it: %s" % ", ".join(unknown[:40]))
        report.check("%s's sizes, offsets and values are ours" % what,
                     not wrong and len(unknown) < len(values) // 4,
                     ", ".join("%s is not %d" % (w, values[w]) for w in wrong[:40]))
