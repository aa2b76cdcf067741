# SPDX-License-Identifier: Apache-2.0
"""Whether our description of NVIDIA's interfaces (src/gpu/abi) is NVIDIA's own.

Ours and NVIDIA's headers have the same names, so no file can include both. A first program, made
from ours, prints the size of every structure, the offset of every member and every value; a second
file, which includes NVIDIA's, asserts each, and that its functions have the types that we say. It is
only compiled. A name that the installed toolkit does not have is counted and no failure: its version
may be older. So the number of kinds of profiles (..._PROFILE_COUNT) may be larger here than there, and
not smaller. CUDA_INCLUDE names folders with NVIDIA's headers, or run.sh's --include.
"""

import glob
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# what makes each declare the older forms too, and no name stand for another form of it
HEADERS = [
    ("cuda.h", "CUDA", r"CU\w+|CUDA_\w+", "-D__CUDA_API_VERSION_INTERNAL"),
    ("nvml.h", "NVML", r"NVML_\w+|nvml\w+", "-DNVML_NO_UNVERSIONED_FUNC_DEFS"),
]
PLACES = ["/usr/local/cuda/include", "/usr/local/cuda-*/include", "/usr/include",
          "/opt/cuda/include", "/usr/local/cuda/targets/*/include"]


def read_header(path):
    """Our header and those of ours that it includes."""
    with open(os.path.join(ROOT, "src", path), encoding="utf-8") as file:
        text = file.read()
    return re.sub(r'^#include "(gpu/abi/\w+\.h)"', lambda m: read_header(m[1]), text, flags=re.M)


def expanded(text):
    """What the preprocessor makes of our headers: a structure's members may come from a macro."""
    ours_alone = re.sub(r"^#include <.*", "", text, flags=re.M)
    return subprocess.run(["gcc", "-E", "-P", "-"], input=ours_alone, check=True,
                          capture_output=True, text=True).stdout


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def split_members(body):
    """
    The declarations of a structure's body: those of unions and structures without a name are its
    own, and of others what stands in braces is taken out.
    """
    body = re.sub(r"\b(?:union|struct)\s*\{([^{}]*)\}\s*;", r"\1", body)
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
    for name, members in structures(expanded(text)):
        yield "sizeof(%s)" % name
        for member in members:
            yield "__builtin_offsetof(%s, %s)" % (name, member)
            yield "sizeof(((%s *)0)->%s)" % (name, member)
    for match in re.finditer(r"\b(%s)\s*=\s*-?\w+" % names, text):
        yield match[1]
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(%s)[ \t]+(.*)$" % names, text, re.M):
        if "*" not in match[2] and "CUstream" not in match[2] and "void" not in match[2]:
            yield match[1]


def function_types(text):
    """An expression for each function type: whether NVIDIA's function is of it."""
    same = "__builtin_types_compatible_p(__typeof__(%s), %s)"
    types = {}
    for match in re.finditer(r"\btypedef\s+([^;{}]*?)\b(\w+)_fn\s*(\([^;]*\))?\s*;", text):
        result, name, parameters = match[1].strip(), match[2], match[3]
        if parameters:
            types[name] = " ".join(("%s %s" % (result, parameters)).split())
        elif result.endswith("_fn"):
            types[name] = types[result[:-len("_fn")]]
        yield same % (name, types[name])


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


def compare(node, header, folder, option, values):
    """(wrong, unknown): lists of expressions."""
    source = os.path.join(node.folder, "abi_check.c")
    lines = ["#include <%s>" % header]
    for expression, value in values.items():
        relation = "<=" if expression.endswith("_PROFILE_COUNT") else "=="
        lines.append('_Static_assert((long long)(%s) %s %dLL, "differs");'
                     % (expression, relation, value))
    with open(source, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    done = subprocess.run(["gcc", "-w", "-fsyntax-only", "-fmax-errors=0", option, "-I", folder,
                           source], capture_output=True, text=True, check=False)
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


def said(expressions, most=40):
    return ", ".join(expressions[:most])


def test_abi(node, report):
    report.section("abi: our description of NVIDIA's interfaces beside its headers")
    for header, what, names, option in HEADERS:
        folder = find_header(header)
        if not folder or not shutil.which("gcc"):
            report.skip(what, "no %s of the toolkit, or no gcc" % header)
            continue
        text = without_comments(read_header("gpu/abi/" + header))
        values = ours(node, header, list(dict.fromkeys(items(text, names))))
        types = dict.fromkeys(function_types(text), 1)
        for kind, wanted in (("sizes, offsets and values", values), ("function types", types)):
            wrong, unknown = compare(node, header, folder, option, wanted)
            print("%s: %d %s compared with %s/%s, %d not in it"
                  % (what, len(wanted) - len(unknown), kind, folder, header, len(unknown)))
            if unknown:
                print("  not in it: %s" % said(unknown))
            report.check("%s's %s are ours" % (what, kind),
                         not wrong and len(unknown) < len(wanted) // 4,
                         said(["%s is not %d" % (w, wanted[w]) for w in wrong]))
