#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/compute.svg: what a slice gets of a device's time, over what it was granted.

    bench/plot_compute.py [--to FILE] JSON...

JSON is what bench/compute.py --json or --write wrote of its section "alone"; several parts count together.
Above, the share of each kernel's duration: the mean of all shapes, and from the least to the most.
Below, how far that is from what was granted.
"""

import argparse
import json
import os
import statistics
import sys

from svg import COLOURS, Panel, head, text

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LEFT, RIGHT = 740, 64, 170
TOP, HEIGHT, GAP, LOW_HEIGHT, BOTTOM = 48, 300, 44, 130, 52


def read(paths):
    """({kernel in µs: {limit: [share]}}, machine)"""
    found, machine = {}, ""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        machine = said["machine"]
        for row in said["rows"]:
            if row["section"] == "alone" and row["measured"]:
                of_kernel = found.setdefault(row["kernel_us"], {})
                of_kernel.setdefault(row["limit"], []).append(row["measured"]["share"])
    return found, machine


def duration(us):
    return "%g ms" % (us / 1000) if us >= 1000 else "%d µs" % us


def series(panel, points, colour, shift):
    """points: (limit, least, mean, most); shift: in px, so that series do not hide each other."""
    moved = Panel(panel.left + shift, panel.right + shift, panel.xs, panel.top, panel.height, panel.ys)
    yield moved.line([(x, mean) for x, _, mean, _ in points], 'stroke="%s" stroke-width="1.5"' % colour)
    for x, least, mean, most in points:
        yield '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/>' % (
            moved.x(x), moved.x(x), moved.y(least), moved.y(most), colour)
        yield '<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (moved.x(x), moved.y(mean), colour)


def grid(panel, ticks, form):
    yield from panel.grid(ticks, form)
    for tick in range(0, 101, 10):
        yield '<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (
            panel.x(tick), panel.x(tick), panel.top, panel.top + panel.height)


def furthest(found):
    return max(abs(share - limit) for of in found.values() for limit, shares in of.items()
               for share in shares)


def picture(found, machine):
    height = TOP + HEIGHT + GAP + LOW_HEIGHT + BOTTOM
    edge = 2 if furthest(found) <= 2 else 5 if furthest(found) <= 5 else 10
    # x is percent granted
    above = Panel(LEFT, WIDTH - RIGHT, (0, 100), TOP, HEIGHT, (0, 100))
    below = Panel(LEFT, WIDTH - RIGHT, (0, 100), TOP + HEIGHT + GAP, LOW_HEIGHT, (-edge, edge))
    yield from head(WIDTH, height, "Share of compute time over what was granted")
    yield text(LEFT, 26, "Compute time delivered over compute time granted (%s)" % machine, "title")
    yield from grid(above, range(0, 101, 20), "%d %%")
    yield '<rect class="goal" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>' % (
        below.x(0), below.y(1), below.x(100) - below.x(0), below.y(-1) - below.y(1))
    yield from grid(below, (-edge, -edge / 2, 0, edge / 2, edge), "%+g")
    for panel, start, end in ((above, 0, 100), (below, 0, 0)):
        yield '<path class="granted" d="M%.1f %.1fL%.1f %.1f"/>' % (
            panel.x(0), panel.y(start), panel.x(100), panel.y(end))
    for place, (kernel_us, of_kernel) in enumerate(sorted(found.items())):
        colour = COLOURS[place % len(COLOURS)]
        shift = 3 * (place - (len(found) - 1) / 2)
        rows = [(limit, min(of), statistics.mean(of), max(of))
                for limit, of in sorted(of_kernel.items())]
        yield from series(above, rows, colour, 0)
        yield from series(below, [(x, a - x, b - x, c - x) for x, a, b, c in rows], colour, shift)
        y = TOP + 20 + 22 * place
        yield '<circle cx="%d" cy="%d" r="4" fill="%s"/>' % (WIDTH - RIGHT + 22, y - 4, colour)
        yield text(WIDTH - RIGHT + 34, y, "kernels of %s" % duration(kernel_us))
    y = TOP + 20 + 22 * len(found)
    yield '<path class="granted" d="M%d %dh16"/>' % (WIDTH - RIGHT + 14, y - 4)
    yield text(WIDTH - RIGHT + 34, y, "granted")
    yield text(LEFT, below.top - 10, "difference in points; grey: the goal of ±1", "small")
    for tick in range(0, 101, 20):
        yield text(below.x(tick), below.top + LOW_HEIGHT + 18, "%d %%" % tick, "small",
                   ' text-anchor="middle"')
    yield text((below.x(0) + below.x(100)) / 2, height - 10, "granted", "small",
               ' text-anchor="middle"')
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", default=os.path.join(os.path.dirname(HERE), "docs", "compute.svg"))
    parser.add_argument("json", nargs="+")
    args = parser.parse_args()
    found, machine = read(args.json)
    if not found:
        sys.exit("plot_compute.py: there are no rows of the section alone")
    with open(args.to, "w", encoding="utf-8") as file:
        file.write("\n".join(picture(found, machine)) + "\n")
    print("written: %s" % os.path.relpath(args.to))


if __name__ == "__main__":
    main()
