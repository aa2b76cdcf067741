#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process of bench/models.py: trains or decodes, and prints how fast as it goes.

    model_steps.py train|train-each|decode|decode-graph SECONDS [FILE [EACH]]

train-each waits for each step, the others for five at a time.
Prints a line each EACH seconds (0.5): the time at its end, by the monotonic clock, steps a second, and the ms
that processors needed to give a step to the device, without the wait for it.
With FILE it says "ready" and begins when the file is there.
"""

import os
import sys
import time

import torch

TOKENS = 1024  # of a text
STEPS = 5  # that are given before they are waited for, but for train-each


def training():
    """A step of a 12 x 2048 wide perceptron with AdamW, as measured elsewhere in docs/performance.md."""
    torch.manual_seed(0)
    layers = []
    for _ in range(12):
        layers += [torch.nn.Linear(2048, 2048), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(512, 2048, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()

    return step


def decoding(as_graph):
    """A token of a small transformer with random weights, whose cache is written in place."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
                         num_attention_heads=16, num_key_value_heads=16, vocab_size=8192, max_position_embeddings=TOKENS)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    cache = StaticCache(config=config, max_cache_len=TOKENS)
    token = torch.ones(1, 1, dtype=torch.long, device="cuda")
    position = torch.zeros(1, 1, dtype=torch.long, device="cuda")

    def one():
        with torch.no_grad():
            logits = model(token, position_ids=position, past_key_values=cache,
                           use_cache=True).logits
        token.copy_(logits[:, -1:].argmax(-1))
        position.add_(1)

    done = 0

    def again(step):
        """The same with a text that begins anew before the cache is full."""
        nonlocal done
        done += 1
        if done % (TOKENS // 2) == 0:
            cache.reset()
            position.zero_()
        step()

    if not as_graph:
        return lambda: again(one)
    for _ in range(3):
        one()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one()
    return lambda: again(graph.replay)


def main():
    what, seconds = sys.argv[1], float(sys.argv[2])
    step = training() if what.startswith("train") else decoding(what == "decode-graph")
    together = 1 if what == "train-each" else STEPS
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    if len(sys.argv) > 3:
        print("ready", flush=True)
        while not os.path.exists(sys.argv[3]):
            time.sleep(0.001)
    each = float(sys.argv[4]) if len(sys.argv) > 4 else 0.5
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start, count, giving = time.monotonic(), 0, 0
        while time.monotonic() < start + each:
            before = time.process_time()
            for _ in range(together):
                step()
            giving += time.process_time() - before
            torch.cuda.synchronize()
            count += together
        now = time.monotonic()
        print("%.6f %.3f %.3f" % (now, count / (now - start), 1000 * giving / count), flush=True)


if __name__ == "__main__":
    main()
