# SPDX-License-Identifier: Apache-2.0
"""What PyTorch sees: kernels change nothing on the simulated node, all else is as on a card."""

import json

import torch


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    if torch.cuda.mem_get_info()[1] != total:
        raise RuntimeError("the device and its memory have two sizes")
    numbers = torch.arange(1000)
    there = numbers.to("cuda")
    if not torch.equal(there.cpu(), numbers):
        raise RuntimeError("the tensor came back as another")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        there.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    try:
        torch.empty(total, dtype=torch.uint8, device="cuda")
        is_refused = False
    except torch.OutOfMemoryError:
        is_refused = True
    print(json.dumps({"total_mib": total // 1048576, "is_refused": is_refused}))


main()
