#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py FILE... OUTPUT: the files as C, in the order given."""

import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:-1]]
    lines = ['#include "web/assets.h"', ""]
    for number, file in enumerate(files):
        data = file.read_bytes()
        lines.append(f"static const char bytes{number}[] = {{")
        for at in range(0, len(data), 20):
            lines.append("\t" + " ".join(f"{byte if byte < 128 else byte - 256}," for byte in data[at:at + 20]))
        lines.append("};\n")
    lines.append("const struct asset assets[] = {")
    for number, file in enumerate(files):
        path = "/" if file.name == "page.html" else f"/{file.name}"
        lines.append(f'\t{{"{path}", "{TYPES[file.suffix]}", bytes{number}, sizeof(bytes{number})}},')
    lines += ["};", f"const size_t asset_count = {len(files)};", ""]
    pathlib.Path(sys.argv[-1]).write_text("\n".join(lines), encoding="ascii")


main()
