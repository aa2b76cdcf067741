# SPDX-License-Identifier: Apache-2.0
"""Kernels of many.py: Triton reads their source, so they are in a file."""

import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)
