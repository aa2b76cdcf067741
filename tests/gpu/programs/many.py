# SPDX-License-Identifier: Apache-2.0
"""Small programs for Python's GPU libraries: many.py NAME prints what must be the same in a slice.

many.py alone lists the names.
"""

import os
import sys


def torch_convolution():
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                                torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
                                torch.nn.Linear(256, 10)).cuda()
    out = model(torch.randn(8, 3, 64, 64, device="cuda"))
    out.sum().backward()
    return tuple(out.shape), bool(torch.isfinite(out).all())


def torch_recurrent():
    import torch
    torch.manual_seed(0)
    model = torch.nn.LSTM(64, 128, 2, batch_first=True).cuda()
    out, _ = model(torch.randn(4, 20, 64, device="cuda"))
    return tuple(out.shape)


def torch_attention():
    import torch
    q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    return tuple(out.shape)


def torch_linear_algebra():
    import torch
    torch.manual_seed(0)
    a = torch.randn(300, 300, device="cuda", dtype=torch.float64)
    a = a @ a.T + 300 * torch.eye(300, device="cuda", dtype=torch.float64)
    x = torch.linalg.solve(a, torch.ones(300, 1, device="cuda", dtype=torch.float64))
    values = torch.linalg.eigvalsh(a)
    f = torch.fft.fft(a).abs().sum()
    return bool((a @ x - 1).abs().max() < 1e-8), bool(values.min() > 0), bool(f > 0)


def torch_compile():
    import torch
    f = torch.compile(lambda x: (x.sin() + x.cos()).relu().sum())
    x = torch.arange(1000.0, device="cuda")
    return bool((f(x) - (x.sin() + x.cos()).relu().sum()).abs() < 1e-2)


def torch_graph():
    import torch
    x, w = torch.ones(64, 64, device="cuda"), torch.eye(64, device="cuda") * 2
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        for _ in range(3):
            y = (x @ w).relu()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x @ w).relu()
    x.fill_(3)
    g.replay()
    return y.sum().item()


def torch_amp():
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(256, 256).cuda()
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.ones(4, 256, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return bool(torch.isfinite(loss))


def torch_profiler():
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        x = torch.randn(512, 512, device="cuda")
        (x @ x).sum().item()
    return any(e.device_time_total > 0 for e in p.key_averages())


def sharer(queue, done):
    tensor = queue.get()
    tensor.mul_(2)
    done.set()


def torch_shared_tensors():
    import torch
    import torch.multiprocessing as mp
    mp.set_start_method("spawn")
    queue, done = mp.Queue(), mp.Event()
    process = mp.Process(target=sharer, args=(queue, done))
    process.start()
    tensor = torch.ones(1000, device="cuda")
    queue.put(tensor)
    done.wait(60)
    torch.cuda.synchronize()
    total = tensor.sum().item()
    process.join()
    return total, process.exitcode


def torch_loader():
    import torch
    data = torch.utils.data.TensorDataset(torch.arange(256.0))
    loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2, pin_memory=True)
    return sum(batch[0].cuda(non_blocking=True).sum().item() for batch in loader)


def torch_collective():
    import torch
    import torch.distributed as dist
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group("nccl", rank=0, world_size=1)
    x = torch.ones(1000, device="cuda")
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x.sum().item()


def member_of_two(rank):
    import torch
    import torch.distributed as dist
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29534"
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    x = torch.full((16 << 20,), rank + 1.0, device="cuda")
    for _ in range(10):
        dist.all_reduce(x)
        x.div_(2)
    parts = [torch.empty(1000, device="cuda") for _ in range(2)]
    dist.all_gather(parts, torch.full((1000,), float(rank), device="cuda"))
    if rank == 0:
        print("two GPUs", x[0].item(), [part.sum().item() for part in parts], flush=True)
    dist.destroy_process_group()


def torch_two_gpus():
    import torch
    import torch.multiprocessing as mp
    if torch.cuda.device_count() < 2:
        return "one GPU"
    mp.spawn(member_of_two, nprocs=2)
    return "two GPUs"


def torch_memory():
    """What PyTorch frees goes back and can be had again."""
    import torch
    for _ in range(5):
        blocks = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
        del blocks
        torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


def generation():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=4, vocab_size=512)
    model = LlamaForCausalLM(config).cuda().eval()
    out = model.generate(torch.ones(1, 4, dtype=torch.long, device="cuda"), max_new_tokens=16,
                         do_sample=False, pad_token_id=0)
    return tuple(out.shape)


def triton_kernel():
    import torch
    import triton
    import triton.language as tl
    import triton_kernels_of_tests as kernels
    x = torch.arange(5000.0, device="cuda")
    y = torch.empty_like(x)
    kernels.double[(triton.cdiv(5000, 1024),)](x, y, 5000, BLOCK=tl.constexpr(1024))
    return y.sum().item()


def cupy_raw():
    import cupy
    kernel = cupy.RawKernel(r"""extern "C" __global__ void twice(float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }""", "twice")
    x = cupy.arange(1000, dtype=cupy.float32)
    kernel((8,), (128,), (x, 1000))
    return float(x.sum()), float(cupy.fft.fft(x).real[0])


def cupy_texture():
    import cupy
    from cupy.cuda import runtime, texture
    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    array = texture.CUDAarray(channel, 64, 64)
    source = cupy.arange(64 * 64, dtype=cupy.float32).reshape(64, 64)
    array.copy_from(source)
    back = cupy.empty_like(source)
    array.copy_to(back)
    return bool((back == source).all())


def cupy_sparse():
    import cupy
    import cupyx.scipy.sparse as sparse
    eye = sparse.eye(1000, format="csr", dtype=cupy.float32)
    return float((eye @ cupy.ones(1000, dtype=cupy.float32)).sum())


def numba_kernel():
    import numpy
    from numba import cuda

    @cuda.jit
    def twice(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    x = cuda.to_device(numpy.arange(1000.0))
    twice[8, 128](x)
    return float(x.copy_to_host().sum())


def jax_jit():
    import jax
    import jax.numpy as jnp
    f = jax.jit(lambda x: jnp.sin(x @ x.T).sum())
    return bool(jnp.isfinite(f(jnp.ones((256, 256)))))


def jax_gradient():
    import jax
    import jax.numpy as jnp
    g = jax.grad(lambda w: ((jnp.ones((8, 16)) @ w) ** 2).sum())(jnp.ones((16, 4)))
    return float(g.sum())


def onnx_runtime():
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=onnxruntime.get_available_providers())
    return session.run(None, {"x": numpy.array([-1, 2, -3, 4], dtype=numpy.float32)})[0].tolist()


def nvml_python():
    import pynvml
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    return (pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetCount(),
            isinstance(pynvml.nvmlDeviceGetComputeRunningProcesses(handle), list))


def cuda_bindings():
    from cuda.bindings import driver
    driver.cuInit(0)
    _, device = driver.cuDeviceGet(0)
    error, context = driver.cuDevicePrimaryCtxRetain(device)
    assert int(error) == 0, error
    driver.cuCtxSetCurrent(context)
    error, pointer = driver.cuMemAlloc(1 << 20)
    driver.cuMemsetD8(pointer, 7, 1 << 20)
    data = bytearray(16)
    driver.cuMemcpyDtoH(data, pointer, 16)
    return int(error), bytes(data), [int(r) for r in driver.cuMemFree(pointer)]


ALL = {name: value for name, value in list(globals().items())
       if callable(value) and name not in ("sharer", "member_of_two")}


def main():
    if len(sys.argv) < 2:
        print("\n".join(ALL))
        return
    print(sys.argv[1], ALL[sys.argv[1]]())


if __name__ == "__main__":
    main()
