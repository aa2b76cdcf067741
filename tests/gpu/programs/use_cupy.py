# SPDX-License-Identifier: Apache-2.0
"""CuPy until it is refused; see frameworks.py for the conversation."""

import json
import sys

import cupy

BLOCK = 256 << 20


def compute():
    """Whether a product of matrices is right."""
    a = cupy.arange(64 * 64, dtype=cupy.float32).reshape(64, 64) % 7
    return bool(cupy.allclose(a @ cupy.eye(64, dtype=cupy.float32), a))


def main():
    if sys.argv[1] == "async":
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    works = compute()
    _, total = cupy.cuda.runtime.memGetInfo()
    blocks, error, is_ordinary = [], "none", False
    try:
        while len(blocks) < 64:
            blocks.append(cupy.empty(BLOCK, dtype=cupy.uint8))
    except Exception as e:  # which one is the question
        error = type(e).__name__
        is_ordinary = isinstance(e, cupy.cuda.memory.OutOfMemoryError) or \
            "cudaErrorMemoryAllocation" in str(e)
    print(json.dumps({"total": total, "works": works, "blocks": len(blocks), "error": error,
                      "is_ordinary": is_ordinary}), flush=True)
    sys.stdin.readline()
    blocks.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.cuda.Device().synchronize()
    print(json.dumps({"works": compute()}), flush=True)


main()
