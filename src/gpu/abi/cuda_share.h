/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes and other interfaces: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef CUresult cuIpcGetMemHandle_fn(CUipcMemHandle *handle, CUdeviceptr dptr);
