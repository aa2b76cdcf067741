# SPDX-License-Identifier: Apache-2.0
"""What numba-cuda sees. Its compiler needs more of NVIDIA's packages and is not asked."""

import json

import numpy
from numba import cuda


def main():
    numbers = numpy.arange(1000)
    there = cuda.to_device(numbers)
    if not (there.copy_to_host() == numbers).all():
        raise RuntimeError("the array came back as another")
    total = cuda.current_context().get_memory_info().total
    try:
        cuda.device_array(total, dtype=numpy.uint8)
        is_refused = False
    except cuda.cudadrv.driver.CudaAPIError as error:
        is_refused = "OUT_OF_MEMORY" in str(error)
    print(json.dumps({"total_mib": total // 1048576, "is_refused": is_refused}))


main()
