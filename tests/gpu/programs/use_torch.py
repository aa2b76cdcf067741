# SPDX-License-Identifier: Apache-2.0
"""PyTorch until it is refused; see frameworks.py for the conversation."""

import json
import sys

import torch

BLOCK = 256 << 20


def train():
    """A few steps of a small network; whether its loss falls."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data, losses = torch.randn(512, 256, device="cuda"), []
    for _ in range(10):
        loss = (model(data) - data.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0]


def main():
    works = train()
    _, total = torch.cuda.mem_get_info()
    blocks, error, is_ordinary = [], "none", False
    try:
        while len(blocks) < 64:
            blocks.append(torch.empty(BLOCK, dtype=torch.uint8, device="cuda"))
    except Exception as e:  # which one is the question
        error, is_ordinary = type(e).__name__, isinstance(e, torch.cuda.OutOfMemoryError)
    print(json.dumps({"total": total, "works": works, "blocks": len(blocks), "error": error,
                      "is_ordinary": is_ordinary}), flush=True)
    sys.stdin.readline()
    blocks.clear()
    torch.cuda.empty_cache()
    print(json.dumps({"works": train()}), flush=True)


main()
