#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what pods had of one card, second by second, from what tests/cluster/minutes.py has recorded.

    bench/plot_minutes.py FOLDER MACHINE [--to FILE]

Above, each pod's part of the card's time, by the monitor, and all of them by the driver's utilization. Below, each pod's
memory: lines by the monitor, dots by the driver, dashes the quota.
"""

import argparse
import json
import os
import pathlib

from svg import COLOURS, Panel, head, text

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LEFT, RIGHT = 900, 64, 150
TOP, HEIGHT, GAP, LOW_HEIGHT, BOTTOM = 72, 240, 40, 150, 46
PODS = ("training", "inference", "urgent")
PARTS = {"alone": "training: 60 %", "both": "+ inference: 30 %", "resized": "training: 30 %", "urgent": "+ urgent: first",
         "after": "urgent is gone"}
SMOOTHED_S = 3  # seconds that a point of the time stands for
GIB = 1 << 30


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def shares(samples, pod):
    """[(s, percent)] of the card's time, from one look to the next but some."""
    rows = [(row["at"], row["pods"][pod]["compute_s"]) for row in samples if "compute_s" in row["pods"].get(pod, {})]
    return [(at, 100 * (done - before) / (at - then)) for (then, before), (at, done) in zip(rows, rows[SMOOTHED_S:])]


def dots(panel, points, colour):
    for at, value in points:
        yield '<circle cx="%.1f" cy="%.1f" r="1.6" fill="%s"/>' % (panel.x(at), panel.y(value), colour)


def legend(rows, top):
    for place, (colour, words) in enumerate(rows):
        yield '<circle cx="%d" cy="%.1f" r="4" fill="%s"/>' % (WIDTH - RIGHT + 16, top + 20 * place, colour)
        yield text(WIDTH - RIGHT + 28, top + 4 + 20 * place, words, "small")


def picture(samples, parts, machine):
    begin, end = parts[0]["at"], parts[-1]["at"]
    samples = [row for row in samples if begin <= row["at"] <= end]
    quotas = [pod["quota"] for row in samples for pod in row["pods"].values() if "quota" in pod]
    height = TOP + HEIGHT + GAP + LOW_HEIGHT + BOTTOM
    most_gib = max(quotas) / GIB + 1
    above = Panel(LEFT, WIDTH - RIGHT, (begin, end), TOP, HEIGHT, (0, 100))
    below = Panel(LEFT, WIDTH - RIGHT, (begin, end), TOP + HEIGHT + GAP, LOW_HEIGHT, (0, most_gib))
    yield from head(WIDTH, height, "Pods of one card, second by second")
    yield text(LEFT, 26, "Pods on one card, second by second (%s)" % machine, "title")
    for part, follows in zip(parts, parts[1:]):
        yield '<line class="granted" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' % (
            above.x(part["at"]), above.x(part["at"]), TOP - 20, below.top + LOW_HEIGHT)
        yield text((above.x(part["at"]) + above.x(follows["at"])) / 2, TOP - 10, PARTS[part["part"]], "small",
                   ' text-anchor="middle"')
    yield from above.grid(range(0, 101, 20), "%d %%")
    yield from below.grid(range(0, int(most_gib) + 1, 2), "%d GiB")
    yield from dots(above, [(row["at"], row["driver"]["busy"]) for row in samples], COLOURS[4])
    for pod, colour in zip(PODS, COLOURS):
        look = 'stroke="%s" stroke-width="1.8"' % colour
        yield above.line(shares(samples, pod), look)
        for what, dashes in (("used", ""), ("quota", ' stroke-dasharray="5 4" stroke-opacity="0.6"')):
            yield below.line([(row["at"], row["pods"][pod][what] / GIB) for row in samples if what in row["pods"].get(pod, {})],
                             look + dashes)
        yield from dots(below, [(row["at"], row["driver"]["pods"][pod] / GIB) for row in samples if pod in row["driver"]["pods"]], colour)
    yield from legend([*zip(COLOURS, PODS), (COLOURS[4], "the driver's figure")], TOP + 10)
    yield text(WIDTH - RIGHT + 12, below.top + 14, "lines: the monitor", "small")
    yield text(WIDTH - RIGHT + 12, below.top + 32, "dots: the driver", "small")
    yield text(WIDTH - RIGHT + 12, below.top + 50, "dashes: the quota", "small")
    for tick in range(0, int(end - begin) + 1, 60 if end - begin > 120 else 10):
        yield text(below.x(begin + tick), below.top + LOW_HEIGHT + 18, "%d s" % tick, "small", ' text-anchor="middle"')
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("machine", help="its name, for the title")
    parser.add_argument("--to", default=os.path.join(os.path.dirname(HERE), "docs", "minutes.svg"))
    args = parser.parse_args()
    words = picture(lines_of(args.folder / "samples"), lines_of(args.folder / "parts"), args.machine)
    with open(args.to, "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    print("written: %s" % os.path.relpath(args.to))


if __name__ == "__main__":
    main()
