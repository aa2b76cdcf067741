# SPDX-License-Identifier: Apache-2.0
"""train.py NAME FOLDER [serve]: a training loop, which says each half second what it has done; FOLDER/pause-NAME stops it.
serve: requests come at a steady rate instead, and it says how long they took.
train.py fill: takes memory until it is refused.

Without PyTorch the steps are kernels of 2 ms through CUDA's driver API.
"""

import ctypes
import json
import os
import sys
import time

try:
    import torch
except ImportError:
    torch = None

WIDTH, LAYERS, BATCH = 4096, 4, 4096
BLOCK = 256 << 20
BURST = 50  # steps between two looks at the clock
REQUEST_S, PATIENCE_S = 0.05, 1.0
KERNEL = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 duration_ns) {
.reg .pred %p<2>; .reg .b64 %rd<5>;
mov.u64 %rd1, %globaltimer;
ld.param.u64 %rd2, [duration_ns];
add.s64 %rd3, %rd1, %rd2;
SPIN: mov.u64 %rd4, %globaltimer;
setp.lt.u64 %p1, %rd4, %rd3;
@%p1 bra SPIN;
ret; }
"""


class Network:
    """A multi-layer perceptron in bfloat16."""

    def __init__(self):
        torch.manual_seed(0)
        kind = {"device": "cuda", "dtype": torch.bfloat16}
        layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH, **kind), torch.nn.ReLU())
                  for _ in range(LAYERS)]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        self.data = torch.randn(BATCH, WIDTH, **kind)
        self.loss = None

    def step(self):
        self.loss = (self.model(self.data) - self.data).float().square().mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def answer(self):
        with torch.no_grad():
            for _ in range(8):
                self.model(self.data)

    def finish(self):
        torch.cuda.synchronize()

    def say(self):
        return {"loss": round(self.loss.item(), 4), "mib": torch.cuda.memory_reserved() >> 20}

    @staticmethod
    def fill():
        blocks, error = [], None
        try:
            while True:
                blocks.append(torch.empty(BLOCK, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError as e:
            error = e
        return len(blocks), type(error).__name__, str(error)


class Driver:
    """Kernels of a known time."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.need(self.cuda.cuInit(0))
        self.need(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.need(self.cuda.cuCtxSetCurrent(context))
        self.need(self.cuda.cuModuleLoadData(ctypes.byref(module), KERNEL))
        self.need(self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"spin"))
        self.duration_ns = ctypes.c_uint64(2_000_000)
        self.arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.duration_ns))

    @staticmethod
    def need(result):
        if result:
            sys.exit("train: error %d" % result)

    def step(self):
        self.need(self.cuda.cuLaunchKernel(self.kernel, 1, 1, 1, 1, 1, 1, 0, None, self.arguments, None))

    def answer(self):
        for _ in range(4):
            self.step()

    def finish(self):
        self.need(self.cuda.cuCtxSynchronize())

    @staticmethod
    def say():
        return {}

    def fill(self):
        blocks, where = 0, ctypes.c_uint64()
        self.step()  # as a network's weights are made, which nobody waits for
        while not (result := self.cuda.cuMemAlloc_v2(ctypes.byref(where), ctypes.c_size_t(BLOCK))):
            blocks += 1
        return blocks, "error %d" % result, ""


def say(**what):
    print(json.dumps(what), flush=True)


def serve(work, pause):
    """A request that comes while one before it is served waits for it; one that has waited too long is given up."""
    came, said, took, lost = time.time(), time.time(), [], 0
    while True:
        time.sleep(max(0.0, came - time.time()))
        if os.path.exists(pause):
            came = time.time()
        else:
            work.answer()
            work.finish()
            took.append(time.time() - came)
        came += REQUEST_S
        now = time.time()
        while came < now - PATIENCE_S:
            came += REQUEST_S
            lost += 1
        if now >= said + 0.5:
            said = now
            took.sort()
            times = {"p50_ms": round(took[len(took) // 2] * 1e3, 1), "most_ms": round(took[-1] * 1e3, 1)} if took else {}
            say(at=round(now, 3), requests=len(took), lost=lost, **times)
            took, lost = [], 0


def train(work, pause):
    steps, said = 0, 0.0
    while True:
        is_paused = os.path.exists(pause)
        if is_paused:
            time.sleep(0.05)
        else:
            for _ in range(BURST):
                work.step()
            work.finish()
            steps += BURST
        now = time.time()
        if now >= said + 0.5:
            said = now
            say(at=round(now, 3), steps=steps, **(work.say() if steps else {}))


def main():
    begin = time.time()
    work = Network() if torch else Driver()
    if sys.argv[1] == "fill":
        blocks, error, words = work.fill()
        say(mib=blocks * (BLOCK >> 20), error=error, words=words)
        return
    say(program=torch.__version__ if torch else "driver", begin_s=round(time.time() - begin, 1))
    do = serve if sys.argv[3:] == ["serve"] else train
    do(work, os.path.join(sys.argv[2], "pause-" + sys.argv[1]))


main()
