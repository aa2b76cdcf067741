#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tenant library takes of a model's speed: training and decoding with it and without, by turns.

    bench/models.py [--rounds N] [--seconds S] BUILD

Needs a card, PyTorch and transformers. Each figure is the median of all half seconds of its runs.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile

from compare import error_of_median, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = [
    ("train", "training step, 12 × 2048² perceptron, AdamW"),
    ("decode", "transformer, one token, eager"),
    ("decode-graph", "transformer, one token, as a CUDA graph"),
]
GOAL = 1.01


def rates(what, seconds, env):
    done = subprocess.run([sys.executable, os.path.join(HERE, "model_steps.py"), what, str(seconds)],
                          env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("models.py: %s failed:\n%s" % (what, done.stderr[-2000:]))
    return [float(line.split()[1]) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("build")
    args = parser.parse_args()
    library = os.path.join(os.path.abspath(args.build), "src", "tenant", "libvgpu.so")
    for needed in ("torch", "transformers"):
        if not importlib.util.find_spec(needed):
            print("models.py: skipped: there is no Python module %s" % needed)
            return
    if not os.path.exists(library):
        sys.exit("models.py: there is no %s; build it first" % library)
    with tempfile.TemporaryDirectory(prefix="vgpu-bench-") as folder:
        share = os.path.join(folder, "share")
        with open(share, "w", encoding="ascii") as file:
            file.write("vgpu-share 1\nregion %s/region\ndevice * memory 64g\nend\n" % folder)
        without = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        kinds = (without, dict(without, VGPU_SHARE=share, LD_PRELOAD=library))
        print("| case | steps/s without | with | time × | goal | |\n|" + " --- |" * 6)
        for what, name in CASES:
            seen = ([], [])
            for number in range(args.rounds):
                for kind in ((0, 1) if number % 2 == 0 else (1, 0)):
                    seen[kind].extend(rates(what, args.seconds, kinds[kind]))
            a, b = statistics.median(seen[0]), statistics.median(seen[1])
            error = (error_of_median(seen[0]) ** 2 + error_of_median(seen[1]) ** 2) ** 0.5
            print("| %s | %.2f | %.2f | %.4f ±%.4f | %.2f× | %s |"
                  % (name, a, b, a / b, error / b, GOAL, verdict(a / b, error / b, GOAL)),
                  flush=True)


if __name__ == "__main__":
    main()
