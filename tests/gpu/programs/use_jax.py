# SPDX-License-Identifier: Apache-2.0
"""JAX until it is refused; see frameworks.py for the conversation."""

import ctypes
import json
import sys

import jax
import jax.numpy as jnp

BLOCK = 256 << 20


def train():
    """A few steps down a gradient; whether the loss falls."""
    data = jax.random.normal(jax.random.PRNGKey(0), (512, 256))

    def loss(w):
        return jnp.mean((jnp.tanh(data @ w) - 0.5) ** 2)

    step, w = jax.jit(jax.value_and_grad(loss)), jnp.zeros((256, 1))
    first, _ = step(w)
    for _ in range(10):
        value, gradient = step(w)
        w = w - 0.1 * gradient
    return bool(value < first)


def total_bytes():
    """What the driver says of the card in this process, in the context that JAX made."""
    total, free = ctypes.c_size_t(), ctypes.c_size_t()
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
    cuda.cuDevicePrimaryCtxRelease_v2(0)
    return total.value


def main():
    works = train()
    blocks, error, is_ordinary = [], "none", False
    try:
        while len(blocks) < 64:
            block = jnp.zeros(BLOCK, dtype=jnp.uint8)
            blocks.append(block.block_until_ready())
    except Exception as e:  # which one is the question
        error, is_ordinary = type(e).__name__, "RESOURCE_EXHAUSTED" in str(e)
    print(json.dumps({"total": total_bytes(), "works": works, "blocks": len(blocks), "error": error,
                      "is_ordinary": is_ordinary}), flush=True)
    sys.stdin.readline()
    blocks.clear()
    print(json.dumps({"works": train()}), flush=True)


main()
