# SPDX-License-Identifier: Apache-2.0
"""What cuda.bindings sees, which looks up each function with cuGetProcAddress."""

import json

from cuda.bindings import driver


def right(answer):
    """The values of a call that must succeed."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(answer[0]))
    return answer[1] if len(answer) == 2 else answer[1:]


def main():
    right(driver.cuInit(0))
    device = right(driver.cuDeviceGet(0))
    total = right(driver.cuDeviceTotalMem(device))
    right(driver.cuCtxSetCurrent(right(driver.cuDevicePrimaryCtxRetain(device))))
    block = right(driver.cuMemAlloc(256 << 20))
    stream = right(driver.cuStreamCreate(0))
    right(driver.cuMemsetD32Async(block, 7, 1024, stream))
    right(driver.cuStreamWriteValue32(stream, int(block) + 4096, 9, 0))
    right(driver.cuStreamSynchronize(stream))
    host = bytearray(4)
    right(driver.cuMemcpyDtoH(host, int(block) + 4096, 4))
    if host != bytearray([9, 0, 0, 0]):
        raise RuntimeError("the stream wrote %r" % host)
    refused, _ = driver.cuMemAlloc(total)
    print(json.dumps({"total_mib": total // 1048576,
                      "is_refused": refused == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY}))


main()
